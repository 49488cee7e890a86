"""An approver decides in a person's place, or asks one; and what the model reads of a refusal."""

from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    ApprovalDecided,
    Approve,
    Ask,
    Deny,
    Hooks,
    ToolFinished,
    ToolOptions,
    ToolStarted,
    UseArguments,
)
from antiphon.testing import Scripted, ScriptedApprover

from .scenes import CITY, Bodies, Gate, call, failing, finished, outcome, outcomes, results, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])


# The approver


@MODES
@pytest.mark.parity("B9")
@pytest.mark.parametrize(
    ("decision", "becomes"),
    [(True, "ok"), (False, "denied"), (Approve(), "ok"), (Deny("no"), "denied")],
)
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_an_approver_answers_with_a_boolean_or_a_decision(
    execution: Any, decision: Any, becomes: str, wait: bool
) -> None:
    async def later(_context: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return decision

    bodies = Bodies()
    agent = Agent(
        Scripted([call("a"), call("b")], "ok"),
        tools=[bodies.tool("a", needs_approval=True), bodies.tool("b")],
        approver=later if wait else lambda _: decision,
        tool_options=ToolOptions(execution=execution),
    )
    result, recording = await outcome(agent)
    recording.check()
    assert result.status == "done"
    assert outcomes(result.messages) == {"a-1": becomes, "b-1": "ok"}
    decided = recording.one(ApprovalDecided)
    assert (decided.call_id, decided.approved) == ("a-1", becomes == "ok")
    if becomes == "ok":
        kinds = [kind for kind in recording.kinds() if kind.startswith(("approval", "tool"))]
        assert kinds.index("approval_requested") < kinds.index("approval_decided")


@pytest.mark.parity("B12")
async def test_the_events_of_a_question_stand_between_the_request_and_the_start() -> None:
    agent = Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a", needs_approval=True)], approver=lambda _: True)
    _, recording = await outcome(agent)
    shown = [kind for kind in recording.kinds() if kind.startswith(("approval", "tool")) and kind != "tool_call_delta"]
    assert shown == ["tool_requested", "approval_requested", "approval_decided", "tool_started", "tool_finished"]


@pytest.mark.parity("B9")
async def test_an_approver_gets_the_cancel_signal_and_the_run_goes_on_meanwhile() -> None:
    gate = Gate()
    bodies = Bodies()
    approver = ScriptedApprover((gate, True))
    agent = Agent(
        Scripted([call("a"), call("b")], "ok"),
        tools=[bodies.tool("a", needs_approval=True), bodies.tool("b", lambda _: gate.open())],
        approver=approver,
    )
    result = await agent.run("go")
    assert bodies.names == ["b", "a"], "b ran while a was being decided"
    assert outcomes(result.messages) == {"a-1": "ok", "b-1": "ok"}
    assert [message.call_id for message in results(result.messages)] == ["a-1", "b-1"]
    assert approver.asked[0].cancel.cancelled, "the run is over"


@pytest.mark.parity("B9")
async def test_in_sequence_a_question_holds_the_calls_behind_it() -> None:
    gate = Gate()
    bodies = Bodies()
    agent = Agent(
        Scripted([call("a"), call("b")], "ok"),
        tools=[bodies.tool("a", needs_approval=True), bodies.tool("b")],
        approver=ScriptedApprover((gate, True)),
        tool_options=ToolOptions(execution="sequential"),
    )
    async with agent.run("go") as run:
        await gate.reached.wait()
        await anyio.wait_all_tasks_blocked()
        assert bodies.ran == []
        gate.open()
        await run
    assert bodies.names == ["a", "b"]


@MODES
@pytest.mark.parity("B9")
async def test_edited_arguments_are_validated_again_and_final(execution: Any) -> None:
    """The transcript keeps what the model said; the result says what was done."""
    bodies = Bodies()
    asked = call("weather", city="Oslo", unit="F")
    agent = Agent(
        Scripted([asked], "ok"),
        tools=[bodies.tool("weather", None, CITY, needs_approval=True)],
        approver=lambda _: Approve({"city": "Rome"}),
        tool_options=ToolOptions(execution=execution),
    )
    result, recording = await outcome(agent)
    used = {"city": "Rome", "unit": "C", "days": [1]}
    assert bodies.ran == [("weather", used)]
    assert recording.one(ApprovalDecided).arguments == {"city": "Rome"}
    assert recording.one(ToolStarted).arguments == recording.one(ToolFinished).arguments == used
    assert results(result.messages)[0].used_arguments == '{"city":"Rome","unit":"C","days":[1]}'
    assert asked in result.messages[1].parts  # pyright: ignore[reportAttributeAccessIssue] - it is the reply


@pytest.mark.parity("B9")
async def test_edited_arguments_that_do_not_fit_are_an_error_result() -> None:
    bodies = Bodies()
    agent = Agent(
        Scripted([call("weather", city="Oslo")], "ok"),
        tools=[bodies.tool("weather", None, CITY, needs_approval=True)],
        approver=lambda _: Approve({"town": "Rome"}),
    )
    result, recording = await outcome(agent)
    recording.check()
    assert bodies.ran == []
    assert outcomes(result.messages) == {"weather-1": "error"}
    assert "the edited arguments are wrong" in texts(result.messages)["weather-1"]


@pytest.mark.parity("B9")
@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        (Deny("  too dear  "), "too dear"),
        (Deny("too dear", instruction="look for another"), "too dear"),
        (Deny(instruction=" look for another "), "a person refused this call and says:  look for another "),
        (Deny("   ", instruction="wait"), "a person refused this call and says: wait"),
        (Deny(), "a person refused this call: do not repeat it; ask what to do instead, or go on without it"),
        (Deny("", ""), "a person refused this call: do not repeat it; ask what to do instead, or go on without it"),
        (False, "a person refused this call: do not repeat it; ask what to do instead, or go on without it"),
    ],
)
async def test_the_model_reads_the_reason_else_the_instruction_else_a_fixed_sentence(
    decision: Any, sentence: str
) -> None:
    agent = Agent(
        Scripted([call("a")], "ok"), tools=[Bodies().tool("a", needs_approval=True)], approver=lambda _: decision
    )
    result, recording = await outcome(agent)
    assert texts(result.messages)["a-1"] == f'<tool_error name="a">{sentence}</tool_error>'
    assert recording.one(ApprovalDecided).reason == sentence
    assert result.status == "done", "the model reads it, and goes on"


@pytest.mark.parity("B9")
async def test_a_refusal_leaves_the_other_calls_of_the_turn_alone() -> None:
    bodies = Bodies()
    tools = [bodies.tool("a"), bodies.tool("b", needs_approval=True), bodies.tool("c")]
    agent = Agent(Scripted([call("a"), call("b"), call("c")], "ok"), tools=tools, approver=lambda _: Deny("no"))
    result = await agent.run("go")
    assert outcomes(result.messages) == {"a-1": "ok", "b-1": "denied", "c-1": "ok"}
    assert [message.call_id for message in results(result.messages)] == ["a-1", "b-1", "c-1"]


@pytest.mark.parity("B9")
@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (RuntimeError("line cut"), "RuntimeError: line cut"),
        (None, "answered None"),
        ("yes", "answered 'yes'"),
        (BaseException, "was cancelled"),
    ],
)
async def test_an_approver_that_fails_or_answers_nothing_lets_nothing_run(answer: Any, why: str) -> None:
    """Nor does it leave the run waiting for somebody who has gone."""

    async def approver(_context: Any) -> Any:
        if answer is BaseException:
            raise anyio.get_cancelled_exc_class()
        if isinstance(answer, Exception):
            raise answer
        return answer

    bodies = Bodies()
    agent = Agent(Scripted([call("a")], "ok"), tools=[bodies.tool("a", needs_approval=True)], approver=approver)
    with anyio.fail_after(5):
        result, recording = await outcome(agent)
    recording.check()
    assert (result.status, bodies.ran, outcomes(result.messages)) == ("done", [], {"a-1": "denied"})
    assert why in texts(result.messages)["a-1"]
    assert [code for code, _ in result.warnings] == ["approver_failed"]


@pytest.mark.parity("B9")
async def test_a_run_overrides_its_agents_policy_and_approver() -> None:
    bodies = Bodies()
    agent = Agent(
        Scripted([call("a")], "ok"),
        tools=[bodies.tool("a")],
        policy=lambda _: Deny("no"),
        approver=failing(AssertionError()),
    )
    result, _ = await finished(agent.run("go", policy=lambda _: Ask(), approver=lambda _: True))
    assert outcomes(result.messages) == {"a-1": "ok"}


@pytest.mark.parity("B13")
async def test_a_stop_while_an_approver_thinks_is_a_stop_and_no_refusal() -> None:
    gate = Gate()
    bodies = Bodies()
    agent = Agent(
        Scripted([call("a"), call("b")]),
        tools=[bodies.tool("a", needs_approval=True), bodies.tool("b")],
        approver=ScriptedApprover((gate, False)),
    )
    async with agent.run("go") as run:
        await gate.reached.wait()
        await anyio.wait_all_tasks_blocked()
        run.stop("enough")
    assert run.result.status == "aborted"
    assert outcomes(run.result.messages) == {"a-1": "not_run", "b-1": "ok"}


@pytest.mark.parity("B9")
async def test_g7_approval_may_be_asked_at_any_point_before_execution() -> None:
    """G7: by the tool, by a hook's change of the arguments that makes it dangerous, by the policy, from inside."""
    bodies = Bodies()
    tool = bodies.tool("weather", None, CITY, needs_approval=lambda info: info.arguments["city"] == "Rome")
    hooks = Hooks(before_tool_execute=lambda _: UseArguments({"city": "Rome"}))
    approver = ScriptedApprover(True)
    agent = Agent(Scripted([call("weather", city="Oslo")], "ok"), tools=[tool], hooks=hooks, approver=approver)
    result, _ = await outcome(agent)
    assert result.status == "done"
    assert [context.arguments["city"] for context in approver.asked] == ["Rome"]
