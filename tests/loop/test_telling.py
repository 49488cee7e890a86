"""Telling, by itself: numbers without gaps, one order for all, and an iterator that ends with the last event."""

import asyncio
from typing import Any

import anyio
import pytest

from antiphon.loop.telling import Teller, told
from antiphon.types.events import Event, RunFinished, TextDelta, TurnStarted, Warned

pytestmark = pytest.mark.anyio


def finish(teller: Teller) -> None:
    teller.close(RunFinished, status="done")


async def test_events_are_numbered_from_1_with_the_runs_id_and_its_callers() -> None:
    teller, heard = Teller("r1", "r0"), list[Event]()
    teller.subscribe(heard.append)
    teller.tell(TurnStarted, turn=1)
    teller.warn("odd", "something")
    finish(teller)
    assert [(event.seq, event.run_id, event.parent_run_id) for event in heard] == [
        (1, "r1", "r0"),
        (2, "r1", "r0"),
        (3, "r1", "r0"),
    ]
    assert isinstance(heard[1], Warned)


async def test_nothing_is_told_after_the_last_event() -> None:
    """Whatever is still on its way, a tool left behind or a sub-agent, is too late."""
    teller, heard = Teller("r1"), list[Event]()
    teller.subscribe(heard.append)
    finish(teller)
    teller.tell(TurnStarted, turn=1)
    teller.hand_out(TurnStarted(run_id="child", seq=7, turn=1))
    teller.warn("late", "too late for an event")
    assert [type(event) for event in heard] == [RunFinished]
    assert teller.warnings == [("late", "too late for an event")]
    assert teller.seq == 1


async def test_events_of_a_sub_agent_are_handed_on_as_they_are() -> None:
    """They have their own numbers; those of the caller have no gap for it."""
    teller, heard = Teller("r1"), list[Event]()
    teller.subscribe(heard.append)
    teller.tell(TurnStarted, turn=1)
    child = TurnStarted(run_id="child", seq=9, parent_run_id="r1", turn=1)
    teller.hand_out(child)
    finish(teller)
    assert heard[1] is child
    assert [event.seq for event in heard if event.run_id == "r1"] == [1, 2]


async def test_the_iterator_ends_with_its_own_last_event_not_with_a_sub_agents() -> None:
    teller = Teller("r1")
    teller.keep()
    teller.hand_out(RunFinished(run_id="child", seq=3, parent_run_id="r1", status="done"))
    finish(teller)
    assert [event.run_id async for event in teller.events()] == ["child", "r1"]


async def test_one_wait_takes_all_that_came_meanwhile() -> None:
    """A consumer is woken for a batch, not for a delta: the socket's rhythm is the viewer's."""
    teller, seen, waits = Teller("r1"), list[str](), list[int]()
    teller.keep()

    async def consume() -> None:
        async for event in teller.events():
            seen.append(type(event).__name__)

    async with anyio.create_task_group() as group:
        group.start_soon(consume)
        await asyncio.sleep(0)
        for number in range(100):
            teller.tell(TextDelta, message_id="m", text=f"{number}")
        finish(teller)
        waits.append(len(seen))
    assert waits == [0]
    assert len(seen) == 101


async def test_the_iterator_can_be_asked_again_after_its_end() -> None:
    teller = Teller("r1")
    teller.keep()
    finish(teller)
    events = teller.events()
    assert isinstance(await anext(events), RunFinished)
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(events)


async def test_async_listeners_are_waited_for_in_order_and_together_with_what_they_cause() -> None:
    teller, order = Teller("r1"), list[str]()

    async def listen(event: Event) -> None:
        order.append(f"begin {event.seq}")
        await asyncio.sleep(0)
        if event.seq == 1:
            teller.tell(TurnStarted, turn=2)
        order.append(f"end {event.seq}")

    teller.subscribe(listen)
    teller.tell(TurnStarted, turn=1)
    assert teller.unsettled
    await teller.settle()
    assert order == ["begin 1", "end 1", "begin 2", "end 2"]
    assert not teller.unsettled


async def test_a_listener_may_give_back_any_awaitable() -> None:
    """A task of its own, or a future: the run waits for it all the same."""
    teller, done = Teller("r1"), list[str]()

    async def work() -> None:
        await asyncio.sleep(0)
        done.append("done")

    teller.subscribe(lambda _event: asyncio.ensure_future(work()))
    teller.tell(TurnStarted, turn=1)
    await teller.settle()
    assert done == ["done"]


async def test_a_cancel_from_outside_goes_through_a_listener() -> None:
    teller, reached = Teller("r1"), asyncio.Event()

    async def listen(_event: Event) -> None:
        reached.set()
        await asyncio.Event().wait()

    teller.subscribe(listen)
    teller.tell(TurnStarted, turn=1)
    task = asyncio.create_task(teller.settle())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert teller.warnings == []


async def test_an_error_that_cannot_even_be_told_is_named() -> None:
    """A failure in telling of a failure would take the run with it."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def broken(_event: Event) -> None:
        raise Silent

    teller = Teller("r1")
    teller.subscribe(broken)
    teller.tell(TurnStarted, turn=1)
    assert teller.warnings == [("listener_raised", "a listener raised Silent: its text cannot be read")]
    assert (told(ValueError("x")), told(ValueError())) == ("ValueError: x", "ValueError")


async def test_what_only_a_base_exception_says_goes_through() -> None:
    """Ctrl-C in a listener is a matter of the process, and the next event is told all the same."""
    teller, heard = Teller("r1"), list[int]()
    raising: list[Any] = [KeyboardInterrupt]

    def listen(_event: Event) -> None:
        if raising:
            raise raising.pop()

    teller.subscribe(listen)
    teller.subscribe(lambda event: heard.append(event.seq))
    with pytest.raises(KeyboardInterrupt):
        teller.tell(TurnStarted, turn=1)
    teller.tell(TurnStarted, turn=2)
    assert heard == [2]
