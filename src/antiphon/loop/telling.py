"""Telling: every event of a run gets its number and goes to the listeners and the one iterator, in order."""

import inspect
import logging
from asyncio import Future, get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias, TypeVar

from antiphon.types.events import Event, RunFinished, Warned

__all__ = ["Listener", "Teller"]

logger = logging.getLogger("antiphon")

EventT = TypeVar("EventT")

Listener: TypeAlias = Callable[[Any], Any]
"""Takes an `Event`; sync, or async (then the run waits for it before it goes on)."""


class Teller:
    """The events of one run.

    `tell` is sync: sync listeners are called in it, what async ones return is awaited by `settle`, which the driver calls
    before it goes on. Events are kept for an iterator only when somebody entered the run (`keep`).
    """

    def __init__(self, run_id: str, parent_run_id: str | None = None) -> None:
        self.run_id = run_id
        self.parent_run_id = parent_run_id
        self.seq = 0
        self.warnings: list[tuple[str, str]] = []
        self._listeners: dict[object, Listener] = {}
        self._barrier: deque[tuple[object, Awaitable[Any]]] = deque()
        self._buffer: deque[Event] | None = None
        self._waiter: Future[None] | None = None
        self._closed = False

    def keep(self) -> None:
        """Keep events from now on until they are iterated."""
        self._buffer = deque()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on. Returns what takes it away again."""
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def tell(self, kind: Callable[..., Event], **said: Any) -> None:
        """Number an event and hand it out."""
        self.seq += 1
        self.hand_out(kind(run_id=self.run_id, seq=self.seq, parent_run_id=self.parent_run_id, **said))

    def hand_out(self, event: Event, *, without: object = None) -> None:
        """Give a numbered event to the iterator and to every listener but `without`."""
        buffer = self._buffer
        if buffer is not None:
            buffer.append(event)
            waiter = self._waiter
            if waiter is not None:
                self._waiter = None
                if not waiter.done():
                    waiter.set_result(None)
        if self._listeners:
            for key, listener in list(self._listeners.items()):
                if key is not without and key in self._listeners:
                    self._call(key, listener, event)

    def _call(self, key: object, listener: Listener, event: Event) -> None:
        try:
            returned = listener(event)
        except Exception as error:  # noqa: BLE001 - a listener's failure is told, and ends nothing
            self._complain(key, error)
        else:
            if returned is not None and inspect.isawaitable(returned):
                self._barrier.append((key, returned))

    def call_later(self, returned: Any) -> None:
        """Await what a sync or async callable gave back, with the next `settle`."""
        if inspect.isawaitable(returned):
            self._barrier.append((None, returned))

    async def settle(self) -> None:
        """Wait until every async listener is done with what it was given, in order."""
        while self._barrier:
            key, waiting = self._barrier.popleft()
            try:
                await waiting
            except Exception as error:  # noqa: BLE001 - as in _call
                self._complain(key, error)

    @property
    def unsettled(self) -> bool:
        return bool(self._barrier)

    def drop_unsettled(self) -> None:
        """Close what nobody will wait for any more."""
        while self._barrier:
            _, waiting = self._barrier.popleft()
            if inspect.iscoroutine(waiting):
                waiting.close()

    def warn(self, code: str, text: str, *, without: object = None) -> None:
        """Tell of something odd."""
        self.warnings.append((code, text))
        if self._closed:
            logger.warning("run %s, after its end: %s", self.run_id, text)
            return
        self.seq += 1
        event = Warned(run_id=self.run_id, seq=self.seq, parent_run_id=self.parent_run_id, code=code, text=text)
        self.hand_out(event, without=without)

    def _complain(self, key: object, error: Exception) -> None:
        logger.warning("a listener of run %s raised", self.run_id, exc_info=error)
        self.warn("listener_raised", f"a listener raised {type(error).__name__}: {error}", without=key)

    def close(self, last: Callable[..., RunFinished], **said: Any) -> None:
        """Tell the last event: nothing follows it, warnings go to the log alone."""
        self._closed = True
        self.tell(last, **said)

    async def events(self) -> AsyncIterator[Event]:
        """The kept events, until the last."""
        buffer = self._buffer
        assert buffer is not None
        while True:
            while buffer:
                event = buffer.popleft()
                yield event
                if type(event) is RunFinished and event.run_id == self.run_id:
                    return
            self._waiter = get_running_loop().create_future()
            await self._waiter
