"""Time limits of tools: they end the call and not the run, and do not count what a person takes to answer."""

import asyncio
import math
import threading
from typing import Any

import anyio.to_thread
import pytest

from antiphon.agent.agent import Agent
from antiphon.errors import UsageError
from antiphon.loop.bodies import Body
from antiphon.loop.spec import ToolOptions
from antiphon.providers.scripted import Scripted
from antiphon.tools.context import ToolContext
from antiphon.types.events import ApprovalRequested, ToolFinished
from antiphon.types.result import RunResult

from .scenarios import Heard, call, faults, left_tasks, outcomes, results_of, tool

pytestmark = [pytest.mark.anyio, pytest.mark.parity("B15")]

SOON = 0.01
"""A limit that a body which never ends is sure to reach."""
LONG = 0.3
"""A limit that a body with nothing to do is sure to keep, also on a busy machine."""


async def never() -> str:
    await asyncio.Event().wait()
    return "never"


async def ran(*tools: Any, **options: Any) -> tuple[RunResult[str], Heard]:
    """One call of each tool; the run is sound, and goes on after them."""
    run = Agent(Scripted([call(each.name) for each in tools], "done"), tools=tools).run("hi", **options)
    heard = Heard(run)
    result = await run
    assert (result.status, faults(heard.events, result)) == ("done", [])
    return result, heard


async def test_a_call_that_takes_too_long_is_ended_and_the_run_goes_on() -> None:
    """I9: the model reads that it took too long, and may try something smaller."""
    before = left_tasks()
    result, heard = await ran(tool("slow", never, timeout=SOON), tool("fine"))
    assert outcomes(result) == {"slow-1": "timeout", "fine-1": "ok"}
    assert "took longer than 0.01 s" in results_of(result.messages)["slow-1"].text
    assert heard.of(ToolFinished)[-1].seconds >= SOON
    assert left_tasks() - before == set()


async def test_the_engines_limit_holds_for_tools_without_their_own() -> None:
    result, _ = await ran(tool("slow", never), tool_options=ToolOptions(timeout=SOON))
    assert outcomes(result) == {"slow-1": "timeout"}


async def test_a_tools_own_limit_counts_before_the_engines() -> None:
    async def short() -> str:
        await asyncio.sleep(5 * SOON)
        return "in time"

    for own in (0, math.inf, 60):
        result, _ = await ran(tool("short", short, timeout=own), tool_options=ToolOptions(timeout=SOON))
        assert outcomes(result) == {"short-1": "ok"}


@pytest.mark.parametrize("engine", [None, 0])
async def test_nothing_and_0_mean_no_limit(engine: float | None) -> None:
    """A body without a limit has no timer at all."""
    armed: list[bool] = []

    async def look() -> str:
        armed.append(bool(bodies[0]._timer))
        return "x"

    bodies: list[Body] = []
    plain = Body.__init__

    def noting(self: Body, *args: Any, **kwargs: Any) -> None:
        plain(self, *args, **kwargs)
        bodies.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Body, "__init__", noting)
        await ran(tool("look", look), tool_options=ToolOptions(timeout=engine))
    assert armed == [False]


def test_a_limit_that_is_no_time_is_refused() -> None:
    for wrong in (-1, math.nan):
        with pytest.raises(UsageError, match="timeout"):
            tool("look", never, timeout=wrong)


async def test_a_sync_tool_that_takes_too_long_is_left_to_its_thread() -> None:
    """Nothing can end a thread: the run goes on without it, and says so."""
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    def stuck() -> str:
        begun.set()
        release.wait()
        ended.set()
        return "too late"

    result, heard = await ran(tool("stuck", stuck, timeout=SOON))
    assert outcomes(result) == {"stuck-1": "timeout"}
    assert [code for code, _ in result.warnings] == ["still_running"]
    assert "'stuck'" in result.warnings[0][1]
    assert not ended.is_set()
    count = len(heard.events)
    release.set()
    if begun.is_set():  # on a busy machine the time may be over before the thread runs at all
        await anyio.to_thread.run_sync(ended.wait)
    assert len(heard.events) == count


async def test_a_thread_that_was_left_takes_no_place_from_other_calls() -> None:
    """Each sync call has a limiter of its own: forty stuck ones must not stop the forty-first."""
    release = threading.Event()

    def stuck() -> str:
        release.wait()
        return "too late"

    def quick() -> str:
        return "quick"

    calls = [call("stuck", f"s{number}") for number in range(45)]
    tools = [tool("stuck", stuck, timeout=SOON), tool("quick", quick)]
    options = ToolOptions(max_parallel=100)
    try:
        result = await Agent(Scripted(calls, [call("quick")], "done"), tools=tools, tool_options=options).run("hi")
    finally:
        release.set()
    assert outcomes(result)["quick-1"] == "ok"
    assert list(outcomes(result).values()).count("timeout") == 45


async def test_a_tool_that_cleans_up_after_its_timeout_is_waited_for() -> None:
    cleaned: list[str] = []

    async def careful() -> str:
        try:
            await never()
        finally:
            await asyncio.sleep(0)
            cleaned.append("yes")
        return "never"

    result, _ = await ran(tool("careful", careful, timeout=SOON))
    assert (cleaned, outcomes(result)) == (["yes"], {"careful-1": "timeout"})


async def test_a_tool_that_has_its_answer_when_the_time_is_over_may_give_it() -> None:
    """It was done: throwing the answer away helps nobody."""

    async def late() -> str:
        try:
            await never()
        except asyncio.CancelledError:
            return "the half that I had"
        return "never"

    result, _ = await ran(tool("late", late, timeout=SOON))
    assert outcomes(result) == {"late-1": "ok"}


async def test_a_tool_that_will_not_end_is_unknown_and_left_behind() -> None:
    release = asyncio.Event()

    async def undead() -> str:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return "too late"

    before = left_tasks()
    result, _ = await ran(tool("undead", undead, timeout=SOON), tool_options=ToolOptions(grace=SOON))
    assert outcomes(result) == {"undead-1": "unknown"}
    assert [code for code, _ in result.warnings] == ["left_behind"]
    release.set()
    for left in left_tasks() - before:
        await left


async def test_what_a_person_takes_to_answer_is_not_the_tools_time() -> None:
    """A tool of a second's work may wait a day for its question."""

    async def ask(context: ToolContext[Any]) -> str:
        answer = await context.ask("sure?")
        await asyncio.sleep(0)
        return f"{answer}"

    agent = Agent(Scripted([call("ask")], "done"), tools=[tool("ask", ask, timeout=LONG)])
    async with agent.run("hi") as run:
        heard = Heard(run)
        async for event in run:
            if isinstance(event, ApprovalRequested):
                assert event.question == "sure?"
                await asyncio.sleep(1.2 * LONG)
                run.answer(event.call_id, "yes")
    assert outcomes(run.result) == {"ask-1": "ok"}
    assert heard.of(ToolFinished)[0].seconds < LONG


async def test_the_clock_goes_on_after_the_answer() -> None:
    async def ask(context: ToolContext[Any]) -> str:
        await context.ask("sure?")
        return await never()

    agent = Agent(Scripted([call("ask")], "done"), tools=[tool("ask", ask, timeout=SOON)])
    async with agent.run("hi") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                run.answer(event.call_id, "yes")
    assert outcomes(run.result) == {"ask-1": "timeout"}


async def test_waiting_for_an_approval_is_before_the_clock() -> None:
    agent = Agent(Scripted([call("look")], "done"), tools=[tool("look", timeout=LONG, needs_approval=True)])
    async with agent.run("hi") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                await asyncio.sleep(1.2 * LONG)
                run.approve(event.call_id)
    assert outcomes(run.result) == {"look-1": "ok"}
