"""Thought signatures: what the server attached to a part, kept with it, so that it goes back at the very same place.

ai.google.dev/gemini-api/docs/thought-signatures: a signature goes back in the part that it came in; a signed part is not
merged with another. A text that grew out of many parts therefore remembers how much of its end the signed one was.
"""

from typing import Any, cast

import msgspec
from msgspec import Struct

__all__ = ["OPAQUE_KINDS", "SKIPPED", "Mark", "mark_in", "mark_of", "opaque_part_in", "opaque_part_of"]

SKIPPED = "skip_thought_signature_validator"
"""What stands in for the signature of a call that another model made, or nobody (the page's questions and answers)."""

OPAQUE_KINDS = ("toolCall", "toolResponse", "executableCode", "codeExecutionResult")
"""Parts of tools that the server runs itself (docs/code-execution, docs/tool-combination): they go back as they came."""


class Mark(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A signature, the model that gave it, and how many characters the signed part had."""

    origin: str | None = None
    signature: str = ""
    length: int = 0


_read_mark = msgspec.json.Decoder(Mark).decode


def mark_of(signature: str, length: int, origin: str | None) -> str:
    """The mark as JSON text."""
    return msgspec.json.encode(Mark(origin=origin, signature=signature, length=length)).decode()


def mark_in(text: str | None, origin: str) -> Mark | None:
    """The mark that a part carries, if it came from `origin`."""
    try:
        mark = _read_mark(text or "")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return mark if mark.origin == origin and mark.signature else None


def opaque_part_of(part: dict[str, Any], origin: str | None) -> str | None:
    """A part that only its origin understands, as JSON text; `None` for what is nested too deep for it."""
    try:
        return msgspec.json.encode({"origin": origin, "part": part}).decode()
    except (ValueError, OverflowError, RecursionError):
        return None


def opaque_part_in(text: str | None, origin: str) -> dict[str, Any] | None:
    """The part that a text holds, if it came from `origin`."""
    try:
        value = msgspec.json.decode(text or "")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    kept = cast("dict[str, Any]", value)
    part = kept.get("part")
    return cast("dict[str, Any]", part) if kept.get("origin") == origin and isinstance(part, dict) else None
