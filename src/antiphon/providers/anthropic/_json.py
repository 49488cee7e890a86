"""JSON out, whatever is in the text."""

from typing import Any, cast

import msgspec

from antiphon.errors import UsageError

__all__ = ["dumps", "mended", "whole_characters"]

_encode = msgspec.json.Encoder().encode


def dumps(value: Any) -> bytes:
    """`value` as JSON on one line. Half a character (a lone surrogate) becomes U+FFFD: no server could read it.

    Raises `UsageError` for what JSON cannot hold.
    """
    try:
        try:
            return _encode(value)
        except UnicodeEncodeError:
            return _encode(mended(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"the request holds what JSON cannot say: {error}; look at extra_body and the schemas"
        ) from error


def whole_characters(text: str) -> str:
    """`text` with the halves of a character joined where they stand together, and replaced where one stands alone."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mended(value: Any) -> Any:
    """`value` with whole characters alone, in names and texts, at any depth."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {mended(name): mended(item) for name, item in items}
    if isinstance(value, list | tuple):
        return [mended(item) for item in cast("list[Any]", value)]
    return value
