"""A cancel at every await: whatever moment it meets, what is left is a whole run and a transcript that can be sent."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.loop.hooks import Hooks
from antiphon.loop.spec import ToolOptions
from antiphon.providers.scripted import Scripted
from antiphon.types.cancel import CancelToken
from antiphon.types.events import Event

from .scenarios import (
    TOOLS,
    Heard,
    accepted,
    brief,
    call,
    cancelling,
    faults,
    hopping,
    left_tasks,
    longer,
    outcomes,
    three_turns,
    tool,
)

pytestmark = pytest.mark.anyio

ASYNC_TOOLS = (tool("brief", brief), tool("longer", longer), tool("threaded", brief))
"""The same tools without threads, so that a run waits the same number of times whenever it is made."""


async def pause(*_given: object) -> None:
    await asyncio.sleep(0)


SLOW_HOOKS: Hooks[Any] = Hooks(
    on_run_start=pause,
    on_run_end=pause,
    before_tools_resolved=pause,
    after_tools_resolved=pause,
    should_continue=pause,
    prepare_context=pause,
    before_model_request=pause,
    after_model_response=pause,
    before_tool_execute=pause,
    after_tool_execute=pause,
    on_append=pause,
)
"""A hook that waits at every decision point, so that a cancel can meet it there."""


def plain() -> Run[Any]:
    return Agent(Scripted(*three_turns()), tools=ASYNC_TOOLS).run("hi")


def hooked() -> Run[Any]:
    """A run that waits wherever it can: in hooks, and for an async listener at every event."""
    run = Agent(Scripted(*three_turns()), tools=ASYNC_TOOLS, hooks=SLOW_HOOKS).run("hi")
    run.subscribe(pause)
    return run


async def waits(make: Callable[[], Run[Any]]) -> int:
    """In how many places an undisturbed run waits."""
    counted: list[int] = []
    await cancelling(make(), 0, counted)
    return len(counted)


async def cancelled_at(run: Run[Any], *at: int) -> list[str]:
    """Cancel a run's task in these of its waits; what is wrong with what is left."""
    heard, before = Heard(run), left_tasks()
    task = asyncio.create_task(hopping(cancelling(run, at[0], [], more=at[1:])))
    await asyncio.wait([task])
    wrong = [] if task.cancelled() else [f"the task was not cancelled: {task!r}"]
    wrong += [f"left behind: {other!r}" for other in left_tasks() - before]
    return wrong + faults(heard.events, run.result) + await accepted(run.result.messages)


@pytest.mark.parametrize("make", [plain, hooked])
async def test_a_cancel_at_every_wait_leaves_a_whole_run(make: Callable[[], Run[Any]]) -> None:
    """Each wait is a place that a cancel can meet; one that is not safe is a transcript that no provider takes."""
    count = await waits(make)
    wrong = {at: found for at in range(1, count + 1) if (found := await cancelled_at(make(), at))}
    assert wrong == {}
    assert count > 15


async def test_a_second_cancel_at_any_wait_of_the_closing_hurries_it_and_loses_nothing() -> None:
    """Somebody who presses Ctrl-C twice is in a hurry; the transcript is theirs all the same."""
    count = await waits(hooked)
    wrong: dict[tuple[int, int], list[str]] = {}
    for first in range(1, count, 3):
        for second in range(first + 1, first + 7):
            if found := await cancelled_at(hooked(), first, second):
                wrong[first, second] = found
    assert wrong == {}


async def test_cancelled_at_every_wait_a_run_ends_after_a_bounded_number_of_them() -> None:
    """A parent that cancels again and again until the task is over must not keep it from getting there."""
    assert await cancelled_at(hooked(), *range(10, 200)) == []


async def test_cancelling_every_task_of_the_loop_at_once_leaves_a_whole_run() -> None:
    """A loop that shuts down cancels the run's task and the bodies of its tools in the same moment."""
    for hops in range(60):
        run = hooked()
        heard, before = Heard(run), left_tasks()
        task = asyncio.create_task(hopping(run))
        for _ in range(hops):
            await asyncio.sleep(0)
        for other in left_tasks() - before:
            other.cancel()
        await asyncio.wait([task])
        assert left_tasks() - before == set()
        if heard.events:  # else the task was cancelled before it began, and nothing has started
            assert faults(heard.events, run.result) == []


async def viewed(run: Run[Any], events: list[Event]) -> None:
    """A person who watches to the end."""
    async with run:
        events.extend([event async for event in run])


@pytest.mark.parametrize("how", ["awaited", "entered", "stopped", "token"])
async def test_250_random_disturbances_leave_whole_runs(how: str) -> None:
    """The measure of the first song: a thousand cancels, stops and tokens at random moments of runs with threads."""
    dice = random.Random(f"antiphon {how}")
    wrong: dict[int, list[str]] = {}
    before = left_tasks()
    for number in range(250):
        token, events = CancelToken(), list[Event]()
        run = Agent(Scripted(*three_turns()), tools=TOOLS).run("hi", cancel=token)
        heard = Heard(run)
        task = asyncio.create_task(viewed(run, events) if how == "entered" else hopping(run))
        for _ in range(dice.randrange(32)):
            await asyncio.sleep(0)
        {"awaited": task.cancel, "entered": task.cancel, "stopped": run.stop, "token": token.cancel}[how]()
        await asyncio.wait([task])
        if not heard.events:
            continue
        found = faults(heard.events, run.result) + await accepted(run.result.messages)
        found += [f"left behind: {other!r}" for other in left_tasks() - before]
        if events:
            found += [] if heard.events[: len(events)] == events else ["the iterator saw something else"]
        if found:
            wrong[number] = found
    assert wrong == {}


async def test_an_anyio_scope_around_an_awaited_run_ends_it_and_goes_no_further() -> None:
    """A scope delivers its cancel again at every await: the closing is shielded from it, and the scope takes it."""
    for hops in range(0, 40, 3):
        run = hooked()
        heard = Heard(run)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as group:

                async def later(scope: anyio.CancelScope, hops: int) -> None:
                    for _ in range(hops):
                        await asyncio.sleep(0)
                    scope.cancel()

                group.start_soon(later, scope, hops)
                await run
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        if heard.events:
            assert faults(heard.events, run.result) == []
            assert run.result.status == "aborted"


async def test_a_timeout_around_an_awaited_run_stays_a_timeout() -> None:
    """`asyncio.timeout` and `anyio.fail_after` know their own cancel by its coming back."""
    never = asyncio.Event()
    for limit in (lambda: asyncio.timeout(0), lambda: anyio.fail_after(0)):
        run = Agent(Scripted([never, "no"])).run("hi")
        with pytest.raises(TimeoutError):
            await timed(limit(), run)
        assert run.result.status == "aborted"


async def timed(limit: Any, run: Run[Any]) -> None:
    if hasattr(limit, "__aenter__"):
        async with limit:
            await run
    else:
        with limit:
            await run


async def test_a_stopped_run_leaves_no_cancel_behind_in_the_callers_task() -> None:
    """The stop of a run is not a cancel of its caller: later waits of the same task must not be disturbed."""
    never = asyncio.Event()
    run = Agent(Scripted([never])).run("hi")
    asyncio.get_running_loop().call_soon(run.stop, "enough")
    result = await run
    task = asyncio.current_task()
    assert task is not None
    assert (result.status, result.reason, task.cancelling()) == ("aborted", "enough", 0)
    await asyncio.sleep(0)


async def test_a_tool_that_needs_its_grace_keeps_it_when_the_run_is_cancelled() -> None:
    """A tool that cleans up after a cancel is waited for, and says how it ended."""
    began, cleaned = asyncio.Event(), list[str]()

    async def careful() -> str:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")
        return "never"

    run = Agent(
        Scripted([call("careful")], "no"),
        tools=[tool("careful", careful)],
        tool_options=ToolOptions(grace=30),
    ).run("hi")
    task = asyncio.create_task(hopping(run))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["yes"]
    assert outcomes(run.result) == {"careful-1": "cancelled"}
