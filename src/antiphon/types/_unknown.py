"""The places of a type where stored data may be of a kind that this version does not know.

Such a place is a union of tagged structs with `Unknown` in it: a message in a list, a part in a message, an event. The
rest of the data belongs to users and is not looked at, whatever it looks like.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from antiphon.types.content import Unknown
from antiphon.types.history import History
from antiphon.types.messages import Message

__all__ = ["dec_hook", "enc_hook", "unwrapped", "wrapped"]

TAG: Final = "unknown"
DEEPER: Final = object()


class Shape:
    """What a type has inside, as far as it has structs inside.

    `kinds` are the structs of a tagged union by their tag and `single` is the one struct that needs no telling apart;
    `each` is what a list has in it, `places` what a fixed tuple has, `values` what a dict has. `keeps` says that
    objects of other kinds are kept as `Unknown`. Of a struct, `names` are all its keys, and `fields` those to look into.
    """

    __slots__ = ("each", "fields", "keeps", "kinds", "names", "places", "single", "struct", "tag_field", "values")

    def __init__(self) -> None:
        self.kinds: dict[str, Shape] = {}
        self.single: Shape | None = None
        self.each: Shape | None = None
        self.places: tuple[Shape, ...] = ()
        self.values: Shape | None = None
        self.keeps = False
        self.tag_field = "type"
        self.struct: Any = None
        self.names: frozenset[str] = frozenset()
        self.fields: dict[str, Shape] = {}

    @property
    def leaf(self) -> bool:
        """There is nothing to look into."""
        return not (self.kinds or self.single or self.each or self.places or self.values or self.keeps)

    def of(self, data: dict[str, Any]) -> "Shape | None":
        """The struct that `data` says it is."""
        if self.single is not None:
            return self.single
        tag = data.get(self.tag_field)
        return self.kinds.get(tag) if isinstance(tag, str) else None


@lru_cache(maxsize=64)
def shape_of(kind: Any) -> Shape:
    """The shape of a type."""
    return _add(Shape(), inspect.type_info(kind), {})


def _add(shape: Shape, info: inspect.Type, known: dict[type, Shape]) -> Shape:
    """Put what `info` allows into `shape`. `known` are the structs met so far: a type may contain itself."""
    match info:
        case inspect.UnionType(types=types):
            for each in types:
                _add(shape, each, known)
        case inspect.StructType(cls=cls) if cls is Unknown:
            shape.keeps = True
        case inspect.StructType(cls=cls, tag=str(tag), tag_field=str(tag_field)):
            shape.tag_field = tag_field
            shape.kinds[tag] = _struct(info, cls, known)
        case inspect.StructType(cls=cls):
            shape.single = _struct(info, cls, known)
        case inspect.Metadata(type=inner):
            _add(shape, inner, known)
        case _:
            _add_container(shape, info, known)
    return shape


def _add_container(shape: Shape, info: inspect.Type, known: dict[type, Shape]) -> None:
    match info:
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            shape.each = _add(Shape(), item, known)
        case inspect.TupleType(item_types=items):
            shape.places = tuple([_add(Shape(), item, known) for item in items])
        case inspect.DictType(value_type=value):
            shape.values = _add(Shape(), value, known)
        case inspect.CustomType(cls=cls) if cls is History:
            shape.each = _add(Shape(), inspect.type_info(Message), known)
        case _:
            pass


def _struct(info: inspect.StructType, cls: type, known: dict[type, Shape]) -> Shape:
    shape = known.get(cls)
    if shape is None:
        shape = known[cls] = Shape()
        shape.struct = cls
        shape.names = frozenset([field.encode_name for field in info.fields] + [info.tag_field or "type"])
        inner = {field.encode_name: _add(Shape(), field.type, known) for field in info.fields}
        shape.fields = {name: field for name, field in inner.items() if not field.leaf}
    return shape


def _walk(data: Any, shape: Shape, turn: Callable[[dict[str, Any], Shape], Any]) -> Any:
    """`data` with what `turn` makes of the objects at the places that keep; `DEEPER` from it leaves one as it is."""
    if isinstance(data, dict):
        found = cast("dict[str, Any]", data)
        if shape.keeps and (turned := turn(found, shape)) is not DEEPER:
            return turned
        inner = shape.of(found)
        if inner is not None:
            return _inside(found, inner, turn)
        if shape.values is not None:
            values = shape.values
            return {key: _walk(value, values, turn) for key, value in found.items()}
    elif isinstance(data, list | tuple):
        items = cast("list[Any]", data)
        if shape.each is not None:
            each = shape.each
            return [_walk(item, each, turn) for item in items]
        if len(shape.places) == len(items):
            return [_walk(item, place, turn) for item, place in zip(items, shape.places, strict=True)]
    return cast("Any", data)


def _inside(data: dict[str, Any], struct: Shape, turn: Callable[[dict[str, Any], Shape], Any]) -> dict[str, Any]:
    changed = dict(data)
    for name, field in struct.fields.items():
        if name in changed:
            changed[name] = _walk(changed[name], field, turn)
    return changed


def unwrapped(data: Any, kind: Any) -> Any:
    """What msgspec made of a value of type `kind`, with each `Unknown` replaced by its raw object."""

    def turn(found: dict[str, Any], shape: Shape) -> Any:
        return found["raw"] if found.get(shape.tag_field) == TAG else DEEPER

    return _walk(data, shape_of(kind), turn)


def wrapped(raw: Any, kind: Any, *, exact: bool) -> Any:
    """`raw` with each object of an unknown kind put into an `Unknown`, ready to be converted to `kind`.

    With `exact` this is done to an object of a known kind as well when it has a key or a value that this version cannot
    hold; the innermost that can be kept is.
    """

    def wrap(found: dict[str, Any]) -> dict[str, Any]:
        return {"type": TAG, "raw": found}

    def turn(found: dict[str, Any], shape: Shape) -> Any:
        struct = shape.of(found)
        if struct is None:
            return wrap(found) if exact or isinstance(found.get(shape.tag_field), str) else DEEPER
        if not exact:
            return DEEPER
        inner = _inside(found, struct, turn)
        return inner if _holds(inner, struct) and not _strange(found, struct) else wrap(found)

    return _walk(raw, shape_of(kind), turn)


def _holds(data: dict[str, Any], struct: Shape) -> bool:
    try:
        msgspec.convert(data, struct.struct, dec_hook=dec_hook)
    except msgspec.ValidationError:
        return False
    return True


def _strange(data: dict[str, Any], struct: Shape) -> bool:
    """An object has keys that its struct does not have, here or further inside but for places that keep."""
    if not struct.names.issuperset(data):
        return True

    def inside(value: Any, shape: Shape) -> bool:
        if shape.keeps:
            return False
        if isinstance(value, dict):
            found = cast("dict[str, Any]", value)
            inner = shape.of(found)
            if inner is not None:
                return _strange(found, inner)
            return shape.values is not None and any(inside(each, shape.values) for each in found.values())
        if isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            shapes = shape.places or ([shape.each] * len(items) if shape.each else [])
            return any(inside(item, each) for item, each in zip(items, shapes, strict=False))
        return False

    return any(inside(data[name], field) for name, field in struct.fields.items() if name in data)


def enc_hook(value: Any) -> Any:
    """A history is written as the list that it is."""
    if isinstance(value, History):
        return list(value)
    raise NotImplementedError(f"{type(value).__name__} is no JSON")


def dec_hook(kind: type, data: Any) -> Any:
    """A history is read from a list."""
    if kind is History:
        return History(msgspec.convert(data, tuple[Message, ...]))
    raise NotImplementedError(f"{kind.__name__} is no JSON")
