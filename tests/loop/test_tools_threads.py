"""Tools in threads, and what tools tell while they run: the loop goes on, contexts go along, reports come in order."""

import asyncio
import contextvars
import threading
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.providers.scripted import Scripted
from antiphon.tools.context import ToolContext
from antiphon.types.events import ToolFinished, ToolProgress

from .scenarios import Gate, Heard, call, faults, hopping, outcomes, results_of, tool

pytestmark = pytest.mark.anyio


def running(run: Run[Any]) -> "asyncio.Task[Any]":
    return asyncio.create_task(hopping(run))


async def test_a_sync_tool_runs_in_a_thread_while_the_loop_goes_on() -> None:
    """F15: a tool that blocks must not stop heartbeats and other runs."""
    ticks, done = 0, threading.Event()
    main = threading.get_ident()

    def blocking() -> bool:
        done.wait()
        return threading.get_ident() != main

    run = Agent(Scripted([call("blocking")], "done"), tools=[tool("blocking", blocking)]).run("hi")
    task = running(run)
    while ticks < 200:
        await asyncio.sleep(0)
        ticks += 1
    assert not task.done()
    done.set()
    assert results_of((await task).messages)["blocking-1"].text == "true"


async def test_sync_tools_of_one_reply_run_at_the_same_time() -> None:
    """Each has a thread of its own: they may even wait for one another, as async ones may."""
    together = threading.Barrier(5)

    def meet() -> str:
        together.wait()
        return "met"

    run = Agent(Scripted([call("meet", f"c{n}") for n in range(5)], "done"), tools=[tool("meet", meet)]).run("hi")
    assert outcomes(await run) == {f"c{n}": "ok" for n in range(5)}


async def test_context_variables_reach_tools_in_tasks_and_threads() -> None:
    """F16: tracing, tenants, request ids; what a tool sets is its own."""
    mine = contextvars.ContextVar("mine", default="unset")
    mine.set("caller")
    seen: dict[str, str] = {}

    async def in_a_task() -> str:
        seen["task"] = mine.get()
        mine.set("changed")
        return "x"

    def in_a_thread() -> str:
        seen["thread"] = mine.get()
        mine.set("changed")
        return "x"

    tools = [tool("in_a_task", in_a_task), tool("in_a_thread", in_a_thread)]
    await Agent(Scripted([call("in_a_task"), call("in_a_thread")], "done"), tools=tools).run("hi")
    assert seen == {"task": "caller", "thread": "caller"}
    assert mine.get() == "caller"


async def test_a_sync_function_that_hands_on_a_coroutine_is_awaited() -> None:
    async def later() -> str:
        return "later"

    def now() -> Any:
        return later()

    result = await Agent(Scripted([call("now")], "done"), tools=[tool("now", now)]).run("hi")
    assert results_of(result.messages)["now-1"].text == "later"


async def test_a_tool_in_a_thread_may_call_back_into_the_loop() -> None:
    def work() -> str:
        return anyio.from_thread.run(hopping, asyncio.sleep(0, "from the loop"))

    result = await Agent(Scripted([call("work")], "done"), tools=[tool("work", work)]).run("hi")
    assert results_of(result.messages)["work-1"].text == "from the loop"


# Progress


@pytest.mark.parity("C17")
async def test_progress_is_told_while_the_tool_runs_and_never_after_its_end() -> None:
    contexts: list[ToolContext[Any]] = []

    async def work(context: ToolContext[Any]) -> str:
        contexts.append(context)
        context.progress("one", {"done": 1})
        await asyncio.sleep(0)
        context.progress("two")
        return "result"

    run = Agent(Scripted([call("work")], "done"), tools=[tool("work", work)]).run("hi")
    run.subscribe(lambda event: contexts[0].progress("late") if isinstance(event, ToolFinished) else None)
    heard = Heard(run)
    result = await run
    contexts[0].progress("much too late")
    told = heard.of(ToolProgress)
    assert [(event.call_id, event.name, event.content, event.details) for event in told] == [
        ("work-1", "work", "one", {"done": 1}),
        ("work-1", "work", "two", None),
    ]
    assert faults(heard.events, result) == []


async def test_progress_from_a_thread_comes_in_order_and_all_of_it_before_the_end() -> None:
    """The last report of a tool, right before it returns, is the one that people wait for."""

    def work(context: ToolContext[Any]) -> str:
        for number in range(50):
            context.progress(number)
        return "result"

    run = Agent(Scripted([call("work")], "done"), tools=[tool("work", work)]).run("hi")
    heard = Heard(run)
    result = await run
    assert [event.content for event in heard.of(ToolProgress)] == list(range(50))
    assert faults(heard.events, result) == []


async def test_an_async_listener_hears_progress_while_the_tool_still_runs() -> None:
    """The driver sleeps while tools run; it must wake for those who wait for their turn."""
    gate, seen = Gate(), list[Any]()

    async def work(context: ToolContext[Any]) -> str:
        context.progress("half")
        await gate.wait()
        return "result"

    async def listen(event: object) -> None:
        if isinstance(event, ToolProgress):
            await asyncio.sleep(0)
            seen.append(event.content)
            gate.open()

    run = Agent(Scripted([call("work")], "done"), tools=[tool("work", work)]).run("hi")
    run.subscribe(listen)
    await run
    assert seen == ["half"]
