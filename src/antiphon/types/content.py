"""Parts: what a message is made of. The loop carries them and never looks inside."""

import base64
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Struct

from antiphon.errors import UsageError

__all__ = [
    "Content",
    "File",
    "Image",
    "Part",
    "Text",
    "Thinking",
    "ToolCall",
    "Unknown",
    "as_parts",
    "text_of",
]


class Text(Struct, frozen=True, tag_field="type", tag="text", omit_defaults=True):
    """Words.

    `signature` is a provider's opaque mark on this text; it goes back unchanged, and only to whom it came from.
    """

    text: str
    signature: str | None = None


class Thinking(Struct, frozen=True, kw_only=True, tag_field="type", tag="thinking", omit_defaults=True):
    """What a model thought before it spoke.

    `signature` is the provider's proof that the text is its own. With `redacted` there is no readable text and the
    signature holds the encrypted thought. `origin` is `"provider:model"`; signed thinking goes back only there.
    """

    text: str = ""
    signature: str | None = None
    redacted: bool = False
    origin: str | None = None


class Image(Struct, frozen=True, tag_field="type", tag="image", omit_defaults=True):
    """A picture. `source` is a URL, a data URL, or base64 text, passed on as given; the media type may be absent."""

    source: str
    media_type: str | None = None

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str | None = None) -> "Image":
        """A picture from its bytes, kept as base64 text."""
        return cls(base64.b64encode(data).decode(), media_type)


class File(Struct, frozen=True, tag_field="type", tag="file", omit_defaults=True):
    """A document. `source` is a URL, a data URL, or base64 text, passed on as given."""

    source: str
    media_type: str | None = None
    name: str | None = None

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str | None = None, name: str | None = None) -> "File":
        """A document from its bytes, kept as base64 text."""
        return cls(base64.b64encode(data).decode(), media_type, name)


class ToolCall(Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_call", omit_defaults=True):
    """A model asks for a tool.

    `arguments` is the JSON text as the model wrote it, also when it is broken. `id` is unique within its turn.
    `opaque` is whatever else the provider attached (a signature, say); it survives storage and goes back to its origin.
    """

    id: str
    name: str
    arguments: str = "{}"
    opaque: dict[str, Any] | None = None

    def parse(self) -> dict[str, Any]:
        """The arguments as an object; blank text is an empty one.

        Raises `ValueError` when the text is not a JSON object.
        """
        if not self.arguments.strip():
            return {}
        try:
            parsed = msgspec.json.decode(self.arguments)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ValueError(f"arguments are not valid JSON: {error}") from error
        if not isinstance(parsed, dict):
            raise ValueError(f"arguments must be a JSON object, not {type(parsed).__name__}")  # noqa: TRY004 - one kind
        return cast("dict[str, Any]", parsed)


class Unknown(Struct, frozen=True, tag_field="type", tag="unknown"):
    """Stored data of a kind this version does not know, kept as it is and written back unchanged."""

    raw: dict[str, Any]


Part: TypeAlias = Text | Thinking | Image | File | ToolCall | Unknown
"""What a message holds."""

Content: TypeAlias = str | Text | Thinking | Image | File | ToolCall | Unknown
"""What a message may be made of: parts, and strings that stand for `Text`."""


def as_parts(content: tuple[Content, ...]) -> tuple[Part, ...]:
    """Parts, with plain strings made into `Text`. Raises `UsageError` for anything else."""
    parts: list[Part] = []
    for item in content:
        if isinstance(item, str):
            parts.append(Text(item))
        elif isinstance(item, Part):  # pyright: ignore[reportUnnecessaryIsInstance] - not every caller is typed
            parts.append(item)
        else:
            raise UsageError(
                f"a message is made of strings and parts, not {type(item).__name__}: give Text, Image, File"
            )
    return tuple(parts)


def text_of(parts: tuple[Part, ...]) -> str:
    """All text parts, joined."""
    return "".join([part.text for part in parts if type(part) is Text])
