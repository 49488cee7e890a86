"""An entered run: it starts with the block, tells everything from the first event on, and ends with the block."""

import asyncio
from typing import Any

import anyio
import pytest
from tests.loop.scenarios import TOOLS, Gate, Heard, accepted, call, faults, left_tasks, outcomes, three_turns, tool

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.errors import Rejected, UsageError
from antiphon.loop.hooks import Hooks
from antiphon.loop.spec import ToolOptions
from antiphon.providers.scripted import Scripted
from antiphon.types.content import ToolCall
from antiphon.types.events import (
    ApprovalRequested,
    Event,
    MessageFinished,
    RunFinished,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    TurnFinished,
)
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import CallChunk, ThinkingChunk
from antiphon.types.result import RunError

pytestmark = pytest.mark.anyio


@pytest.mark.parity("A17")
@pytest.mark.parity("B12")
@pytest.mark.parity("C4")
async def test_the_iterator_sees_every_event_from_the_first_to_the_last() -> None:
    """What a person should see is a fold of these: none may be missing, none may come twice."""
    run = Agent(Scripted(*three_turns()), tools=TOOLS).run("hi")
    heard = Heard(run)
    async with run:
        events = [event async for event in run]
        result = await run
    assert events == heard.events
    assert faults(events, result) == []
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {event.run_id for event in events} == {run.run_id}
    assert isinstance(events[-1], RunFinished)


async def test_a_turn_tells_its_story_in_one_order() -> None:
    """The order is a contract: viewers are written against it."""
    run = Agent(Scripted(["Let me see.", call("look")], "Rain."), tools=[tool("look")]).run("weather?")
    async with run:
        kinds = [type(event).__name__ async for event in run]
    assert kinds == [
        "RunStarted",
        "MessageStarted",
        "MessageFinished",
        "TurnStarted",
        "MessageStarted",
        "TextDelta",
        "ToolCallDelta",
        "MessageFinished",
        "ToolRequested",
        "ToolStarted",
        "ToolFinished",
        "MessageStarted",
        "MessageFinished",
        "TurnFinished",
        "TurnStarted",
        "MessageStarted",
        "TextDelta",
        "MessageFinished",
        "TurnFinished",
        "RunFinished",
    ]


async def test_deltas_are_tied_to_their_message_turn_attempt_and_part() -> None:
    """A viewer that shows several replies at once must know where a fragment belongs."""
    script = [ThinkingChunk("hm"), "It ", CallChunk(0, "c1", "look", "{"), CallChunk(0, arguments="}")]
    run = Agent(Scripted(script, "rains"), tools=[tool("look")]).run("hi")
    async with run:
        events = [event async for event in run]
    messages = [event.message for event in events if isinstance(event, MessageFinished)]
    first, second = [message for message in messages if isinstance(message, AssistantMessage)]
    deltas = [event for event in events if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta)]
    assert [(event.text, event.turn, event.attempt) for event in deltas] == [
        ("hm", 1, 1),
        ("It ", 1, 1),
        ("{", 1, 1),
        ("}", 1, 1),
        ("rains", 2, 1),
    ]
    assert [event.message_id for event in deltas] == [first.id] * 4 + [second.id]
    calls = [event for event in deltas if isinstance(event, ToolCallDelta)]
    assert {(event.call_id, event.name) for event in calls} == {("c1", "look")}


async def test_an_entered_run_goes_on_while_nobody_iterates() -> None:
    """Entering starts it; iterating only looks."""
    model = Scripted("hello")
    async with Agent(model).run("hi") as run:
        result = await run
        assert result.text == "hello"
        events = [event async for event in run]
    assert isinstance(events[-1], RunFinished)


async def test_a_slow_consumer_never_slows_the_run() -> None:
    """A browser tab that sleeps must not hold up the work."""
    async with Agent(Scripted(*three_turns()), tools=TOOLS).run("hi") as run:
        first = await anext(aiter(run))
        result = await run
        assert (first.seq, result.status) == (1, "done")


async def test_leaving_early_ends_the_run_at_once_and_raises_nothing() -> None:
    """F1: who leaves does not want the rest, and does not want to pay for it."""
    never, closed = Gate(), list[str]()

    async def patient() -> str:
        try:
            await never.wait()
        finally:
            closed.append("closed")
        return "never"

    model, before = Scripted([call("patient")], "unheard"), left_tasks()
    async with Agent(model, tools=[tool("patient", patient)]).run("hi") as run:
        heard = Heard(run)
        await never.reached.wait()
    assert closed == ["closed"]
    assert (run.result.status, run.result.reason) == ("aborted", "the block was left")
    assert outcomes(run.result) == {"patient-1": "cancelled"}
    assert len(model.requests) == 1
    assert left_tasks() - before == set()
    assert heard.kinds[-1] == "RunFinished"
    assert await accepted(run.result.messages) == []


async def test_breaking_out_of_the_iteration_leaves_no_task_behind() -> None:
    """F2: nothing is left to the garbage collector, which comes late and from somewhere else."""
    before = left_tasks()
    async with Agent(Scripted("abcdef", piece=1)).run("hi") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    assert left_tasks() - before == set()
    assert run.result.status in ("aborted", "done")


async def test_what_the_user_raises_in_the_block_comes_out_as_it_is() -> None:
    """No group around it, no cancellation instead of it; also when the run failed by itself."""
    mine, caught = KeyError("mine"), list[BaseException]()
    for script, status in ((["x", Gate()], "aborted"), ([Rejected("no")], "error")):
        run = Agent(Scripted(script)).run("hi")
        try:
            async with run:
                async for event in run:
                    if isinstance(event, TextDelta | RunFinished):
                        raise mine
        except KeyError as error:
            caught.append(error)
        assert run.result.status == status
    assert caught == [mine, mine]


async def test_a_wait_for_the_next_event_can_be_given_up_and_taken_up_again() -> None:
    """A viewer that looks for something else meanwhile must not lose its place."""
    gate = Gate()
    async with Agent(Scripted(["x", gate, "y"])).run("hi") as run:
        events = aiter(run)
        while not isinstance(await anext(events), TextDelta):
            pass
        with anyio.move_on_after(0) as scope:
            await anext(events)
        gate.open()
        rest = [event.text async for event in events if isinstance(event, TextDelta)]
    assert (scope.cancelled_caught, rest) == (True, ["y"])


async def test_iterating_and_leaving_never_raise_the_runs_own_error() -> None:
    """Watching is not asking for the result: the end is an event like the others."""
    async with Agent(Scripted(["So far", Rejected("no such model")])).run("hi") as run:
        events = [event async for event in run]
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert (last.status, last.error) == ("error", "no such model")
    assert run.result.status == "error"
    assert faults(events, run.result) == []


async def test_awaiting_inside_the_block_raises_the_runs_own_error() -> None:
    async with Agent(Scripted(Rejected("no such model"))).run("hi") as run:
        with pytest.raises(RunError, match="no such model") as caught:
            await run
    assert caught.value.result is run.result


async def test_awaiting_after_the_block_gives_what_the_block_left() -> None:
    async with Agent(Scripted("hello")).run("hi") as run:
        await run
    assert (await run).text == "hello"


async def test_cancelling_the_task_inside_the_block_stays_a_cancellation() -> None:
    reached = asyncio.Event()
    runs: list[Run[Any]] = []

    async def watch() -> None:
        async with Agent(Scripted(["x", Gate()])).run("hi") as run:
            runs.append(run)
            async for event in run:
                if isinstance(event, TextDelta):
                    reached.set()

    task, before = asyncio.create_task(watch()), left_tasks()
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (runs[0].result.status, runs[0].result.text) == ("aborted", "x")
    assert left_tasks() <= before


async def test_an_entered_run_lives_in_an_outer_scope() -> None:
    """Structured concurrency goes through it: a scope around the block ends the run and takes its own cancel back."""
    run = Agent(Scripted(["x", Gate()])).run("hi")
    with anyio.move_on_after(0) as scope:
        async with run:
            _ = [event async for event in run]
    assert scope.cancelled_caught
    assert run.result.status == "aborted"


async def test_two_entered_runs_can_be_left_in_any_order() -> None:
    """Each block owns its run, and nothing else."""
    agent = Agent(Scripted(["x", Gate()], "y"))
    async with agent.run("one") as first:
        await anext(aiter(first))
        async with agent.run("two") as second:
            assert (await second).text == "y"
    assert (first.result.status, second.result.status) == ("aborted", "done")


async def test_the_reply_so_far_is_there_at_every_delta() -> None:
    """Who draws the whole reply again at every delta need not gather fragments."""
    run = Agent(Scripted("one two three", piece=4)).run("hi")
    seen: list[tuple[str, str]] = []
    said: list[str] = []

    def look(event: Event) -> None:
        if isinstance(event, TextDelta):
            said.append(event.text)
            seen.append((run.partial, "".join(said)))

    run.subscribe(look)
    assert run.partial == ""
    await run
    assert (
        [partial for partial, _ in seen]
        == [whole for _, whole in seen]
        == ["one ", "one two ", "one two thre", "one two three"]
    )
    assert run.partial == ""


@pytest.mark.parity("C21")
async def test_the_arguments_so_far_can_be_read_before_they_are_complete() -> None:
    asked = ToolCall(id="c1", name="look", arguments='{"city": "Oslo", "days": [1, 2]}')
    run = Agent(Scripted([asked], "x", piece=9), tools=[tool("look", parameters={"type": "object"})]).run("hi")
    seen: list[Any] = []
    run.subscribe(lambda event: seen.append(run.partial_arguments("c1")) if isinstance(event, ToolCallDelta) else None)
    await run
    assert seen[0] == {}
    assert seen[-1] == {"city": "Oslo", "days": [1, 2]}
    assert run.partial_arguments("nobody") is None


async def test_a_decision_lets_a_waiting_call_go_on() -> None:
    """Entered, somebody watches: the run waits for them."""
    agent = Agent(Scripted([call("look")], "done"), tools=[tool("look", needs_approval=True)])
    async with agent.run("hi") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                assert [asked.id for asked in run.pending] == ["look-1"]
                run.approve(event.call_id)
    assert (run.result.status, outcomes(run.result)) == ("done", {"look-1": "ok"})


async def test_leaving_while_a_decision_is_missing_closes_the_call() -> None:
    agent = Agent(Scripted([call("look")]), tools=[tool("look", needs_approval=True)])
    async with agent.run("hi") as run:
        heard = Heard(run)
        async for event in run:
            if isinstance(event, ApprovalRequested):
                break
    assert (run.result.status, outcomes(run.result)) == ("aborted", {"look-1": "not_run"})
    assert [event.outcome for event in heard.of(ToolFinished)] == ["not_run"]
    assert run.result.pending == ()


async def test_an_entered_run_can_be_told_to_pause_instead_of_waiting() -> None:
    agent = Agent(Scripted([call("look")]), tools=[tool("look", needs_approval=True)])
    async with agent.run("hi", tool_options=ToolOptions(on_ask="pause")) as run:
        result = await run
    assert (result.status, [asked.id for asked in result.pending]) == ("paused", ["look-1"])


async def test_the_result_is_there_when_the_last_event_is_read() -> None:
    """The natural place to look for it."""
    texts: list[str] = []
    async with Agent(Scripted("hello")).run("hi") as run:
        async for event in run:
            if isinstance(event, RunFinished):
                texts.append((await run).text)
    assert texts == ["hello"]


async def test_the_result_comes_after_the_end_hooks() -> None:
    """An end hook that stores the transcript has done so when the caller goes on."""
    gate, order = Gate(), list[str]()

    async def store(end: object) -> None:
        await gate.wait()
        order.append("stored")

    async with Agent(Scripted("hello"), hooks=Hooks(on_run_end=store)).run("hi") as run:
        async for event in run:
            if isinstance(event, RunFinished):
                with pytest.raises(UsageError, match="no result yet"):
                    _ = run.result
        gate.open()
        await run
        order.append("result")
    assert order == ["stored", "result"]


async def test_a_turn_finishes_with_its_own_reply_and_results() -> None:
    run = Agent(Scripted([call("look"), call("see")], "Rain."), tools=[tool("look"), tool("see")]).run("hi")
    heard = Heard(run)
    result = await run
    turns = heard.of(TurnFinished)
    assert [event.message for event in turns] == [result.messages[1], result.messages[4]]
    assert [event.results for event in turns] == [tuple(result.messages[2:4]), ()]


async def test_a_turn_that_said_nothing_finishes_without_a_reply() -> None:
    """The reply of the turn before is not its reply."""
    gate = Gate()
    run = Agent(Scripted([call("look")], [gate]), tools=[tool("look")]).run("hi")
    heard = Heard(run)
    async with run:
        await gate.reached.wait()
    assert [(event.turn, event.message is None) for event in heard.of(TurnFinished)] == [(1, False), (2, True)]
