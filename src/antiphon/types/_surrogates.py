"""Strings that no JSON text can carry, made into strings that one can."""

from typing import Any, cast

__all__ = ["mended", "mended_text"]


def mended_text(text: str) -> str:
    """`text` as UTF-8 can write it.

    Two halves of a surrogate pair that came apart and met again are the character they stand for; a half without its
    other half becomes U+FFFD, the replacement character, so that a reader sees that something was there.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def mended(data: Any) -> Any:
    """JSON data with every string in it mended, keys too."""
    if isinstance(data, str):
        return mended_text(data)
    if isinstance(data, dict):
        return {mended(key): mended(value) for key, value in cast("dict[Any, Any]", data).items()}
    if isinstance(data, list | tuple):
        return [mended(item) for item in cast("list[Any]", data)]
    return data
