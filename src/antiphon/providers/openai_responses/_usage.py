"""What a reply consumed. Fields: platform.openai.com/docs/api-reference/responses/object, "usage"."""

from typing import Any, cast

from antiphon.providers.lenient import count_in, number_in, object_in
from antiphon.types.usage import Usage

__all__ = ["usage_of"]

_TAKEN = frozenset({"input_tokens", "output_tokens", "total_tokens", "cost"})
_TAKEN_DETAILS = frozenset({"cached_tokens", "cache_write_tokens", "reasoning_tokens"})


def usage_of(reported: dict[str, Any]) -> Usage:
    """The report as a `Usage`; what has no field there is in `extra`."""
    read = object_in(reported.get("input_tokens_details")) or {}
    written = object_in(reported.get("output_tokens_details")) or {}
    extra = {name: value for name, value in reported.items() if name not in _TAKEN and _says_more(value)}
    return Usage(
        input=count_in(reported.get("input_tokens")) or 0,
        output=count_in(reported.get("output_tokens")) or 0,
        total=count_in(reported.get("total_tokens")),
        cache_read=count_in(read.get("cached_tokens")),
        cache_write=count_in(read.get("cache_write_tokens")),
        reasoning=count_in(written.get("reasoning_tokens")),
        cost=number_in(reported.get("cost")),  # OpenRouter
        extra=extra or None,
    )


def _says_more(value: Any) -> bool:
    """Whether a field of the report is worth keeping: not a detail of which all is in fields of its own."""
    if isinstance(value, dict):
        details = cast("dict[str, Any]", value)
        return any(item is not None for name, item in details.items() if name not in _TAKEN_DETAILS)
    return value is not None
