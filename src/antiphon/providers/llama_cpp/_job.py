"""From the thread that asks llama.cpp to the event loop that waits: one hop for many chunks."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import anyio

from antiphon.errors import Dropped, ModelError, UsageError

__all__ = ["LEAVE", "Job", "Put", "Work"]

LEAVE: Final = 5.0
"""Seconds to wait for the thread: after a request was left, and at the end."""

Put: TypeAlias = Callable[[dict[str, Any]], bool]
"""Hands a chunk over. True asks llama.cpp to stop."""

Work: TypeAlias = Callable[[Any, Put], None]
"""What the thread does with the server that it has loaded."""


class Job:
    """One piece of work for the thread, and the way its chunks take to the loop that waits for them.

    The fields are written by one side and read by the other; a deque and single assignments need no lock. `over` and
    `news` belong to the loop.
    """

    __slots__ = ("_called", "begun", "chunks", "failure", "left", "loop", "news", "over", "work")

    def __init__(self, work: Work, loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.chunks: deque[dict[str, Any]] = deque()
        self.failure: ModelError | UsageError | None = None
        self.begun = False
        self.left = False
        self.over = False
        self.news = anyio.Event()
        self._called = False

    async def more(self) -> bool:
        """Wait until a chunk is there, or all is said. Raises what went wrong in the thread, after the last chunk."""
        while not self.chunks and not self.over:
            self.news = anyio.Event()
            await self.news.wait()
        if not self.chunks and self.failure is not None:
            raise self.failure
        return bool(self.chunks)

    async def leave(self) -> None:
        """Nobody wants more: ask the thread to stop, and wait until it has, so that the next request finds it free."""
        self.left = True
        if not self.begun:
            return
        with anyio.move_on_after(LEAVE, shield=True):
            while not self.over:
                self.news = anyio.Event()
                await self.news.wait()

    def cut_off(self) -> None:
        """From any thread: the model is being freed."""
        self.failure = Dropped("the model was closed while it answered; keep it open until its runs are over")
        self.left = True

    def put(self, chunk: dict[str, Any]) -> bool:
        """In the thread: hand a chunk over. True asks llama.cpp to stop.

        Nothing may be raised here: llama.cpp would swallow it and end the request without a word.
        """
        if self.left:
            return True
        self.chunks.append(chunk)
        if not self._called:
            self._called = True
            self._call(self._woken)
        return self.left

    def end(self) -> None:
        """In the thread: nothing follows."""
        self._call(self._ended)

    def _call(self, method: Callable[[], None]) -> None:
        try:
            self.loop.call_soon_threadsafe(method)
        except RuntimeError:  # the loop is closed: nobody waits any more
            self.left = True

    def _woken(self) -> None:
        self._called = False
        self.news.set()

    def _ended(self) -> None:
        self.over = True
        self.news.set()
