"""The outside signal: one token ends any number of runs, from whatever thread or loop it is cancelled."""

import asyncio
import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest
from tests.loop.scenarios import EMPTY, Gate, Heard, call, faults, hopping, outcomes, results_of, tool

from antiphon.agent.agent import Agent
from antiphon.agent.portal import run_sync
from antiphon.loop.hooks import Hooks
from antiphon.providers.scripted import Scripted
from antiphon.tools.context import ToolContext
from antiphon.tools.tool import Tool
from antiphon.types.cancel import CancelToken
from antiphon.types.events import Event, TextDelta
from antiphon.types.request import ModelRequest
from antiphon.types.result import RunResult

pytestmark = [pytest.mark.anyio, pytest.mark.parity("A4")]

POINTS = [name for name in Hooks.__struct_fields__ if name not in ("on_run_end", "on_payload", "on_warning")]


async def test_an_already_cancelled_token_ends_the_run_before_anything_but_its_end_hook() -> None:
    """Nothing was begun, so nobody but the one who closes is asked."""
    token, asked, model = CancelToken(), list[str](), Scripted("no")
    token.cancel("too late")

    def noting(point: str) -> Any:
        return lambda *_given: asked.append(point)

    hooks = Hooks[Any](**{point: noting(point) for point in [*POINTS, "on_run_end"]})
    run = Agent(model, hooks=hooks, instructions=lambda _context: asked.append("instructions") or "be brief").run(
        "hi", cancel=token
    )
    heard = Heard(run)
    result = await run
    assert asked == ["on_run_end"]
    assert model.requests == []
    assert heard.kinds == ["RunFinished"]
    assert (result.status, result.reason) == ("aborted", "too late")


async def test_an_already_cancelled_token_ends_an_entered_run_too() -> None:
    token = CancelToken()
    token.cancel()
    async with Agent(Scripted("no")).run("hi", cancel=token) as run:
        kinds = [type(event).__name__ async for event in run]
    assert (kinds, run.result.status) == (["RunFinished"], "aborted")


async def test_a_token_cancelled_in_another_thread_ends_the_run() -> None:
    """A signal handler, a web framework's worker, a window's button: none of them is in the loop."""
    token, gate = CancelToken(), Gate()
    run = Agent(Scripted(["Half", gate])).run("hi", cancel=token)
    heard = Heard(run)
    task = asyncio.create_task(hopping(run))
    await gate.reached.wait()
    thread = threading.Thread(target=token.cancel, args=("enough",))
    thread.start()
    result = await task
    thread.join()
    assert (result.status, result.reason, result.text) == ("aborted", "enough", "Half")
    assert faults(heard.events, result) == []


async def test_one_token_ends_runs_in_several_loops() -> None:
    """A process that shuts down has one signal for all that it does."""
    token = CancelToken()
    begun = threading.Barrier(4)

    async def answer(request: ModelRequest) -> str:
        await anyio.to_thread.run_sync(begun.wait)
        await asyncio.Event().wait()
        return "never"

    results: list[RunResult[str]] = []

    def elsewhere() -> None:
        results.append(run_sync(Agent(answer).run("hi", cancel=token)))

    threads = [threading.Thread(target=elsewhere) for _ in range(2)]
    for thread in threads:
        thread.start()
    task = asyncio.create_task(hopping(Agent(answer).run("hi", cancel=token)))
    await anyio.to_thread.run_sync(begun.wait)
    token.cancel("shutdown")
    results.append(await task)
    for thread in threads:
        await anyio.to_thread.run_sync(thread.join)
    assert [(result.status, result.reason) for result in results] == [("aborted", "shutdown")] * 3


async def test_one_token_ends_many_runs_of_one_loop() -> None:
    token, gate = CancelToken(), Gate()
    agent = Agent(Scripted(*[["Half", gate]] * 5))
    tasks = [asyncio.create_task(hopping(agent.run(f"{number}", cancel=token))) for number in range(5)]
    await gate.reached.wait()
    token.cancel()
    assert [(await task).status for task in tasks] == ["aborted"] * 5


async def test_in_the_runs_own_thread_a_token_takes_effect_at_once() -> None:
    """Cancelled by a listener, no further delta comes: it is as good as `run.stop`."""
    token = CancelToken()
    run = Agent(Scripted("abcdef", piece=1)).run("hi", cancel=token)

    def enough(event: Event) -> None:
        if isinstance(event, TextDelta) and event.text == "b":
            token.cancel()

    run.subscribe(enough)
    assert (await run).text == "ab"


async def test_a_token_that_was_not_used_holds_nothing_of_a_run_that_is_over() -> None:
    """One token may live as long as the process."""
    token = CancelToken()
    for _ in range(3):
        await Agent(Scripted("x")).run("hi", cancel=token)
    assert token._listeners == {}
    token.cancel()


async def test_a_token_cancelled_after_the_end_changes_nothing() -> None:
    token = CancelToken()
    run = Agent(Scripted("x")).run("hi", cancel=token)
    result = await run
    token.cancel()
    assert (await run) is result
    assert result.status == "done"


async def test_a_running_tool_sees_the_stop_and_may_end_by_itself() -> None:
    """In a thread it is the only way to be told."""
    begun, seen = threading.Event(), list[bool]()

    def work(_arguments: dict[str, Any], context: ToolContext[Any]) -> str:
        begun.set()
        while not context.cancelled:
            pass
        seen.append(context.cancelled)
        return "stopped half way"

    token = CancelToken()
    tools = [Tool.from_schema("work", "Works.", EMPTY, work)]
    run = Agent(Scripted([call("work")]), tools=tools).run("hi", cancel=token)
    task = asyncio.create_task(hopping(run))
    await anyio.to_thread.run_sync(begun.wait)
    token.cancel()
    result = await task
    assert result.status == "aborted"
    assert outcomes(result) == {"work-1": "unknown"}
    assert "not known" in results_of(result.messages)["work-1"].text
    assert [code for code, _ in result.warnings] == ["still_running"]


async def test_hooks_and_models_are_given_a_signal_that_follows() -> None:
    signals: list[Any] = []
    gate = Gate()

    async def answer(request: ModelRequest) -> str:
        signals.append(request.cancel)
        await gate.wait()
        return "x"

    token = CancelToken()
    hooks = Hooks[Any](on_run_start=lambda start: signals.append(start.cancel))
    task = asyncio.create_task(hopping(Agent(answer, hooks=hooks).run("hi", cancel=token)))
    await gate.reached.wait()
    assert [signal.cancelled for signal in signals] == [False, False]
    token.cancel("enough")
    await task
    assert [(signal.cancelled, signal.reason) for signal in signals] == [(True, "enough")] * 2


async def test_somebody_who_listens_to_the_signal_and_raises_does_not_keep_the_run_from_ending() -> None:
    """It is an application's own function, and it is told of like a listener's failure."""

    def broken() -> None:
        raise ValueError("broken")

    gate = Gate()
    hooks = Hooks[Any](on_run_start=lambda start: start.cancel.on_cancel(broken))
    run = Agent(Scripted([gate]), hooks=hooks).run("hi")
    heard = Heard(run)
    task = asyncio.create_task(hopping(run))
    await gate.reached.wait()
    run.stop()
    result = await task
    assert result.status == "aborted"
    assert [code for code, _ in result.warnings] == ["cancel_listener_raised"]
    assert faults(heard.events, result) == []


async def test_a_tools_own_run_ends_with_the_token_it_was_handed() -> None:
    gate, inner = Gate(), list[RunResult[str]]()

    async def ask(context: ToolContext[Any]) -> str:
        run = Agent(Scripted(["Half", gate])).run("hi", cancel=context.cancel)
        try:
            return (await run).text
        finally:
            inner.append(run.result)

    run = Agent(Scripted([call("ask")]), tools=[tool("ask", ask)]).run("hi")
    task = asyncio.create_task(hopping(run))
    await gate.reached.wait()
    run.stop()
    assert (await task).status == "aborted"
    assert [(result.status, result.text) for result in inner] == [("aborted", "Half")]
