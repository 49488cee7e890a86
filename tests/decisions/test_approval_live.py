"""Decisions on a run that goes on: waiting or pausing, and questions from inside a tool."""

from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    ApprovalRequested,
    Approve,
    Deny,
    RunFinished,
    Tool,
    ToolOptions,
    UsageError,
)
from antiphon.testing import Recording, Scripted, record

from .scenes import CITY, EMPTY, Bodies, Gate, call, outcome, outcomes, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])


def gated(bodies: Bodies, *names: str, **traits: Any) -> list[Tool]:
    """Tools that need a person's yes."""
    return [bodies.tool(name, needs_approval=True, **traits) for name in names]


# Waiting, pausing


@MODES
@pytest.mark.parity("B9")
async def test_an_entered_run_waits_for_a_decision(execution: Any) -> None:
    bodies = Bodies()
    agent = Agent(
        Scripted([call("a"), call("b")], "ok"),
        tools=gated(bodies, "a", "b"),
        tool_options=ToolOptions(execution=execution),
    )
    recording = Recording()
    async with agent.run("go") as run:
        async for event in run:
            recording(event)
            if isinstance(event, ApprovalRequested):
                assert event.call_id in [each.id for each in run.pending]
                if event.call_id == "a-1":
                    run.approve("a-1")
                else:
                    run.deny("b-1", "not that")
    recording.check()
    assert run.result.status == "done"
    assert outcomes(run.result.messages) == {"a-1": "ok", "b-1": "denied"}
    assert "not that" in texts(run.result.messages)["b-1"]
    assert bodies.names == ["a"]


@pytest.mark.parity("B9")
async def test_an_awaited_run_pauses_with_what_is_pending() -> None:
    bodies = Bodies()
    model = Scripted([call("a"), call("b")], "never")
    result, recording = await outcome(Agent(model, tools=[*gated(bodies, "a"), bodies.tool("b")]))
    recording.check()
    assert (result.status, [each.id for each in result.pending], bodies.names) == ("paused", ["a-1"], ["b"])
    assert recording.one(RunFinished).status == "paused"
    assert len(model.requests) == 1


@pytest.mark.parity("B9")
async def test_on_ask_says_whether_to_wait_or_to_pause() -> None:
    """A server that streams to a browser wants the pause; a script with a decider elsewhere wants to wait."""
    bodies = Bodies()
    agent = Agent(Scripted([call("a")]), tools=gated(bodies, "a"), tool_options=ToolOptions(on_ask="pause"))
    async with agent.run("go") as run:
        assert (await run).status == "paused"

    agent = Agent(Scripted([call("a")], "ok"), tools=gated(bodies, "a"), tool_options=ToolOptions(on_ask="wait"))
    run = agent.run("go")
    asked = anyio.Event()
    run.subscribe(lambda event: asked.set() if isinstance(event, ApprovalRequested) else None)
    async with anyio.create_task_group() as group:
        group.start_soon(run._wait)
        await asked.wait()
        await anyio.wait_all_tasks_blocked()
        run.approve("a-1")
    assert run.result.status == "done"


@MODES
@pytest.mark.parity("B9")
@pytest.mark.parity("B12")
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_a_listener_may_decide_in_an_awaited_run(execution: Any, wait: bool) -> None:
    """It does not pause: somebody was there to answer."""
    bodies = Bodies()
    agent = Agent(
        Scripted([call("a"), call("b")], "ok"),
        tools=gated(bodies, "a", "b"),
        tool_options=ToolOptions(execution=execution),
    )
    run = agent.run("go")

    def decide(event: Any) -> None:
        if isinstance(event, ApprovalRequested):
            run.decide({event.call_id: Approve() if event.call_id == "a-1" else Deny("no")})

    async def decide_later(event: Any) -> None:
        await anyio.lowlevel.checkpoint()
        decide(event)

    run.subscribe(decide_later if wait else decide)
    recording = record(run)
    result = await run
    recording.check()
    assert (result.status, outcomes(result.messages)) == ("done", {"a-1": "ok", "b-1": "denied"})


@pytest.mark.parity("B9")
async def test_all_questions_are_asked_in_order_while_allowed_calls_run() -> None:
    """Preflight never waits: a person sees everything there is to decide at once."""
    gate = Gate()
    bodies = Bodies()
    tools = [*gated(bodies, "a", "c"), bodies.tool("b", lambda _: gate.wait())]
    agent = Agent(Scripted([call("a"), call("b"), call("c")], "ok"), tools=tools)
    async with agent.run("go") as run:
        recording = record(run)
        await gate.reached.wait()
        await anyio.wait_all_tasks_blocked()
        assert [event.call_id for event in recording.of(ApprovalRequested)] == ["a-1", "c-1"]
        run.approve("c-1")
        await anyio.wait_all_tasks_blocked()
        run.approve("a-1")
        gate.open()
        result = await run
    assert bodies.names == ["b", "c", "a"]
    assert list(outcomes(result.messages)) == ["a-1", "b-1", "c-1"], "results in the order of the calls"


@pytest.mark.parity("B9")
async def test_edited_arguments_of_a_live_decision_are_used() -> None:
    bodies = Bodies()
    weather = bodies.tool("weather", None, CITY, needs_approval=True)
    async with Agent(Scripted([call("weather", city="Oslo")], "ok"), tools=[weather]).run("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                assert event.arguments == {"city": "Oslo", "unit": "C", "days": [1]}
                event.arguments["days"].append(5)
                run.approve(event.call_id, {"city": "Rome"})
    assert bodies.ran == [("weather", {"city": "Rome", "unit": "C", "days": [1]})]


# Wrong decisions


@pytest.mark.parity("B9")
async def test_unknown_and_repeated_decisions_are_refused_by_name() -> None:
    """G9, G14: an answer counts once, for the call that it names."""
    bodies = Bodies()
    async with Agent(Scripted([call("a"), call("b")], "ok"), tools=gated(bodies, "a", "b")).run("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested) and event.call_id == "b-1":
                with pytest.raises(UsageError, match=r"under 'x', 'y'; pending are: 'a-1', 'b-1'"):
                    run.decide({"x": Approve(), "a-1": Approve(), "y": Deny()})
                assert [each.id for each in run.pending] == ["a-1", "b-1"], "nothing of it was taken"
                run.approve("a-1")
                with pytest.raises(UsageError, match=r"under 'a-1'; pending are: 'b-1'"):
                    run.approve("a-1")
                run.approve("b-1")
    assert bodies.names == ["a", "b"]
    with pytest.raises(UsageError, match="not running"):
        run.approve("a-1")


@pytest.mark.parity("B9")
async def test_a_decision_must_be_of_the_kind_that_is_waited_for() -> None:
    bodies = Bodies()
    tools = [*gated(bodies, "a"), Tool.from_schema("far", "Runs elsewhere.", EMPTY)]
    async with Agent(Scripted([call("a"), call("far")], "ok"), tools=tools).run("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested) and event.call_id == "far-1":
                with pytest.raises(UsageError, match=r"'a-1' \(a\) waits for a yes or no"):
                    run.answer("a-1", 1)
                with pytest.raises(UsageError, match=r"'far-1' \(far\) waits for a value"):
                    run.approve("far-1")
                wrong: Any = {"a-1": True}
                with pytest.raises(UsageError, match="is Approve, Deny or Answer, not bool"):
                    run.decide(wrong)
                run.approve("a-1")
                run.answer("far-1", {"x": [1]})
    assert texts(run.result.messages) == {"a-1": "a", "far-1": '{"x":[1]}'}


@pytest.mark.parity("B9")
async def test_a_decision_before_the_start_is_refused() -> None:
    run = Agent(Scripted("hi")).run("go")
    with pytest.raises(UsageError, match="not running"):
        run.approve("a-1")


@pytest.mark.parity("B9")
async def test_a_live_decision_ends_the_approvers_question() -> None:
    """Two people were asked; the first answer counts, and the other is not kept waiting at the door."""
    gate = Gate()
    left: list[str] = []

    async def approver(_context: Any) -> bool:
        try:
            await gate.wait()
        finally:
            left.append("left")
        return False

    bodies = Bodies()
    async with Agent(Scripted([call("a")], "ok"), tools=gated(bodies, "a"), approver=approver).run("go") as run:
        await gate.reached.wait()
        run.approve("a-1")
        result = await run
    assert (outcomes(result.messages), left, result.warnings) == ({"a-1": "ok"}, ["left"], ())


@pytest.mark.parity("B9")
async def test_a_listener_that_decides_at_once_spares_the_approver() -> None:
    bodies = Bodies()
    asked: list[Any] = []
    agent = Agent(
        Scripted([call("a")], "ok"), tools=gated(bodies, "a"), approver=lambda context: asked.append(context) or False
    )
    run = agent.run("go")
    run.subscribe(lambda event: run.approve(event.call_id) if isinstance(event, ApprovalRequested) else None)
    result = await run
    assert (outcomes(result.messages), asked) == ({"a-1": "ok"}, [])
