"""Tool bodies: the one place with plain tasks, because a body may have to be left behind.

A body is cancelled once, given the grace time, and then left; its run goes on without it.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread

from antiphon.tools.arguments import Prepared
from antiphon.tools.context import ToolContext
from antiphon.tools.tool import Tool

__all__ = ["Body", "wait_for_bodies"]

logger = logging.getLogger("antiphon")

LEFT_BEHIND: set["asyncio.Task[Any]"] = set()
"""Bodies that would not end. They are only kept from being collected while they run; nothing reads them."""


class Body:
    """One running tool body (or the question put to an approver), its clock, and how it ended."""

    def __init__(
        self, run: Callable[[], Any], *, timeout: float | None, grace: float, ended: Callable[["Body"], None]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = ended
        self._grace = grace
        self._left = timeout or None
        self._worked = 0.0
        self._since = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self.timed_out = False
        self.cancelled = False
        self.abandoned = False
        self.waiting = False
        self.over: asyncio.Future[None] = self._loop.create_future()
        self.task: asyncio.Task[Any] = self._loop.create_task(run())
        self.task.add_done_callback(self._done)
        self._arm()

    @property
    def seconds(self) -> float:
        """The time the body has worked, without the time it waited for a person."""
        return self._worked + (0.0 if self.waiting else self._loop.time() - self._since)

    def pause(self) -> None:
        """The body waits for a person: its clock stands still."""
        self._worked, self.waiting = self.seconds, True
        self._disarm()

    def resume(self) -> None:
        """The person has answered."""
        self.waiting, self._since = False, self._loop.time()
        self._arm()

    def cancel(self) -> None:
        """Cancel once; after the grace time the body is left behind."""
        if self.cancelled or self.task.done():
            return
        self.cancelled = True
        self._disarm()
        self.task.cancel()
        self._timer = self._loop.call_later(self._grace, self.abandon)

    def abandon(self) -> None:
        """Do not wait any longer."""
        self._disarm()
        if self.task.done() or self.abandoned:
            return
        self.abandoned = True
        LEFT_BEHIND.add(self.task)
        self.task.add_done_callback(forget)
        self._close()

    def _arm(self) -> None:
        if self._left is not None:
            self._timer = self._loop.call_later(max(0.0, self._left - self._worked), self._time_out)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self.timed_out = True
        self.cancel()

    def _done(self, _task: "asyncio.Task[Any]") -> None:
        self._disarm()
        if not self.abandoned:
            self._close()

    def _close(self) -> None:
        self._worked, self.waiting = self.seconds, True
        self.over.set_result(None)
        self._ended(self)


def forget(task: "asyncio.Task[Any]") -> None:
    """A body that was left behind has ended after all."""
    LEFT_BEHIND.discard(task)
    if not task.cancelled() and task.exception() is not None:
        logger.warning("a tool that was left behind raised in the end", exc_info=task.exception())


async def run_tool(tool: Tool, prepared: Prepared, context: ToolContext[Any]) -> Any:
    """The body itself: async in this task, sync in a thread of its own with the context variables of this task."""
    if tool.is_async:
        return await tool.invoke(prepared, context)
    value = await anyio.to_thread.run_sync(
        tool.invoke, prepared, context, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
    )
    return await value if inspect.isawaitable(value) else value


async def wait_for_bodies(bodies: list[Body]) -> None:
    """Cancel all at once and wait until each has ended or was left behind."""
    for body in bodies:
        body.cancel()
    try:
        with anyio.CancelScope(shield=True):
            for body in bodies:
                if not body.over.done():
                    await asyncio.wait([body.over])
    except asyncio.CancelledError:  # cancelled a second time: the caller is in a hurry
        for body in bodies:
            body.abandon()
        raise
