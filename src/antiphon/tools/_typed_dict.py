"""`typing.TypedDict` on Python 3.11, which pydantic takes from a later version only."""

import sys
import types
import typing
from functools import reduce
from typing import Any, Final, cast

__all__ = ["modern"]

TOO_OLD: Final = sys.version_info < (3, 12)


def modern(annotation: Any, seen: dict[int, Any] | None = None) -> Any:
    """`annotation` with every `typing.TypedDict` in it made into one that pydantic takes.

    It refuses them because before 3.12 a generic one does not know its bases, and plain ones do not need them. Models
    and dataclasses are not looked into: they refused the class when they were made.
    """
    if not TOO_OLD:
        return annotation
    seen = {} if seen is None else seen
    if id(annotation) in seen:
        return seen[id(annotation)]
    if isinstance(annotation, type) and typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _told_anew(annotation, seen)
    arguments = typing.get_args(annotation)
    if not arguments or typing.get_origin(annotation) is typing.Literal:
        return annotation
    changed = [modern(each, seen) for each in arguments]
    if all(new is old for new, old in zip(changed, arguments, strict=True)):
        return annotation
    if isinstance(annotation, types.UnionType):
        return reduce(lambda one, other: one | other, changed)
    if typing.get_origin(annotation) is typing.Annotated:
        return cast("Any", typing.Annotated)[tuple(changed)]
    if isinstance(annotation, types.GenericAlias):
        return types.GenericAlias(cast("Any", annotation).__origin__, tuple(changed))
    return cast("Any", annotation).copy_with(tuple(changed))


def _told_anew(cls: type, seen: dict[int, Any]) -> Any:
    """A class with the same members, whose own class does not say that it comes from `typing`."""
    kind = type("TypedDictClass", (type(cls),), {"__module__": __name__})
    new: Any = type.__new__(kind, cls.__name__, (dict,), dict(cls.__dict__))
    seen[id(cls)] = new
    hints = typing.get_type_hints(cls, include_extras=True)
    new.__annotations__ = {name: modern(hint, seen) for name, hint in hints.items()}
    return new
