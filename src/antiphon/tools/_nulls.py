"""Taking back what a strict mode made of a schema: there a member that may be left out is one that may be null."""

from typing import Any, cast

from antiphon.tools._walk import Node, inner, with_choices

__all__ = ["drop_nulls"]


def drop_nulls(schema: Node, value: dict[str, Any]) -> None:
    """Take out of a JSON object, in place, each `null` that stands for a member that was left out.

    It does where the member need not be there and its schema has no `null` among its values; behind references and inside
    alternatives too, as long as no alternative takes the `null` for what it is.
    """
    _drop([schema], value, schema)


def _drop(nodes: list[Any], value: dict[str, Any] | list[Any], root: Node) -> None:
    found = with_choices(nodes, root)
    if isinstance(value, dict):
        for name in [name for name, each in value.items() if each is None]:
            owners = [node for node in found if name in node.get("properties", ())]
            wanted = any(name in node.get("required", ()) for node in found)
            if owners and not wanted and not any(_takes_null(node["properties"][name], root) for node in owners):
                del value[name]
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, each in steps:
        if isinstance(each, dict | list):
            _drop(list(inner(found, step)), cast("dict[str, Any] | list[Any]", each), root)


def _takes_null(node: Any, root: Node) -> bool:
    """Whether `null` may be a value here. Where nothing is said of the value, it may."""
    if not isinstance(node, dict):
        return node is not False
    found = with_choices([node], root)
    said = [each for each in found if each.keys() & {"type", "enum", "const"}]
    return not said or any(_names_null(each) for each in said)


def _names_null(node: Node) -> bool:
    kinds: Any = node.get("type")
    if kinds is not None:
        return kinds == "null" or (isinstance(kinds, list) and "null" in kinds)
    return None in node["enum"] if "enum" in node else node["const"] is None
