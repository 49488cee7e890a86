"""Finding one's way in a JSON Schema: what a place of a value has to say for itself, references followed."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

__all__ = ["ABSENT", "Node", "Path", "default_of", "holds", "inner", "known_names", "parts", "referred", "with_choices"]

Node: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]

ABSENT: Final = object()
"""No default."""


def referred(reference: object, root: Node) -> Any:
    """What a reference into the same document (`#`, `#/$defs/Place`) points to, else `None` (RFC 6901)."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(cast("list[Any]", found)):
            found = cast("list[Any]", found)[int(name)]
        elif isinstance(found, dict) and name in found:
            found = cast("Node", found)[name]
        else:
            return None
    return found if reference == "#" or reference.startswith("#/") else None


def parts(node: Any, root: Node) -> list[Node]:
    """All that must hold where `node` stands: itself, what it refers to, and the members of `allOf`, once each."""
    if isinstance(node, dict) and "$ref" not in node and "allOf" not in node:
        return [cast("Node", node)]  # nearly always
    found: list[Node] = []
    waiting: list[Any] = [node]
    while waiting:
        each: Any = waiting.pop()
        if not isinstance(each, dict) or any(each is other for other in found):
            continue
        one = cast("Node", each)
        found.append(one)
        waiting.extend(reversed(one.get("allOf", ())))
        if "$ref" in one:
            waiting.append(referred(one["$ref"], root))
    return found


def inner(found: Sequence[Node], key: str | int) -> Iterator[Any]:
    """What `found` says of a member (by its name) or of an item (by its place)."""
    for each in found:
        if isinstance(key, str):
            if key in each.get("properties", ()):
                yield each["properties"][key]
            elif "patternProperties" not in each:
                yield each.get("additionalProperties")
        else:
            items: Any = each.get("items")
            first: Any = each.get("prefixItems", items if isinstance(items, list) else ())  # draft 7 has a list here
            if key < len(first):
                yield first[key]
            elif not isinstance(items, list):
                yield items


def default_of(node: Any, root: Node) -> Any:
    """The nearest default of `node`, or `ABSENT`."""
    return next((each["default"] for each in parts(node, root) if "default" in each), ABSENT)


def holds(schema: Any, *keywords: str) -> bool:
    """Whether one of the keywords stands anywhere in the schema."""
    waiting = [schema]
    while waiting:
        each: Any = waiting.pop()
        if isinstance(each, dict):
            one = cast("Node", each)
            if any(keyword in one for keyword in keywords):
                return True
            waiting.extend(one.values())
        elif isinstance(each, list):
            waiting.extend(cast("list[Any]", each))
    return False


def known_names(root: Node, path: Path) -> list[str]:
    """The members that an object at `path` may have, those of every alternative."""
    found = with_choices([root], root)
    for step in path:
        found = with_choices(list(inner(found, step)), root)
    return list(dict.fromkeys([name for each in found for name in each.get("properties", ())]))


def with_choices(nodes: list[Any], root: Node) -> list[Node]:
    """`parts` of all nodes and of their alternatives."""
    found: list[Node] = []
    waiting = list(reversed(nodes))
    while waiting:
        for each in parts(waiting.pop(), root):
            if any(each is other for other in found):
                continue
            found.append(each)
            waiting.extend([*each.get("anyOf", ()), *each.get("oneOf", ())])
    return found
