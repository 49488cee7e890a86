"""Recovery: the one layer that repeats. Which attempts are thrown away, how long to wait, and when it is enough."""

import random
from contextlib import suppress
from typing import Any

import anyio
from msgspec import Struct

from antiphon.errors import (
    Dropped,
    Empty,
    Filtered,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Stalled,
    Truncated,
    Unreachable,
)
from antiphon.loop.limits import exceeded
from antiphon.loop.reply import partial_reply, read_reply
from antiphon.loop.session import HaltRun, Session
from antiphon.loop.state import Cut, Discarded, Failed, Requested
from antiphon.types.content import Text, ToolCall
from antiphon.types.events import AttemptDiscarded, ContextReplaced, LimitReached
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import Model, ModelRequest

__all__ = ["Attempts", "ask_until_answered"]

WHY: dict[type[ModelError], str] = {
    Dropped: "dropped",
    Stalled: "stalled",
    RateLimited: "rate_limited",
    Overloaded: "overloaded",
    Unreachable: "unreachable",
    Garbled: "garbled",
    Truncated: "truncated",
    Empty: "empty",
    Filtered: "filtered",
}


class Again(Struct, frozen=True):
    """Repeat: the n-th of so many, after a wait in seconds, perhaps with another model."""

    number: int
    of: int
    wait: float = 0.0
    model: Model | None = None


class Attempts:
    """The budgets of one reply. They are separate: a cut-off reply does not use up the patience for drops."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rules = session.spec.recovery
        self._passing = 0
        self._empty = 0
        self._fallbacks = list(session.spec.fallbacks)
        self.number = 0

    def again(self, error: ModelError) -> Again | None:
        """Whether and how to repeat after this failure; `None` when it is final."""
        rules = self._rules
        if isinstance(error, Truncated):
            cuts = self._session.state.counters.cuts
            return Again(cuts + 1, rules.length_retries) if cuts < rules.length_retries else None
        if isinstance(error, Empty):
            self._empty += 1
            return Again(self._empty, rules.empty_retries) if self._empty <= rules.empty_retries else None
        if error.recovery in ("wait", "now") and self._passing < rules.retries:
            wait = self._wait(error)
            if wait is not None:
                self._passing += 1
                return Again(self._passing, rules.retries, wait)
        if error.recovery != "never" and self._fallbacks:
            self._passing = 0
            return Again(1, 1, 0.0, self._fallbacks.pop(0))
        return None

    def _wait(self, error: ModelError) -> float | None:
        """Seconds to wait; `None` when the server asks for more than the application allows."""
        rules = self._rules
        hint = error.retry_after
        if hint is not None and rules.max_wait is not None and hint > rules.max_wait:
            return None
        if error.recovery == "now":
            return hint or 0.0
        wait = rules.delay * 2**self._passing
        wait += wait * rules.jitter * random.random()  # noqa: S311 - spreads clients, keeps no secret
        if rules.max_wait is not None:
            wait = min(wait, rules.max_wait)
        return max(wait, hint or 0.0)


async def ask_until_answered(session: Session, request: ModelRequest) -> AssistantMessage | Cut | Failed:
    """The reply that is kept, or why there is none. No call of a discarded attempt is ever run."""
    attempts = Attempts(session)
    while True:
        attempts.number += 1
        session.feed(Requested())
        try:
            message = await read_reply(session, session.model, request, attempts.number)
            flaw = flaw_of(message)
            if flaw is None or kept(session, flaw):
                return message
            if message.calls:
                return cut_with_calls(session, message)
            raise flaw
        except ModelError as error:
            again = attempts.again(error)
            if again is None:
                return failed(session, error, attempts.number)
            await discard(session, error, again, attempts.number)


def flaw_of(message: AssistantMessage) -> ModelError | None:
    """What makes a complete reply worthless, if anything does. Thinking alone is empty."""
    if message.stop_reason == "length":
        return Truncated("the reply was cut off by the output limit")
    spoken = any(isinstance(part, ToolCall) or (isinstance(part, Text) and part.text) for part in message.parts)
    if spoken:
        return None
    if message.stop_reason == "filtered":
        return Filtered("a content filter of the provider stopped the reply")
    return Empty("the reply holds neither text nor calls")


def kept(session: Session, flaw: ModelError) -> bool:
    rules = session.spec.recovery
    if isinstance(flaw, Truncated):
        return rules.on_length == "keep" and session.state.counters.cuts >= rules.length_retries
    return isinstance(flaw, Empty) and rules.on_empty == "keep"


def cut_with_calls(session: Session, message: AssistantMessage) -> Cut:
    """Its calls are answered, not run: the model reads that it was cut off, and is asked again while the budget lasts."""
    again = session.state.counters.cuts < session.spec.recovery.length_retries
    return Cut(message=message, again=again, at=session.now())


def failed(session: Session, error: ModelError, attempts: int) -> Failed:
    """The final failure, with what was received."""
    text = str(error) if attempts == 1 else f"{error} (after {attempts} attempts)"
    message = partial_reply(session, session.model, session.joiner, stop_reason="error", error=text)
    assert message is not None
    session.failure = error
    return Failed(message=message, reason=text)


async def discard(session: Session, error: ModelError, again: Again, attempt: int) -> None:
    """Throw the attempt away, tell so, and wait. A stop ends the wait at once."""
    partial = partial_reply(session, session.model, session.joiner, stop_reason="error")
    usage = session.joiner.usage if session.joiner else None
    session.joiner = None
    session.feed(Discarded(usage=usage, cut=isinstance(error, Truncated)))
    said: dict[str, Any] = {"why": why(error), "attempt": again.number, "of": again.of, "wait": again.wait}
    session.teller.tell(
        AttemptDiscarded, message_id=session.open_message, turn=session.open_turn, partial=partial, **said
    )
    await session.settle()
    reached = exceeded(session.spec.limits, session.state.counters, session.seconds)
    if reached is not None and reached.which != "turns":
        session.teller.tell(LimitReached, scope="run", which=reached.which, limit=reached.limit)
        raise HaltRun("limit", f"the limit of {reached.limit:g} {reached.which} was reached")
    if again.model is not None:
        session.model = again.model
        session.teller.tell(ContextReplaced, model=session.info, why=f"fallback after attempt {attempt}: {error}")
    if again.wait:
        with suppress(TimeoutError):
            await anyio.sleep(again.wait)


def why(error: ModelError) -> str:
    """One word for people and tests."""
    return next((word for kind, word in WHY.items() if isinstance(error, kind)), "failed")
