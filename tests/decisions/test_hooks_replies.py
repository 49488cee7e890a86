"""Hooks after a reply, between rounds, and around the listing of tools."""

from typing import Any

import pytest

from antiphon import (
    Agent,
    AssistantMessage,
    Hooks,
    Limits,
    ListedTools,
    MessageFinished,
    Stop,
    Text,
    ToolRequested,
    Usage,
    UseReply,
    UseTools,
    validate,
)
from antiphon.testing import Scripted

from .scenes import Bodies, Spy, call, outcome, outcomes, replies, results

pytestmark = pytest.mark.anyio


def offered(model: Scripted) -> list[list[str]]:
    """The tools that each request offered."""
    return [[tool.name for tool in request.tools] for request in model.requests]


# after_model_response


@pytest.mark.parity("A8")
async def test_a_reply_may_be_replaced_and_only_the_new_one_exists() -> None:
    model = Scripted(["secret", Usage(input=3, output=4)])
    hooks = Hooks(after_model_response=lambda _: UseReply(message=AssistantMessage(parts=(Text("***"),))))
    result, recording = await outcome(Agent(model, hooks=hooks))
    assert result.text == "***"
    assert replies([event.message for event in recording.of(MessageFinished)])[0].text == "***"
    assert (result.usage.input, result.usage.output) == (3, 4), "what was paid for stays counted"
    recording.check()


@pytest.mark.parity("A8")
async def test_a_replaced_message_without_calls_calls_nothing() -> None:
    bodies = Bodies()
    hooks = Hooks(after_model_response=lambda _: UseReply(message=AssistantMessage(parts=(Text("no"),))))
    result, recording = await outcome(Agent(Scripted([call("a")]), tools=[bodies.tool("a")], hooks=hooks))
    assert (result.status, bodies.ran, recording.of(ToolRequested)) == ("done", [], [])


@pytest.mark.parity("A8")
async def test_calls_may_be_replaced_added_and_taken_away() -> None:
    bodies = Bodies()

    def other(context: Any) -> Any:
        return {1: UseReply(calls=[call("b")]), 2: UseReply(calls=[call("a")]), 3: UseReply(calls=[])}[context.step]

    model = Scripted(["first", call("a")], "no calls at all", ["last", call("a")])
    agent = Agent(model, tools=[bodies.tool("a"), bodies.tool("b")], hooks=Hooks(after_model_response=other))
    result = await agent.run("go")
    assert bodies.names == ["b", "a"]
    assert result.status == "done"
    assert [reply.text for reply in replies(result.messages)] == ["first", "no calls at all", "last"]
    assert validate(result.messages) == []


@pytest.mark.parity("A8")
async def test_calls_with_empty_or_repeated_ids_from_a_hook_are_refused() -> None:
    hooks = Hooks(after_model_response=lambda _: UseReply(calls=[call("a", "x"), call("a", "x")]))
    result, _ = await outcome(Agent(Scripted("hi"), tools=[Bodies().tool("a")], hooks=hooks))
    assert result.status == "error"
    assert "repeated ids: ['x', 'x']" in str(result.error)


@pytest.mark.parity("A8")
@pytest.mark.parity("A13")
async def test_a_stop_after_a_reply_keeps_it_and_runs_none_of_its_calls() -> None:
    bodies = Bodies()
    hooks = Hooks(after_model_response=lambda _: Stop("seen enough"))
    result, recording = await outcome(
        Agent(Scripted(["I will", call("a")]), tools=[bodies.tool("a")], hooks=hooks),
    )
    recording.check()
    assert (result.status, result.reason, bodies.ran) == ("stopped", "seen enough", [])
    assert result.text == "I will"
    assert [message.outcome for message in results(result.messages)] == ["not_run"]
    assert validate(result.messages) == []


@pytest.mark.parity("A8")
async def test_it_is_asked_about_complete_replies_only() -> None:
    """A reply that was lost half way, or that failed, is none."""
    spy = Spy()
    model = Scripted(["half", ConnectionError("gone")])
    result, _ = await outcome(Agent(model, hooks=spy.hooks()))
    assert result.status == "error"
    assert spy.at("after_model_response") == []


# should_continue


@pytest.mark.parity("A13")
async def test_should_continue_false_ends_as_done_and_no_request_follows() -> None:
    model = Scripted([call("a")], "never")
    agent = Agent(model, tools=[Bodies().tool("a")], hooks=Hooks(should_continue=lambda _: False))
    result, recording = await outcome(agent)
    recording.check()
    assert (result.status, len(model.requests)) == ("done", 1)
    assert outcomes(result.messages) == {"a-1": "ok"}


@pytest.mark.parity("A13")
async def test_should_continue_true_cannot_pass_a_limit() -> None:
    asked_for = []
    model = Scripted([call("a")], "never")
    hooks = Hooks(should_continue=lambda context: asked_for.append(context) or True)
    agent = Agent(model, tools=[Bodies().tool("a")], hooks=hooks, limits=Limits(turns=1))
    result = await agent.run("go")
    assert (result.status, asked_for) == ("limit", []), "it is asked when the built-in rules allow another round"


@pytest.mark.parity("A13")
async def test_the_first_no_counts() -> None:
    seen: list[str] = []
    hooks = Hooks(should_continue=lambda _: seen.append("agent") or False)
    agent = Agent(Scripted([call("a")]), tools=[Bodies().tool("a")], hooks=hooks)
    await agent.run("go", hooks=Hooks(should_continue=lambda _: seen.append("run")))
    assert seen == ["agent"]


# Tools hooks


@pytest.mark.parity("A21")
async def test_without_a_source_the_after_hook_is_asked_once_with_the_runs_own_tools() -> None:
    spy = Spy()
    agent = Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a")], hooks=spy.hooks())
    await agent.run("go")
    assert spy.at("before_tools_resolved") == []
    (context,) = spy.at("after_tools_resolved")
    assert (context.why, context.source, [tool.name for tool in context.tools]) == ("initial", None, ["a"])


@pytest.mark.parity("A21")
@pytest.mark.parity("A6")
async def test_tools_hooks_are_told_why_and_for_which_source() -> None:
    spy = Spy()
    shelf = ListedTools("shelf", [Bodies().tool("book")])
    grow = Bodies().tool("grow", lambda _: shelf.set([Bodies().tool("book"), Bodies().tool("map")]))
    agent = Agent(Scripted([call("grow")], "ok"), tools=[grow], sources=[shelf], hooks=spy.hooks())
    await agent.run("go")
    assert [(context.why, context.source) for context in spy.at("before_tools_resolved")] == [
        ("initial", shelf),
        ("refresh", shelf),
    ]
    assert [[tool.name for tool in context.tools] for context in spy.at("after_tools_resolved")] == [
        ["grow", "book"],
        ["grow", "book", "map"],
    ]


@pytest.mark.parity("A6")
async def test_tools_may_be_replaced_after_a_listing() -> None:
    model = Scripted([call("b"), call("a")], "ok")
    bodies = Bodies()
    hooks = Hooks(after_tools_resolved=lambda context: UseTools([t for t in context.tools if t.name != "a"]))
    agent = Agent(model, tools=[bodies.tool("a"), bodies.tool("b")], hooks=hooks)
    result = await agent.run("go")
    assert offered(model) == [["b"], ["b"]]
    assert outcomes(result.messages) == {"b-1": "ok", "a-1": "error"}


@pytest.mark.parity("A6")
@pytest.mark.parity("A13")
async def test_a_stop_after_a_listing_asks_no_model() -> None:
    model = Scripted("never")
    result, recording = await outcome(Agent(model, hooks=Hooks(after_tools_resolved=lambda _: Stop("no tools"))))
    recording.check()
    assert (result.status, result.reason, model.requests) == ("stopped", "no tools", [])


@pytest.mark.parity("C21")
async def test_on_payload_and_on_warning_reach_the_application() -> None:
    """They are no decision points of the table, but stand in the same record, sync or async."""
    warned: list[tuple[str, str]] = []

    async def told(code: str, text: str) -> None:
        warned.append((code, text))

    tool = Bodies().tool("a", float("nan"))
    agent = Agent(Scripted([call("a")], "ok"), tools=[tool], hooks=Hooks(on_warning=told))
    result = await agent.run("go")
    assert warned == list(result.warnings)
    assert len(warned) == 1
