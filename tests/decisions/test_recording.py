"""Recording a run's events, and the rules that hold for them; an approver on a script."""

from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    Approve,
    Deny,
    Dropped,
    Event,
    Recovery,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolFinished,
    UsageError,
    UserMessage,
)
from antiphon.testing import Recording, Scripted, ScriptedApprover, check_events, record
from antiphon.types.content import Text, ToolCall
from antiphon.types.events import (
    ApprovalDecided,
    ApprovalRequested,
    MessageFinished,
    MessageStarted,
    ToolProgress,
    ToolRequested,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from antiphon.types.messages import ToolResultMessage

from .scenes import Bodies, Gate, call

pytestmark = [pytest.mark.anyio, pytest.mark.parity("B19")]


async def test_a_recording_is_a_listener_with_words_for_assertions() -> None:
    run = Agent(Scripted(["hm ", call("a")], "ok"), tools=[Bodies().tool("a")]).run("go")
    recording = record(run)
    await run
    recording.check()
    assert recording.kinds()[0] == "run_started"
    assert recording.kinds(RunStarted, RunFinished) == ["run_started", "run_finished"]
    assert [event.text for event in recording.of(TextDelta)] == ["hm ", "ok"]
    assert recording.text() == "hm ok"
    assert recording.one(ToolFinished).name == "a"
    assert len(recording) == len(list(recording)) == recording.events[-1].seq
    assert len(recording.run(run.run_id)) == len(recording)
    with pytest.raises(AssertionError, match="2 events of TextDelta, not one"):
        recording.one(TextDelta)


async def test_the_text_of_a_recording_is_what_a_viewer_saw_in_the_end() -> None:
    model = Scripted(["half", Dropped("lost")], "whole")
    run = Agent(model, recovery=Recovery(delay=0, jitter=0)).run("go")
    recording = record(run)
    await run
    assert recording.text() == "whole"


# What is checked


def numbered(*events: Any) -> list[Event]:
    """Events of a run from their kinds and fields, numbered."""
    return [kind(run_id="r", seq=seq, **said) for seq, (kind, said) in enumerate(events, 1)]


END = (RunFinished, {"status": "done"})
MESSAGE = UserMessage(parts=(Text("hi"),), id="m")
RESULT = ToolResultMessage(call_id="c", tool_name="a", parts=())
ASKED = (ToolRequested, {"call": ToolCall(id="c", name="a")})
STARTED = (ToolStarted, {"call_id": "c", "name": "a", "arguments": {}})
DONE = (ToolFinished, {"call_id": "c", "name": "a", "result": RESULT, "outcome": "ok"})
QUESTION = (ApprovalRequested, {"call_id": "c", "name": "a", "arguments": {}})

FAULTY: list[tuple[list[Event], str]] = [
    (numbered(ASKED, END), r"calls without ToolFinished: \['c'\]"),
    (numbered(ASKED, DONE, DONE, END), "'c' was not requested, or has finished already"),
    (numbered(STARTED, END), "'c' was not requested"),
    (numbered(ASKED, ASKED, DONE, END), "'c' is open already"),
    (numbered(QUESTION, END), "'c' was not requested"),
    (numbered((ApprovalDecided, {"call_id": "c", "approved": True}), END), "nobody asked about call 'c'"),
    (numbered(ASKED, (ToolProgress, {"call_id": "c", "name": "a"}), DONE, END), "'c' does not run"),
    (numbered((MessageStarted, {"message_id": "m", "role": "user"}), END), "message 'm' has not ended"),
    (numbered((MessageFinished, {"message": MESSAGE}), END), "message 'm' was not started"),
    (numbered((TextDelta, {"message_id": "m", "text": "x"}), END), "message 'm' is not open"),
    (numbered((TurnStarted, {"turn": 1}), END), "turn 1 has not ended"),
    (numbered((TurnStarted, {"turn": 1}), (TurnStarted, {"turn": 2}), END), "turn 1 has not ended"),
    (numbered((TurnFinished, {"turn": 1}), END), "turn 1 ends, but turn None is open"),
    (numbered((RunStarted, {})), "RunFinished is missing"),
    (numbered(END, (RunStarted, {})), "comes after the run has finished"),
    (numbered(END, END), "comes after the run has finished"),
    (numbered((TurnStarted, {"turn": 1}), (RunStarted, {}), (TurnFinished, {"turn": 1}), END), "is not the first"),
    (numbered((RunStarted, {}), END)[:1] + numbered(END, END, END)[2:], "follows event 1: a gap"),
]


@pytest.mark.parametrize(("events", "fault"), FAULTY)
def test_events_that_break_the_rules_are_told_of(events: list[Event], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_events(events)


def test_events_that_keep_the_rules_pass() -> None:
    check_events(numbered((RunStarted, {}), ASKED, QUESTION, STARTED, DONE, ASKED, DONE, END))
    check_events(numbered(ASKED, QUESTION, (RunFinished, {"status": "paused"})))
    check_events(
        numbered((RunStarted, {"resumed_from": "r0"}), (ApprovalDecided, {"call_id": "c", "approved": True}), END)
    )
    check_events([*numbered(END), *Recording([RunFinished(run_id="other", seq=1, status="done")])])


# The scripted approver


async def test_a_scripted_approver_decides_in_order_or_by_name_and_remembers() -> None:
    bodies = Bodies()
    gate = Gate()
    approver = ScriptedApprover(
        True,
        Deny("no"),
        lambda context: Approve({}) if context.call.id == "a3" else False,
        (gate, True),
        by_name={"b": False},
    )
    tools = [bodies.tool("a", needs_approval=True), bodies.tool("b", needs_approval=True)]
    calls = [call("a", f"a{n}") for n in range(1, 5)]
    agent = Agent(Scripted([*calls, call("b"), call("b", "b2")], "ok"), tools=tools, approver=approver)
    async with agent.run("go") as run:
        await gate.reached.wait()
        await anyio.wait_all_tasks_blocked()
        assert len(bodies.ran) == 2
        gate.open()
        result = await run
    assert result.status == "done"
    assert len(bodies.ran) == 3
    assert [context.call.id for context in approver.asked] == ["a1", "a2", "a3", "a4", "b-1", "b2"]
    assert approver.remaining == 0


async def test_a_scripted_approver_without_a_decision_left_says_so() -> None:
    approver = ScriptedApprover(OSError("line cut"))
    agent = Agent(
        Scripted([call("a", "a1"), call("a", "a2")], "ok"),
        tools=[Bodies().tool("a", needs_approval=True)],
        approver=approver,
    )
    result = await agent.run("go")
    assert [text for _, text in result.warnings if "line cut" in text]
    assert [text for _, text in result.warnings if "no decision left for call 'a2' of 'a'" in text]
    with pytest.raises(UsageError, match="no decision left"):
        await approver(approver.asked[0])
