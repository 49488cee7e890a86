"""Recovery: the one layer that repeats. Which attempts are thrown away, how long to wait, and when it is enough."""

import random
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

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
from antiphon.types.events import AttemptDiscarded, ContextReplaced, LimitReached, MessageStarted
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import Model, ModelInfo, ModelRequest
from antiphon.types.thinking import effective_thinking

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
        found = self._same_model(error)
        if found is None and error.recovery != "never" and self._fallbacks:
            self._passing = self._empty = 0
            return Again(1, 1, 0.0, self._fallbacks.pop(0))
        return found

    def _same_model(self, error: ModelError) -> Again | None:
        rules = self._rules
        if isinstance(error, Truncated):
            cuts = self._session.state.counters.cuts
            return Again(cuts + 1, rules.length_retries) if cuts < rules.length_retries else None
        if isinstance(error, Empty):
            if self._empty >= rules.empty_retries:
                return None
            self._empty += 1
            return Again(self._empty, rules.empty_retries)
        if error.recovery not in ("wait", "now") or self._passing >= rules.retries or self.asks_too_much(error):
            return None
        wait = self._wait(error)
        self._passing += 1
        return Again(self._passing, rules.retries, wait)

    def asks_too_much(self, error: ModelError) -> bool:
        """The server wants a longer wait than the application allows."""
        hint, most = error.retry_after, self._rules.max_wait
        return hint is not None and most is not None and hint > most and error.recovery in ("wait", "now")

    def _wait(self, error: ModelError) -> float:
        """Seconds to wait: the server's hint at least, where it gave one."""
        rules, hint = self._rules, max(0.0, error.retry_after or 0.0)
        if error.recovery == "now":
            return hint
        wait = rules.delay * 2.0 ** min(self._passing, 60)
        wait += wait * rules.jitter * random.random()  # noqa: S311 - spreads clients, keeps no secret
        if rules.max_wait is not None:
            wait = min(wait, rules.max_wait)
        return max(wait, hint)

    def keeps(self, flaw: ModelError) -> bool:
        """The application wants a reply with this flaw, now that asking again is over."""
        rules = self._rules
        if isinstance(flaw, Truncated):
            return rules.on_length == "keep" and self._session.state.counters.cuts >= rules.length_retries
        return isinstance(flaw, Empty) and rules.on_empty == "keep" and self._empty >= rules.empty_retries


async def ask_until_answered(session: Session, request: ModelRequest) -> AssistantMessage | Cut | Failed:
    """The reply that is kept, or why there is none. No call of a discarded attempt is ever run."""
    attempts = Attempts(session)
    sent = fitted(request, session.info)
    while True:
        attempts.number += 1
        session.check()  # a hook may have ended the run: what is not sent is no request
        session.feed(Requested())
        try:
            message = await read_reply(session, session.model, sent, attempts.number)
            flaw = flaw_of(message)
            if isinstance(flaw, Truncated) and message.calls:
                return cut_with_calls(session, message)
            if flaw is None or attempts.keeps(flaw):
                return message
            raise flaw
        except ModelError as error:
            again = attempts.again(error)
            if again is None:
                return failed(session, error, attempts)
            await discard(session, error, again, attempts.number)
            if again.model is not None:
                sent = fitted(request, session.info)


def fitted(request: ModelRequest, info: ModelInfo | None) -> ModelRequest:
    """The request with the thinking level that this model can do. Repeated attempts send the same object."""
    wanted = request.settings.thinking
    level = effective_thinking(wanted, info)
    return request if level == wanted else replace(request, settings=replace(request.settings, thinking=level))


def flaw_of(message: AssistantMessage) -> ModelError | None:
    """What makes a complete reply worthless, if anything does. Thinking alone is empty."""
    if message.stop_reason == "length":
        return Truncated("the reply was cut off by the output limit; raise max_output_tokens, or ask for less")
    spoken = any(isinstance(part, ToolCall) or (isinstance(part, Text) and part.text) for part in message.parts)
    if spoken:
        return None
    if message.stop_reason == "filtered":
        return Filtered("a content filter of the provider stopped the reply")
    return Empty("the reply holds neither text nor calls")


def cut_with_calls(session: Session, message: AssistantMessage) -> Cut:
    """Its calls are answered, not run: the model reads that it was cut off, and is asked again while the budget lasts.

    `on_length="keep"` is for what can be read: a reply whose calls are cut off is no answer.
    """
    again = session.state.counters.cuts < session.spec.recovery.length_retries
    return Cut(message=message, again=again, at=session.now())


def failed(session: Session, error: ModelError, attempts: Attempts) -> Failed:
    """The final failure, with what was received."""
    text = str(error)
    if attempts.asks_too_much(error):
        text += f"; the server asks to wait {error.retry_after:g} s, and max_wait allows {session.spec.recovery.max_wait:g} s"
    if attempts.number > 1:
        text += f" (after {attempts.number} attempts)"
    message = partial_reply(session, session.model, session.joiner, stop_reason="error", error=text)
    assert message is not None
    if session.streamed != session.open_message:
        session.streamed = session.open_message
        said: dict[str, Any] = {"turn": session.open_turn, "attempt": attempts.number}
        session.teller.tell(MessageStarted, message_id=session.open_message, role="assistant", **said)
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
        await session.settle()
    if again.wait:
        await anyio.sleep(again.wait)


def why(error: ModelError) -> str:
    """One word for people and tests."""
    return next((word for kind, word in WHY.items() if isinstance(error, kind)), "failed")
