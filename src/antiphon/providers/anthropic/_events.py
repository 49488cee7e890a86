"""An event of the stream, typed: only what is used, everything optional.

Shape: platform.claude.com/docs/en/build-with-claude/streaming, "Event types" and "Content block delta types". Decoding
straight into these structs is the fast road; `lenient` makes the same structs from whatever JSON a server really sent.
"""

from typing import Any, cast

from msgspec import Struct

from antiphon.providers.anthropic._json import dumps, mended, whole_characters

__all__ = ["Change", "Event", "lenient", "name_in", "object_in", "text_in"]


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
    kind = text_in(event.get("type")) or name
    delta = object_in(event.get("delta"))
    message = event.get("message")
    return Event(
        type=kind,
        index=_index(event.get("index")),
        delta=_change(delta) if delta is not None else None,
        content_block=object_in(event.get("content_block")),
        # A server that does not stream answers with the message itself.
        message=event if kind == "message" and "content" in event else object_in(message),
        usage=object_in(mended(event.get("usage"))),
        error=event.get("error"),
    )


def name_in(value: Any) -> str:
    """An id or a name: text, or a number where text belongs; "" for anything else."""
    if isinstance(value, str):
        return whole_characters(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def text_in(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def object_in(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _change(delta: dict[str, Any]) -> Change:
    fragment = delta.get("partial_json")
    if fragment is not None and not isinstance(fragment, str):
        fragment = dumps(fragment).decode()  # an object where JSON text belongs: encoded once
    return Change(
        type=text_in(delta.get("type")),
        text=text_in(delta.get("text")),
        partial_json=fragment,
        thinking=text_in(delta.get("thinking")),
        signature=text_in(delta.get("signature")),
        stop_reason=text_in(delta.get("stop_reason")),
        stop_details=object_in(mended(delta.get("stop_details"))),
    )


def _index(value: Any) -> int | None:
    """A place, also as text or as a number with a point; `None` for what is none."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**31 and value == value // 1:
        return int(value)
    return None
