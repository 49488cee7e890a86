"""Telling: every event of a run gets its number and goes to the listeners and the one iterator, in order."""

import inspect
import logging
from asyncio import CancelledError, Future, current_task, get_running_loop
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from logging import DEBUG, WARNING
from typing import Any, TypeAlias, TypeVar

from antiphon.types.events import Event, RunFinished, Warned

__all__ = ["Listener", "OwnCancellation", "Teller", "cancelled_from_outside", "told", "undisturbed"]

logger = logging.getLogger("antiphon")

T = TypeVar("T")

Listener: TypeAlias = Callable[[Any], Any]
"""Takes an `Event`; sync, or async (then the run waits for it before it goes on)."""


def cancelled_from_outside() -> bool:
    """Whether a `CancelledError` that came up here was asked of this task; else the awaited code made it up itself."""
    task = current_task()
    return task is None or task.cancelling() > 0


def told(error: BaseException) -> str:
    """What went wrong, for people: the error's kind and its text, if it can be had."""
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a foreign error that fails even to say what it is
        text = "its text cannot be read"
    return f"{kind}: {text}" if text else kind


class OwnCancellation(Exception):
    """What was awaited raised a cancellation that nobody had asked for: a failure like any other."""


async def undisturbed(waiting: Awaitable[T]) -> T:
    """What `waiting` gives. Raises `OwnCancellation` where it would look as if this task were cancelled."""
    try:
        return await waiting
    except CancelledError as error:
        if cancelled_from_outside():
            raise
        raise OwnCancellation("it raised a cancellation of its own") from error


class Kept:
    """Events kept for the one who iterates, until the last.

    Not a generator: who breaks off leaves nothing to be closed, and a wait that was cancelled can be repeated.
    """

    __slots__ = ("_events", "_over", "_waiter")

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._waiter: Future[None] | None = None
        self._over = False

    def put(self, event: Event) -> None:
        self._events.append(event)
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def close(self) -> None:
        """Nothing will be put any more."""
        self._over = True

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._over:
                raise StopAsyncIteration
            self._waiter = get_running_loop().create_future()
            await self._waiter
        return self._events.popleft()


class Teller:
    """The events of one run.

    `tell` is sync: sync listeners are called in it, what async ones return is awaited by `settle`, which the driver calls
    before it goes on. What a listener makes the run tell is heard by all after the event that they hear now. Events are
    kept for an iterator only when somebody entered the run (`keep`).
    """

    def __init__(self, run_id: str, parent_run_id: str | None = None) -> None:
        self.run_id = run_id
        self.parent_run_id = parent_run_id
        self.seq = 0
        self.warnings: list[tuple[str, str]] = []
        self.on_warning: Callable[[str, str], None] | None = None
        self._listeners: dict[object, Listener] = {}
        self._unheard: deque[tuple[Event, list[tuple[object, Listener]]]] = deque()
        self._delivering = False
        self._complained: set[object] = set()
        self._barrier: deque[tuple[object, Awaitable[Any]]] = deque()
        self._kept: Kept | None = None
        self._closed = False

    def keep(self) -> None:
        """Keep events from now on until they are iterated."""
        self._kept = Kept()

    def events(self) -> AsyncIterator[Event]:
        """The kept events, until the last."""
        assert self._kept is not None
        return self._kept

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on. Returns what takes it away again."""
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe

    def tell(self, kind: Callable[..., Event], **said: Any) -> None:
        """Number an event and hand it out. After the last one there is nothing to tell."""
        if not self._closed:
            self.seq += 1
            self._deliver(kind(run_id=self.run_id, seq=self.seq, parent_run_id=self.parent_run_id, **said))

    def hand_out(self, event: Event) -> None:
        """Pass an event on that has its number from another run."""
        if not self._closed:
            self._deliver(event)

    def close(self, last: Callable[..., RunFinished], **said: Any) -> None:
        """Tell the last event: nothing follows it, warnings go to the log alone."""
        self.seq += 1
        event = last(run_id=self.run_id, seq=self.seq, parent_run_id=self.parent_run_id, **said)
        self._closed = True
        self._deliver(event)
        if self._kept is not None:
            self._kept.close()

    def _deliver(self, event: Event, without: object = None) -> None:
        """Give a numbered event to the iterator and to every listener but `without`."""
        if self._kept is not None:
            self._kept.put(event)
        if self._listeners:
            self._unheard.append((event, [item for item in self._listeners.items() if item[0] is not without]))
            if not self._delivering:
                self._call_listeners()

    def _call_listeners(self) -> None:
        self._delivering = True
        try:
            while self._unheard:
                event, listeners = self._unheard.popleft()
                for key, listener in listeners:
                    if key in self._listeners:
                        self._call(key, listener, event)
        finally:
            self._delivering = False

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
                await undisturbed(waiting)
            except Exception as error:  # noqa: BLE001 - as in _call
                self._complain(key, error)

    @property
    def unsettled(self) -> bool:
        return bool(self._barrier)

    def warn(self, code: str, text: str, *, without: object = None) -> None:
        """Tell of something odd, as an event and to `on_warning`."""
        self.warnings.append((code, text))
        if self._closed:
            logger.warning("run %s, after its end: %s", self.run_id, text)
        else:
            self.seq += 1
            event = Warned(run_id=self.run_id, seq=self.seq, parent_run_id=self.parent_run_id, code=code, text=text)
            self._deliver(event, without)
        if self.on_warning is not None:
            self.on_warning(code, text)

    def _complain(self, key: object, error: Exception) -> None:
        """A listener failed. It is said once, aloud; whoever fails at one event tends to fail at the next thousand."""
        first = key not in self._complained
        self._complained.add(key)
        logger.log(WARNING if first else DEBUG, "a listener of run %s raised", self.run_id, exc_info=error)
        if first:
            self.warn("listener_raised", f"a listener raised {told(error)}", without=key)
