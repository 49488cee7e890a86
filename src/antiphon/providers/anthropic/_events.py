"""An event of the stream, typed: only what is used, everything optional.

Shape: platform.claude.com/docs/en/build-with-claude/streaming, "Event types" and "Content block delta types". Decoding
straight into these structs is the fast road; `lenient` makes the same structs from whatever JSON a server really sent.
"""

from typing import Any

from msgspec import Struct

from antiphon.providers.json_text import clean
from antiphon.providers.lenient import arguments_in, index_in, object_in, raw_text_in

__all__ = ["Change", "Event", "lenient"]


class Change(Struct, gc=False):
    """What a delta event says: of a block, or of the message (`stop_reason`)."""

    type: str | None = None
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None


class Event(Struct, gc=False):
    """One event. `message` is the reply's head, `content_block` the beginning of a block."""

    type: str | None = None
    index: int | None = None
    delta: Change | None = None
    content_block: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


def lenient(event: dict[str, Any], name: str) -> Event:
    """The event that this object was meant to be: fields of the wrong type are put right or left out.

    `name` is the event's name in the stream, which says the same as its `type`.
    """
    kind = raw_text_in(event.get("type")) or name
    delta = object_in(event.get("delta"))
    message = event.get("message")
    return Event(
        type=kind,
        index=index_in(event.get("index")),
        delta=_change(delta) if delta is not None else None,
        content_block=object_in(event.get("content_block")),
        # A server that does not stream answers with the message itself.
        message=event if kind == "message" and "content" in event else object_in(message),
        usage=object_in(clean(event.get("usage"))),
        error=event.get("error"),
    )


def _change(delta: dict[str, Any]) -> Change:
    return Change(
        type=raw_text_in(delta.get("type")),
        text=raw_text_in(delta.get("text")),
        partial_json=arguments_in(delta.get("partial_json")),
        thinking=raw_text_in(delta.get("thinking")),
        signature=raw_text_in(delta.get("signature")),
        stop_reason=raw_text_in(delta.get("stop_reason")),
        stop_details=object_in(clean(delta.get("stop_details"))),
    )
