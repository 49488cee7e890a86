"""What a reply consumed. Fields: platform.openai.com/docs/api-reference/responses/object, "usage"."""

from typing import Any, cast

from antiphon.types.usage import Usage

__all__ = ["usage_of"]

_TAKEN = frozenset({"input_tokens", "output_tokens", "total_tokens", "cost"})
_TOO_MANY = 2**63
_TAKEN_DETAILS = frozenset({"cached_tokens", "cache_write_tokens", "reasoning_tokens"})


def usage_of(reported: dict[str, Any]) -> Usage:
    """The report as a `Usage`; what has no field there is in `extra`."""
    read, written = _object(reported.get("input_tokens_details")), _object(reported.get("output_tokens_details"))
    extra = {name: value for name, value in reported.items() if name not in _TAKEN and _says_more(value)}
    return Usage(
        input=_count(reported, "input_tokens") or 0,
        output=_count(reported, "output_tokens") or 0,
        total=_count(reported, "total_tokens"),
        cache_read=_count(read, "cached_tokens"),
        cache_write=_count(read, "cache_write_tokens"),
        reasoning=_count(written, "reasoning_tokens"),
        cost=_number(reported.get("cost")),  # OpenRouter
        extra=extra or None,
    )


def _says_more(value: Any) -> bool:
    """Whether a field of the report is worth keeping: not a detail of which all is in fields of its own."""
    if isinstance(value, dict):
        details = cast("dict[str, Any]", value)
        return any(item is not None for name, item in details.items() if name not in _TAKEN_DETAILS)
    return value is not None


def _count(report: dict[str, Any], name: str) -> int | None:
    number = _number(report.get(name))
    return None if number is None else int(number)


def _number(value: Any) -> float | None:
    """A number that can be a count or a price: finite, not negative, and of a size that can be added to others."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < _TOO_MANY else None


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
