"""The watchdog of one attempt: it compares a timestamp now and then, so that a delta costs one assignment."""

from asyncio import TimerHandle, get_running_loop
from typing import Self

import anyio

from antiphon.loop.spec import Recovery
from antiphon.types.request import CallChunk, Delta, TextChunk, ThinkingChunk, UsageChunk, WarningChunk

__all__ = ["Watchdog"]

SILENT = (UsageChunk, WarningChunk)


class Watchdog:
    """Cancels `scope` when the model says nothing meaningful for too long. `stalled` then says which limit it was.

    Only the time spent waiting for the model counts: while somebody else is waited for (`rest`), its clock stands still.
    """

    __slots__ = (
        "_first",
        "_handle",
        "_idle",
        "_last",
        "_loop",
        "_rested",
        "_scope",
        "_speaking",
        "_total",
        "stalled",
    )

    def __init__(self, scope: anyio.CancelScope, recovery: Recovery) -> None:
        self._scope = scope
        self._first, self._idle, self._total = recovery.first_token, recovery.idle, recovery.request
        self._loop = get_running_loop()
        self._handle: TimerHandle | None = None
        self._speaking = False
        self._rested: float | None = None
        self._last = 0.0
        self.stalled: str | None = None

    def __enter__(self) -> Self:
        now = self._last = self._loop.time()
        self._total = now + self._total if self._total else None
        self._check()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._disarm()

    def beat(self, delta: Delta) -> None:
        """Something came. Only what a reader could use counts: heartbeats do not keep a dead stream alive."""
        if isinstance(delta, (TextChunk, ThinkingChunk)):
            if not delta.text and delta.signature is None:
                return
        elif isinstance(delta, SILENT) or (isinstance(delta, CallChunk) and says_nothing(delta)):
            return
        self._last = self._loop.time()
        if not self._speaking:  # from now on the gaps count, which are watched more closely than the beginning
            self._speaking = True
            self._check()

    def rest(self) -> None:
        """From now on listeners are waited for, not the model."""
        self._rested = self._loop.time()

    def resume(self) -> None:
        """The model is waited for again."""
        if self._rested is None:
            return
        rest, self._rested = self._loop.time() - self._rested, None
        self._last += rest
        if self._total is not None:
            self._total += rest
        if self._handle is None:
            self._check()

    def _check(self) -> None:
        self._disarm()
        if self._rested is not None:
            return  # `resume` looks again
        now = self._loop.time()
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

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _bark(self, text: str) -> None:
        self.stalled = text
        self._scope.cancel()


def says_nothing(chunk: CallChunk) -> bool:
    return not (chunk.arguments or chunk.name or chunk.id or chunk.opaque)
