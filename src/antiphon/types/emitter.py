"""One value to several listeners, in order."""

import inspect
import logging
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from antiphon.errors import UsageError

__all__ = ["Emitter", "Listener"]

T = TypeVar("T")

Listener: TypeAlias = Callable[[T], object]
"""A plain function of one value; what it returns is not looked at."""

LOG = logging.getLogger("antiphon")


class Emitter(Generic[T]):
    """Tells each value to every listener, in the order in which they subscribed, before `emit` returns.

    A listener that raises keeps no other from hearing: when all have heard the value, `on_error(listener, error)` is
    called for each failure, or the failure is logged if there is no `on_error`. What `on_error` raises, `emit` raises.

    A value emitted from within a listener waits until all have heard the one before, so that everybody hears the same
    order. Not safe to call from several threads at once.
    """

    __slots__ = ("_closed", "_delivering", "_listeners", "_on_error", "_waiting")

    def __init__(self, on_error: Callable[[Listener[T], Exception], object] | None = None) -> None:
        self._listeners: dict[object, Listener[T]] = {}
        self._waiting: deque[tuple[T, list[tuple[object, Listener[T]]]]] = deque()
        self._on_error = on_error
        self._delivering = False
        self._closed = False

    def subscribe(self, listener: Listener[T]) -> Callable[[], None]:
        """Call `listener` with every value from the next one on. Returns what takes it away again, at once and for good.

        A function that subscribes twice hears everything twice, and each subscription ends by itself. After `close` there
        is nothing to hear. Raises `UsageError` for a coroutine function: nobody would await it.
        """
        if inspect.iscoroutinefunction(listener):
            raise UsageError(f"{listener!r} is a coroutine function, which nobody would await; give a plain one")
        key = object()
        if not self._closed:
            self._listeners[key] = listener
        return lambda: self._forget(key)

    def _forget(self, key: object) -> None:
        self._listeners.pop(key, None)

    def emit(self, value: T) -> None:
        """Tell `value` to all who listen now. Does nothing after `close`."""
        if self._closed:
            return
        self._waiting.append((value, list(self._listeners.items())))
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._waiting:
                self._deliver(*self._waiting.popleft())
        finally:
            self._delivering = False

    def _deliver(self, value: T, listeners: list[tuple[object, Listener[T]]]) -> None:
        failures: list[tuple[Listener[T], Exception]] = []
        for key, listener in listeners:
            if key not in self._listeners:  # taken away by a listener before it
                continue
            try:
                listener(value)
            except Exception as error:  # noqa: BLE001 - a foreign function may raise anything, and the others still listen
                failures.append((listener, error))
        for listener, error in failures:
            self._failed(listener, error)

    def _failed(self, listener: Listener[T], error: Exception) -> None:
        if self._on_error is not None:
            self._on_error(listener, error)
        else:
            LOG.error("listener %r failed", listener, exc_info=error)

    def close(self) -> None:
        """Drop all listeners, for good. A value that is being told goes no further."""
        self._closed = True
        self._listeners.clear()
        self._waiting.clear()
