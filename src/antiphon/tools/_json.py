"""Python values as plain JSON data: whatever a tool may return, and what became of it on the way."""

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from json import JSONEncoder
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Final, cast
from uuid import UUID

import msgspec

__all__ = ["NotJson", "Notes", "json_text", "mended", "plain"]

Notes = dict[str, str]
"""What had to be changed to make JSON of a value: the code of a warning and its sentence, each once."""

EXACT: Final = JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
"""Refuses what is not JSON already, and writes what is, without looking at it twice."""

SCALARS: Final = (date, time, timedelta, Decimal, UUID)

UNFINISHED: Final = (GeneratorType, AsyncGeneratorType, CoroutineType)


class NotJson(ValueError):
    """A value of which no JSON can be made at all; the text says why."""


def mended(text: str, notes: Notes) -> str:
    """`text` as UTF-8 can write it: halves of a surrogate pair are joined, a lone half becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        notes["surrogates"] = "text with lone surrogates, which UTF-8 cannot carry, was mended"
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def json_text(value: Any, notes: Notes, fallback: Callable[[object], str] = str) -> str:
    """`value` as compact JSON text, non-ASCII characters as they are.

    What was changed is told in `notes`. Raises `NotJson` for what refers to itself, is nested too deeply, or is not a
    value yet (a generator, a coroutine).
    """
    try:
        text = EXACT.encode(value)
        text.encode()
    except (TypeError, ValueError, RecursionError):  # a UnicodeEncodeError is a ValueError
        pass
    else:
        return text
    try:
        return EXACT.encode(plain(value, notes, fallback))
    except RecursionError:
        raise NotJson("the value is nested too deeply for JSON") from None


def plain(value: Any, notes: Notes, fallback: Callable[[object], str] = str) -> Any:
    """`value` as dicts, lists, text, numbers, booleans and `None`.

    Text that no UTF-8 can carry is mended, numbers that are not finite become `None`, sets are sorted by their JSON
    text, an exception becomes its name and message, and what has no JSON form becomes the text that `fallback` makes.
    """
    return _Plain(notes, fallback).of(value)


class _Plain:
    """One walk over a value. `above` holds the containers that the walk is in."""

    __slots__ = ("above", "fallback", "notes")

    def __init__(self, notes: Notes, fallback: Callable[[object], str]) -> None:
        self.notes = notes
        self.fallback = fallback
        self.above: set[int] = set()

    def of(self, value: Any) -> Any:
        match value:
            case None | bool():
                return value
            case Enum():
                return self.of(value.value)
            case str():
                return mended(str(value), self.notes)
            case int():
                return int(value)
            case float():
                return self.number(float(value))
            case bytes() | bytearray() | memoryview():
                return self.binary(bytes(cast("bytes", value)))
            case BaseException():
                return mended(f"{type(value).__name__}: {value}", self.notes)
            case os.PathLike():
                return self.of(os.fspath(cast("os.PathLike[str]", value)))
            case _ if isinstance(value, UNFINISHED):
                raise NotJson(
                    f"a {type(cast('object', value)).__name__} is not a value yet; return what comes out of it"
                )
            case _:
                return self.inside(value)

    def inside(self, value: Any) -> Any:
        """A value that holds others, each on the way down only once."""
        if id(value) in self.above:
            raise NotJson("the value refers to itself")
        self.above.add(id(value))
        try:
            return self.container(value)
        finally:
            self.above.discard(id(value))

    def container(self, value: Any) -> Any:
        match value:
            case Mapping():
                items = cast("Mapping[Any, Any]", value).items()
                return {self.key(key): self.of(item) for key, item in items}
            case Sequence() | ValuesView():
                return [self.of(item) for item in cast("Sequence[Any]", value)]
            case AbstractSet():
                return sorted([self.of(item) for item in cast("AbstractSet[Any]", value)], key=EXACT.encode)
            case _ if callable(getattr(cast("object", type(value)), "model_dump", None)):
                return self.of(value.model_dump(mode="json"))
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                return {field.name: self.of(getattr(value, field.name)) for field in dataclasses.fields(value)}
            case _:
                return self.leaf(value)

    def leaf(self, value: Any) -> Any:
        """A moment, a span, a `Decimal`, a `UUID`, a struct, an array, or what has no JSON form."""
        if isinstance(value, SCALARS):
            return msgspec.to_builtins(value)
        if isinstance(value, msgspec.Struct):
            return self.of(msgspec.to_builtins(value, enc_hook=self.of))
        if callable(getattr(value, "tolist", None)):  # arrays and their numbers, whoever makes them
            return self.of(value.tolist())
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        self.notes["not_json"] = f"a {kind} has no JSON form; its text was taken instead"
        return mended(self.fallback(value), self.notes)

    def key(self, key: Any) -> str:
        """A member's name; what JSON would write for it, where it is no text."""
        given = self.of(key)
        return given if isinstance(given, str) else EXACT.encode(given)

    def number(self, value: float) -> float | None:
        if math.isfinite(value):
            return value
        self.notes["not_finite"] = "a number that is not finite (NaN, Infinity) was replaced by null"
        return None

    def binary(self, value: bytes) -> str:
        """Bytes as the text that they are, or else in base64."""
        try:
            return value.decode()
        except UnicodeDecodeError:
            self.notes["base64"] = "bytes that are not UTF-8 text were written as base64"
            return msgspec.to_builtins(value)
