"""Thought signatures: what the server attached to a part, kept with it, so that it goes back at the very same place.

ai.google.dev/gemini-api/docs/thought-signatures: a signature goes back in the part that it came in; a signed part is not
merged with another. A text that grew out of many parts therefore remembers how much of its end the signed one was.
"""

from typing import Any

from msgspec import Struct

from antiphon.providers.lenient import count_in, object_in, text_in
from antiphon.providers.marks import fields_of, mark_of

__all__ = ["OPAQUE_KINDS", "SKIPPED", "Mark", "mark_in", "opaque_part_in", "opaque_part_of", "signature_mark"]

SKIPPED = "skip_thought_signature_validator"
"""What stands in for the signature of a call that another model made, or nobody (the page's questions and answers)."""

OPAQUE_KINDS = ("toolCall", "toolResponse", "executableCode", "codeExecutionResult")
"""Parts of tools that the server runs itself (docs/code-execution, docs/tool-combination): they go back as they came."""


class Mark(Struct, frozen=True, kw_only=True):
    """A signature, and how many characters the signed part had."""

    signature: str
    length: int = 0


def signature_mark(signature: str, length: int, origin: str | None) -> str | None:
    """The mark as JSON text."""
    return mark_of(origin, {"signature": signature, "length": length} if length else {"signature": signature})


def mark_in(text: str | None) -> Mark | None:
    """The mark that a part carries; `None` for one of another kind."""
    fields = fields_of(text)
    signature = text_in(fields.get("signature"))
    return Mark(signature=signature, length=count_in(fields.get("length")) or 0) if signature else None


def opaque_part_of(part: dict[str, Any], origin: str | None) -> str | None:
    """A part that only its origin understands, as JSON text; `None` for what is nested too deep for it."""
    return mark_of(origin, {"part": part})


def opaque_part_in(text: str | None) -> dict[str, Any] | None:
    """The part that a text holds."""
    return object_in(fields_of(text).get("part"))
