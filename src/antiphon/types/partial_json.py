"""The value of JSON text that is still on its way, for viewers of a call's arguments. Never run a tool on it."""

import json
import math
import re
from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from antiphon.types._surrogates import mended_text

__all__ = ["parse_partial"]

SPACE: Final = re.compile(r"[ \t\r\n]*+")
# Groups are not possessive: Python 3.11 before 3.11.5 matches such ones wrongly. Each begins with a character of its own,
# so that the time is linear all the same.
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
STRING: Final = re.compile(r'[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*')
HALF_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
LITERALS: Final[dict[str, Any]] = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": None,  # no JSON, but some models write these three
    "Infinity": None,
    "-Infinity": None,
}
HIGH_SURROGATES: Final = "".join(map(chr, range(0xD800, 0xDC00)))  # the first halves of pairs
NOTHING: Final = object()  # there is no value


def parse_partial(text: str) -> Any:
    """What `text` says so far; `None` if it says nothing yet.

    Strings, lists and objects that are open are closed. A half literal is completed (`tru`), a number is taken as far as
    it is one (`1.` and `1e` are 1, `-` is nothing), and a key without value, half an escape or half a surrogate pair is
    left out. After a fault the rest is ignored, as is anything behind the value. Never raises; the time is linear in the
    length of the text.
    """
    text = text.strip("\ufeff \t\r\n")
    if text.endswith(("}", "]")):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    if not text.isascii():
        text = mended_text(text.rstrip(HIGH_SURROGATES))
    value = Scanner(text).read()
    return None if value is NOTHING else value


class Scanner:
    """Reads one value as far as it goes.

    `open` are the lists and objects that are not closed yet, a stack of its own because text may nest deeper than calls
    may; `key` is the name under which the next value of the innermost object goes.
    """

    __slots__ = ("at", "key", "next", "open", "root", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.root: Any = NOTHING
        self.open: list[list[Any] | dict[str, Any]] = []
        self.key = ""
        self.next: Callable[[Scanner, str], bool] = Scanner._value  # not bound: a ring would wait for the collector

    def read(self) -> Any:
        """The value, or `NOTHING`."""
        text, space = self.text, SPACE
        while (at := cast("re.Match[str]", space.match(text, self.at)).end()) < len(text):
            self.at = at
            if not self.next(self, text[at]):
                break
        return self.root

    # What may come next. Each takes the character at hand and says whether to go on.

    def _value(self, char: str) -> bool:
        if char in "{[":
            self.at += 1
            inner: list[Any] | dict[str, Any] = {} if char == "{" else []
            self._put(inner)
            self.open.append(inner)
            self.next = Scanner._key if char == "{" else Scanner._value
            return True
        if char == "]" and self.open and isinstance(self.open[-1], list):
            return self._close()
        value, whole = self._string() if char == '"' else self._word()
        if value is not NOTHING:
            self._put(value)
        self.next = Scanner._comma
        return whole and bool(self.open)

    def _key(self, char: str) -> bool:
        if char == "}":
            return self._close()
        if char != '"':
            return False
        self.key, whole = self._string()
        self.next = Scanner._colon
        return whole

    def _colon(self, char: str) -> bool:
        self.at += 1
        self.next = Scanner._value
        return char == ":"

    def _comma(self, char: str) -> bool:
        in_list = isinstance(self.open[-1], list)
        if char == ("]" if in_list else "}"):
            return self._close()
        self.at += 1
        self.next = Scanner._value if in_list else Scanner._key
        return char == ","

    def _put(self, value: Any) -> None:
        if not self.open:
            self.root = value
        elif isinstance(inner := self.open[-1], list):
            inner.append(value)
        else:
            inner[self.key] = value

    def _close(self) -> bool:
        self.at += 1
        self.open.pop()
        self.next = Scanner._comma
        return bool(self.open)

    def _string(self) -> tuple[Any, bool]:
        """The string at hand, and whether it is whole; `NOTHING` if there is a fault in it."""
        text, start = self.text, self.at + 1
        end = cast("re.Match[str]", STRING.match(text, start)).end()
        body = text[start:end]
        whole = text.startswith('"', end)
        if not whole and end < len(text) and not HALF_ESCAPE.fullmatch(text, end):
            return NOTHING, False
        self.at = end + 1
        if "\\" in body:
            body = cast("str", json.loads(f'"{body}"'))
            body = mended_text(body if whole else body.rstrip(HIGH_SURROGATES))
        return body, whole

    def _word(self) -> tuple[Any, bool]:
        """The number or literal at hand, and whether the text may go on behind it."""
        text, at = self.text, self.at
        if number := NUMBER.match(text, at):
            self.at = number.end()
            return _number(number.group()), True
        for word, value in LITERALS.items():
            if text.startswith(word, at):
                self.at += len(word)
                return value, True
            if len(text) - at < len(word) and text[at:] != "-" and word.startswith(text[at:]):
                return value, False
        return NOTHING, False


def _number(text: str) -> int | float | None:
    """A number; `None` where Python has none that JSON has too."""
    try:
        value = float(text) if not text.lstrip("-").isdigit() else int(text)
    except ValueError:  # more digits than `int` reads
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None
