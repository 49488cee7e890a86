"""One attempt at a reply: deltas in, events out, a message at the end."""

from contextlib import aclosing, nullcontext
from typing import Any

import anyio
from msgspec.structs import replace

from antiphon.errors import Dropped, ModelError, Stalled
from antiphon.loop.session import HaltRun, Session
from antiphon.loop.spec import Recovery
from antiphon.loop.telling import OwnCancellation, told, undisturbed
from antiphon.loop.watchdog import Watchdog
from antiphon.types.content import ToolCall
from antiphon.types.events import MessageStarted, TextDelta, ThinkingDelta, ToolCallDelta
from antiphon.types.joiner import Joiner
from antiphon.types.messages import AssistantMessage, StopReason
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    Model,
    ModelInfo,
    ModelRequest,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)
from antiphon.types.usage import Usage

__all__ = ["partial_reply", "read_reply"]


async def read_reply(session: Session, model: Model, request: ModelRequest, attempt: int) -> AssistantMessage:
    """Stream one reply. Raises `ModelError`; what came until then stays in `session.joiner`."""
    session.check()
    recovery: Recovery = session.spec.recovery
    session.streamed = ""
    session.joiner = Joiner(lambda: session.mint("call"))
    reader = Reader(session, session.joiner, attempt)
    with anyio.CancelScope() as scope, Watchdog(scope, recovery) as watchdog:
        try:
            await undisturbed(reader.read(model, request, watchdog))
        except HaltRun:
            raise
        except OwnCancellation as error:
            session.check()
            raise Dropped("the model's stream raised a cancellation of its own") from error
        except Exception as error:
            session.check()  # a stop came first: what the model raises because of it is no failure
            if session.joiner.finish is None:
                if isinstance(error, ModelError):
                    raise
                raise foreign(error) from error
            session.warn("model_close_failed", f"the reply is whole, and the model's stream did not close: {error!r}")
    if session.joiner.finish is None:
        session.check()
        if watchdog.stalled is not None:
            raise Stalled(watchdog.stalled)
        raise Dropped("the model's stream ended without its terminal marker: the connection was probably lost")
    return finished_reply(session, model, session.joiner)


def foreign(error: Exception) -> ModelError:
    """A model should fail with a `ModelError` alone; what else it raises is not repeated."""
    return ModelError(f"the model raised {told(error)}")


class Reader:
    """Turns deltas into events. The hot path of the library: one event a delta, no wait unless a listener asks for it."""

    __slots__ = ("_attempt", "_begun", "_id", "_joiner", "_session", "_turn")

    def __init__(self, session: Session, joiner: Joiner, attempt: int) -> None:
        self._session = session
        self._joiner = joiner
        self._attempt = attempt
        self._id = session.open_message
        self._turn = session.open_turn
        self._begun = False

    async def read(self, model: Model, request: ModelRequest, watchdog: Watchdog) -> None:
        session, teller = self._session, self._session.teller
        stream: Any = model.stream(request)
        async with aclosing(stream) if hasattr(stream, "aclose") else nullcontext():
            async for delta in stream:
                session.check()  # what comes after a stop is not told
                watchdog.beat(delta)
                if not self._begun:
                    self._begin()
                self.take(delta)
                if teller.unsettled:
                    watchdog.rest()
                    await session.settle()
                    watchdog.resume()
                if type(delta) is FinishChunk:
                    return

    def _begin(self) -> None:
        self._begun = True
        self._session.streamed = self._id
        self._session.teller.tell(
            MessageStarted, message_id=self._id, role="assistant", turn=self._turn, attempt=self._attempt
        )
        self._session.check()

    def take(self, delta: Delta) -> None:
        """Keep a delta and tell of it."""
        if isinstance(delta, TextChunk):
            place = self._joiner.text(delta)
            if delta.text:
                self._tell(TextDelta, delta.text, place)
        elif isinstance(delta, CallChunk):
            self._tell_call(delta)
        else:
            self._take_rare(delta)

    def _take_rare(self, delta: Delta) -> None:
        match delta:
            case ThinkingChunk(text=text):
                place = self._joiner.thinking(delta)
                if text:
                    self._tell(ThinkingDelta, text, place)
            case WholeCall():
                key = self._joiner.whole(delta).key
                call_id, name = self._joiner.open_call(key)
                self._tell(
                    ToolCallDelta, self._joiner.partial_arguments(call_id) or "", key, call_id=call_id, name=name
                )
            case WarningChunk(code=code, text=text):
                self._session.warn(code, text)
            case UsageChunk(usage=usage):
                self._joiner.usage = priced(usage, self._session.info)
            case FinishChunk():
                self._joiner.add(delta)
            case _:
                self._session.warn_once("unknown_delta", f"the model sent a {type(delta).__name__}, which is no delta")

    def _tell_call(self, delta: CallChunk) -> None:
        key = self._joiner.call(delta)
        call_id, name = self._joiner.open_call(key)
        self._tell(ToolCallDelta, delta.arguments, key, call_id=call_id, name=name)

    def _tell(self, kind: Any, text: str, index: int, **more: str) -> None:
        self._session.teller.tell(
            kind, message_id=self._id, text=text, index=index, turn=self._turn, attempt=self._attempt, **more
        )


def priced(usage: Usage, info: ModelInfo | None) -> Usage:
    """The usage with its cost, where the provider did not say it and the model's prices are known."""
    if usage.cost is not None or info is None or info.prices is None:
        return usage
    return replace(usage, cost=info.prices.cost(usage))


def finished_reply(session: Session, model: Model, joiner: Joiner) -> AssistantMessage:
    """The complete message, stamped."""
    return stamped(session, model, joiner, stop_reason=None)


def partial_reply(
    session: Session,
    model: Model,
    joiner: Joiner | None,
    *,
    stop_reason: StopReason,
    error: str | None = None,
    begun: bool = False,
) -> AssistantMessage | None:
    """What came of a reply that will never be complete: its text and thinking, not its calls.

    `None` when there is nothing to keep: nothing came, there is no error to show, and no viewer has seen it begin.
    """
    message = stamped(session, model, joiner or Joiner(), stop_reason=stop_reason, error=error)
    parts = tuple([part for part in message.parts if not isinstance(part, ToolCall)])
    if not parts and error is None and not begun:
        return None
    return replace(message, parts=parts, partial=True)


def stamped(
    session: Session, model: Model, joiner: Joiner, *, stop_reason: StopReason | None, error: str | None = None
) -> AssistantMessage:
    info = getattr(model, "info", None)
    return joiner.message(
        provider=info.provider if info else None,
        model=info.id if info else None,
        stop_reason=stop_reason,
        error=error,
        message_id=session.open_message or session.mint_message_id(),
        created_at=session.now(),
    )
