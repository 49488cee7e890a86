"""Nodes of a JSON Schema: what refers to what, and several of them as one. Pure."""

from collections.abc import Iterator
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

__all__ = ["ANNOTATIONS", "Node", "References", "accepts_null", "children", "merged", "nullable"]

Node: TypeAlias = dict[str, Any]

ANNOTATIONS = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
)
"""Keywords that say something of a place and demand nothing of its value."""

_MAPS = ("dependentSchemas", "patternProperties", "properties")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_ONE = (
    "additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then",
    "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip

_LIMITS: dict[str, Any] = {
    **dict.fromkeys(("minimum", "minLength", "minItems", "minProperties", "exclusiveMinimum"), max),
    **dict.fromkeys(("maximum", "maxLength", "maxItems", "maxProperties", "exclusiveMaximum"), min),
}


def children(node: Node) -> Iterator[tuple[str, Any]]:
    """The schemas within a node and where they stand; definitions, which only a reference reaches, are not among them."""
    for keyword, value in node.items():
        if keyword in _MAPS and isinstance(value, dict):
            yield from ((f"{keyword}/{name}", each) for name, each in cast("Node", value).items())
        elif isinstance(value, list) and (keyword in _LISTS or keyword == "items"):
            yield from ((f"{keyword}/{place}", each) for place, each in enumerate(cast("list[Any]", value)))
        elif keyword in _ONE:
            yield keyword, value


class References:
    """The references of one document. Only those into it are followed: nothing is ever fetched."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._cyclic: dict[str, bool] = {}
        self._names: dict[str, str] = {}

    def target(self, pointer: object) -> Node | None:
        """What a reference points to (RFC 6901, as a URI fragment); `None` for what is no schema of this document."""
        if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
            return None
        found: Any = self._root
        for step in pointer[1:].split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdecimal() and int(name) < len(cast("list[Any]", found)):
                found = cast("list[Any]", found)[int(name)]
            elif isinstance(found, dict) and name in found:
                found = cast("Node", found)[name]
            else:
                return None
        if isinstance(found, bool):
            return {} if found else {"not": {}}
        return cast("Node", found) if isinstance(found, dict) else None

    def is_cyclic(self, pointer: str) -> bool:
        """Whether what the reference points to contains itself."""
        if pointer not in self._cyclic:
            self._cyclic[pointer] = pointer in self._reached(pointer)
        return self._cyclic[pointer]

    def name(self, pointer: str) -> str:
        """The name of a definition: the last step of the reference, told apart from others of the same name."""
        if pointer not in self._names:
            last = unquote(pointer.rpartition("/")[2]).replace("~1", "_").replace("~0", "_") or "root"
            plain = "".join([char if char.isascii() and (char.isalnum() or char in "_.-") else "_" for char in last])
            taken, number, name = set(self._names.values()), 1, plain
            while name in taken:
                number += 1
                name = f"{plain}_{number}"
            self._names[pointer] = name
        return self._names[pointer]

    def _reached(self, pointer: str) -> set[str]:
        """All references that stand in what the reference points to, and in what those point to."""
        reached: set[str] = set()
        waiting: list[Any] = [self.target(pointer)]
        while waiting:
            node: Any = waiting.pop()
            if not isinstance(node, dict):
                continue
            one = cast("Node", node)
            other = one.get("$ref")
            if isinstance(other, str) and other not in reached:
                reached.add(other)
                waiting.append(self.target(other))
            waiting.extend(each for _, each in children(one))
        return reached


def merged(parts: list[Node]) -> Node | None:
    """Schemas that must all hold, as one; `None` if they cannot be told as one. What is said of a place by a later one wins."""
    whole: Node = {}
    for part in parts:
        for keyword, value in part.items():
            if keyword not in whole or whole[keyword] == value or keyword in ANNOTATIONS:
                whole[keyword] = value
            elif (both := _both(keyword, whole[keyword], value)) is not None:
                whole[keyword] = both
            else:
                return None
    closed = [part.get("properties", {}) for part in parts if part.get("additionalProperties") is False]
    if len(parts) > 1 and closed and "properties" in whole:  # a closed part allows its own members alone
        members = {name: each for name, each in whole["properties"].items() if all(name in own for own in closed)}
        if not members.keys() >= {name for name in whole.get("required", ()) if name in whole["properties"]}:
            return None
        whole["properties"] = members
    return whole


def _both(keyword: str, one: Any, other: Any) -> Any:
    """What two values of a keyword demand together; `None` if no value of it says that."""
    match keyword:
        case "properties":
            return {
                name: {"allOf": [one[name], other[name]]}
                if name in one and name in other and one[name] != other[name]
                else {**one, **other}[name]
                for name in {**one, **other}
            }
        case "$defs" | "definitions":
            return {**one, **other}
        case "required":
            return list(dict.fromkeys([*one, *other]))
        case "allOf":
            return [*one, *other]
        case "type":
            return _common_types(_listed(one), _listed(other))
        case "enum":
            return [value for value in one if value in other] or None
        case "additionalProperties":
            return False if False in (one, other) else None
        case _:
            return _LIMITS[keyword](one, other) if keyword in _LIMITS else None


def _common_types(one: list[Any], other: list[Any]) -> Any:
    kinds = [kind for kind in one if kind in other]
    if {"integer", "number"} <= {*one, *other} and "number" not in kinds and "integer" not in kinds:
        kinds.append("integer")
    return (kinds[0] if len(kinds) == 1 else kinds) or None


def _listed(kinds: Any) -> list[Any]:
    return cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]


def accepts_null(node: Node) -> bool:
    """Whether `null` is plainly among the values."""
    if "null" in _listed(node.get("type")) or None in node.get("enum", ()):
        return True
    return any(isinstance(each, dict) and accepts_null(cast("Node", each)) for each in node.get("anyOf", ()))


def nullable(node: Node, *, lists: bool) -> Node:
    """The schema with `null` among the values. `lists`: a type may be a list of types."""
    if accepts_null(node):
        return node
    kinds = node.get("type")
    if lists and kinds is not None and "enum" not in node and "const" not in node:
        return {keyword: [*_listed(value), "null"] if keyword == "type" else value for keyword, value in node.items()}
    null: Node = {"type": "null"}
    if node.keys() - ANNOTATIONS == {"anyOf"}:
        return {keyword: [*value, null] if keyword == "anyOf" else value for keyword, value in node.items()}
    said = {keyword: value for keyword, value in node.items() if keyword in ANNOTATIONS and "$ref" not in node}
    rest = {keyword: value for keyword, value in node.items() if keyword not in said}
    return {**said, "anyOf": [rest, null]}
