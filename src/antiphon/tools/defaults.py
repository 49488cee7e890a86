"""Filling what a call left out with the defaults of its schema."""

from copy import deepcopy
from typing import Any, cast

from antiphon.tools._walk import ABSENT, Node, default_of, inner, parts

__all__ = ["fill_defaults"]


def fill_defaults(schema: Node, value: dict[str, Any]) -> None:
    """Put the defaults of a JSON Schema into a JSON object, in place.

    A missing member with a default is added, in nested objects and lists too, and in added defaults themselves. What is
    there stays, `null` too; an object that is missing and has no default of its own is not made from its members'
    defaults. References into the same document and `allOf` are followed. Nothing is filled inside `anyOf` and `oneOf`,
    where it is not known yet which alternative is meant, nor under `patternProperties`.
    """
    _fill(schema, value, schema, frozenset())


def _fill(node: Any, value: dict[str, Any] | list[Any], root: Node, adding: frozenset[int]) -> None:
    """`adding` are the members whose default the walk is in: a default that calls for itself is added once."""
    found = parts(node, root)
    added = _add(found, value, root, adding) if isinstance(value, dict) else {}
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, each in steps:
        if isinstance(each, dict | list):
            for schema in inner(found, step):
                _fill(schema, cast("dict[str, Any] | list[Any]", each), root, adding | added.get(step, frozenset()))


def _add(
    found: list[Node], members: dict[str, Any], root: Node, adding: frozenset[int]
) -> dict[str | int, frozenset[int]]:
    """Add what is missing and has a default; gives the schemas of what was added."""
    added: dict[str | int, frozenset[int]] = {}
    for each in found:
        for name, member in each.get("properties", {}).items():
            if name in members or id(member) in adding:
                continue
            default = default_of(member, root)
            if default is not ABSENT:
                members[name] = deepcopy(default)
                added[name] = frozenset([id(member)])
    return added
