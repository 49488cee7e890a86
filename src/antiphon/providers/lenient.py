"""Values out of JSON that a server sent: of the type that a field should have, or `None`. Postel's rule, one field at a time."""

from typing import Any, cast

from antiphon.providers.json_text import dumps, whole_characters

__all__ = [
    "arguments_in",
    "count_in",
    "index_in",
    "name_in",
    "number_in",
    "object_in",
    "objects_in",
    "raw_text_in",
    "text_in",
]

_TOO_MANY = 2**63
_FARTHEST = 2**31


def raw_text_in(value: Any) -> str | None:
    """Text as it came: it may end in half a character whose other half is in what follows."""
    return value if isinstance(value, str) else None


def text_in(value: Any) -> str | None:
    """Text in whole characters."""
    return whole_characters(value) if isinstance(value, str) else None


def name_in(value: Any) -> str | None:
    """An id or a name: text, or a number where text belongs."""
    if isinstance(value, str):
        return whole_characters(value)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def index_in(value: Any) -> int | None:
    """A place, also as text or as a number with a point."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and 0 <= value < _FARTHEST
        and value == value // 1
    ):
        return int(value)
    return None


def object_in(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects in what should be a list of them."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def arguments_in(value: Any) -> str | None:
    """The JSON text of a call's arguments; an object where text belongs is encoded once."""
    return value if value is None or isinstance(value, str) else dumps(value).decode()


def number_in(value: Any) -> float | None:
    """A number that can be a count or a price: finite, not negative, and of a size that can be added to others."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _TOO_MANY else None


def count_in(value: Any) -> int | None:
    """A count of tokens."""
    number = number_in(value)
    return None if number is None else int(number)
