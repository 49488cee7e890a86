"""Misuse of a run: found at once, and answered with what to do instead, never with a run that waits for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from tests.loop.scenarios import Gate, call, hopping, outcomes, results_of, tool

from antiphon.agent.agent import Agent
from antiphon.agent.portal import run_sync
from antiphon.agent.run import Run
from antiphon.errors import UsageError
from antiphon.loop.hooks import Hooks
from antiphon.providers.scripted import Scripted
from antiphon.tools.tool import Tool
from antiphon.types.content import Text
from antiphon.types.events import Event, RunFinished
from antiphon.types.messages import AssistantMessage, UserMessage
from antiphon.types.request import ModelRequest

pytestmark = pytest.mark.anyio

AGENT = Agent(lambda _request: "x")
BLOCK = r"async with agent\.run\(…\) as run:\n    async for event in run: …"


# Iterating and entering


async def test_iterating_a_run_that_was_not_entered_shows_the_block() -> None:
    run = AGENT.run("hi")
    with pytest.raises(UsageError, match=BLOCK):
        aiter(run)
    await run
    with pytest.raises(UsageError, match=BLOCK):
        aiter(run)


async def test_a_second_iterator_is_refused_and_told_of_subscribe() -> None:
    """Two iterators would each see half."""
    async with AGENT.run("hi") as run:
        _ = [event async for event in run]
        with pytest.raises(UsageError, match=r"run\.subscribe\(listener\)"):
            aiter(run)


async def test_a_run_is_entered_once() -> None:
    async with AGENT.run("hi") as run:
        with pytest.raises(UsageError, match="make another"):
            await run.__aenter__()
        await run
    with pytest.raises(UsageError, match="make another"):
        await run.__aenter__()
    assert run.result.status == "done"


async def test_a_run_that_was_awaited_cannot_be_entered() -> None:
    run = AGENT.run("hi")
    await run
    with pytest.raises(UsageError, match="make another"):
        await run.__aenter__()


async def test_there_is_no_result_before_the_end() -> None:
    run = Agent(Scripted("x")).run("hi")
    with pytest.raises(UsageError, match="when the run is over"):
        _ = run.result
    async with run:
        with pytest.raises(UsageError, match="when the run is over"):
            _ = run.result


async def test_nothing_can_be_said_or_decided_before_the_start_or_after_the_end() -> None:
    """A message that nobody will read must not vanish."""
    run = Agent(Scripted("x")).run("hi")
    for say in (run.steer, run.follow_up):
        with pytest.raises(UsageError, match="put the message into its input"):
            say("more")
    with pytest.raises(UsageError, match="not running"):
        run.approve("c1")
    await run
    for say in (run.steer, run.follow_up):
        with pytest.raises(UsageError, match="start another run"):
            say("more")
    with pytest.raises(UsageError, match="not running"):
        run.deny("c1", "no")


async def test_a_decision_on_no_pending_call_is_refused_by_name() -> None:
    """A stale click must not decide on something else."""
    agent = Agent(Scripted([call("look")], "done"), tools=[tool("look", needs_approval=True)])
    async with agent.run("hi") as run:
        async for event in run:
            if type(event).__name__ == "ApprovalRequested":
                with pytest.raises(UsageError, match=r"'other'.*pending are: 'look-1'"):
                    run.approve("other")
                run.approve("look-1")
                with pytest.raises(UsageError, match=r"'look-1'; pending are: none"):
                    run.approve("look-1")
    assert run.result.status == "done"


# Combinations that mean nothing


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "nothing to do"),
        ({"messages": [AssistantMessage(parts=(Text("hi"),))]}, "not the model's turn"),
        ({"input": "hi", "decisions": {"c1": None}}, "resume="),
        ({"input": []}, "the prompt is empty"),
        ({"input": [UserMessage.of("a"), "b"]}, "either all messages"),
        ({"input": 5}, "not int"),
        ({"input": "hi", "resume": "a state"}, "what result.state gave"),
        ({"input": "hi", "resume": {"version": 1}}, "stored data does not fit"),
        ({"input": "hi", "toolz": []}, "did you mean 'tools'"),
        ({"input": "hi", "tool_choice": "nobody"}, "names no tool"),
        ({"input": "hi", "tools": [tool("a"), tool("a")]}, "'a'"),
    ],
)
async def test_a_call_that_means_nothing_is_refused_when_the_run_is_made(options: dict[str, Any], said: str) -> None:
    """Not when it is awaited, far from the mistake."""
    with pytest.raises(UsageError, match=said):
        AGENT.run(**options)


# Waiting for the run from inside itself


async def test_a_listener_cannot_wait_for_its_run() -> None:
    run = Agent(Scripted("x")).run("hi")
    refused: list[str] = []

    async def wait(event: Event) -> None:
        try:
            await run
        except UsageError as error:
            refused.append(str(error))

    run.subscribe(wait)
    result = await run
    assert len(refused) > 3
    assert all("return from the listener, hook or tool first" in text for text in refused)
    assert result.warnings == ()


@pytest.mark.parametrize(
    "point", ["on_run_start", "before_model_request", "after_model_response", "on_append", "on_run_end"]
)
async def test_a_hook_cannot_wait_for_its_run(point: str) -> None:
    refused: list[str] = []

    async def wait(_given: object) -> None:
        try:
            await run
        except UsageError as error:
            refused.append(str(error))

    points: dict[str, Any] = {point: wait}
    run = Agent(Scripted("x"), hooks=Hooks(**points)).run("hi")
    assert (await run).status == "done"
    assert "for ever" in refused[0]


async def told(make: Callable[[list[Run[Any]]], Tool], *, live: bool) -> str:
    """What the model reads of a tool that waits for its own run."""
    runs: list[Run[Any]] = []
    run = Agent(Scripted([call("wait")], "done"), tools=[make(runs)]).run("hi")
    runs.append(run)
    if live:
        async with run:
            result = await run
    else:
        result = await run
    return results_of(result.messages)["wait-1"].text


def awaiting(runs: list[Run[Any]]) -> Tool:
    async def body() -> Any:
        return await runs[0]

    return tool("wait", body)


def awaiting_in_a_loop_of_its_own(runs: list[Run[Any]]) -> Tool:
    return tool("wait", lambda: asyncio.run(hopping(runs[0])))


def running_it_again(runs: list[Run[Any]]) -> Tool:
    return tool("wait", lambda: run_sync(runs[0]))


def asking_its_loop(runs: list[Run[Any]]) -> Tool:
    return tool("wait", lambda: anyio.from_thread.run(hopping, runs[0]))


@pytest.mark.parametrize("live", [False, True], ids=["awaited", "entered"])
@pytest.mark.parametrize("make", [awaiting, awaiting_in_a_loop_of_its_own, running_it_again, asking_its_loop])
async def test_a_tool_cannot_wait_for_its_run(make: Callable[[list[Run[Any]]], Tool], live: bool) -> None:
    """In tasks and in threads alike: a run that waits for itself is the one hang that nobody can explain."""
    assert "would wait for the run that is calling it" in await told(make, live=live)


async def test_a_tool_may_wait_for_another_run() -> None:
    """Only its own would never end."""
    inner = Agent(Scripted("from within"))

    async def ask() -> str:
        return (await inner.run("hi")).text

    def ask_in_a_thread() -> str:
        return run_sync(Agent(Scripted("from a thread")).run("hi")).text

    tools = [tool("ask", ask), tool("thread", ask_in_a_thread)]
    result = await Agent(Scripted([call("ask"), call("thread")], "done"), tools=tools).run("hi")
    texts = {call_id: message.text for call_id, message in results_of(result.messages).items()}
    assert texts == {"ask-1": "from within", "thread-1": "from a thread"}


async def test_a_task_that_a_tool_began_may_read_the_result_when_the_run_is_over() -> None:
    """It carries the tool's context for ever; there is nothing to wait for any more."""
    gate, tasks = Gate(), list["asyncio.Task[Any]"]()

    async def later() -> str:
        await gate.wait()
        return (await run).text

    async def begin() -> str:
        tasks.append(asyncio.create_task(later()))
        return "begun"

    run = Agent(Scripted([call("begin")], "done"), tools=[tool("begin", begin)]).run("hi")
    await run
    gate.open()
    assert await tasks[0] == "done"


async def test_a_nested_run_cannot_wait_for_the_one_around_it() -> None:
    """The way to the outer run may lead through any number of inner ones."""
    outer: list[Run[Any]] = []

    async def wait() -> Any:
        return await outer[0]

    async def ask() -> str:
        result = await Agent(Scripted([call("wait")], "inner"), tools=[tool("wait", wait)]).run("hi")
        return results_of(result.messages)["wait-1"].text

    run = Agent(Scripted([call("ask")], "done"), tools=[tool("ask", ask)]).run("hi")
    outer.append(run)
    result = await run
    assert "would wait for the run" in results_of(result.messages)["ask-1"].text
    assert outcomes(result) == {"ask-1": "ok"}


async def test_a_model_that_waits_for_its_run_fails_as_a_model() -> None:
    """A function as a model runs inside the run as well."""

    async def answer(request: ModelRequest) -> str:
        return (await run).text

    run = Agent(answer).run("hi")
    heard: list[Event] = []
    run.subscribe(heard.append)
    async with run:
        pass_by: Awaitable[Any] = run
        with pytest.raises(Exception, match="would wait for the run"):
            await pass_by
    assert isinstance(heard[-1], RunFinished)
