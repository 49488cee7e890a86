"""Hooks around requests and replies: what each is given, and what each answer does."""

from typing import Any

import pytest

from antiphon import (
    Agent,
    AssistantMessage,
    ContextReplaced,
    CustomMessage,
    Hooks,
    Limits,
    ModelSettings,
    Stop,
    Text,
    TextDelta,
    UseContext,
    UseRequest,
    UserMessage,
    UseTools,
    validate,
)
from antiphon.testing import Scripted

from .scenes import Bodies, Spy, call, finished, outcome, outcomes, replies, said, texts

pytestmark = pytest.mark.anyio


def asked(model: Scripted, number: int) -> list[str]:
    """The texts of the messages of a request."""
    return said(model.requests[number].messages)


def offered(model: Scripted) -> list[list[str]]:
    """The tools that each request offered."""
    return [[tool.name for tool in request.tools] for request in model.requests]


# What they are given


@pytest.mark.parity("A6")
async def test_model_hooks_are_given_step_limit_messages_tools_and_settings() -> None:
    spy = Spy()
    tools = [Bodies().tool("a"), Bodies().tool("b")]
    settings = ModelSettings(temperature=0.5)
    agent = Agent(Scripted([call("a")], "ok"), tools=tools, hooks=spy.hooks(), limits=Limits(turns=7))
    result = await agent.run("go", settings=settings, deps="mine")
    for point in ("prepare_context", "before_model_request", "after_model_response"):
        contexts = spy.at(point)
        assert [context.step for context in contexts] == [1, 2], point
        assert [context.limit for context in contexts] == [7, 7]
        assert [[tool.name for tool in context.tools] for context in contexts] == [["a", "b"]] * 2
        assert [len(context.messages) for context in contexts] == [1, 3]
        assert contexts[0].settings.temperature == 0.5
    assert {context.run_id for _, _, context in spy.seen} == {result.run_id}
    assert all(context.cancel.cancelled for _, _, context in spy.seen), "the run is over"
    assert {context.deps for _, _, context in spy.seen} == {"mine"}


@pytest.mark.parity("A6")
async def test_should_continue_is_given_the_results_of_the_round() -> None:
    spy = Spy()
    tools = [Bodies().tool("a", "first"), Bodies().tool("b", "second")]
    script = Scripted([call("a"), call("b")], [call("b", "b2")], "ok")
    await Agent(script, tools=tools, hooks=spy.hooks(), limits=Limits(turns=9)).run("go")
    rounds = spy.at("should_continue")
    assert [[result.text for result in context.results] for context in rounds] == [["first", "second"], ["second"]]
    assert [(context.step, context.limit) for context in rounds] == [(1, 9), (2, 9)]


@pytest.mark.parity("A6")
async def test_on_run_start_is_given_the_whole_input() -> None:
    """A hook that checks what a person said must see it before anything happens."""
    spy = Spy()
    history = [UserMessage.of("old"), AssistantMessage(parts=(Text("yes"),))]
    await Agent(Scripted("ok"), hooks=spy.hooks()).run("new", messages=history)
    assert [message.text for message in spy.at("on_run_start")[0].messages] == ["old", "yes", "new"]


# before_model_request


@pytest.mark.parity("A7")
async def test_messages_of_a_request_hook_are_for_that_request_only() -> None:
    model = Scripted([call("a")], "ok")

    def whisper(context: Any) -> Any:
        return UseRequest(messages=(*context.messages, UserMessage.of("psst"))) if context.step == 1 else None

    agent = Agent(model, tools=[Bodies().tool("a")], hooks=Hooks(before_model_request=whisper))
    result = await agent.run("go")
    assert asked(model, 0) == ["go", "psst"]
    assert asked(model, 1) == ["go", "", "a"]
    assert said(result.messages) == ["go", "", "a", "ok"]


@pytest.mark.parity("A7")
@pytest.mark.parity("A6")
async def test_the_run_sees_what_the_agent_made_of_the_request() -> None:
    model = Scripted("ok")

    def add(text: str, name: str, temperature: float) -> Any:
        def hook(context: Any) -> UseRequest:
            seen.append((len(context.messages), [tool.name for tool in context.tools], context.settings.temperature))
            return UseRequest(
                messages=(*context.messages, UserMessage.of(text)),
                tools=(*context.tools, Bodies().tool(name)),
                settings=ModelSettings(temperature=temperature),
            )

        return hook

    seen: list[Any] = []
    agent = Agent(model, tools=[Bodies().tool("a")], hooks=Hooks(before_model_request=add("x", "b", 0.1)))
    await agent.run("go", hooks=Hooks(before_model_request=add("y", "c", 0.2)), settings=ModelSettings(seed=3))
    assert seen == [(1, ["a"], None), (2, ["a", "b"], 0.1)]
    assert asked(model, 0) == ["go", "x", "y"]
    assert offered(model) == [["a", "b", "c"]]
    assert (model.requests[0].settings.temperature, model.requests[0].settings.seed) == (0.2, 3)


@pytest.mark.parity("A7")
async def test_tools_of_a_request_hook_are_offered_and_executed_from_in_this_turn_only() -> None:
    """A hidden tool that could be called all the same is not hidden; an added one that could not be called is a trap."""
    model = Scripted([call("hidden"), call("added")], [call("hidden", "h2"), call("added", "a2")], "ok")
    bodies = Bodies()

    def swap(context: Any) -> Any:
        return UseRequest(tools=[bodies.tool("added")]) if context.step == 1 else None

    agent = Agent(model, tools=[bodies.tool("hidden")], hooks=Hooks(before_model_request=swap))
    result = await agent.run("go")
    assert offered(model) == [["added"], ["hidden"], ["hidden"]]
    assert outcomes(result.messages) == {"hidden-1": "error", "added-1": "ok", "h2": "ok", "a2": "error"}
    assert bodies.names == ["added", "hidden"]
    assert "no tool named 'hidden'" in texts(result.messages)["hidden-1"]


@pytest.mark.parity("A7")
async def test_an_empty_list_of_tools_is_a_list() -> None:
    model = Scripted("ok")
    agent = Agent(model, tools=[Bodies().tool("a")], hooks=Hooks(before_model_request=lambda _: UseRequest(tools=[])))
    await agent.run("go")
    assert offered(model) == [[]]


@pytest.mark.parity("A7")
@pytest.mark.parametrize("point", ["before_model_request", "after_tools_resolved"])
async def test_repeated_tool_names_from_a_hook_end_the_run_and_are_named(point: str) -> None:
    twice = [Bodies().tool("twin"), Bodies().tool("twin")]
    answer = UseTools(twice) if point == "after_tools_resolved" else UseRequest(tools=twice)
    model = Scripted("never")
    result, recording = await outcome(Agent(model, hooks=Spy(**{point: answer}).hooks(point)))
    recording.check()
    assert result.status == "error"
    assert "'twin'" in str(result.error)
    assert point in str(result.error)
    assert model.requests == []


@pytest.mark.parity("A7")
async def test_a_request_that_cannot_be_sent_is_an_error_that_names_the_message() -> None:
    """A provider would answer with a sentence about its own format; nothing is sent."""
    model = Scripted("never")
    reply = AssistantMessage(parts=(call("a"),))

    def break_it(context: Any) -> UseRequest:
        return UseRequest(messages=(*context.messages, reply, UserMessage.of("and?")))

    result, _ = await outcome(Agent(model, hooks=Hooks(before_model_request=break_it)))
    assert result.status == "error"
    assert "message 1: call 'a-1' has no result" in str(result.error)
    assert model.requests == []


@pytest.mark.parity("A7")
@pytest.mark.parity("A13")
async def test_a_stop_before_a_request_sends_nothing() -> None:
    model = Scripted("never")
    result, recording = await outcome(
        Agent(model, hooks=Hooks(before_model_request=lambda _: Stop("not on my watch"))),
    )
    recording.check()
    assert (result.status, result.reason, model.requests) == ("stopped", "not on my watch", [])
    assert said(result.messages) == ["go"]
    assert recording.of(TextDelta) == []


@pytest.mark.parity("C5")
async def test_a_request_hook_sees_the_applications_messages_and_conversion_comes_last() -> None:
    """The hook works with what the application knows; what the model understands is made of that."""
    model = Scripted("ok")

    def look(context: Any) -> UseRequest:
        assert isinstance(context.messages[0], CustomMessage)
        return UseRequest(messages=(*context.messages, CustomMessage(kind="note", data="second")))

    def convert(messages: Any, _cancel: Any) -> list[Any]:
        notes = [UserMessage.of(f"note: {m.data}") for m in messages if isinstance(m, CustomMessage)]
        return [m for m in messages if not isinstance(m, CustomMessage)] + notes

    agent = Agent(model, hooks=Hooks(before_model_request=look), to_model=convert)
    await agent.run("go", messages=[CustomMessage(kind="note", data="first")])
    assert asked(model, 0) == ["go", "note: first", "note: second"]


# prepare_context


@pytest.mark.parity("C5")
async def test_prepare_context_replaces_messages_and_model_from_here_on() -> None:
    first, second = Scripted([call("a")]), Scripted("ok")

    def shorten(context: Any) -> Any:
        if context.step == 2:
            return UseContext(messages=[UserMessage.of("in short: go on")], model=second)
        return None

    agent = Agent(first, tools=[Bodies().tool("a")], hooks=Hooks(prepare_context=shorten))
    result, recording = await outcome(agent)
    assert asked(second, 0) == ["in short: go on"]
    assert said(result.messages) == ["in short: go on", "ok"]
    assert recording.one(ContextReplaced).model == second.info
    assert validate(result.messages) == []


@pytest.mark.parity("C5")
async def test_a_failing_prepare_context_applies_nothing_and_is_shown() -> None:
    """The first hook's replacement would be half a decision."""
    model = Scripted("never")
    hooks = Hooks(prepare_context=lambda _: UseContext(messages=[UserMessage.of("half")]))

    def fail(context: Any) -> None:
        assert [message.text for message in context.messages] == ["half"]
        raise RuntimeError("no summary")

    result, recording = await finished(Agent(model, hooks=hooks).run("go", hooks=Hooks(prepare_context=fail)))
    recording.check()
    assert (result.status, model.requests) == ("error", [])
    assert [message.text for message in result.messages if isinstance(message, UserMessage)] == ["go"]
    assert recording.of(ContextReplaced) == []
    assert "no summary" in str(replies(result.messages)[-1].error)


@pytest.mark.parity("C5")
async def test_prepare_context_refuses_messages_that_cannot_be_sent() -> None:
    model = Scripted("never")
    broken = UseContext(messages=[UserMessage.of("go"), AssistantMessage(parts=(call("a"),)), UserMessage.of("so?")])
    result, _ = await outcome(Agent(model, hooks=Hooks(prepare_context=lambda _: broken)))
    assert (result.status, model.requests) == ("error", [])
    assert "prepare_context" in str(result.error)
    assert "1: call 'a-1' has no result" in str(result.error)


@pytest.mark.parity("A6")
async def test_between_turns_the_hooks_see_the_runs_own_tools_again() -> None:
    """What one request was given is that request's alone, in the eyes of the next hooks too."""
    spy = Spy(before_model_request=lambda context: UseRequest(tools=[]) if context.step == 1 else None)
    agent = Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a")], hooks=spy.hooks())
    await agent.run("go")
    assert [len(context.tools) for context in spy.at("prepare_context")] == [1, 1]
