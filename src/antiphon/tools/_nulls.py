"""Taking back what a strict mode made of a schema: there a member that may be left out is one that may be null."""

from typing import Any, cast

from antiphon.tools._walk import Node, inner, parts, with_choices

__all__ = ["drop_nulls"]


def drop_nulls(schema: Node, value: dict[str, Any]) -> None:
    """Take out of a JSON object, in place, each `null` that stands for a member that was left out.

    It does so where the member need not be there and its schema has no `null` among its values; behind references and inside
    alternatives too, as long as no alternative takes the `null` for what it is.
    """
    _drop([schema], value, schema)


def _drop(nodes: list[Any], value: dict[str, Any] | list[Any], root: Node) -> None:
    together = [part for node in nodes for part in parts(node, root)]
    found = with_choices(nodes, root)
    if isinstance(value, dict):
        for name in [name for name, each in value.items() if each is None]:
            known = any(name in node.get("properties", ()) for node in found)
            wanted = any(name in node.get("required", ()) for node in together)
            if known and not wanted and not _member_takes_null(name, together, root):
                del value[name]
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, each in steps:
        if isinstance(each, dict | list):
            _drop(list(inner(found, step)), cast("dict[str, Any] | list[Any]", each), root)


def _member_takes_null(name: str, together: list[Node], root: Node) -> bool:
    """Whether `null` may be the member's value: all that must hold allow it, and of alternatives one that knows the member."""
    for node in together:
        if name in node.get("properties", ()) and not _takes_null(node["properties"][name], root, frozenset()):
            return False
        for keyword in ("anyOf", "oneOf"):
            members = [
                each["properties"][name]
                for each in with_choices(list(node.get(keyword, ())), root)
                if name in each.get("properties", ())
            ]
            if members and not any(_takes_null(member, root, frozenset()) for member in members):
                return False
    return True


def _takes_null(node: Any, root: Node, above: frozenset[int]) -> bool:
    """Whether `null` may be a value here. Where nothing is said of the value, it may. `above`: schemas being looked at."""
    if not isinstance(node, dict):
        return node is not False
    for part in parts(node, root):
        if id(part) in above:
            continue
        inside = above | {id(part)}
        if not _names_null(part):
            return False
        for keyword in ("anyOf", "oneOf"):
            choices: list[Any] = part.get(keyword, [])
            if choices and not any(_takes_null(each, root, inside) for each in choices):
                return False
    return True


def _names_null(node: Node) -> bool:
    """Whether this schema alone leaves room for `null`."""
    kinds: Any = node.get("type", "null")
    typed = kinds == "null" or (isinstance(kinds, list) and "null" in kinds)
    return typed and None in node.get("enum", (None,)) and node.get("const") is None
