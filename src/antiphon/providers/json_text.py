"""JSON out and in, whatever is in the text."""

import json
from collections.abc import Callable
from typing import Any, cast

import msgspec

from antiphon.errors import UsageError

__all__ = ["clean", "cut_half", "dumps", "read_patiently", "whole_characters"]

_encode = msgspec.json.Encoder().encode
_NUL = b"\\u0000"


def dumps(value: Any) -> bytes:
    """`value` as JSON on one line. Half a character (a lone surrogate) becomes U+FFFD: no server could read it.

    NUL is left out, because servers refuse it, or store it where it ends the text. Raises `UsageError` for what JSON
    cannot hold.
    """
    try:
        try:
            encoded = _encode(value)
        except UnicodeEncodeError:
            encoded = _encode(clean(value))
        return _encode(without_nul(value)) if _NUL in encoded else encoded
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"the request holds what JSON cannot say: {error}; look at extra_body and the schemas"
        ) from error


def clean(value: Any) -> Any:
    """`value` with every lone surrogate replaced, in names and texts, at any depth."""
    return mapped(value, whole_characters)


def without_nul(value: Any) -> Any:
    """`value` without NUL and lone surrogates, in names and texts, at any depth."""
    return mapped(value, lambda text: whole_characters(text).replace("\0", ""))


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with every name and every text changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {mapped(name, change): mapped(item, change) for name, item in items}
    if isinstance(value, list | tuple):
        return [mapped(item, change) for item in cast("list[Any]", value)]
    return value


def whole_characters(text: str) -> str:
    """`text` with the halves of a character joined where they stand together, and replaced where one stands alone."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def cut_half(text: str) -> tuple[str, str]:
    """`text` in whole characters, and the first half of one that it ends in: JSON may escape the second in what follows."""
    if text and "\ud800" <= text[-1] <= "\udbff":
        return whole_characters(text[:-1]), text[-1]
    return whole_characters(text), ""


def read_patiently(text: str) -> Any:
    """JSON as servers write it: line ends within texts, NaN, lone surrogates. Raises `ValueError` for what is none."""
    try:
        return json.loads(text, strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
