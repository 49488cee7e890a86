"""Filling defaults into what a call left out."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.tools import Tool


def filled(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    made = Tool.from_schema("t", "", schema, lambda given: given)
    return made.prepare(json.dumps(arguments)).object


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


LIMIT = {"type": "integer", "default": 5}


@pytest.mark.parity("A19")
def test_a_missing_member_gets_its_default_and_a_present_one_stays() -> None:
    """`null` is present: it was said."""
    schema = an_object(a={"default": 1}, b={"default": 2}, c={})
    assert filled(schema, {}) == {"a": 1, "b": 2}
    assert filled(schema, {"b": None, "c": 3}) == {"b": None, "c": 3, "a": 1}


def test_a_default_fills_a_required_member_too() -> None:
    """The model need not write what the schema already says."""
    assert filled(an_object(a=LIMIT) | {"required": ["a"]}, {}) == {"a": 5}


def test_members_of_nested_objects_and_of_lists_are_filled() -> None:
    """As deep as the value goes."""
    schema = an_object(
        opts=an_object(limit=LIMIT),
        rows={"type": "array", "items": an_object(limit=LIMIT)},
        pair={"type": "array", "prefixItems": [an_object(limit=LIMIT), an_object(deep=an_object(limit=LIMIT))]},
        more={"type": "object", "additionalProperties": an_object(limit=LIMIT)},
    )
    assert filled(schema, {"opts": {}, "rows": [{}, {"limit": 1}], "pair": [{}, {"deep": {}}], "more": {"x": {}}}) == {
        "opts": {"limit": 5},
        "rows": [{"limit": 5}, {"limit": 1}],
        "pair": [{"limit": 5}, {"deep": {"limit": 5}}],
        "more": {"x": {"limit": 5}},
    }


def test_a_missing_object_is_not_made_from_its_members() -> None:
    """That would turn an option that nobody used into one that somebody did."""
    assert filled(an_object(opts=an_object(limit=LIMIT)), {}) == {}


def test_a_missing_object_with_a_default_is_filled_further() -> None:
    """Its own default is where it begins."""
    schema = an_object(opts=an_object(limit=LIMIT, name={"default": "x"}) | {"default": {"name": "y"}})
    assert filled(schema, {}) == {"opts": {"name": "y", "limit": 5}}


def test_references_into_the_document_are_followed() -> None:
    """Also with escaped names, one after another, and with a default beside them."""
    schema = an_object(
        a={"$ref": "#/$defs/one~1two"},
        b={"$ref": "#/$defs/alias"},
        c={"$ref": "#/$defs/alias", "default": {"limit": 1}},
        d={"$ref": "#/$defs/per%20cent"},
    ) | {
        "$defs": {
            "one/two": an_object(limit=LIMIT),
            "alias": {"$ref": "#/$defs/one~1two"},
            "per cent": LIMIT,
        }
    }
    assert filled(schema, {"a": {}, "b": {}}) == {
        "a": {"limit": 5},
        "b": {"limit": 5},
        "c": {"limit": 1},
        "d": 5,
    }


def test_references_that_lead_nowhere_or_into_a_list_are_no_trap() -> None:
    """An anchor is for the check alone; a pointer may go through a list."""
    schema = an_object(a={"$ref": "#here"}, b={"$ref": "#/$defs/pair/prefixItems/1"}) | {
        "$defs": {
            "anchored": an_object(limit=LIMIT) | {"$anchor": "here"},
            "pair": {"prefixItems": [{}, an_object(limit=LIMIT)]},
        }
    }
    assert filled(schema, {"a": {}, "b": {}}) == {"a": {}, "b": {"limit": 5}}


def test_members_under_a_pattern_are_not_filled() -> None:
    """Whether a name fits is for the check to say."""
    schema = {"patternProperties": {"^a": an_object(limit=LIMIT)}, "additionalProperties": an_object(limit=LIMIT)}
    assert filled(schema, {"ab": {}, "c": {}}) == {"ab": {}, "c": {}}


def test_all_of_is_filled_and_alternatives_are_not() -> None:
    """All members of `allOf` hold; of alternatives nobody knows yet which one is meant."""
    other = an_object(b={"default": 2})
    schema = an_object(x={"allOf": [an_object(a={"default": 1}), other]}, y={"anyOf": [other]}, z={"oneOf": [other]})
    assert filled(schema, {"x": {}, "y": {}, "z": {}}) == {"x": {"a": 1, "b": 2}, "y": {}, "z": {}}


def test_a_schema_that_contains_itself_is_filled_as_far_as_the_value_goes() -> None:
    """And a default that calls for itself ends."""
    tree = an_object(size=LIMIT, leaves={"type": "array", "items": {"$ref": "#"}})
    assert filled(tree, {"leaves": [{"leaves": [{}]}]}) == {
        "leaves": [{"leaves": [{"size": 5}], "size": 5}],
        "size": 5,
    }
    endless = an_object(child={"$ref": "#", "default": {}})
    assert filled(endless, {}) == {"child": {}}
    assert filled({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": an_object(n=LIMIT)}}, {}) == {"n": 5}


def test_a_default_of_the_wrong_type_is_refused_like_any_value() -> None:
    """It is told where it stands."""
    with pytest.raises(Exception, match=r'- a: is not of type "integer", got "x"'):
        filled(an_object(a={"type": "integer", "default": "x"}), {})


def test_values_of_the_wrong_shape_are_left_to_the_check() -> None:
    """A list where an object should be has nothing to fill."""
    with pytest.raises(Exception, match=r"- opts: is not of type .object., got \[1,\[2\]\]"):
        filled(an_object(opts=an_object(limit=LIMIT), rows={"items": an_object(limit=LIMIT)}), {"opts": [1, [2]]})


def test_what_a_default_gives_belongs_to_the_call() -> None:
    """A list that all calls share would carry what one did to it into the next."""
    made = Tool.from_schema("t", "", an_object(tags={"default": ["a"]}), lambda given: given)
    made.prepare("{}").object["tags"].append("b")
    assert made.prepare("{}").object == {"tags": ["a"]}
    assert made.parameters["properties"]["tags"]["default"] == ["a"]


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2)
NAMES = st.text("abc", min_size=1, max_size=1)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


def with_default(schema: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return schema | st.builds(lambda node, default: node | {"default": default}, schema, VALUES)


SCHEMAS = st.recursive(
    with_default(st.just({})),
    lambda inner: with_default(
        st.builds(lambda properties: {"properties": properties}, st.dictionaries(NAMES, inner, max_size=3))
        | st.builds(lambda items: {"items": items}, inner)
        | st.builds(lambda parts: {"allOf": parts}, st.lists(inner, min_size=1, max_size=2))
    ),
)
OBJECTS = st.builds(lambda properties: {"properties": properties}, st.dictionaries(NAMES, SCHEMAS, max_size=3))


def kept(before: Any, after: Any) -> bool:
    """Everything in `before` is in `after`, at its place."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(key in after and kept(each, after[key]) for key, each in before.items())
    if isinstance(before, list):
        return isinstance(after, list) and len(before) == len(after) and all(map(kept, before, after))
    return before == after and type(before) is type(after)


@given(OBJECTS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_filling_adds_and_never_changes(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    """What the model wrote is what is used; a second filling finds nothing to do; the schema stays as it is."""
    before = copy.deepcopy(schema)
    once = filled(schema, arguments)
    assert kept(arguments, once)
    assert filled(schema, once) == once
    assert schema == before


@given(OBJECTS)
def test_every_missing_member_with_a_default_is_there(schema: dict[str, Any]) -> None:
    """The rule itself, at the top."""
    expected = {name for name, each in schema["properties"].items() if has_default(each)}
    assert set(filled(schema, {})) == expected


def has_default(node: dict[str, Any]) -> bool:
    return "default" in node or any(has_default(each) for each in node.get("allOf", ()))
