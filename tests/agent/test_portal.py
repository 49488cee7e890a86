"""Two doors for scripts: `run_sync` and `stream_sync`."""

import asyncio
import contextvars
import gc
import signal
import threading
from typing import Any

import pytest
from tests.loop.scenarios import TOOLS, faults, three_turns

from antiphon.agent.agent import Agent
from antiphon.agent.portal import run_sync, stream_sync
from antiphon.errors import Rejected, UsageError
from antiphon.providers.scripted import Scripted
from antiphon.types.events import RunFinished, TextDelta
from antiphon.types.request import ModelRequest
from antiphon.types.result import RunError


def test_run_sync_drives_a_run_to_its_end() -> None:
    run = Agent(Scripted(*three_turns()), tools=TOOLS).run("hi")
    result = run_sync(run)
    assert (result.status, result.text) == ("done", "That is all.")
    assert run.result is result
    assert run_sync(run) is result


def test_run_sync_raises_as_awaiting_does() -> None:
    failure = Rejected("no such model")
    with pytest.raises(RunError, match="no such model") as caught:
        run_sync(Agent(Scripted(failure)).run("hi"))
    assert caught.value.__cause__ is failure


def test_an_agent_is_used_in_one_loop_after_the_other() -> None:
    """F17: nothing of the first loop may be needed in the second."""
    agent = Agent(lambda _request: "hello", tools=TOOLS)
    assert [run_sync(agent.run("hi")).text for _ in range(3)] == ["hello"] * 3
    gc.collect()


def test_run_sync_in_several_threads_at_once() -> None:
    agent, texts = Agent(lambda _request: "hello"), list[str]()
    threads = [threading.Thread(target=lambda: texts.append(run_sync(agent.run("hi")).text)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["hello"] * 4


@pytest.mark.anyio
async def test_inside_a_running_loop_both_doors_say_what_to_write() -> None:
    """A notebook has a loop: waiting in it would stop everything else."""
    run = Agent(Scripted("hello")).run("hi")
    with pytest.raises(UsageError, match="`await run`"):
        run_sync(run)
    with pytest.raises(UsageError, match="async with"):
        stream_sync(run)
    assert (await run).status == "done"


def test_ctrl_c_ends_the_run_and_is_raised() -> None:
    """The transcript so far is kept: the person pressed Ctrl-C on the run, not on their work."""

    async def answer(request: ModelRequest) -> str:
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        await asyncio.Event().wait()
        return "never"

    run = Agent(answer).run("hi")
    with pytest.raises(KeyboardInterrupt):
        run_sync(run)
    assert run.result.status == "aborted"


def test_stream_sync_gives_every_event() -> None:
    run = Agent(Scripted(*three_turns()), tools=TOOLS).run("hi")
    events = list(stream_sync(run))
    assert faults(events, run.result) == []
    assert isinstance(events[-1], RunFinished)


def test_stream_sync_does_not_raise_the_runs_own_error() -> None:
    """As iterating does not; the end is an event, and the result tells."""
    run = Agent(Scripted(["So far", Rejected("no")])).run("hi")
    events = list(stream_sync(run))
    assert isinstance(events[-1], RunFinished)
    assert (events[-1].status, run.result.status) == ("error", "error")


def test_leaving_stream_sync_ends_the_run_and_its_thread() -> None:
    """A loop that breaks off leaves no thread behind that goes on asking."""

    async def answer(request: ModelRequest) -> Any:
        async def reply() -> Any:
            yield "Half"
            await asyncio.Event().wait()

        return reply()

    run = Agent(answer).run("hi")
    before = threading.active_count()
    for event in stream_sync(run):
        if isinstance(event, TextDelta):
            break
    gc.collect()
    assert threading.active_count() == before
    assert (run.result.status, run.result.text) == ("aborted", "Half")


def test_an_error_of_the_consumer_ends_the_run_and_comes_out() -> None:
    async def answer(request: ModelRequest) -> str:
        await asyncio.Event().wait()
        return "never"

    run = Agent(answer).run("hi")

    def consume() -> None:
        events = stream_sync(run)
        try:
            for _ in events:
                raise KeyError("mine")
        finally:
            events.close()  # type: ignore[attr-defined] - a generator

    with pytest.raises(KeyError, match="mine"):
        consume()
    assert run.result.status == "aborted"


def test_a_stream_that_was_made_and_not_begun_has_not_started_the_run() -> None:
    model = Scripted("hello")
    run = Agent(model).run("hi")
    stream_sync(run)
    gc.collect()
    assert model.requests == []
    assert run_sync(run).text == "hello"


def test_a_run_is_streamed_once() -> None:
    run = Agent(Scripted("hello")).run("hi")
    list(stream_sync(run))
    with pytest.raises(UsageError, match="make another"):
        list(stream_sync(run))


@pytest.mark.parametrize("door", [run_sync, lambda run: list(stream_sync(run))])
def test_context_variables_go_through_both_doors(door: Any) -> None:
    """F16: a request id that a script set is there in the model, in hooks and in tools."""
    request_id = contextvars.ContextVar("request_id", default="unset")
    request_id.set("r-1")
    seen: list[str] = []

    def answer(request: ModelRequest) -> str:
        seen.append(request_id.get())
        return "hello"

    door(Agent(answer).run("hi"))
    assert seen == ["r-1"]
