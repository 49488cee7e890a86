"""Which tool a model may or must call, and the call that the application makes in its place."""

import json
from typing import Any

import pytest

from antiphon import (
    Agent,
    Approve,
    AssistantMessage,
    Deny,
    Dropped,
    ForcedCall,
    Hooks,
    LimitReached,
    Limits,
    ListedTools,
    MessageFinished,
    ModelSettings,
    Recovery,
    ToolCall,
    ToolFinished,
    ToolRequested,
    ToolResult,
    UsageError,
    UseArguments,
    UseRequest,
    UserMessage,
    validate,
)
from antiphon.testing import Scripted
from antiphon.types.request import CallChunk, FinishChunk

from .scenes import CITY, Bodies, Spy, call, finished, outcome, outcomes, replies, said, texts

pytestmark = pytest.mark.anyio


def choices(model: Scripted) -> list[tuple[str, list[str]]]:
    """The choice and the tools of each request."""
    return [(request.tool_choice, [tool.name for tool in request.tools]) for request in model.requests]


# Requests carry what they are given


@pytest.mark.parity("B5")
async def test_a_request_carries_messages_settings_session_and_meta_untouched() -> None:
    meta = {"opaque": object()}
    model = Scripted([call("a")], "ok")
    agent = Agent(model, tools=[Bodies().tool("a")], settings=ModelSettings(extra_body={"seed": 7}))
    await agent.run("go", session_id="s1", meta=meta, settings=ModelSettings(temperature=0.5))
    for request in model.requests:
        assert (request.session_id, request.meta is meta) == ("s1", True)
        assert (request.settings.temperature, request.settings.extra_body) == (0.5, {"seed": 7})
    assert len(model.requests[0].messages) == 1, "a request that was made never grows"


@pytest.mark.parity("B5")
@pytest.mark.parity("C20")
async def test_a_run_may_use_another_model() -> None:
    other = Scripted("from the other")
    result = await Agent(Scripted("never")).run("go", model=other)
    assert result.text == "from the other"


# Words


@pytest.mark.parity("B6")
async def test_auto_offers_the_tools_every_time() -> None:
    model = Scripted([call("a")], "ok")
    await Agent(model, tools=[Bodies().tool("a")]).run("go")
    assert choices(model) == [("auto", ["a"]), ("auto", ["a"])]


@pytest.mark.parity("B6")
async def test_none_sends_no_tools_in_the_whole_run_and_a_call_made_anyway_is_not_run() -> None:
    """It is a promise of the library, not a wish to the model."""
    bodies = Bodies()
    model = Scripted([call("a")], [call("a", "again")], "fine")
    agent = Agent(model, tools=[bodies.tool("a", instructions="Use a often.")], instructions="Be brief.")
    result, recording = await outcome(agent, tool_choice="none")
    recording.check()
    assert choices(model) == [("auto", [])] * 3
    assert [request.instructions for request in model.requests] == ["Be brief."] * 3
    assert (bodies.ran, outcomes(result.messages)) == ([], {"a-1": "not_run", "again": "not_run"})
    assert "switched off" in texts(result.messages)["a-1"]
    assert [event.outcome for event in recording.of(ToolFinished)] == ["not_run", "not_run"]
    assert result.status == "done"


@pytest.mark.parity("B6")
async def test_none_asks_no_source_for_the_called_name_and_no_hook_before_it() -> None:
    asked: list[str] = []

    class Finder(ListedTools):
        def find(self, name: str) -> None:
            asked.append(name)

    spy = Spy()
    agent = Agent(Scripted([call("a")], "ok"), sources=[Finder("f")], hooks=spy.hooks())
    await agent.run("go", tool_choice="none")
    assert (asked, spy.at("before_tool_execute")) == ([], [])


@pytest.mark.parity("B6")
@pytest.mark.parametrize("choice", ["a", "required"])
async def test_a_forced_name_and_required_hold_for_the_first_request_then_auto(choice: str) -> None:
    """Forced for ever, a model could never answer."""
    model = Scripted([call("a")], "ok")
    await Agent(model, tools=[Bodies().tool("a"), Bodies().tool("b")]).run("go", tool_choice=choice)
    assert choices(model) == [(choice, ["a", "b"]), ("auto", ["a", "b"])]


@pytest.mark.parity("B6")
async def test_a_repeated_attempt_keeps_its_choice() -> None:
    model = Scripted([Dropped("lost")], [call("a")], "ok")
    agent = Agent(model, tools=[Bodies().tool("a")], recovery=Recovery(delay=0, jitter=0))
    await agent.run("go", tool_choice="a")
    assert [choice for choice, _ in choices(model)] == ["a", "a", "auto"]


@pytest.mark.parity("B6")
async def test_a_name_that_no_tool_has_is_refused() -> None:
    agent = Agent(Scripted("never"), tools=[Bodies().tool("search")])
    with pytest.raises(UsageError, match="'serch' names no tool; the tools are: search"):
        agent.run("go", tool_choice="serch")
    with pytest.raises(UsageError, match="names no tool"):
        agent.run("go", tool_choice=ForcedCall("serch"))


@pytest.mark.parity("B6")
async def test_a_name_may_come_from_a_source_and_is_checked_once_it_is_known() -> None:
    """A provider would answer with a sentence about its own fields."""
    source = ListedTools("shelf", [Bodies().tool("book")])
    model = Scripted([call("book")], "ok")
    await Agent(model, sources=[source]).run("go", tool_choice="book")
    assert choices(model)[0] == ("book", ["book"])
    result, _ = await outcome(Agent(Scripted("never"), sources=[source]), tool_choice="bok")
    assert result.status == "error"
    assert "no tool named 'bok'; did you mean 'book'?" in str(result.error)


# The forced call


@pytest.mark.parity("B7")
async def test_a_forced_call_runs_without_the_model_and_its_result_is_in_the_first_request() -> None:
    bodies = Bodies()
    model = Scripted("it rains")
    agent = Agent(model, tools=[bodies.tool("weather", {"sky": "grey"}, CITY)])
    result, recording = await outcome(agent, tool_choice=ForcedCall("weather", {"city": "Oslo"}))
    recording.check()
    assert bodies.ran == [("weather", {"city": "Oslo", "unit": "C", "days": [1]})]
    assert said(model.requests[0].messages) == ["go", "", '{"sky":"grey"}']
    assert choices(model) == [("auto", [])], "after it the model answers"
    assert said(result.messages) == ["go", "", '{"sky":"grey"}', "it rains"]
    assert (result.turns, result.requests) == (1, 1), "it costs no turn and no request"
    assert validate(result.messages) == []
    kinds = [kind for kind in recording.kinds() if kind.startswith("tool_") or kind == "turn_started"]
    assert kinds == ["tool_requested", "tool_started", "tool_finished", "turn_started"]


@pytest.mark.parity("B7")
async def test_without_a_prompt_too() -> None:
    model = Scripted("ok")
    agent = Agent(model, tools=[Bodies().tool("a")])
    result, _ = await finished(agent.run(messages=[UserMessage.of("go")], tool_choice=ForcedCall("a")))
    assert said(result.messages) == ["go", "", "a", "ok"]


@pytest.mark.parity("B7")
async def test_calls_the_model_makes_after_a_forced_one_are_not_run() -> None:
    """Forced tools must not loop."""
    bodies = Bodies()
    model = Scripted([call("a")], "ok")
    result, _ = await outcome(Agent(model, tools=[bodies.tool("a")]), tool_choice=ForcedCall("a"))
    assert (bodies.names, list(outcomes(result.messages).values())) == (["a"], ["ok", "not_run"])


@pytest.mark.parity("B7")
async def test_a_forced_call_passes_the_same_checks_as_any_other() -> None:
    """In the reference it skipped approval and limits: whoever forces a call is no person."""
    bodies = Bodies()
    spy = Spy(before_tool_execute=UseArguments({"city": "Rome"}))
    approver_saw: list[Any] = []

    def approver(context: Any) -> Approve:
        approver_saw.append(context.arguments["city"])
        return Approve({"city": "Bonn"})

    tool = bodies.tool("weather", None, CITY, needs_approval=True)
    agent = Agent(Scripted("ok"), tools=[tool], hooks=spy.hooks(), approver=approver)
    await agent.run("go", tool_choice=ForcedCall("weather", {"city": "Oslo"}))
    assert (approver_saw, bodies.ran[0][1]["city"]) == (["Rome"], "Bonn")
    assert [context.step for context in spy.at("before_tool_execute")] == [0]


@pytest.mark.parity("B7")
async def test_a_forced_call_may_be_refused_and_the_model_is_told() -> None:
    bodies = Bodies()
    model = Scripted("I understand")
    agent = Agent(model, tools=[bodies.tool("a")], policy=lambda _: Deny("not today"))
    result, _ = await outcome(agent, tool_choice=ForcedCall("a"))
    assert (bodies.ran, result.status) == ([], "done")
    assert "not today" in said(model.requests[0].messages)[-1]


@pytest.mark.parity("B7")
async def test_a_forced_call_may_pause_the_run() -> None:
    bodies = Bodies()
    model = Scripted("ok")
    agent = Agent(model, tools=[bodies.tool("a", needs_approval=True)])
    forced = ForcedCall("a")
    paused, _ = await outcome(agent, tool_choice=forced)
    (pending,) = paused.pending
    assert (paused.status, bodies.ran) == ("paused", [])
    state = json.loads(json.dumps(paused.state))
    result, _ = await finished(agent.run(resume=state, decisions={pending.id: Approve()}, tool_choice=forced))
    assert (result.status, bodies.names, choices(model)) == ("done", ["a"], [("auto", [])])


@pytest.mark.parity("B7")
@pytest.mark.parity("B14")
@pytest.mark.parametrize("limit", [{"max_calls": 0}, {"max_turns": 0}])
async def test_a_forced_call_keeps_to_its_tools_limit(limit: Any) -> None:
    bodies = Bodies()
    agent = Agent(Scripted("ok"), tools=[bodies.tool("a", **limit)])
    result, recording = await outcome(agent, tool_choice=ForcedCall("a"))
    assert (bodies.ran, list(outcomes(result.messages).values())) == ([], ["not_run"])
    assert recording.one(LimitReached).scope == "tool"


@pytest.mark.parity("B7")
async def test_a_forced_call_counts_in_the_limit_of_calls() -> None:
    result, _ = await outcome(
        Agent(Scripted("never"), tools=[Bodies().tool("a")], limits=Limits(tool_calls=1)),
        tool_choice=ForcedCall("a"),
    )
    assert result.status == "limit"


@pytest.mark.parity("B7")
async def test_bad_arguments_of_a_forced_call_are_an_error_result() -> None:
    bodies = Bodies()
    agent = Agent(Scripted("ok"), tools=[bodies.tool("weather", None, CITY)])
    result, _ = await outcome(agent, tool_choice=ForcedCall("weather", {"town": "Oslo"}))
    assert (bodies.ran, list(outcomes(result.messages).values())) == ([], ["error"])


@pytest.mark.parity("B7")
async def test_an_end_of_turn_of_a_forced_call_ends_the_run_without_the_model() -> None:
    model = Scripted("never")
    agent = Agent(model, tools=[Bodies().tool("a", ToolResult("bye", end_turn=True))])
    result, _ = await outcome(agent, tool_choice=ForcedCall("a"))
    assert (result.status, model.requests) == ("done", [])


@pytest.mark.parity("B7")
async def test_ids_come_from_an_injectable_generator_that_gets_a_prefix() -> None:
    asked: list[str] = []

    def generator(prefix: str) -> str:
        asked.append(prefix)
        return f"{prefix}~{len(asked)}"

    fragments = [CallChunk(0, "", "a", "{}"), CallChunk(1, "x", "a", "{}"), CallChunk(2, "x", "a", "{}")]
    model = Scripted([*fragments, FinishChunk("tool_calls")], "ok")
    agent = Agent(model, tools=[Bodies().tool("a")], id_generator=generator)
    result, recording = await outcome(agent)
    recording.check()
    ids = [event.call.id for event in recording.of(ToolRequested)]
    assert ids[1] == "x"
    assert ids[0].startswith("call~")
    assert ids[2].startswith("call~")
    assert list(outcomes(result.messages)) == ids, "shared by call and result"
    assert replies(result.messages)[0].id.split("~")[0] in asked, "messages too"
    forced, _ = await outcome(agent.but(model=Scripted("ok")), tool_choice=ForcedCall("a"))
    assert next(iter(outcomes(forced.messages))).startswith("forced~")


@pytest.mark.parity("B7")
async def test_by_default_equal_inputs_give_equal_ids() -> None:
    """A replay, a cached prompt and a test can be compared byte for byte."""

    async def ids() -> list[str]:
        fragments = [CallChunk(0, "", "a", "{}"), CallChunk(1, "", "a", "{}"), FinishChunk("tool_calls")]
        agent = Agent(Scripted(fragments, fragments, "ok"), tools=[Bodies().tool("a")])
        result, recording = await outcome(agent, run_id="r1")
        calls = [event.call.id for event in recording.of(ToolRequested)]
        return calls + [getattr(message, "id", "") for message in result.messages]

    first = await ids()
    assert first == await ids()
    assert first[:4] == ["call-0", "call-1", "call-2", "call-3"]


@pytest.mark.parity("B7")
async def test_minted_ids_stay_the_same_between_requests() -> None:
    model = Scripted([CallChunk(0, "", "a", "{}"), FinishChunk("tool_calls")], [call("a", "own")], "ok")
    await Agent(model, tools=[Bodies().tool("a")]).run("go")
    first, second = model.requests[1].messages, model.requests[2].messages
    assert list(first) == list(second)[: len(first)]


@pytest.mark.parity("B12")
async def test_the_events_of_a_forced_call_are_those_of_any_call() -> None:
    agent = Agent(Scripted("ok"), tools=[Bodies().tool("a")])
    _, recording = await outcome(agent, tool_choice=ForcedCall("a"))
    asked = recording.one(ToolRequested).call
    assert asked == ToolCall(id="forced-0", name="a", arguments="{}")
    forced = next(
        event.message for event in recording.of(MessageFinished) if isinstance(event.message, AssistantMessage)
    )
    assert forced.calls == (asked,)
    assert forced.stop_reason == "tool_calls"


@pytest.mark.parity("B6")
async def test_a_hook_that_takes_the_chosen_tool_away_is_told_so() -> None:
    agent = Agent(
        Scripted("never"),
        tools=[Bodies().tool("a")],
        hooks=Hooks(before_model_request=lambda _: UseRequest(tools=[])),
    )
    result, _ = await outcome(agent, tool_choice="a")
    assert result.status == "error"
    assert "tool_choice='a'" in str(result.error)
