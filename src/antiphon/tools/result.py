"""What a tool gives back, made into what a model reads."""

import json
from html import escape
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from antiphon.tools._json import Notes, NotJson, json_text, mended
from antiphon.types.content import File, Image, Part, Text

__all__ = ["RESULT_LIMIT", "Shaped", "ToolResult", "cap_text", "error_text", "shape"]

RESULT_LIMIT: Final = 256 * 1024
"""How many bytes of text a result may have, unless somebody says otherwise."""

GIVEN: Final = (Text, Image, File)
"""The parts that a result may be made of."""


class ToolResult(Struct, frozen=True):
    """More than content: return it from a tool that has more to say.

    `content` is anything a tool may return. `details` is JSON for the application, never sent to the model. `is_error`
    marks the result as a failure that the model should see, its content word for word. `end_turn` ends the run after
    this turn, without asking the model again.
    """

    content: Any = None
    details: Any = None
    is_error: bool = False
    end_turn: bool = False


class Shaped(Struct, frozen=True, kw_only=True):
    """A result as it goes into the transcript. `warnings` are `(code, text)`."""

    parts: tuple[Part, ...]
    details: Any = None
    is_error: bool = False
    end_turn: bool = False
    warnings: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    def capped(self, limit: int | None = RESULT_LIMIT) -> "Shaped":
        """This result with at most `limit` bytes of text, cut with a mark; then the whole text is in the details.

        It stands there as `whole_text`, beside the tool's own details if those are an object, else with them under
        `details`. `None` leaves the result as it is.
        """
        if limit is None or len(self.text) * 4 <= limit or len(self.text.encode()) <= limit:
            return self
        parts: list[Part] = []
        left = limit
        for part in self.parts:
            if isinstance(part, Text):
                short, _ = cap_text(part.text, left)
                left -= min(left, len(short.encode()))
                parts.append(Text(short, part.signature))
            else:
                parts.append(part)
        whole = with_whole(self.details, self.text)
        told = ("result_cut", f"the result was cut to {limit} bytes; the whole is in its details")
        return replace(self, parts=tuple(parts), details=whole, warnings=(*self.warnings, told))


def with_whole(details: Any, text: str) -> dict[str, Any]:
    """The details with the whole text beside them."""
    if details is None:
        return {"whole_text": text}
    own = cast("dict[str, Any]", details) if isinstance(details, dict) else {"details": details}
    return own | {"whole_text": text}


def shape(value: Any, name: str = "") -> Shaped:
    """What the tool called `name` returned, as parts and JSON.

    Text stays as it is. `Text`, `Image` and `File` stay parts, also in a list or tuple that has nothing but them and
    strings. An exception is a failure. Everything else becomes compact JSON: pydantic models, dataclasses, structs,
    enums, dates, `Decimal`, `UUID`, paths, sets (sorted), bytes (as text, else as base64). A value that as a whole has
    no JSON form is its own text. What JSON refuses (a value that holds itself, a generator) is a failure.
    """
    notes: Notes = {}
    told = value if isinstance(value, ToolResult) else ToolResult(value)
    failed = told.is_error
    try:
        parts = _parts(told.content, notes)
    except (NotJson, ValueError, RecursionError) as error:
        failed = True
        parts = (Text(error_text(name, f"the tool ran, but what it returned cannot be told: {error}")),)
    if isinstance(told.content, BaseException):
        failed = True
        parts = (Text(error_text(name, mended(str(told.content) or type(told.content).__name__, notes))),)
    warnings = [(f"result_{code}", f"in the result of {name!r}, {text}") for code, text in notes.items()]
    details, unclear = _details(told.details)
    warnings += [(f"details_{code}", f"in the details of {name!r}, {text}") for code, text in unclear.items()]
    return Shaped(parts=parts, details=details, is_error=failed, end_turn=told.end_turn, warnings=tuple(warnings))


def _parts(content: Any, notes: Notes) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(mended(str(content), notes)),)
    if isinstance(content, GIVEN):
        return (_sound(content, notes),)
    if isinstance(content, list | tuple):
        items = cast("list[Any] | tuple[Any, ...]", content)
        parts = any(isinstance(item, GIVEN) for item in items)
        if parts and all(isinstance(item, (*GIVEN, str)) for item in items):
            return tuple([_sound(Text(item) if isinstance(item, str) else item, notes) for item in items])
    text = json_text(content, notes)
    if "not_json" in notes and text.startswith('"') and not isinstance(content, str):
        own: Any = json.loads(text)  # nothing of it is JSON: its own text reads better without quotes around it
        return (Text(own),)
    return (Text(text),)


def _sound(part: Text | Image | File, notes: Notes) -> Part:
    if not isinstance(part, Text):
        return part
    text = mended(part.text, notes)
    return part if text is part.text else Text(text, part.signature)


def _details(details: Any) -> tuple[Any, Notes]:
    """The details as JSON data of their own, or their `repr`."""
    notes: Notes = {}
    if details is None:
        return None, notes
    try:
        return json.loads(json_text(details, notes, repr)), notes
    except (NotJson, ValueError, RecursionError) as error:
        return mended(repr(details), notes), notes | {"not_json": f"{error}; their repr was taken instead"}


def cap_text(text: str, limit: int = RESULT_LIMIT) -> tuple[str, str | None]:
    """`text` in at most `limit` bytes of UTF-8, and the whole of it if it had to be cut, else `None`.

    What is cut ends in a mark that says how much is missing; where not even the mark has room, nothing is left.
    """
    raw = text.encode()
    if len(raw) <= limit:
        return text, None
    mark = f"\n[cut: {len(raw)} of {len(raw)} bytes left out]"  # as wide as the widest
    kept = raw[: max(0, limit - len(mark))].decode(errors="ignore")
    short = f"{kept}\n[cut: {len(raw) - len(kept.encode())} of {len(raw)} bytes left out]"
    return (short if len(short.encode()) <= limit else ""), text


def error_text(name: str, message: str) -> str:
    """The text of a failure, for the model: the tool's name and the message, escaped, in a tag of their own."""
    return f'<tool_error name="{escape(name)}">{escape(message, quote=False)}</tool_error>'
