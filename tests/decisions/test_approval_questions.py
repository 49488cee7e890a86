"""Questions that a tool asks from inside, and tools that run elsewhere."""

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
    Tool,
    ToolContext,
    ToolFinished,
    ToolOptions,
    ToolStarted,
    UsageError,
    tool,
)
from antiphon.testing import Recording, Scripted, record

from .scenes import CITY, EMPTY, Bodies, Gate, call, outcomes, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])


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
