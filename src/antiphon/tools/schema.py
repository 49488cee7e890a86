"""JSON Schemas of tools: always the same bytes, and, for those given as they are, checked by a compiled validator."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, cast

from antiphon.errors import UsageError
from antiphon.tools._walk import Node, Path
from antiphon.tools.arguments import DECODER, Arguments, Problem, quoted, shortened, unknown_name

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = ["SchemaArguments", "canonical", "no_arguments", "object_schema"]

NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords whose members are names, in the order in which somebody gave them."""

DATA: Final = frozenset({"const", "default", "enum", "example", "examples", "required"})
"""Keywords whose value is data, not a schema."""

MOST_NESTED: Final = 3
"""How deep the problems of alternatives within alternatives are told."""


def no_arguments() -> Node:
    """The schema of a tool without arguments: an empty closed object."""
    return {"additionalProperties": False, "properties": {}, "required": [], "type": "object"}


def canonical(schema: Any) -> Any:
    """A copy of a schema with its keywords in alphabetical order, so that equal schemas give equal bytes.

    Members of `properties` keep their order, which models follow when they write, and data (`default`, `enum`) stays as
    it is.
    """
    if isinstance(schema, list):
        return [canonical(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("Node", schema)
    ordered: Node = {}
    for keyword in sorted(node):
        value = node[keyword]
        if keyword in DATA:
            ordered[keyword] = deepcopy(value)
        elif keyword in NAMED and isinstance(value, dict):
            ordered[keyword] = {name: canonical(each) for name, each in cast("Node", value).items()}
        else:
            ordered[keyword] = canonical(value)
    return ordered


def object_schema(name: str, schema: Any) -> Node:
    """The canonical form of a schema that somebody gave for the arguments of the tool `name`.

    An empty one becomes that of no arguments. Raises `UsageError` for a schema that no JSON object can satisfy at its
    top.
    """
    if not isinstance(schema, dict):
        kind = type(schema).__name__
        raise UsageError(f"the parameters of tool {name!r} must be a JSON Schema as a dict, not {kind}")
    given = cast("Node", schema)
    if not given:
        return no_arguments()
    kinds: Any = given.get("type", "object")
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        raise UsageError(
            f"the parameters of tool {name!r} have the type {kinds!r}, but arguments are always an object: "
            "write {'type': 'object', 'properties': {...}}"
        )
    return canonical(given)


class SchemaArguments(Arguments):
    """Arguments by a JSON Schema that somebody gave. The body gets a dict of its own.

    The schema decides for itself about members that it does not name. `format` is checked where it is known. Drafts 4
    to 2020-12 by `$schema`, else 2020-12.
    """

    def __init__(self, name: str, parameters: Any) -> None:
        super().__init__(object_schema(name, parameters))
        self._validator = compiled(name, self.parameters)

    def check(self, given: dict[str, Any], text: str) -> tuple[Any, Sequence[Problem]]:
        try:
            found = list(self._validator.iter_errors(given))
        except ValueError as error:  # the only complaint of its own: the value is nested too deeply
            raise RecursionError(str(error)) from error
        if found:
            return None, [problem for each in found for problem in told(each, self.parameters)]
        return DECODER.decode(text), ()


def compiled(name: str, schema: Node) -> Any:
    """A validator for `schema`; a `UsageError` says what is wrong with it, and where."""
    import jsonschema_rs

    remote: list[str] = []

    def refuse(uri: str) -> Any:
        remote.append(uri.removeprefix("json-schema:///"))
        raise LookupError(uri)

    try:
        return jsonschema_rs.validator_for(schema, mask="the value", validate_formats=True, retriever=refuse)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        if remote and remote[0] == schema.get("$schema"):
            raise UsageError(
                f"the schema of tool {name!r} is in the dialect {remote[0]!r}, which is not known here: "
                "use 'https://json-schema.org/draft/2020-12/schema', or leave '$schema' out"
            ) from error
        if remote:
            raise UsageError(
                f"the schema of tool {name!r} refers to {remote[0]!r}, and remote references are never fetched: "
                "put the definition under '$defs' and refer to '#/$defs/...'"
            ) from error
        path = "".join([f"/{step}" for step in getattr(error, "instance_path", ())]) or "/"
        message = str(getattr(error, "message", error)).replace("the value", "what stands there")
        raise UsageError(
            f"the schema of tool {name!r} is no valid JSON Schema at {path!r}: {shortened(message, 500)}"
        ) from error


def told(error: "ValidationError", root: Node, depth: int = 0) -> Iterator[Problem]:
    """What a validator found, as problems that a model can act on; those of alternatives one by one."""
    path: Path = tuple(error.instance_path)
    kind: Any = error.kind
    match kind.name:
        case "required":
            yield Problem((*path, kind.property), "is missing")
        case "additionalProperties" | "unevaluatedProperties":
            for name in kind.unexpected:
                yield Problem((*path, name), unknown_name(name, root, path))
        case "anyOf" | "oneOf" if type(kind).__name__ == "OneOfMultipleValid":
            yield Problem(path, f"fits more than one alternative, got {quoted(error.instance)}")
        case "anyOf" | "oneOf":
            yield Problem(path, f"fits none of the {len(kind.context)} alternatives, got {quoted(error.instance)}")
            yield from alternatives(kind.context, root, depth)
        case "propertyNames":
            named = kind.error
            yield Problem(path, f"has a member {quoted(named.instance)}, whose name {sentence(named.message)}")
        case "contains":
            yield Problem(path, f"lacks an item that it must have, got {quoted(error.instance)}")
        case "not" | "falseSchema":
            yield Problem(path, f"is not allowed, got {quoted(error.instance)}")
        case _:
            yield Problem(path, f"{sentence(error.message)}, got {quoted(error.instance)}")


def alternatives(context: "list[list[ValidationError]]", root: Node, depth: int) -> Iterator[Problem]:
    if depth == MOST_NESTED:
        return
    for count, errors in enumerate(context, 1):
        for error in errors:
            for problem in told(error, root, depth + 1):
                yield Problem(problem.path, f"(alternative {count}) {problem.text}")


def sentence(message: str) -> str:
    """A validator's sentence without its subject, which the path names already."""
    return message.removeprefix("the value ")
