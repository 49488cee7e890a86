"""What a resumed run tells, checks and carries on."""

import json
from typing import Any

import pytest

from antiphon import (
    Agent,
    ApprovalDecided,
    ApprovalRequested,
    Approve,
    Deny,
    Hooks,
    Limits,
    Tool,
    ToolFinished,
    UsageError,
)
from antiphon.testing import Scripted, record

from .scenes import Bodies, Spy, call, failing, finished, outcome, outcomes, replies, texts

pytestmark = pytest.mark.anyio


def stored(state: dict[str, Any]) -> dict[str, Any]:
    """The state as another process would read it."""
    return json.loads(json.dumps(state))


def gated(bodies: Bodies, *names: str) -> list[Tool]:
    return [bodies.tool(name, needs_approval=True) for name in names]


def waiting(result: Any) -> list[str]:
    return [each.id for each in result.pending]


# What a resumed run tells and checks


@pytest.mark.parity("B12")
async def test_a_resumed_run_tells_what_was_decided() -> None:
    bodies = Bodies()
    agent = Agent(Scripted([call("a"), call("b")], "ok"), tools=gated(bodies, "a", "b"))
    paused, _ = await outcome(agent)
    decisions: dict[str, Any] = {"a-1": Approve(), "b-1": Deny("no")}
    _, recording = await finished(agent.run(resume=stored(paused.state), decisions=decisions))
    recording.check()
    assert [(event.call_id, event.approved, event.reason) for event in recording.of(ApprovalDecided)] == [
        ("a-1", True, None),
        ("b-1", False, "no"),
    ]
    kinds = [kind for kind in recording.kinds() if kind.startswith(("tool_", "approval")) and "delta" not in kind]
    assert kinds[:4] == ["tool_requested", "tool_requested", "approval_decided", "approval_decided"]


@pytest.mark.parity("B9")
async def test_a_resume_with_everything_denied_frees_the_conversation() -> None:
    bodies = Bodies()
    agent = Agent(Scripted([call("a"), call("b")], "ok", "fine"), tools=gated(bodies, "a", "b"))
    paused, _ = await outcome(agent)
    denied = {each.id: Deny("never mind") for each in paused.pending}
    result, _ = await finished(agent.run(resume=stored(paused.state), decisions=denied))
    assert (result.status, bodies.ran) == ("done", [])
    again, _ = await finished(agent.run("and now?", resume=stored(result.state)))
    assert (again.status, again.text) == ("done", "fine")


@pytest.mark.parity("B9")
async def test_a_tool_that_is_gone_is_an_error_result() -> None:
    bodies = Bodies()
    agent = Agent(Scripted([call("a"), call("b")], "ok"), tools=gated(bodies, "a", "b"))
    paused, _ = await outcome(agent)
    other = agent.but(tools=gated(bodies, "b"))
    decisions: dict[str, Any] = {"a-1": Approve(), "b-1": Approve()}
    result, recording = await finished(other.run(resume=stored(paused.state), decisions=decisions))
    recording.check()
    assert outcomes(result.messages) == {"a-1": "error", "b-1": "ok"}
    assert "does not exist any more" in texts(result.messages)["a-1"]


@pytest.mark.parity("B9")
async def test_resuming_without_decisions_pauses_again_with_the_same_calls() -> None:
    bodies = Bodies()
    model = Scripted([call("a")])
    agent = Agent(model, tools=gated(bodies, "a"))
    paused, _ = await outcome(agent)
    again, recording = await finished(agent.run(resume=stored(paused.state)))
    recording.check()
    assert (again.status, waiting(again), bodies.ran, len(model.requests)) == ("paused", ["a-1"], [], 1)


@pytest.mark.parity("B9")
async def test_a_resumed_run_may_be_entered_and_decided_live() -> None:
    bodies = Bodies()
    agent = Agent(Scripted([call("a"), call("b")], "ok"), tools=gated(bodies, "a", "b"))
    paused, _ = await outcome(agent)
    async with agent.run(resume=stored(paused.state), decisions={"a-1": Approve()}) as run:
        async for event in run:
            if isinstance(event, ToolFinished) and event.call_id == "a-1":
                assert [each.id for each in run.pending] == ["b-1"]
                run.approve("b-1")
    assert (run.result.status, bodies.names) == ("done", ["a", "b"])


@pytest.mark.parity("B9")
async def test_an_approver_is_not_asked_again_about_what_it_was_asked_before() -> None:
    """A paused call is pending; what was allowed before the restart was allowed."""
    bodies = Bodies()
    agent = Agent(Scripted([call("a")], "ok"), tools=gated(bodies, "a"))
    run = agent.run("go", approver=lambda _: True)
    states: list[Any] = []
    run.subscribe(lambda event: states.append(stored(run.state)) if isinstance(event, ApprovalDecided) else None)
    await run
    bodies.ran.clear()
    again = agent.but(model=Scripted("ok"), approver=failing(AssertionError("asked again")))
    result, _ = await finished(again.run(resume=states[0]))
    assert (result.status, outcomes(result.messages)) == ("done", {"a-1": "ok"})
    assert bodies.names == ["a"]


@pytest.mark.parity("B9")
async def test_hooks_before_a_call_are_not_asked_again_after_the_restart_and_those_after_it_are() -> None:
    """What was judged was judged; what opened before the pause is closed after it."""
    spy = Spy()
    bodies = Bodies()
    agent = Agent(Scripted([call("a")], "ok"), tools=gated(bodies, "a"), hooks=spy.hooks())
    paused, _ = await outcome(agent)
    assert len(spy.at("before_tool_execute")) == 1
    assert spy.at("after_tool_execute") == []
    await finished(agent.run(resume=stored(paused.state), decisions={"a-1": Approve()}))
    assert len(spy.at("before_tool_execute")) == len(spy.at("after_tool_execute")) == 1


@pytest.mark.parity("A13")
async def test_should_continue_is_asked_about_a_round_that_a_resumed_run_ends() -> None:
    bodies = Bodies()
    model = Scripted([call("a")], "never")
    agent = Agent(model, tools=gated(bodies, "a"))
    paused, _ = await outcome(agent)
    seen: list[Any] = []
    hooks = Hooks(should_continue=lambda context: seen.append(context.results) or False)
    result, _ = await finished(agent.run(resume=stored(paused.state), decisions={"a-1": Approve()}, hooks=hooks))
    assert (result.status, len(model.requests)) == ("done", 1)
    assert [[message.call_id for message in each] for each in seen] == [["a-1"]]


@pytest.mark.parity("B14")
async def test_counters_and_limits_are_carried_on() -> None:
    bodies = Bodies()
    model = Scripted([call("a")], "never")
    agent = Agent(model, tools=gated(bodies, "a"), limits=Limits(turns=1))
    paused, _ = await outcome(agent)
    result, _ = await finished(agent.run(resume=stored(paused.state), decisions={"a-1": Approve()}))
    assert (result.status, result.turns, bodies.names) == ("limit", 1, ["a"])


@pytest.mark.parity("B9")
async def test_what_is_no_state_is_refused() -> None:
    agent = Agent(Scripted("hi"))
    with pytest.raises(UsageError, match=r"takes what result\.state gave"):
        agent.run(resume={"messages": []})
    with pytest.raises(UsageError, match="written in version 99"):
        agent.run(resume={"version": 99})
    with pytest.raises(UsageError, match="belong to a paused run"):
        agent.run("go", decisions={"a": Approve()})
    result = await agent.run("go")
    with pytest.raises(UsageError, match="leave messages= out"):
        agent.run(resume=result.state, messages=result.messages)


@pytest.mark.parity("B9")
async def test_the_transcript_of_a_paused_run_can_be_sent_although_its_calls_are_open() -> None:
    """`messages` end in the reply; only the state knows what waits. A new run on them closes the calls."""
    bodies = Bodies()
    agent = Agent(Scripted([call("a")], "fine"), tools=gated(bodies, "a"))
    paused, recording = await outcome(agent)
    assert replies(paused.messages)[-1].calls
    result, _ = await finished(agent.run("never mind", messages=paused.messages))
    assert (result.status, outcomes(result.messages)) == ("done", {"a-1": "unknown"})
    assert recording.of(ToolFinished) == []


@pytest.mark.parity("B13")
async def test_a_stop_while_paused_calls_wait_live_closes_them() -> None:
    bodies = Bodies()
    agent = Agent(Scripted([call("a")]), tools=gated(bodies, "a"))
    async with agent.run("go") as run:
        recording = record(run)
        async for event in run:
            if isinstance(event, ApprovalRequested):
                run.stop("too late")
    assert (run.result.status, outcomes(run.result.messages)) == ("aborted", {"a-1": "not_run"})
    assert recording.one(ToolFinished).outcome == "not_run"
