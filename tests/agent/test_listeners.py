"""Listeners: heard in the run's own step, waited for when they are async, and never able to end a run."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from tests.loop.scenarios import HOP, TOOLS, Gate, Heard, call, faults, hopping, three_turns, tool

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.loop.hooks import Hooks
from antiphon.providers.scripted import Scripted
from antiphon.types.events import (
    Event,
    MessageFinished,
    MessageQueued,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolRequested,
    ToolStarted,
    TurnStarted,
    Warned,
)
from antiphon.types.messages import AssistantMessage

pytestmark = pytest.mark.anyio


def hello() -> Run[str]:
    return Agent(Scripted("hello")).run("hi")


@pytest.mark.parity("A15")
async def test_several_listeners_hear_everything_in_the_order_of_their_subscription() -> None:
    run, heard = hello(), list[tuple[str, int]]()
    for name in ("a", "b"):
        run.subscribe(lambda event, name=name: heard.append((name, event.seq)))
    await run
    last = heard[-1][1]
    assert heard == [(name, seq) for seq in range(1, last + 1) for name in ("a", "b")]


async def test_the_same_function_twice_hears_twice_and_leaves_one_by_one() -> None:
    run, heard = hello(), list[int]()
    first = run.subscribe(lambda event: heard.append(event.seq))
    listener: Callable[[Event], None] = lambda event: heard.append(-event.seq)  # noqa: E731 - the same function twice
    leave, _ = run.subscribe(listener), run.subscribe(listener)
    first()
    leave()
    leave()
    result = await run
    assert result.status == "done"
    assert heard == [-seq for seq in range(1, len(heard) + 1)]


async def test_a_late_listener_hears_what_follows_and_no_replay() -> None:
    async with hello() as run:
        await run
        heard = Heard(run)
    assert heard.events == []


@pytest.mark.parity("B12")
async def test_a_sync_listener_is_called_in_the_runs_own_step() -> None:
    """Nothing else runs between an event and the next of the same step: a host may answer between the two."""
    order: list[str] = []
    loop = asyncio.get_running_loop()

    def listen(event: Event) -> None:
        order.append(type(event).__name__)
        loop.call_soon(order.append, "the loop")

    run = hello()
    run.subscribe(listen)
    await run
    once = [name for name in order if name != "the loop"]
    assert order[: len(once)] == once


@pytest.mark.parity("B12")
async def test_the_task_of_a_sync_listener_is_the_runs() -> None:
    tasks = set[Any]()
    run = Agent(Scripted(*three_turns()), tools=TOOLS).run("hi")
    run.subscribe(lambda event: tasks.add(asyncio.current_task()))
    await run
    assert tasks == {asyncio.current_task()}


@pytest.mark.parity("C8")
async def test_a_message_is_in_the_transcript_when_it_is_told_and_before_its_tools_are_judged() -> None:
    """A hook before a tool, or a host that stores as it listens, sees the reply that asks for it."""
    order: list[str] = []

    async def store(event: Event) -> None:
        if isinstance(event, MessageFinished) and isinstance(event.message, AssistantMessage) and event.message.calls:
            assert run.messages[-1] is event.message
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            order.append("stored")
        elif isinstance(event, ToolRequested | ToolStarted):
            order.append(type(event).__name__)

    hooks = Hooks[Any](before_tool_execute=lambda _context: order.append("judged"))
    run = Agent(Scripted([call("look")], "done"), tools=[tool("look")], hooks=hooks).run("hi")
    run.subscribe(store)
    await run
    assert order[0] == "stored"
    assert order.index("judged") > order.index("stored")
    assert order.index("ToolStarted") > order.index("judged")


async def test_the_run_waits_for_an_async_listener_before_it_goes_on() -> None:
    """The model is not asked before whoever must prepare for it has done so."""
    gate, model = Gate(), Scripted("hello")

    async def prepare(event: Event) -> None:
        if isinstance(event, TurnStarted):
            await gate.wait()

    run = Agent(model).run("hi")
    run.subscribe(prepare)
    task = asyncio.create_task(hopping(run))
    await gate.reached.wait()
    assert model.requests == []
    gate.open()
    await task
    assert len(model.requests) == 1


async def test_the_reply_goes_on_only_after_an_async_listener_has_taken_the_delta() -> None:
    heard: list[str] = []

    async def write(event: Event) -> None:
        if isinstance(event, TextDelta):
            await asyncio.sleep(0)
            heard.append(run.partial)

    run = Agent(Scripted("abc", piece=1)).run("hi")
    run.subscribe(write)
    await run
    assert heard == ["a", "ab", "abc"]


async def test_a_listener_that_raises_is_told_once_to_the_others_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """It ends nothing, starves nobody, its own failure is not sent to it, and it does not fill the log."""
    run, own = hello(), list[Event]()

    def broken(event: Event) -> None:
        own.append(event)
        raise OSError("no screen")

    before = Heard(run)
    run.subscribe(broken)
    after = Heard(run)
    with caplog.at_level(logging.WARNING, logger="antiphon"):
        result = await run
    assert result.status == "done"
    assert before.events == after.events
    assert faults(before.events, result) == []
    warned = before.of(Warned)
    assert [(event.code, event.text) for event in warned] == [
        ("listener_raised", "a listener raised OSError: no screen")
    ]
    assert result.warnings == (("listener_raised", "a listener raised OSError: no screen"),)
    assert [event for event in before.events if event not in warned] == own
    assert len([record for record in caplog.records if "listener" in record.message]) == 1


async def test_an_async_listener_that_raises_is_told_like_a_sync_one() -> None:
    run = hello()

    async def broken(event: Event) -> None:
        await asyncio.sleep(0)
        if isinstance(event, RunStarted):
            raise OSError("no socket")

    run.subscribe(broken)
    heard = Heard(run)
    result = await run
    assert result.warnings == (("listener_raised", "a listener raised OSError: no socket"),)
    assert faults(heard.events, result) == []


async def test_an_async_listener_that_was_cancelled_from_within_ends_nothing() -> None:
    """F7: a viewer's socket task that was cancelled must not look like a cancel of the run."""

    async def broken(event: Event) -> None:
        if isinstance(event, RunStarted):
            raise asyncio.CancelledError

    run = hello()
    run.subscribe(broken)
    result = await run
    assert (result.status, [code for code, _ in result.warnings]) == ("done", ["listener_raised"])


async def test_listeners_that_all_raise_all_the_time_do_not_answer_each_other_for_ever() -> None:
    run = hello()

    def broken(event: Event) -> None:
        raise ValueError("broken")

    for _ in range(3):
        run.subscribe(broken)
    heard = Heard(run)
    result = await run
    assert result.status == "done"
    assert len(heard.of(Warned)) == 3
    assert faults(heard.events, result) == []


async def test_the_last_event_stays_the_last_when_a_listener_raises_on_it(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever waits for the end must not be told of something after it; the log has the failure, and so has the result."""
    run = hello()

    def broken(event: Event) -> None:
        if isinstance(event, RunFinished):
            raise OSError("no screen")

    async def broken_late(event: Event) -> None:
        if isinstance(event, RunFinished):
            raise OSError("no socket")

    run.subscribe(broken)
    run.subscribe(broken_late)
    heard = Heard(run)
    with caplog.at_level(logging.WARNING, logger="antiphon"):
        result = await run
    assert heard.kinds[-1] == "RunFinished"
    assert faults(heard.events, result) == []
    assert [text for _, text in result.warnings] == [
        "a listener raised OSError: no screen",
        "a listener raised OSError: no socket",
    ]
    assert "no socket" in caplog.text


async def test_a_listener_can_leave_in_its_own_callback() -> None:
    run, heard = hello(), list[int]()

    def once(event: Event) -> None:
        heard.append(event.seq)
        leave()

    leave = run.subscribe(once)
    rest = Heard(run)
    await run
    assert heard == [1]
    assert rest.events[0].seq == 1


async def test_a_listener_that_another_one_took_away_hears_no_more() -> None:
    """Also not the event that is told at this moment."""
    run, heard = hello(), list[int]()
    run.subscribe(lambda event: leave())
    leave = run.subscribe(lambda event: heard.append(event.seq))
    await run
    assert heard == []


async def test_a_listener_added_in_a_callback_hears_from_the_next_event_on() -> None:
    run, heard = hello(), list[int]()

    def add(event: Event) -> None:
        if event.seq == 2:
            run.subscribe(lambda event: heard.append(event.seq))

    run.subscribe(add)
    await run
    assert heard[0] == 3


async def test_what_a_listener_makes_the_run_tell_is_heard_by_all_in_one_order() -> None:
    """A listener that steers makes an event inside an event; nobody may hear the second before the first."""
    run = Agent(Scripted([HOP, "hello"], "again")).run("hi")

    def steer(event: Event) -> None:
        if isinstance(event, TurnStarted) and event.turn == 1:
            run.steer("and?")

    before = Heard(run)
    run.subscribe(steer)
    after = Heard(run)
    result = await run
    assert before.events == after.events
    assert faults(after.events, result) == []
    assert [type(event) for event in after.events].index(MessageQueued) == [
        type(event) for event in after.events
    ].index(TurnStarted) + 1


@pytest.mark.parity("C13")
async def test_a_warning_reaches_the_hook_for_warnings_too() -> None:
    """A host without a viewer hears of what is odd all the same, and its own failure there ends nothing."""
    told: list[tuple[str, str]] = []

    def note(code: str, text: str) -> None:
        told.append((code, text))
        raise ValueError("no log")

    run = Agent(Scripted("hello"), hooks=Hooks(on_warning=note)).run("hi")

    def broken(event: Event) -> None:
        raise OSError("no screen")

    run.subscribe(broken)
    result = await run
    assert told == [("listener_raised", "a listener raised OSError: no screen")]
    assert result.warnings == tuple(told)


async def test_a_listener_that_hangs_at_the_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a run is not a matter of somebody's socket."""
    monkeypatch.setattr("antiphon.loop.driver.END_SECONDS", 0.01)
    ended: list[str] = []

    async def hang(event: Event) -> None:
        if isinstance(event, RunFinished):
            await asyncio.Event().wait()

    run = Agent(Scripted("hello"), hooks=Hooks(on_run_end=lambda end: ended.append(end.status))).run("hi")
    run.subscribe(hang)
    assert (await run).status == "done"
    assert ended == ["done"]


async def test_a_stop_ends_the_wait_for_a_listener_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The barrier holds the run, not the one who wants it to end."""
    monkeypatch.setattr("antiphon.loop.driver.END_SECONDS", 0.01)
    gate = Gate()

    async def hang(event: Event) -> None:
        await gate.wait()

    run = hello()
    heard = Heard(run)
    run.subscribe(hang)
    task = asyncio.create_task(hopping(run))
    await gate.reached.wait()
    run.stop("enough")
    result = await task
    assert (result.status, result.reason) == ("aborted", "enough")
    assert faults(heard.events, result) == []
