"""A strict mode has no members to leave out: a `null` in the place of one is taken back before anything is checked."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from antiphon.tools.arguments import ArgumentError
from antiphon.tools.function import tool
from antiphon.tools.tool import Tool

PLACE = {"type": "object", "properties": {"name": {"type": "string"}, "zip": {"type": "string"}}, "required": ["name"]}


def prepared(properties: dict[str, Any], text: str, *, strict: bool = True, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, **more}
    return Tool.from_schema("t", "", schema, strict=strict).prepare(text).object


def test_k06_a_null_for_a_member_that_may_be_left_out_is_no_member() -> None:
    assert prepared({"a": {"type": "string"}, "b": {"type": "integer"}}, '{"a":null,"b":1}') == {"b": 1}


def test_k06_a_null_that_the_schema_knows_stays() -> None:
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    listed = {"type": ["string", "null"]}
    chosen = {"enum": ["x", None]}
    given = '{"a":null,"b":null,"c":null,"d":null}'
    assert prepared({"a": optional, "b": listed, "c": chosen, "d": {}}, given) == dict.fromkeys("abcd")


def test_k06_nulls_behind_references_in_lists_and_in_alternatives_are_taken_back_too() -> None:
    properties = {
        "home": {"$ref": "#/$defs/Place"},
        "all": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
        "either": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "string"}]},
    }
    place = '{"name":"x","zip":null}'
    given = f'{{"home":{place},"all":[{place}],"either":{place}}}'
    bare = {"name": "x"}
    definitions: dict[str, Any] = {"$defs": {"Place": PLACE}}
    assert prepared(properties, given, **definitions) == {"home": bare, "all": [bare], "either": bare}


def test_k06_the_default_takes_the_place_of_a_null() -> None:
    assert prepared({"unit": {"type": "string", "default": "C"}}, '{"unit":null}') == {"unit": "C"}


def test_a_null_for_a_member_that_must_be_there_is_still_wrong() -> None:
    with pytest.raises(ArgumentError, match="name"):
        prepared(PLACE["properties"], '{"name":null}', required=["name"])


def test_without_strict_a_null_is_what_it_is() -> None:
    with pytest.raises(ArgumentError, match="a"):
        prepared({"a": {"type": "string"}}, '{"a":null}', strict=False)


def test_k06_a_python_function_gets_its_own_default() -> None:
    class Place(BaseModel):
        name: str
        zip: str = "none"

    @tool(strict=True)
    def go(place: Place, days: Annotated[int, Field(ge=1)] = 3, note: str | None = "x") -> str:
        """Go."""
        return f"{place} {days} {note}"

    values = go.prepare('{"place":{"name":"a","zip":null},"days":null,"note":null}').object
    assert values == {"place": {"name": "a", "zip": "none"}, "days": 3, "note": None}
