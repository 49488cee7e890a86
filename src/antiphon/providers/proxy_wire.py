"""What a client and an application's back end say to each other so that the keys stay with the back end. Pure.

Version 1. The client posts JSON to `/stream` under the back end's address, with a token of the application's own in
`authorization: Bearer …`:

    {"version": 1, "model": "fast", "origin": "proxy:fast", "transcript": {"version": 1, "messages": [...]},
     "instructions": "…", "tools": [...], "tool_choice": "auto", "settings": {...}, "session_id": "…", "meta": …}

`model` is a name that the back end knows, never an address. `transcript` is what `dump_messages` writes. `origin` is the
name under which the client keeps what this model said: the back end puts the model's own in its place, so that signatures
find their way home. The rest are the fields of a `ModelRequest`.

The back end answers with server-sent events (`text/event-stream`), one JSON object in each `data`, its kind in `type`:
the deltas of the reply (`text`, `thinking`, `call`, `whole_call`, `usage`, `warning`), and at the end one `finish` or one
`error`, which is a `ModelError` with its class in `kind`. A stream without either was dropped. Comments keep the
connection open. A kind that the client does not know is told as a warning and passed over. A refusal before the stream
(no such token, too large, no such model) is an HTTP status with `{"error": {"message": "…", "code": "…"}}`.

`GET /models` lists what the token may use: `{"models": {"fast": <ModelInfo or null>}}`.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon import errors
from antiphon.errors import Garbled, ModelError, Recovery, UsageError
from antiphon.types.cancel import CancelSignal
from antiphon.types.codec import dump_messages, load_messages, to_plain
from antiphon.types.content import Thinking
from antiphon.types.messages import AssistantMessage, Message, StopReason
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    ModelInfo,
    ModelRequest,
    ModelSettings,
    TextChunk,
    ThinkingChunk,
    ToolSpec,
    UsageChunk,
    WarningChunk,
    WholeCall,
)
from antiphon.types.usage import Usage

__all__ = ["ProxyRequest", "decode_event", "decode_request", "encode_delta", "encode_error", "encode_request"]

VERSION: Final = 1


class ProxyRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request."""

    version: int
    model: str
    transcript: msgspec.Raw
    origin: str = ""
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    settings: ModelSettings = ModelSettings()
    session_id: str | None = None
    meta: Any = None

    def request(self, info: ModelInfo | None, cancel: CancelSignal) -> ModelRequest:
        """What the model of which `info` tells is asked. Raises `UsageError` when the transcript cannot be read."""
        messages = load_messages(bytes(self.transcript))
        return ModelRequest(
            messages=_homeward(messages, self.origin, info) if info and info.origin != self.origin else messages,
            instructions=self.instructions,
            tools=self.tools,
            tool_choice=self.tool_choice,
            settings=self.settings,
            session_id=self.session_id,
            meta=self.meta,
            cancel=cancel,
        )


class TextEvent(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="text"):
    text: str
    signature: str | None = None


class ThinkingEvent(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="thinking"):
    text: str = ""
    signature: str | None = None
    redacted: bool = False


class CallEvent(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="call"):
    key: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    opaque: dict[str, Any] | None = None


class WholeCallEvent(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="whole_call"):
    name: str
    arguments: str | dict[str, Any] = "{}"
    id: str = ""
    opaque: dict[str, Any] | None = None


class UsageEvent(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="usage"):
    usage: Usage


class WarningEvent(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="warning"):
    code: str
    text: str


class FinishEvent(Struct, frozen=True, omit_defaults=True, tag_field="type", tag="finish"):
    reason: StopReason = "stop"
    detail: str | None = None
    response_id: str | None = None
    model: str | None = None


class ErrorEvent(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="error"):
    kind: str
    text: str
    recovery: Recovery
    retry_after: float | None = None
    status: int | None = None
    code: str | None = None
    provider: str | None = None
    request_id: str | None = None


_Told: TypeAlias = (
    TextEvent | ThinkingEvent | CallEvent | WholeCallEvent | UsageEvent | WarningEvent | FinishEvent | ErrorEvent
)

# What a delta is on the wire, and what comes out of it again: the fields of both have one order.
_EVENT_OF: Final[dict[type[Any], type[Any]]] = {
    TextChunk: TextEvent,
    ThinkingChunk: ThinkingEvent,
    CallChunk: CallEvent,
    WholeCall: WholeCallEvent,
    UsageChunk: UsageEvent,
    WarningChunk: WarningEvent,
    FinishChunk: FinishEvent,
}
_DELTA_OF: Final = {event: delta for delta, event in _EVENT_OF.items()}
_KINDS: Final[dict[str, type[ModelError]]] = {
    name: kind
    for name in errors.__all__
    if isinstance(kind := getattr(errors, name), type) and issubclass(kind, ModelError)
}
_TOLD: Final = msgspec.json.Decoder(_Told)
_REQUEST: Final = msgspec.json.Decoder(ProxyRequest)


class _Kind(Struct):
    """The one thing that every event has."""

    type: str


_KIND: Final = msgspec.json.Decoder(_Kind)
_TAGS: Final = frozenset([event.__struct_config__.tag for event in (*_DELTA_OF, ErrorEvent)])


def encode_request(model: str, origin: str, request: ModelRequest) -> bytes:
    """The body of a request for a model. Raises `UsageError` for what JSON cannot hold (in `meta`, say)."""
    fields = {
        "version": VERSION,
        "model": model,
        "origin": origin,
        "instructions": request.instructions,
        "tools": request.tools,
        "tool_choice": request.tool_choice,
        "settings": request.settings,
        "session_id": request.session_id,
        "meta": request.meta,
    }
    return b'{"transcript":%b,%b' % (dump_messages(request.messages), _encoded(fields)[1:])


def decode_request(body: bytes) -> ProxyRequest:
    """What a client asks. Raises `UsageError` for a body that is none; the text says where."""
    try:
        asked = _REQUEST.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"this is no request for a model: {error}") from error
    if asked.version != VERSION:
        raise UsageError(f"no such version: {asked.version}; this back end speaks version {VERSION}")
    return asked


def encode_delta(delta: Delta) -> bytes:
    """The data of one event. Raises `UsageError` for what JSON cannot hold."""
    fields = [getattr(delta, name) for name in delta.__struct_fields__]
    return _encoded(_EVENT_OF[type(delta)](*fields))


def encode_error(error: ModelError) -> bytes:
    """The data of the event that ends a failed reply. An application's own class travels as the nearest of ours."""
    kind = next(base.__name__ for base in type(error).__mro__ if _KINDS.get(base.__name__) is base)
    event = ErrorEvent(
        kind=kind,
        text=str(error),
        recovery=error.recovery,
        retry_after=error.retry_after,
        status=error.status,
        code=error.code,
        provider=error.provider,
        request_id=error.request_id,
    )
    return _encoded(event)


def decode_event(data: bytes) -> Delta:
    """The delta in the data of one event; one of an unknown kind is a warning.

    Raises the `ModelError` that an `error` event is, and `Garbled` for what is no event.
    """
    try:
        event = _TOLD.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return _stranger(data, error)
    if not isinstance(event, ErrorEvent):
        delta = _DELTA_OF[type(event)]
        return delta(*[getattr(event, name) for name in event.__struct_fields__])
    raise _KINDS.get(event.kind, ModelError)(
        event.text,
        recovery=event.recovery,
        retry_after=event.retry_after,
        status=event.status,
        code=event.code,
        provider=event.provider,
        request_id=event.request_id,
    )


def _stranger(data: bytes, error: Exception) -> WarningChunk:
    """An event of a newer back end, or what is none."""
    try:
        kind = _KIND.decode(data).type
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        kind = None
    if kind is None or kind in _TAGS:
        raise Garbled(f"the back end sent what is no event: {error}; is it of the same version?") from error
    return WarningChunk("unknown_event", f"the back end sent an event of the kind {kind!r}, which is not known here")


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(to_plain(value))  # mends surrogates; says what is no JSON


def _homeward(messages: Sequence[Message], origin: str, info: ModelInfo) -> tuple[Message, ...]:
    """The messages with what came from this model under the client's name for it put under the model's own."""
    provider, _, model = origin.partition(":")
    homed: list[Message] = []
    for message in messages:
        if not isinstance(message, AssistantMessage) or message.provider != provider or not origin:
            homed.append(message)
            continue
        parts = tuple(
            [
                replace(part, origin=info.origin) if isinstance(part, Thinking) and part.origin == origin else part
                for part in message.parts
            ]
        )
        named = info.id if message.model == model else message.model
        homed.append(replace(message, parts=parts, provider=info.provider, model=named))
    return tuple(homed)
