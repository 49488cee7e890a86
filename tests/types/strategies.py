"""Values of any type of the room, made from the types themselves: a field that is added tomorrow is tested tomorrow."""

from functools import cache
from typing import Any, get_args

from hypothesis import strategies as st
from msgspec import inspect

from antiphon.types.content import Part, ToolCall, Unknown
from antiphon.types.events import StoredEvent
from antiphon.types.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
FAKES = st.sampled_from(
    [
        {"type": "unknown", "raw": {"type": "text", "text": "x"}},
        {"type": "later", "raw": 1},
        {"version": 7, "exact": True},
        '{"type":"unknown","raw":{}}',
    ]
)
"""What a user's own data may look like, and must not be taken for."""

JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT | FAKES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)


def tag_of(kind: Any) -> str:
    return kind.__struct_config__.tag


def members(union: Any) -> list[Any]:
    """The structs of a union, without `Unknown`."""
    return [kind for kind in get_args(union) if kind is not Unknown]


def tags(union: Any) -> set[str]:
    return {tag_of(kind) for kind in members(union)}


def unknown(union: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Stored objects whose kind is none of `union`'s; some look much like what the codec makes of them."""
    names = TEXT.filter(lambda name: name not in tags(union)) | st.just("unknown")
    return st.builds(
        lambda rest, name: {**rest, "type": name}, OBJECTS | FAKES.filter(lambda f: type(f) is dict), names
    )


UNIONS = {frozenset(get_args(union)): union for union in (Part, Message, StoredEvent)}


@cache
def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of `kind`."""
    return _of(inspect.type_info(kind))


def _of(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.StructType(cls=cls, fields=fields):
            made = {field.name: _of(field.type) for field in fields}
            return st.builds(cls, **made)
        case inspect.UnionType(types=types):
            kinds = frozenset([each.cls for each in types if isinstance(each, inspect.StructType)])
            known = [_of(each) for each in types if getattr(each, "cls", None) is not Unknown]
            return st.one_of([*known, unknown(UNIONS[kinds]).map(Unknown)] if Unknown in kinds else known)
        case inspect.VarTupleType(item_type=item):
            return st.lists(_of(item), max_size=3).map(tuple)
        case inspect.ListType(item_type=item):
            return st.lists(_of(item), max_size=3)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_of(key), _of(value), max_size=3)
        case inspect.LiteralType(values=values):
            return st.sampled_from(sorted(values))
        case _:
            return PLAIN[type(info)]


PLAIN: dict[type, st.SearchStrategy[Any]] = {
    inspect.AnyType: JSON,
    inspect.BoolType: st.booleans(),
    inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
    inspect.IntType: st.integers(-(2**63), 2**63 - 1),
    inspect.NoneType: st.none(),
    inspect.StrType: TEXT,
}

IDS = st.sampled_from(["", "a", "b", "call_1", "call_2"])
NAMES = st.sampled_from(["read", "write"])
CALLS = st.builds(ToolCall, id=IDS, name=NAMES)
RESULTS = st.builds(ToolResultMessage, call_id=IDS, tool_name=NAMES, parts=of(tuple[Part, ...]))
REPLIES = st.builds(AssistantMessage, parts=st.lists(CALLS | CALLS | of(Part), max_size=4).map(tuple))
TRANSCRIPTS = st.lists(REPLIES | RESULTS | RESULTS | of(UserMessage) | of(CustomMessage) | of(Message), max_size=8).map(
    tuple
)
"""Any messages in any order, few ids for many calls, so that they meet."""
