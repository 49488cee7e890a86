"""JSON out, whatever is in the text."""

from typing import Any, cast

import msgspec

from antiphon.errors import UsageError

__all__ = ["clean", "dumps", "merged", "whole_characters"]

_encode = msgspec.json.Encoder().encode


def dumps(value: Any) -> bytes:
    """`value` as JSON on one line. Half a character (a lone surrogate) becomes U+FFFD: no server could read it.

    Raises `UsageError` for what JSON cannot hold.
    """
    try:
        try:
            return _encode(value)
        except UnicodeEncodeError:
            return _encode(clean(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"the request holds what JSON cannot say: {error}; look at extra_body and the schemas"
        ) from error


def merged(body: dict[str, Any], extra: dict[str, Any], joined: tuple[str, ...]) -> dict[str, Any]:
    """`extra` over `body`; where both have an object, its fields are merged, and the lists named in `joined` appended."""
    over = dict(extra)
    for name, value in extra.items():
        under = body.get(name)
        if isinstance(under, dict) and isinstance(value, dict):
            over[name] = {**cast("dict[str, Any]", under), **cast("dict[str, Any]", value)}
        elif name in joined and isinstance(under, list) and isinstance(value, list):
            over[name] = [*cast("list[Any]", under), *cast("list[Any]", value)]
    return {**body, **over}


def clean(value: Any) -> Any:
    """`value` with every lone surrogate replaced, in names and texts, at any depth."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {clean(name): clean(item) for name, item in items}
    if isinstance(value, list | tuple):
        return [clean(item) for item in cast("list[Any]", value)]
    return value


def whole_characters(text: str) -> str:
    """`text` with the halves of a character joined where they stand together, and replaced where one stands alone."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
