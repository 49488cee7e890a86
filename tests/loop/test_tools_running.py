"""Running the calls of a reply: at once or one by one, in tasks or in threads, each with one result in its place."""

import asyncio
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.loop.hooks import Hooks
from antiphon.loop.spec import ToolOptions
from antiphon.providers.scripted import Scripted
from antiphon.tools.context import ToolContext
from antiphon.tools.tool import Tool
from antiphon.types.events import MessageFinished, ToolFinished, ToolRequested, ToolStarted
from antiphon.types.messages import ToolResultMessage
from antiphon.types.request import ModelRequest

from .scenarios import Gate, Heard, call, faults, hopping, left_tasks, outcomes, results_of, tool

pytestmark = pytest.mark.anyio


def gated(*names: str) -> tuple[dict[str, Gate], list[Tool]]:
    """Tools that wait until a test opens their gate."""
    gates = {name: Gate() for name in names}

    def made(name: str) -> Tool:
        async def body() -> str:
            await gates[name].wait()
            return name

        return tool(name, body)

    return gates, [made(name) for name in names]


def running(run: Run[Any]) -> "asyncio.Task[Any]":
    return asyncio.create_task(hopping(run))


async def settled() -> None:
    """Everything that can go on without a gate has done so."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parity("C6")
async def test_parallel_calls_finish_in_their_own_order_and_answer_in_the_order_of_the_calls() -> None:
    """Viewers hear of an end when it comes; the model reads results where it expects them."""
    gates, tools = gated("a", "b", "c")
    run = Agent(Scripted([call("a"), call("b"), call("c")], "done"), tools=tools).run("hi")
    heard, task = Heard(run), running(run)
    for name in ("c", "a", "b"):
        await gates[name].reached.wait()
        gates[name].open()
        await settled()
    result = await task
    assert [event.call.id for event in heard.of(ToolRequested)] == ["a-1", "b-1", "c-1"]
    assert [event.call_id for event in heard.of(ToolStarted)] == ["a-1", "b-1", "c-1"]
    assert [event.call_id for event in heard.of(ToolFinished)] == ["c-1", "a-1", "b-1"]
    assert list(results_of(result.messages)) == ["a-1", "b-1", "c-1"]
    told = [
        event.message.call_id for event in heard.of(MessageFinished) if isinstance(event.message, ToolResultMessage)
    ]
    assert told == ["a-1", "b-1", "c-1"]
    assert faults(heard.events, result) == []


async def test_no_more_calls_run_at_once_than_allowed() -> None:
    gates, tools = gated(*"abcd")
    options = ToolOptions(max_parallel=2)
    run = Agent(Scripted([call(name) for name in "abcd"], "done"), tools=tools, tool_options=options).run("hi")
    heard, task = Heard(run), running(run)
    await gates["b"].reached.wait()
    await settled()
    assert [event.name for event in heard.of(ToolStarted)] == ["a", "b"]
    gates["b"].open()
    await gates["c"].reached.wait()
    assert [event.name for event in heard.of(ToolStarted)] == ["a", "b", "c"]
    for gate in gates.values():
        gate.open()
    assert faults(heard.events, await task) == []


async def test_an_exclusive_tool_runs_alone() -> None:
    """Two writers of one file, or a writer beside a reader: the tool says so, nobody must serialise everything."""
    active, seen = list[str](), dict[str, list[str]]()

    def noting(name: str, **traits: Any) -> Tool:
        async def body() -> str:
            active.append(name)
            await settled()
            seen[name] = list(active)
            active.remove(name)
            return name

        return tool(name, body, **traits)

    tools = [noting("a"), noting("b"), noting("alone", exclusive=True), noting("c"), noting("d")]
    calls = [call(each.name) for each in tools]
    run = Agent(Scripted(calls, "done"), tools=tools).run("hi")
    heard = Heard(run)
    result = await run
    assert seen["alone"] == ["alone"]
    assert set(seen["a"]) == {"a", "b"}
    assert set(seen["c"]) == {"c", "d"}
    assert faults(heard.events, result) == []


@pytest.mark.parity("C6")
async def test_in_sequence_one_call_is_judged_and_run_after_the_other() -> None:
    """A hook before the second call sees what the first has done."""
    order: list[str] = []

    def noting(name: str) -> Tool:
        async def body() -> str:
            order.append(f"{name} runs")
            await asyncio.sleep(0)
            order.append(f"{name} ends")
            return name

        return tool(name, body)

    hooks = Hooks[Any](before_tool_execute=lambda context: order.append(f"{context.call.name} judged"))
    agent = Agent(Scripted([call("a"), call("b")], "done"), tools=[noting("a"), noting("b")], hooks=hooks)
    await agent.run("hi", tool_options=ToolOptions(execution="sequential"))
    assert order == ["a judged", "a runs", "a ends", "b judged", "b runs", "b ends"]
    order.clear()
    again = agent.but(model=Scripted([call("a"), call("b")], "done"))
    await again.run("hi")
    assert order[:2] == ["a judged", "b judged"]


# Failures stay where they are


async def test_a_tool_that_raises_leaves_its_siblings_alone() -> None:
    """F5, F8: every call has its own result, and no task is left."""
    gates, tools = gated("slow")

    async def broken() -> str:
        raise ZeroDivisionError("1/0")

    before = left_tasks()
    run = Agent(Scripted([call("broken"), call("slow")], "done"), tools=[*tools, tool("broken", broken)]).run("hi")
    heard, task = Heard(run), running(run)
    await gates["slow"].reached.wait()
    await settled()
    assert [event.call_id for event in heard.of(ToolFinished)] == ["broken-1"]
    gates["slow"].open()
    result = await task
    assert outcomes(result) == {"broken-1": "error", "slow-1": "ok"}
    assert left_tasks() - before == set()


@pytest.mark.parametrize("kind", [asyncio.CancelledError, TimeoutError, StopAsyncIteration, GeneratorExit])
async def test_what_looks_like_an_end_of_the_loop_is_the_tools_own_error(kind: type[BaseException]) -> None:
    """F6, F7: a tool whose own connection was cancelled is a failed tool, not a cancelled run."""

    async def lost() -> str:
        raise kind

    def lost_in_a_thread() -> str:
        raise kind

    tools = [tool("lost", lost), tool("thread", lost_in_a_thread), tool("fine")]
    run = Agent(Scripted([call("lost"), call("thread"), call("fine")], "done"), tools=tools).run("hi")
    heard = Heard(run)
    result = await run
    assert outcomes(result) == {"lost-1": "error", "thread-1": "error", "fine-1": "ok"}
    assert result.status == "done"
    assert faults(heard.events, result) == []


async def test_an_async_tool_is_cancelled_and_awaited_before_the_run_returns() -> None:
    """F4: nothing that the run began goes on behind the caller's back."""
    gate, ended = Gate(), list[str]()

    async def slow() -> str:
        try:
            await gate.wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")
        return "never"

    run = Agent(Scripted([call("slow")]), tools=[tool("slow", slow)]).run("hi")
    task = running(run)
    await gate.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cleaned up"]
    assert outcomes(run.result) == {"slow-1": "cancelled"}


async def test_a_tool_that_will_not_die_is_left_behind_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits for ever for a body that swallows its cancel; what became of it is honestly unknown."""
    gate, really = Gate(), Gate()

    async def undead() -> str:
        gate.reached.set()
        while True:
            try:
                await really.wait()
            except asyncio.CancelledError:
                continue
            return "too late"

    options = ToolOptions(grace=0.01)
    run = Agent(
        Scripted([call("undead"), call("fine")]), tools=[tool("undead", undead), tool("fine")], tool_options=options
    )
    run = run.run("hi")
    before = left_tasks()
    heard, task = Heard(run), running(run)
    await gate.reached.wait()
    await settled()
    run.stop("enough")
    result = await task
    assert outcomes(result) == {"undead-1": "unknown", "fine-1": "ok"}
    assert [code for code, _ in result.warnings] == ["left_behind"]
    assert "'undead' did not end within 0.01 s" in result.warnings[0][1]
    assert faults(heard.events, result) == []
    (left,) = left_tasks() - before - {task}
    count = len(heard.events)
    really.open()
    await left
    assert len(heard.events) == count


# What a tool is given


@pytest.mark.parity("C17")
async def test_a_tool_is_given_its_call_its_run_and_the_applications_own_object() -> None:
    seen: list[Any] = []

    async def work(context: ToolContext[Any]) -> str:
        seen.append((context.call_id, context.run_id, context.name, context.deps, context.cancelled))
        return "x"

    run = Agent(Scripted([call("work", "c9")], "done"), tools=[tool("work", work)]).run("hi", deps={"db": 1})
    await run
    assert seen == [("c9", run.run_id, "work", {"db": 1}, False)]


async def test_the_next_request_has_every_result() -> None:
    """I11: one result per call, all sent."""
    requests: list[ModelRequest] = []

    def answer(request: ModelRequest) -> Any:
        requests.append(request)
        return [call("a"), call("b"), call("a", "a-2")] if len(requests) == 1 else "done"

    await Agent(Scripted(answer, answer), tools=[tool("a"), tool("b")]).run("hi")
    sent = [message for message in requests[1].messages if isinstance(message, ToolResultMessage)]
    assert [(message.call_id, message.text) for message in sent] == [("a-1", "a"), ("b-1", "b"), ("a-2", "a")]


async def test_a_model_that_uses_the_same_call_ids_in_every_reply_is_understood() -> None:
    """Ids are unique within a reply only: servers that count from 0 in each must find every call told and run."""
    model = Scripted([call("a", "call_0")], [call("b", "call_0")], "done")
    run = Agent(model, tools=[tool("a"), tool("b")]).run("hi")
    heard = Heard(run)
    result = await run
    assert [event.call.name for event in heard.of(ToolRequested)] == ["a", "b"]
    assert [event.result.text for event in heard.of(ToolFinished)] == ["a", "b"]
    assert [event.arguments for event in heard.of(ToolStarted)] == [{}, {}]
    assert faults(heard.events, result) == []
