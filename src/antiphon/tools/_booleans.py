"""Telling `true` from 1, where Python does not."""

from collections.abc import Iterator
from typing import Any, Final, cast

from antiphon.tools._walk import Node, Path, inner, parts

__all__ = ["confusable", "confused"]

KINDS: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def confusable(schema: Any) -> bool:
    """Whether a schema lists a value that Python takes for another one."""
    if isinstance(schema, dict):
        node = cast("Node", schema)
        return any(_mixed(option) for option in _options(node)) or any(confusable(each) for each in node.values())
    return isinstance(schema, list) and any(confusable(each) for each in cast("list[Any]", schema))


def confused(node: Any, value: Any, root: Node) -> Iterator[Path]:
    """The places where `value` has a boolean for a listed number, or a number for a listed boolean.

    To Python `True == 1`, so a `Literal[1]` or an `IntEnum` takes `true`; JSON Schema tells them apart (draft 2020-12,
    section 4.2.2), and so should what is checked without coercion.
    """
    found = parts(node, root)
    if not found:
        return
    for each in found:
        options = _options(each)
        if value in options and not any(_same(option, value) for option in options):
            yield ()
        for choice in ("anyOf", "oneOf"):
            taken = [list(confused(one, value, root)) for one in each.get(choice, ()) if _fits(one, value, root)]
            if taken and all(taken):
                yield from taken[0]
    for key, member in _members(value):
        for each in inner(found, key):
            for path in confused(each, member, root):
                yield (key, *path)


def _members(value: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(value, dict):
        yield from cast("dict[str, Any]", value).items()
    elif isinstance(value, list):
        yield from enumerate(cast("list[Any]", value))


def _options(node: Node) -> list[Any]:
    if "const" in node:
        return [node["const"]]
    options: Any = node.get("enum")
    return cast("list[Any]", options) if isinstance(options, list) else []


def _mixed(option: Any) -> bool:
    return isinstance(option, int | float) and option in (0, 1)


def _same(option: Any, value: Any) -> bool:
    return option == value and isinstance(option, bool) == isinstance(value, bool)


def _fits(node: Any, value: Any, root: Node) -> bool:
    """Whether an alternative may be the one that `value` was taken for."""
    for each in parts(node, root):
        options = _options(each)
        if options and value not in options:
            return False
        if options:
            continue
        kinds: Any = each.get("type", ())
        names: list[str] = [kinds] if isinstance(kinds, str) else list(kinds)
        if names and not any(_is(value, name) for name in names):
            return False
    return True


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, KINDS.get(kind, (object,))) and (kind == "boolean" or not isinstance(value, bool))
