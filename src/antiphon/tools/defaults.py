"""Filling what a call left out with the defaults of its schema."""

from copy import deepcopy
from typing import Any, cast

from antiphon.tools._walk import ABSENT, Node, default_of, inner, parts

__all__ = ["fill_defaults"]


def fill_defaults(schema: Node, value: Any) -> None:
    """Put the defaults of a JSON Schema into `value`, a JSON value, in place.

    A missing member with a default is added, in nested objects and lists too, and in added defaults themselves. What is
    there stays, `null` too; an object that is missing and has no default of its own is not made from its members'
    defaults. References into the same document and `allOf` are followed. Nothing is filled inside `anyOf` and `oneOf`,
    where it is not known yet which alternative is meant, nor under `patternProperties`.
    """
    _fill(schema, value, schema, frozenset())


def _fill(node: Any, value: Any, root: Node, adding: frozenset[int]) -> None:
    """`adding` are the members whose default the walk is in: a default that calls for itself is added once."""
    if not isinstance(value, dict | list) or not (found := parts(node, root)):
        return
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        added = _add(found, members, root, adding)
        for name, member in members.items():
            for each in inner(found, name):
                _fill(each, member, root, adding | added.get(name, frozenset()))
    else:
        for index, item in enumerate(cast("list[Any]", value)):
            for each in inner(found, index):
                _fill(each, item, root, adding)


def _add(found: list[Node], members: dict[str, Any], root: Node, adding: frozenset[int]) -> dict[str, frozenset[int]]:
    added: dict[str, frozenset[int]] = {}
    for each in found:
        for name, member in each.get("properties", {}).items():
            if name in members or id(member) in adding:
                continue
            default = default_of(member, root)
            if default is not ABSENT:
                members[name] = deepcopy(default)
                added[name] = frozenset([id(member)])
    return added
