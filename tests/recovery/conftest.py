"""A loop whose time is made: a wait of a minute takes no time, and nothing is measured by a clock on the wall."""

import asyncio
import selectors
from typing import Any

import pytest


class MadeTime(selectors.DefaultSelector):
    """Instead of waiting for a timer, the time of the loop jumps to it."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self.now += max(0.0, timeout)
        return ready


class MadeTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.made = MadeTime()
        super().__init__(self.made)

    def time(self) -> float:
        return self.made.now


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {"loop_factory": MadeTimeLoop}
