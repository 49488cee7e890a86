"""The corpus: JSON files beside this one, each a list of quirks of one kind.

A quirk is one reply of one kind of server, byte for byte, with what an engine must make of it. The bytes are `pieces`, one
for each time that the server writes, or `events`, each framed in the usual way of its format; or all of them cut anew, at
the places that `cuts` names. However they are cut, the same must come out.
"""

import json
from importlib.resources import files
from typing import Any, Literal

import msgspec
from msgspec import Struct

__all__ = ["FORMATS", "Expected", "ExpectedCall", "ExpectedError", "Format", "Quirk", "load"]

Format = Literal["openai_chat", "openai_responses", "anthropic", "gemini"]

FORMATS: tuple[Format, ...] = ("openai_chat", "openai_responses", "anthropic", "gemini")
"""The wire formats that quirks come in."""


class ExpectedCall(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call that must come out. `id`: `None` for one that is made up because the server gave none.

    `arguments` is the JSON text; `opaque` what must be kept with the call, as far as it is named here.
    """

    name: str
    arguments: str = "{}"
    id: str | None = None
    opaque: dict[str, Any] = {}


class ExpectedError(Struct, frozen=True, forbid_unknown_fields=True):
    """The error that must come out: the name of its class in `antiphon.errors`, what its sentence says, its recovery."""

    kind: str
    says: str = ""
    recovery: str | None = None
    code: str | None = None


class Expected(Struct, frozen=True, forbid_unknown_fields=True):
    """What must come out of a reply, with an error up to it. What is `None` is not looked at.

    `fragments` is how many pieces of arguments must come live, one by one. `signatures` are texts that must be among what
    is kept of thoughts and texts to go back. `warnings` are codes, all that come.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[ExpectedCall, ...] = ()
    stop: str | None = None
    usage: dict[str, int] | None = None
    fragments: int | None = None
    signatures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    error: ExpectedError | None = None


class Quirk(Struct, frozen=True, forbid_unknown_fields=True):
    """One odd reply.

    `id` is the report that it stands for, `name` tells it from its siblings, `server` is the kind that sends it. `tools`
    were offered; `profile` are fields of the Chat Completions profile that differ (`think_tags`, `rescue`). `end`: the
    body ends as it should, or the connection is `cut` within it.
    """

    id: str
    name: str
    server: str
    format: Format
    about: str
    expect: Expected
    events: tuple[msgspec.Raw, ...] = ()
    pieces: tuple[str, ...] = ()
    cuts: tuple[int, ...] = ()
    status: int = 200
    content_type: str = "text/event-stream"
    end: Literal["whole", "cut"] = "whole"
    tools: dict[str, dict[str, Any]] = {}
    profile: dict[str, Any] = {}

    def body(self) -> list[bytes]:
        """The bytes, as the server cuts them."""
        if self.pieces:
            pieces = [piece.encode() for piece in self.pieces]
        else:
            pieces = [self._framed(bytes(event)) for event in self.events] + self._marker()
        if not self.cuts:
            return pieces
        whole = b"".join(pieces)
        return [whole[begin:end] for begin, end in zip((0, *self.cuts), (*self.cuts, len(whole)), strict=True)]

    def _framed(self, event: bytes) -> bytes:
        """One event; its type is its name where the format has names."""
        if self.format in {"anthropic", "openai_responses"}:
            kind = str(json.loads(event).get("type", "message")).encode()
            return b"event: %b\ndata: %b\n\n" % (kind, event)
        return b"data: %b\n\n" % event

    def _marker(self) -> list[bytes]:
        return [b"data: [DONE]\n\n"] if self.format == "openai_chat" and self.end == "whole" else []


def load(*, id: str | None = None, format: Format | None = None) -> list[Quirk]:  # noqa: A002 - the names of the fields
    """The quirks, all or those with this id or of this format, in a fixed order."""
    found: list[Quirk] = []
    folder = files("antiphon.testing.quirks")
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.name.endswith(".json"):
            found += msgspec.json.decode(entry.read_bytes(), type=list[Quirk])
    return [quirk for quirk in found if id in {None, quirk.id} and format in {None, quirk.format}]
