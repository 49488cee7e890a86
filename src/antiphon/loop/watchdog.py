"""The watchdog of one attempt: it compares a timestamp now and then, so that a delta costs one assignment."""

from asyncio import TimerHandle, get_running_loop
from typing import Self

import anyio

from antiphon.loop.spec import Recovery
from antiphon.types.request import Delta, TextChunk, ThinkingChunk, UsageChunk, WarningChunk

__all__ = ["Watchdog"]

SILENT = (UsageChunk, WarningChunk)


class Watchdog:
    """Cancels `scope` when the model says nothing meaningful for too long. `stalled` then says which limit it was."""

    __slots__ = ("_first", "_handle", "_idle", "_last", "_loop", "_resting", "_scope", "_speaking", "_total", "stalled")

    def __init__(self, scope: anyio.CancelScope, recovery: Recovery) -> None:
        self._scope = scope
        self._first, self._idle, self._total = recovery.first_token, recovery.idle, recovery.request
        self._loop = get_running_loop()
        self._handle: TimerHandle | None = None
        self._speaking = False
        self._resting = False
        self._last = 0.0
        self.stalled: str | None = None

    def __enter__(self) -> Self:
        now = self._last = self._loop.time()
        self._total = now + self._total if self._total else None
        self._check()
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def beat(self, delta: Delta) -> None:
        """Something came. Only what a reader could use counts: heartbeats do not keep a dead stream alive."""
        if isinstance(delta, (TextChunk, ThinkingChunk)):
            if not delta.text and delta.signature is None:
                return
        elif isinstance(delta, SILENT):
            return
        self._speaking = True
        self._last = self._loop.time()

    def rest(self) -> None:
        """From now on listeners are waited for, not the model."""
        self._resting = True

    def resume(self) -> None:
        """The model is waited for again."""
        self._resting = False
        self._last = self._loop.time()

    def _check(self) -> None:
        now = self._loop.time()
        if self._resting:
            self._last = now
        limit = self._idle if self._speaking else self._first
        due = self._last + limit if limit else None
        if due is not None and now >= due:
            what = "nothing more came" if self._speaking else "no first token came"
            self._bark(f"{what} from the model for {limit:g} s")
            return
        if self._total is not None and now >= self._total:
            self._bark("the model did not finish its reply in time")
            return
        times = [moment for moment in (due, self._total) if moment is not None]
        if times:
            self._handle = self._loop.call_at(min(times), self._check)

    def _bark(self, text: str) -> None:
        self.stalled = text
        self._scope.cancel()
