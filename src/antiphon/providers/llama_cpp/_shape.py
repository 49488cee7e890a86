"""A tool as the small model sees it: a short sentence, and parameters of a few kinds."""

import re
from collections.abc import Iterable
from typing import Any, Final, Literal, cast

from msgspec import Struct

from antiphon.providers.llama_cpp._words import stems
from antiphon.types.request import ToolSpec

__all__ = ["Kind", "Parameter", "Shape", "bare_schema", "humanized", "shape_of"]

Kind = Literal["text", "integer", "number", "boolean", "choice", "other"]
"""What a parameter holds; `other` is an array, an object, or anything."""

LONGEST_SENTENCE: Final = 100
_PATHS: Final = re.compile(r"path|file|folder|dir(?:ector|s?$)", re.IGNORECASE)
_ADDRESSES: Final = re.compile(r"url|uri|link|website|web_?page|address", re.IGNORECASE)
_FORMULAS: Final = re.compile(r"expression|formula|equation|calculation|arithmetic", re.IGNORECASE)


class Parameter(Struct, frozen=True):
    """One parameter. `vocabulary` are the stems of its name, its description and its choices."""

    name: str
    kind: Kind
    required: bool
    choices: tuple[Any, ...]
    vocabulary: frozenset[str]
    schema: dict[str, Any]

    @property
    def is_path(self) -> bool:
        return self.kind == "text" and _PATHS.search(self.name) is not None

    @property
    def is_address(self) -> bool:
        return self.kind == "text" and _ADDRESSES.search(self.name) is not None

    @property
    def is_formula(self) -> bool:
        return self.kind == "text" and _FORMULAS.search(self.name) is not None

    @property
    def is_number(self) -> bool:
        return self.kind in {"integer", "number"}


class Shape(Struct, frozen=True):
    """One tool. `sentence` is the first of its description, or its name in words.

    `core` are the stems of name, sentence, parameter names and choices; `vocabulary` has those of the parameters'
    descriptions too.
    """

    name: str
    sentence: str
    parameters: tuple[Parameter, ...]
    core: frozenset[str]
    vocabulary: frozenset[str]
    definitions: dict[str, Any]

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join([parameter.name for parameter in self.parameters])})"

    def sorted(self) -> list[Parameter]:
        """The required parameters first, else in the schema's order."""
        return sorted(self.parameters, key=lambda parameter: not parameter.required)


def shape_of(tool: ToolSpec) -> Shape:
    """What matters of a tool; a schema that is odd gives parameters of the kind `other`, never an error."""
    definitions: dict[str, Any] = tool.parameters.get("$defs") or tool.parameters.get("definitions") or {}
    required = set(_strings(tool.parameters.get("required")))
    parameters = tuple(
        [
            _parameter(name, schema, definitions, required=name in required)
            for name, schema in _members(tool.parameters.get("properties"))
        ]
    )
    sentence = _sentence(tool.description) or humanized(tool.name)
    names = [parameter.name for parameter in parameters]
    choices = [str(choice) for parameter in parameters for choice in parameter.choices]
    core = frozenset(stems(tool.name, sentence, *names, *choices))
    vocabulary = core.union(*[parameter.vocabulary for parameter in parameters])
    return Shape(tool.name, sentence, parameters, core, vocabulary, definitions)


def bare_schema(schema: Any, definitions: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema without references and wrappers, the first that is not null of several; and whether null is one.

    A reference that leads nowhere, or round in a ring, gives the empty schema.
    """
    nullable = False
    for _ in range(16):
        if not isinstance(schema, dict):
            return {}, nullable
        known = cast("dict[str, Any]", schema)
        options: list[Any] = known.get("anyOf") or known.get("oneOf") or known.get("allOf") or []
        if isinstance(reference := known.get("$ref"), str):
            schema = definitions.get(reference.rsplit("/", 1)[-1])
        elif options:
            nullable = nullable or any(option == {"type": "null"} for option in options)
            schema = next((option for option in options if option != {"type": "null"}), None)
        elif isinstance(kinds := known.get("type"), list):
            names = _strings(cast("list[Any]", kinds))
            nullable = nullable or "null" in names
            return {**known, "type": next((name for name in names if name != "null"), "null")}, nullable
        else:
            return known, nullable
    return {}, nullable


def humanized(name: str) -> str:
    """`get_weather` and `getWeather` as `get weather`."""
    return re.sub(r"[\W_]+", " ", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)).strip().lower()


def _parameter(name: str, schema: Any, definitions: dict[str, Any], *, required: bool) -> Parameter:
    bare, nullable = bare_schema(schema, definitions)
    outer = cast("dict[str, Any]", schema) if isinstance(schema, dict) else bare
    description = str(outer.get("description") or bare.get("description") or "")
    choices: tuple[Any, ...] = (bare["const"],) if "const" in bare else tuple(bare.get("enum") or ())
    vocabulary = stems(name, description, *[str(choice) for choice in choices])
    return Parameter(name, _kind(bare, choices), required and not nullable, choices, frozenset(vocabulary), bare)


def _kind(schema: dict[str, Any], choices: tuple[Any, ...]) -> Kind:
    if choices:
        return "choice"
    match schema.get("type"):
        case "string":
            return "text"
        case "integer" | "number" | "boolean" as kind:
            return kind
        case _:
            return "other"


def _sentence(description: str) -> str:
    first = re.split(r"(?<=[^.])\.(?:\s|$)|;\s|\n", description.strip(), maxsplit=1)[0]
    return " ".join(first.split())[:LONGEST_SENTENCE].strip()


def _members(properties: Any) -> Iterable[tuple[str, Any]]:
    return cast("dict[str, Any]", properties).items() if isinstance(properties, dict) else ()


def _strings(values: Any) -> list[str]:
    return [value for value in cast("list[Any]", values) if isinstance(value, str)] if isinstance(values, list) else []
