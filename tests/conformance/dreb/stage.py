"""What every part of a scenario shares: the one list of everything that happens, and the clock's moments."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from antiphon import AntiphonError
from antiphon.types.cancel import CancelSignal

from .words import Json

__all__ = ["Boom", "Nth", "Stage", "signalled", "wait_ms"]


class Boom(Exception):
    """What a scenario raises."""


class Stage:
    """One scenario while it is played."""

    def __init__(self) -> None:
        self.trace: list[Json] = []
        self.llm_calls: list[Json] = []
        self.in_one_piece = False
        """Whether what the model gives now is content that the recorded stream never streamed."""
        self.faults: list[Exception] = []
        """What the player itself got wrong where the engine takes a failure for the application's."""
        self.blocks: list[Any] = []
        """Who wants to hear of the beginnings and ends of blocks, of which antiphon has no events."""

    def note(self, **entry: Any) -> None:
        self.trace.append(entry)

    @contextmanager
    def watched(self) -> Generator[None]:
        """Whatever is raised here and is not in the scenario is a fault of the player."""
        try:
            yield
        except (Boom, AntiphonError):
            raise
        except Exception as error:
            self.faults.append(error)
            raise

    def block(self, kind: str) -> None:
        """A block of the reply begins or ends."""
        for hear in self.blocks:
            hear({"type": "message_update", "assistantMessageEvent": {"type": kind}, "message": {"role": "assistant"}})


class Nth:
    """Counts the events that an `on` speaks of; true at the one that is meant."""

    def __init__(self, on: Json) -> None:
        self._on = on
        self._seen = 0

    def __call__(self, event: Json) -> bool:
        role = (event.get("message") or {}).get("role")
        if event["type"] != self._on["event"] or self._on.get("role", role) != role:
            return False
        self._seen += 1
        return self._seen == self._on.get("nth", 1)


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
