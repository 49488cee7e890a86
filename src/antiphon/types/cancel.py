"""Cancelling from outside: one token, any thread, any loop, any number of runs."""

import threading
from collections.abc import Callable

__all__ = ["CancelSignal", "CancelToken"]


class CancelSignal:
    """Whether somebody wants a run to end, to be read and listened to, not to be set."""

    __slots__ = ("_cancelled", "_listeners", "_lock", "_reason")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[object, Callable[[], None]] = {}
        self._cancelled = False
        self._reason: str | None = None

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @property
    def reason(self) -> str | None:
        """What the one who cancelled said."""
        return self._reason

    def on_cancel(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` once when cancelled, in the cancelling thread, or at once if that has happened already.

        Returns what takes the listener away again.
        """
        key = object()
        with self._lock:
            if not self._cancelled:
                self._listeners[key] = listener
                return lambda: self._forget(key)
        listener()
        return lambda: None

    def _forget(self, key: object) -> None:
        with self._lock:
            self._listeners.pop(key, None)


class CancelToken(CancelSignal):
    """The outside cancel signal of runs: pass it as `cancel=`, and call `cancel()` from wherever you are."""

    __slots__ = ()

    def cancel(self, reason: str | None = None) -> None:
        """Cancel. The first call counts; later ones change nothing.

        Every listener is called, also when one before it raises; an `ExceptionGroup` then has what they raised.
        """
        with self._lock:
            if self._cancelled:
                return
            self._cancelled, self._reason = True, reason
            listeners = list(self._listeners.values())
            self._listeners.clear()
        failures: list[Exception] = []
        for listener in listeners:
            try:
                listener()
            except Exception as error:  # noqa: BLE001 - one run's closed loop must not keep the others running
                failures.append(error)
        if failures:
            raise ExceptionGroup("listeners of a cancel token failed", failures)
