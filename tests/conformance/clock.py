"""Time that passes only when nobody has anything left to do: what a recording waited for, without waiting."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["run_in_virtual_time"]

T = TypeVar("T")


class _Selector:
    """The selector of a loop that never waits: where a real one would sleep, the loop's clock moves on."""

    def __init__(self) -> None:
        self._real = selectors.DefaultSelector()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:  # nothing is due at all: only another thread can wake the loop
            return self._real.select(None)
        ready = self._real.select(0)
        if not ready:
            self.now += max(0.0, timeout)
        return ready

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)  # pyright: ignore[reportArgumentType] - a selector in all but its base class

    def time(self) -> float:
        return self._virtual.now


def run_in_virtual_time(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run to the end. A second of sleep costs nothing, and two sleeps always end in the order of their lengths."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(coroutine)
