"""Decisions on a run that goes on: waiting or pausing, and questions from inside a tool."""

from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    Answer,
    ApprovalDecided,
    ApprovalRequested,
    Approve,
    Deny,
    RunFinished,
    Tool,
    ToolContext,
    ToolFinished,
    ToolOptions,
    ToolStarted,
    UsageError,
    tool,
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


# Questions from inside


@tool
async def book(city: str, context: ToolContext[Any]) -> str:
    """Books a room."""
    name = await context.ask(f"who travels to {city}?")
    nights = await context.ask("how many nights?")
    return f"{name}: {nights} nights in {city}"


@MODES
@pytest.mark.parity("B9")
async def test_a_tool_asks_from_inside_and_goes_on_with_the_answer(execution: Any) -> None:
    asked: list[Any] = []
    agent = Agent(
        Scripted([call("book", city="Oslo")], "ok"), tools=[book], tool_options=ToolOptions(execution=execution)
    )
    recording = Recording()
    async with agent.run("go") as run:
        async for event in run:
            recording(event)
            if isinstance(event, ApprovalRequested):
                asked.append((event.question, event.arguments))
                run.answer(event.call_id, "Ann" if len(asked) == 1 else 3)
    recording.check()
    arguments = {"city": "Oslo"}
    assert asked == [("who travels to Oslo?", arguments), ("how many nights?", arguments)]
    assert texts(run.result.messages) == {"book-1": "Ann: 3 nights in Oslo"}
    assert len(recording.of(ToolStarted)) == len(recording.of(ToolFinished)) == 1


@pytest.mark.parity("B9")
async def test_a_refused_question_unwinds_the_body() -> None:
    unwound: list[str] = []

    @tool
    async def ask(context: ToolContext[Any]) -> str:
        try:
            return str(await context.ask("may I?"))
        finally:
            unwound.append("unwound")

    async with Agent(Scripted([call("ask")], "ok"), tools=[ask]).run("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                run.deny(event.call_id, "better not")
    assert unwound == ["unwound"]
    assert outcomes(run.result.messages) == {"ask-1": "denied"}
    assert "better not" in texts(run.result.messages)["ask-1"]


@pytest.mark.parity("B9")
async def test_siblings_run_while_a_tool_waits_for_its_answer() -> None:
    bodies = Bodies()
    agent = Agent(Scripted([call("book", city="Oslo"), call("b")], "ok"), tools=[book, bodies.tool("b")])
    async with agent.run("go") as run:
        recording = record(run)
        async for event in run:
            if isinstance(event, ToolFinished) and event.name == "b":
                assert [each.id for each in run.pending] == ["book-1"]
                run.answer("book-1", "Ann")
            if isinstance(event, ApprovalRequested) and event.question == "how many nights?":
                run.answer("book-1", 1)
    recording.check()
    assert outcomes(run.result.messages) == {"book-1": "ok", "b-1": "ok"}


@pytest.mark.parity("B15")
async def test_time_spent_waiting_for_a_person_does_not_count() -> None:
    """A person may be at lunch: neither the limit nor the reported seconds may know."""

    @tool(timeout=0.2)
    async def patient(context: ToolContext[Any]) -> str:
        await context.ask("now?")
        return "done"

    async with Agent(Scripted([call("patient")], "ok"), tools=[patient]).run("go") as run:
        recording = record(run)
        async for event in run:
            if isinstance(event, ApprovalRequested):
                await anyio.sleep(0.3)
                run.answer(event.call_id, True)
    assert outcomes(run.result.messages) == {"patient-1": "ok"}
    assert recording.one(ToolFinished).seconds < 0.2


@pytest.mark.parity("B9")
async def test_a_tool_may_give_up_waiting_and_go_on_without_the_answer() -> None:
    """ "If nobody answers, take the usual size": the question is taken back, and a late answer is refused."""

    @tool
    async def size(context: ToolContext[Any]) -> str:
        with anyio.move_on_after(0.01):
            return str(await context.ask("which size?"))
        second = await context.ask("really?")
        return f"usual, {second}"

    late: list[str] = []
    async with Agent(Scripted([call("size")], "ok"), tools=[size]).run("go") as run:
        recording = record(run)
        async for event in run:
            if isinstance(event, ApprovalRequested) and event.question == "really?":
                run.answer("size-1", "yes")
                with pytest.raises(UsageError) as caught:
                    run.answer("size-1", "XL")
                late.append(str(caught.value))
    recording.check()
    assert texts(run.result.messages) == {"size-1": "usual, yes"}
    assert len(late) == 1


@pytest.mark.parity("B9")
async def test_call_ids_that_come_again_in_the_next_turn_are_other_calls() -> None:
    """Ids are unique within a turn only: what was refused in one says nothing about the other."""
    bodies = Bodies()
    asks = bodies.tool("asks", needs_approval=True)

    @tool
    async def questions(context: ToolContext[Any]) -> str:
        return str(await context.ask("well?"))

    script = [[call("questions", "x")], [call("asks", "x")], [call("questions", "x")], "ok"]
    seen: list[str] = []
    async with Agent(Scripted(*script), tools=[asks, questions]).run("go") as run:
        recording = record(run)
        async for event in run:
            if isinstance(event, ApprovalRequested):
                seen.append(event.name)
                run.decide({"x": [Deny("no"), Approve(), Answer("fine")][len(seen) - 1]})
    recording.check()
    assert seen == ["questions", "asks", "questions"]
    assert [event.outcome for event in recording.of(ToolFinished)] == ["denied", "ok", "ok"]


@pytest.mark.parity("B13")
async def test_a_stop_while_a_tool_asks_ends_its_body() -> None:
    gate = Gate()
    unwound: list[str] = []

    @tool
    async def ask(context: ToolContext[Any]) -> None:
        try:
            gate.open()
            await context.ask("may I?")
        finally:
            unwound.append("unwound")

    async with Agent(Scripted([call("ask")]), tools=[ask]).run("go") as run:
        recording = record(run)
        await gate.wait()
        await anyio.wait_all_tasks_blocked()
        run.stop("enough")
    recording_all = run.result
    assert (recording_all.status, unwound) == ("aborted", ["unwound"])
    assert outcomes(recording_all.messages) == {"ask-1": "cancelled"}
    assert recording.one(ToolFinished).outcome == "cancelled"


# Tools that run elsewhere


@pytest.mark.parity("B9")
async def test_a_tool_that_runs_elsewhere_waits_for_its_answer() -> None:
    far = Tool.from_schema("far", "Runs elsewhere.", CITY)
    async with Agent(Scripted([call("far", city="Oslo")], "ok"), tools=[far]).run("go") as run:
        recording = record(run)
        async for event in run:
            if isinstance(event, ApprovalRequested):
                assert event.arguments["unit"] == "C"
                run.decide({event.call_id: Answer({"seen": True})})
    assert texts(run.result.messages) == {"far-1": '{"seen":true}'}
    assert recording.of(ToolStarted) == [], "nothing ran here"
    assert recording.one(ApprovalDecided).approved


@pytest.mark.parity("B9")
async def test_a_tool_that_runs_elsewhere_may_need_a_yes_first() -> None:
    """G6: two decisions, one after the other: the yes, then the result."""
    far = Tool.from_schema("far", "Runs elsewhere.", CITY, needs_approval=True)
    seen: list[str] = []
    async with Agent(Scripted([call("far", city="Oslo")], "ok"), tools=[far]).run("go") as run:
        recording = record(run)
        async for event in run:
            if isinstance(event, ApprovalRequested):
                seen.append(event.arguments["city"])
                if len(seen) == 1:
                    run.approve(event.call_id, {"city": "Rome"})
                else:
                    run.answer(event.call_id, "sunny")
    recording.check()
    assert seen == ["Oslo", "Rome"]
    assert texts(run.result.messages) == {"far-1": "sunny"}


@pytest.mark.parity("B9")
async def test_an_answer_may_be_refused() -> None:
    far = Tool.from_schema("far", "Runs elsewhere.", EMPTY)
    async with Agent(Scripted([call("far")], "ok"), tools=[far]).run("go") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                run.deny(event.call_id, "the browser is closed")
    assert outcomes(run.result.messages) == {"far-1": "denied"}
