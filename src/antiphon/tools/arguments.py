"""A call's arguments on their way to the body: parsed, filled, checked, and refused so that a model can mend them."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools._json import Notes, NotJson, json_text
from antiphon.tools._nulls import drop_nulls
from antiphon.tools._walk import Node, Path, holds, known_names
from antiphon.tools.defaults import fill_defaults

__all__ = ["ArgumentError", "Arguments", "Prepared", "Problem", "quoted", "unknown_name"]

MOST_PROBLEMS: Final = 100
"""How many problems are told one by one."""

LONGEST_VALUE: Final = 200
LONGEST_QUOTE: Final = 2000
"""Characters of a single value, and of the whole arguments, that an error quotes."""

PLAIN_NAME: Final = re.compile(r"[\w$-]+").fullmatch

LARGEST_WHOLE: Final = 1e21
"""Below this ECMAScript writes a whole number without an exponent (ECMA-262, Number::toString)."""


class Problem(Struct, frozen=True):
    """One thing that is wrong with a call's arguments, and where. `text` is a half-sentence."""

    path: Path
    text: str

    def __str__(self) -> str:
        return f"{place(self.path) or 'arguments'}: {self.text}"


class ArgumentError(ToolError):
    """The arguments of a call cannot be used. The text is for the model: all problems, what came, what to do."""

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems

    @classmethod
    def of(cls, problems: Sequence[Problem], text: str) -> "ArgumentError":
        """The error that lists `problems`; `text` is the JSON that came."""
        found = tuple(problems)
        count = "1 problem" if len(found) == 1 else f"{len(found)} problems"
        lines = [f"- {problem}" for problem in found[:MOST_PROBLEMS]]
        if len(found) > MOST_PROBLEMS:
            lines.append(f"- and {len(found) - MOST_PROBLEMS} more")
        head = f"the arguments do not fit, {count}:"
        tail = f"got: {shortened(text.strip() or '{}', LONGEST_QUOTE)}"
        return cls("\n".join([head, *lines, tail, "correct them and call again"]), found)


class Prepared(Struct, frozen=True):
    """Arguments that passed. Good for one call of the body; prepare them again for another.

    `object` is the canonical JSON object, defaults included, and `text` is its JSON text. `values` is what the body is
    given.
    """

    object: dict[str, Any]
    text: str
    values: Any


class Arguments(ABC):
    """What one tool makes of a call's arguments. Made once for a tool, safe to use from any thread."""

    def __init__(self, parameters: Node) -> None:
        self.parameters = parameters
        self._has_defaults = holds(parameters, "default")

    def prepare(self, text: str, *, strict: bool = False) -> Prepared:
        """The arguments that a model wrote; blank text is an empty object.

        A number without a fraction is an integer, however it was written. `strict`: the provider may have held the model
        to the schema in a mode that has no members to leave out, so that `null` may mean that one was. Raises
        `ArgumentError` for what is not a JSON object, and for what the tool's schema does not allow.
        """
        try:
            given = parsed(text)
            if strict:
                drop_nulls(self.parameters, given)
            if self._has_defaults:
                fill_defaults(self.parameters, given)
            canonical = msgspec.json.encode(given).decode()
            values, problems = self.check(given, canonical)
        except RecursionError:
            raise ArgumentError("the arguments are nested too deeply; call again with flatter ones") from None
        if problems:
            raise ArgumentError.of(problems, text)
        return Prepared(given, canonical, values)

    def prepare_object(self, given: Mapping[str, Any]) -> Prepared:
        """The arguments that a hook or a person gave in a model's place, checked in the same way."""
        notes: Notes = {}
        try:
            text = json_text(given, notes)
        except (NotJson, ValueError) as error:
            raise ArgumentError(f"the arguments given in the model's place are no JSON: {error}") from error
        if notes:
            raise ArgumentError(f"the arguments given in the model's place are no JSON: {'; '.join(notes.values())}")
        return self.prepare(text)

    @abstractmethod
    def check(self, given: dict[str, Any], text: str) -> tuple[Any, Sequence[Problem]]:
        """What the body is given for `given`, whose JSON text is `text`, and what is wrong with it."""


def place(path: Path) -> str:
    """A path as a model reads it: `opts.lines[2].text`."""
    text = ""
    for step in path:
        if isinstance(step, str) and PLAIN_NAME(step):
            text += f".{step}" if text else step
        else:
            text += f"[{quoted(step)}]"
    return text


def number(text: str) -> int | float:
    """A JSON number with a fraction or an exponent. A whole one is an integer: JSON does not tell `3.0` from `3`."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {shortened(text, 40)} is too large")
    return int(value) if value.is_integer() and abs(value) < LARGEST_WHOLE else value


DECODER: Final = msgspec.json.Decoder[Any](float_hook=number)


def parsed(text: str) -> dict[str, Any]:
    """The JSON object that `text` is."""
    if not text.strip():
        return {}
    try:
        value = DECODER.decode(text)
    except (msgspec.DecodeError, ValueError) as error:
        why = "text with lone surrogates" if isinstance(error, UnicodeError) else str(error)
        raise ArgumentError(
            f"the arguments are not valid JSON: {why}\ngot: {quoted(text, LONGEST_QUOTE)}\n"
            "call again with one complete JSON object"
        ) from error
    if not isinstance(value, dict):
        raise ArgumentError(
            f"the arguments must be one JSON object\ngot: {shortened(text.strip(), LONGEST_QUOTE)}\n"
            "call again with an object that has the arguments by name"
        )
    return cast("dict[str, Any]", value)


def shortened(text: str, limit: int) -> str:
    """`text` in at most `limit` characters and a mark."""
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


def quoted(value: Any, limit: int = LONGEST_VALUE) -> str:
    """A JSON value as an error shows it."""
    return shortened(json_text(value, {}), limit)


def unknown_name(name: str, root: Node, path: Path) -> str:
    """What to say of a member that the object at `path` does not have."""
    known = known_names(root, path)
    if near := get_close_matches(name, known, 1):
        return f"is unknown; did you mean {near[0]!r}?"
    if not known:
        return "is unknown; there are no arguments here"
    return f"is unknown; known are {shortened(', '.join([repr(each) for each in known]), LONGEST_QUOTE)}"
