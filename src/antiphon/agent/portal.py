"""Two thin doors for scripts that have no event loop: wait for a result, or iterate events."""

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from antiphon.agent.run import Run
from antiphon.errors import UsageError
from antiphon.types.cancel import CancelToken
from antiphon.types.events import Event
from antiphon.types.result import RunResult

__all__ = ["run_sync", "stream_sync"]

T = TypeVar("T")


def refuse_inside_a_loop(name: str, instead: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(f"{name} cannot wait inside a running event loop (a notebook has one): write `{instead}`")


def run_sync(run: Run[T]) -> RunResult[T]:
    """Drive a run to its end in a loop of its own, which is closed with its connections.

    Raises `RunError` as awaiting does, and `UsageError` inside a running loop. Ctrl-C ends the run and is raised.
    """
    refuse_inside_a_loop("run_sync", "await run")

    async def wait() -> RunResult[T]:
        return await run

    with asyncio.Runner() as runner:
        return runner.run(wait())


def stream_sync(run: Run[Any]) -> Iterator[Event]:
    """Iterate a run's events. The run lives in a thread; leaving the iteration, or Ctrl-C, ends it and closes it."""
    refuse_inside_a_loop("stream_sync", "async with agent.run(…) as run: async for event in run: …")
    return events_of(run)


def events_of(run: Run[Any]) -> Iterator[Event]:
    told: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    failed: list[BaseException] = []
    left = CancelToken()

    async def live() -> None:
        loop = asyncio.get_running_loop()

        def end() -> None:
            with suppress(RuntimeError):  # the loop has just been closed: the run is over
                loop.call_soon_threadsafe(run.stop, "the iteration was left")

        forget = left.on_cancel(end)
        try:
            async with run:
                async for event in run:
                    told.put(event)
        finally:
            forget()

    def work() -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(live())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failed.append(error)
        finally:
            told.put(None)

    context = copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="antiphon-stream", daemon=True)
    thread.start()
    try:
        while (event := told.get()) is not None:
            yield event
    finally:
        left.cancel()
        thread.join()
    if failed:
        raise failed[0]
