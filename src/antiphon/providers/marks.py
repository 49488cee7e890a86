"""What a provider attached to a part, kept as JSON text in the part's signature together with its origin."""

from typing import Any

import msgspec

from antiphon.providers.lenient import object_in

__all__ = ["fields_of", "mark_of"]


def mark_of(origin: str | None, fields: dict[str, Any]) -> str | None:
    """The mark as JSON text; `None` for what is nested too deep for it."""
    try:
        return msgspec.json.encode({"origin": origin, **fields}).decode()
    except (ValueError, OverflowError, RecursionError):
        return None


def fields_of(signature: str | None) -> dict[str, Any]:
    """What a mark holds, its `origin` too; empty for a signature of another kind."""
    try:
        return object_in(msgspec.json.decode(signature or "")) or {}
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
