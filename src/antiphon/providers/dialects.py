"""Schema dialects: one JSON Schema in, what a server takes of it out. Pure; the same schema gives the same bytes.

What the target cannot express is told in notes, and the arguments of a call are always checked against the original.
"""

import re
from typing import Any, cast

from msgspec import Struct

from antiphon.providers._schema_nodes import Node, merged
from antiphon.providers._schema_walk import Untellable, Walk
from antiphon.providers.dialect import Dialect
from antiphon.types.request import ToolSpec

__all__ = ["NO_PARAMETERS", "Schemas", "Translated", "answer_schema", "schema_name", "tool_schema"]

NO_PARAMETERS: Node = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
"""A tool without parameters: an empty closed object, since a bare `{}` is refused by strict validators."""

_AT_TOP = ("anyOf", "oneOf", "allOf", "enum", "not", "const")


class Translated(Struct, frozen=True):
    """A schema in a dialect. `strict`: a model can be held to it. `notes` tell what of the original it does not say."""

    schema: Node
    strict: bool
    notes: tuple[str, ...] = ()


def tool_schema(schema: Node, dialect: Dialect, *, strict: bool | None = None) -> Translated:
    """The schema of a tool's arguments. `strict`: hold the model to it, if that can be done."""
    return _translated(schema or NO_PARAMETERS, dialect, wanted=bool(strict), as_object=True)


def answer_schema(schema: Node, dialect: Dialect) -> Translated:
    """The schema of a whole answer, strict where the dialect knows that and the schema allows it."""
    return _translated(schema, dialect, wanted=dialect.strict is not None, as_object=False)


def _translated(schema: Node, dialect: Dialect, *, wanted: bool, as_object: bool) -> Translated:
    why: tuple[str, ...] = ()
    if wanted and dialect.strict is not None:
        try:
            told, notes = _told(schema, dialect.strict, as_object=as_object)
        except (Untellable, RecursionError) as error:
            why = (f"not held to its schema: {error}",)
        else:
            return Translated(told, strict=True, notes=notes)
    try:
        told, notes = _told(schema, dialect, as_object=as_object)
    except RecursionError:
        return Translated(schema, strict=False, notes=(*why, "/: nested too deeply to be looked at"))
    return Translated(told, strict=False, notes=why + notes)


def _told(schema: Node, dialect: Dialect, *, as_object: bool) -> tuple[Node, tuple[str, ...]]:
    walk = Walk(schema, dialect)
    top = _plain_top(walk) if dialect.plain_top else schema
    told = walk.told(top, "")
    if as_object and dialect.plain_top:
        told = {"type": "object", **told} if "type" not in told else {**told, "type": "object"}
        told.setdefault("properties", {})
    elif dialect.closed and told.get("type") != "object":
        raise Untellable("/: an answer must be an object")
    if walk.definitions:
        told = {**told, "$defs": walk.definitions}
    return told, tuple(walk.notes)


def _plain_top(walk: Walk) -> Node:
    """The top of a schema as one object: what it refers to, and its alternatives together."""
    top: Node = {keyword: value for keyword, value in walk.root.items() if keyword not in ("$defs", "definitions")}
    seen: set[str] = set()
    while isinstance(pointer := top.get("$ref"), str) and pointer not in seen:
        seen.add(pointer)
        beside = {keyword: value for keyword, value in top.items() if keyword != "$ref"}
        top = merged([walk.references.target(pointer) or {}, beside]) or beside
    if "allOf" in top:
        top = _together(walk, top, "allOf")
    for keyword in ("anyOf", "oneOf"):
        if keyword in top:
            walk.refuse("", f"alternatives at the top ({keyword!r}) are told as one object")
            top = _together(walk, top, keyword)
    for keyword in _AT_TOP:
        if keyword in top:
            walk.refuse("", f"{keyword!r} at the top cannot be told")
            del top[keyword]
    return top


def _together(walk: Walk, top: Node, keyword: str) -> Node:
    """The object that has the members of all parts; of alternatives, only what all of them require is required."""
    parts = [_resolved(walk, part) for part in cast("list[Any]", top[keyword])]
    rest = {name: value for name, value in top.items() if name != keyword}
    if keyword == "allOf":
        whole = merged([*parts, rest])
        if whole is not None:
            return whole
        walk.refuse("", "the parts of 'allOf' at the top contradict each other; the first are told")
    members: Node = {}
    for part in (rest, *parts):
        for name, member in part.get("properties", {}).items():
            known = members.setdefault(name, member)
            if known != member:
                options = known["anyOf"] if known.keys() == {"anyOf"} else [known]
                members[name] = {"anyOf": [*options, member]}
    required = [name for name in members if parts and all(name in part.get("required", ()) for part in parts)]
    own = [name for name in rest.get("required", ()) if name not in required]
    told: Node = {**rest, "type": "object", "properties": members, "required": [*own, *required]}
    if parts and all(part.get("additionalProperties") is False for part in parts):
        told["additionalProperties"] = False
    return told


def _resolved(walk: Walk, part: Any) -> Node:
    node = cast("Node", part) if isinstance(part, dict) else {}
    seen: set[str] = set()
    while isinstance(pointer := node.get("$ref"), str) and pointer not in seen:
        seen.add(pointer)
        node = walk.references.target(pointer) or {}
    return node


class Schemas:
    """The schemas of requests to one model, each translated once."""

    __slots__ = ("_answer", "_dialect", "_tools")

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        # Each one value: runs in several threads may share it.
        self._tools: tuple[tuple[ToolSpec, ...], tuple[Translated, ...]] = ((), ())
        self._answer: tuple[Node | None, Translated] = (None, Translated({}, strict=False))

    def tools(self, tools: tuple[ToolSpec, ...]) -> tuple[Translated, ...]:
        """One for each tool."""
        known, translated = self._tools
        if tools != known:
            translated = tuple([tool_schema(tool.parameters, self._dialect, strict=tool.strict) for tool in tools])
            self._tools = (tools, translated)
        return translated

    def answer(self, schema: Node) -> Translated:
        """That of a whole answer."""
        known, translated = self._answer
        if schema != known:
            translated = answer_schema(schema, self._dialect)
            self._answer = (schema, translated)
        return translated

    def notes(self, tools: tuple[ToolSpec, ...]) -> dict[str, tuple[str, ...]]:
        """What the dialect cannot express of each tool that has such."""
        return {tool.name: told.notes for tool, told in zip(tools, self.tools(tools), strict=True) if told.notes}


def schema_name(schema: Node) -> str:
    """The name that OpenAI's API wants for the schema of an answer: letters, digits, underscores, dashes, at most 64."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title") or "answer"))[:64]
