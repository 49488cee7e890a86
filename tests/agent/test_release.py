"""Release: when a run is over and nobody holds it, nothing of it is left (F14)."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.loop.scenarios import TOOLS, Gate, call, hopping, left_tasks, three_turns, tool

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.errors import Rejected
from antiphon.loop.hooks import Hooks
from antiphon.providers.scripted import Scripted
from antiphon.types.cancel import CancelToken
from antiphon.types.events import TextDelta
from antiphon.types.result import RunError

pytestmark = pytest.mark.anyio


class Held:
    """An application's object that a run holds."""


async def awaited(run: Run[Any]) -> None:
    await run


async def entered(run: Run[Any]) -> None:
    async with run:
        _ = [event async for event in run]


async def left_early(run: Run[Any]) -> None:
    async with run:
        async for event in run:
            if isinstance(event, TextDelta):
                break


async def cancelled(run: Run[Any]) -> None:
    task = asyncio.create_task(hopping(run))
    for _ in range(12):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def stopped(run: Run[Any]) -> None:
    run.subscribe(lambda event: run.stop() if isinstance(event, TextDelta) else None)
    await run


def alive(left: list[weakref.ref[Any]]) -> list[str]:
    """What is still there, by name: the things themselves would be held by the list."""
    gc.collect()
    return [type(thing).__name__ for ref in left if (thing := ref()) is not None]


@pytest.mark.parametrize("use", [awaited, entered, left_early, cancelled, stopped])
async def test_nothing_is_left_of_a_run(use: Callable[[Run[Any]], Awaitable[None]]) -> None:
    """A server makes a million of them: run, session, agent, model, deps and listeners must all go."""
    token = CancelToken()

    async def once() -> list[weakref.ref[Any]]:
        held, listener = Held(), Held()
        agent = Agent(Scripted(*three_turns()), tools=TOOLS, hooks=Hooks[Any](on_run_end=lambda _end: None))
        run = agent.run("hi", deps=held, cancel=token)
        run.subscribe(lambda _event, listener=listener: None)
        await use(run)
        assert run._driver is not None
        parts = [run, agent.model, held, listener, run._driver, run._driver.session]
        return [weakref.ref(part) for part in parts if hasattr(type(part), "__weakref__")]

    before = left_tasks()
    left = await once()
    for _ in range(1000):  # a thread that was left may still be on its way out
        if not alive(left):
            break
        await asyncio.sleep(0.001)
    assert alive(left) == []
    assert len(left) >= 5
    assert left_tasks() - before == set()


async def test_a_result_holds_no_more_than_it_shows() -> None:
    """Results are kept; the machinery that made them must not be kept with them."""

    async def once() -> tuple[Any, list[weakref.ref[Any]]]:
        held = Held()
        run = Agent(Scripted(*three_turns()), tools=TOOLS).run("hi", deps=held)
        result = await run
        return result, [weakref.ref(held), weakref.ref(run)]

    result, left = await once()
    gc.collect()
    assert [ref() for ref in left] == [None, None]
    assert result.state["run_id"] == result.run_id


async def test_an_error_that_was_handled_holds_nothing() -> None:
    async def once() -> list[weakref.ref[Any]]:
        held = Held()
        run = Agent(Scripted(Rejected("no"))).run("hi", deps=held)
        with suppress(RunError):
            await run
        return [weakref.ref(held), weakref.ref(run)]

    left = await once()
    gc.collect()
    assert [ref() for ref in left] == [None, None]


async def test_a_run_that_was_never_started_is_nothing_to_worry_about() -> None:
    """No coroutine that was never awaited, no warning."""

    def once() -> weakref.ref[Any]:
        return weakref.ref(Agent(Scripted("x")).run("hi"))

    left = once()
    gc.collect()
    assert left() is None


async def test_a_paused_run_holds_nothing_but_its_state() -> None:
    async def once() -> tuple[Any, weakref.ref[Any]]:
        held = Held()
        agent = Agent(Scripted([call("look")]), tools=[tool("look", needs_approval=True)])
        return await agent.run("hi", deps=held), weakref.ref(held)

    result, left = await once()
    gc.collect()
    assert (result.status, left()) == ("paused", None)


async def test_a_task_that_a_tool_left_waiting_does_not_hold_the_run_up() -> None:
    """Structured as runs are, a tool may still begin something of its own; that is the tool's."""
    gate, begun = Gate(), list["asyncio.Task[None]"]()

    async def begin() -> str:
        begun.append(asyncio.create_task(gate.wait()))
        return "begun"

    result = await Agent(Scripted([call("begin")], "done"), tools=[tool("begin", begin)]).run("hi")
    assert result.status == "done"
    assert not begun[0].done()
    gate.open()
    await begun[0]
