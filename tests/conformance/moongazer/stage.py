"""What every part of a scenario shares: the one list of everything that happens, and the ways to stop the run."""

import asyncio
from collections.abc import Callable
from typing import Any

from antiphon import CancelToken, Run
from antiphon.types.cancel import CancelSignal

__all__ = ["Boom", "Stage", "raised", "root_text", "signalled", "wait_ms"]


class Boom(Exception):
    """What a scenario raises."""


class Stage:
    """One scenario while it is played."""

    def __init__(self) -> None:
        self.trace: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.sources: dict[str, Any] = {}
        self.token = CancelToken()
        self.run: Run[str] | None = None

    def note(self, at: str, **more: Any) -> None:
        self.trace.append({"at": at, **more})

    def stop(self) -> None:
        """The caller ends the run by its handle."""
        self.note("stop_called")
        assert self.run is not None
        self.run.stop()

    def cancel(self) -> None:
        """The caller ends the run by a signal of their own."""
        self.note("signal_aborted")
        self.token.cancel()

    def after_ms(self, milliseconds: float, act: Callable[[], None]) -> float:
        """Do it then, in seconds of the loop's clock; returns when that is."""
        asyncio.get_running_loop().call_later(milliseconds / 1000, act)
        return milliseconds / 1000


async def wait_ms(milliseconds: float) -> None:
    await asyncio.sleep(milliseconds / 1000)


async def signalled(signal: CancelSignal) -> None:
    """Wait until the run is to end."""
    event = asyncio.Event()
    unsubscribe = signal.on_cancel(event.set)
    try:
        await event.wait()
    finally:
        unsubscribe()


def raised(action: dict[str, Any]) -> Exception | None:
    """What an action or a behaviour raises, if it raises anything. Bare values become errors with their text."""
    if "raises" in action:
        return Boom(action["raises"])
    if "raises_value" in action:
        return Boom(text_of_value(action["raises_value"]))
    return None


def text_of_value(value: Any) -> str:
    """The text of a bare value as the recorded language writes it."""
    match value:
        case str():
            return value
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case dict():
            return "[object Object]"
        case list():
            return ",".join(["" if item is None else text_of_value(item) for item in value])
        case _:
            return str(value)


def root_text(error: BaseException | None) -> str | None:
    """The text of the error that everything began with."""
    if error is None:
        return None
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error)
