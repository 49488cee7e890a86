"""Schemas given as they are: taken over, kept in one form, checked when the tool is made."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import UsageError
from antiphon.tools import ArgumentError, Tool, ToolContext


def raw(schema: Any) -> Tool:
    return Tool.from_schema("t", "", schema, lambda arguments: arguments)


def refused(schema: Any) -> str:
    with pytest.raises(UsageError) as caught:
        raw(schema)
    return str(caught.value)


def problems(schema: dict[str, Any], arguments: dict[str, Any]) -> list[str]:
    with pytest.raises(ArgumentError) as caught:
        raw(schema).prepare(json.dumps(arguments))
    return [str(each) for each in caught.value.problems]


def member(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


@pytest.mark.parity("A20")
def test_a_bare_schema_is_that_of_no_arguments() -> None:
    """A bare `{}` is refused by some servers."""
    assert raw({}).parameters == {"additionalProperties": False, "properties": {}, "required": [], "type": "object"}


def test_a_schema_is_taken_as_it_is() -> None:
    """Titles, unknown keywords and open objects are the business of whoever wrote them."""
    schema = {"title": "T", "type": "object", "x-mine": {"b": 1, "a": 2}, "properties": {"x": {"title": "X"}}}
    assert raw(schema).parameters == schema
    assert raw({"type": "object"}).parameters == {"type": "object"}


def test_keywords_are_in_order_and_names_as_they_were() -> None:
    """Equal schemas give equal bytes, and a model still writes its arguments in the order of the author."""
    schema = {
        "type": "object",
        "properties": {
            "z": {"type": "integer", "default": {"b": 1, "a": 2}},
            "a": {"type": "string", "enum": ["b", "a"]},
        },
        "$defs": {"z": {"type": "null", "description": "d"}, "a": {}},
    }
    text = json.dumps(raw(schema).parameters)
    assert text == json.dumps(
        {
            "$defs": {"z": {"description": "d", "type": "null"}, "a": {}},
            "properties": {
                "z": {"default": {"b": 1, "a": 2}, "type": "integer"},
                "a": {"enum": ["b", "a"], "type": "string"},
            },
            "type": "object",
        }
    )


KEYWORDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.just("object"),
        "title": st.text(max_size=3),
        "description": st.text(max_size=3),
        "minProperties": st.integers(0, 3),
        "default": st.dictionaries(st.text(max_size=2), st.integers(), max_size=3),
        "properties": st.dictionaries(
            st.text(max_size=2),
            st.fixed_dictionaries(
                {}, optional={"type": st.just("string"), "title": st.text(max_size=2), "const": st.just("")}
            ),
            max_size=3,
        ),
    },
)


@given(KEYWORDS.filter(bool), st.randoms())
def test_the_order_of_keywords_makes_no_difference(schema: dict[str, Any], random: Any) -> None:
    """Servers that list their tools anew may write them in another order."""
    keys = list(schema)
    random.shuffle(keys)
    other = {key: schema[key] for key in keys}
    assert json.dumps(raw(other).parameters) == json.dumps(raw(schema).parameters)
    assert raw(other).parameters == schema


def test_changing_what_was_given_changes_no_tool() -> None:
    """The bytes of a tool stay the same as long as it lives."""
    schema: dict[str, Any] = member({"enum": ["a"]})
    made = raw(schema)
    schema["properties"]["x"]["enum"].append("b")
    schema["properties"]["y"] = {}
    assert made.parameters == member({"enum": ["a"]})


PROGRAM = """
import enum, json
from dataclasses import dataclass
from typing import Literal
from pydantic import BaseModel
from antiphon.tools import Tool, tool

class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"

@dataclass
class Tags:
    names: frozenset[str] = frozenset({"x", "y", "z"})

class Query(BaseModel):
    words: set[str] = {"alpha", "beta", "gamma", "delta"}
    colours: set[Colour] = {Colour.RED, Colour.BLUE}
    tags: Tags = Tags()

@tool
def search(query: Query, kinds: set[str] = {"a", "b", "c", "d"}, many: dict[str, set[int]] = {"n": {1, 2, 99, 1000}},
           tags: Tags = Tags(), mode: Literal["x", "y"] = "x") -> None:
    "Search."

raw = Tool.from_schema("raw", "", {"type": "object", "properties": {"b": {}, "a": {}}})
print(json.dumps([search.parameters, raw.parameters]))
"""


@pytest.mark.parity("A19")
def test_a_schema_has_the_same_bytes_in_every_process() -> None:
    """A prefix that a provider has cached is lost with the first byte that differs, and sets have an order of the day."""
    seen = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("0", "1", "7")
    }
    assert len(seen) == 1
    assert '"default": ["a", "b", "c", "d"]' in seen.pop()


# What is wrong with a schema is told when the tool is made


def test_a_schema_that_is_none_is_refused_with_the_place() -> None:
    """At the first call it would be too late, and the model would be blamed."""
    assert refused(member({"type": "strin"})) == (
        "the schema of tool 't' is no valid JSON Schema at '/properties/x/type': "
        "what stands there is not valid under any of the schemas listed in the 'anyOf' keyword"
    )
    assert "at '/properties/x/pattern': what stands there is not a \"regex\"" in refused(member({"pattern": "("}))
    assert "at '/required': what stands there is not of type \"array\"" in refused({"type": "object", "required": None})
    assert refused(member({"$ref": "#/$defs/no"})) == (
        "the schema of tool 't' is no valid JSON Schema at '/': Pointer '/$defs/no' does not exist"
    )


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("http://127.0.0.1:9/x", "http://127.0.0.1:9/x"),
        ("file:///etc/hostname", "file:///etc/hostname"),
        ("other.json", "other.json"),
        ("https://example.invalid/schema#/$defs/x", "https://example.invalid/schema"),
    ],
)
def test_references_to_other_documents_are_never_fetched(reference: str, told: str) -> None:
    """A schema from a stranger must not make this process open connections or files."""
    assert refused(member({"$ref": reference})) == (
        f"the schema of tool 't' refers to {told!r}, and remote references are never fetched: "
        "put the definition under '$defs' and refer to '#/$defs/...'"
    )


def test_a_dialect_that_nobody_knows_is_refused() -> None:
    """Its rules cannot be kept."""
    assert refused({"$schema": "https://example.invalid/dialect"}) == (
        "the schema of tool 't' is in the dialect 'https://example.invalid/dialect', which is not known here: "
        "use 'https://json-schema.org/draft/2020-12/schema', or leave '$schema' out"
    )


@pytest.mark.parametrize(("schema", "kind"), [([], "list"), (True, "bool"), ("{}", "str"), (None, "NoneType")])
def test_a_schema_is_a_dict(schema: Any, kind: str) -> None:
    """JSON text and the boolean schemas are no description of arguments."""
    assert refused(schema) == f"the parameters of tool 't' must be a JSON Schema as a dict, not {kind}"


def test_arguments_are_an_object() -> None:
    """No provider sends anything else."""
    assert refused({"type": "array"}) == (
        "the parameters of tool 't' have the type 'array', but arguments are always an object: "
        "write {'type': 'object', 'properties': {...}}"
    )
    assert raw({"type": ["object", "null"]}).prepare("{}").object == {}


def test_older_drafts_are_known_by_their_name() -> None:
    """Most schemas in the world are of draft 7."""
    schema = member({"items": [{"type": "string"}, {"$ref": "#/definitions/n"}], "additionalItems": False})
    schema |= {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"n": {"type": "integer"}}}
    assert raw(schema).prepare('{"x": ["a", 1]}').object == {"x": ["a", 1]}
    assert problems(schema, {"x": ["a", "b"]}) == ['x[1]: is not of type "integer", got "b"']


# What a schema says of arguments


@pytest.mark.parity("A19")
@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"type": "integer"}, 1.5, ['x: is not of type "integer", got 1.5']),
        ({"type": ["integer", "null"]}, "a", ['x: is not of types "null", "integer", got "a"']),
        ({"enum": ["a", 1]}, True, ['x: is not one of "a" or 1, got true']),
        ({"const": 5}, 6, ["x: 5 was expected, got 6"]),
        ({"minimum": 3}, 1, ["x: is less than the minimum of 3, got 1"]),
        ({"multipleOf": 2}, 3, ["x: is not a multiple of 2, got 3"]),
        ({"minLength": 2}, "a", ['x: is shorter than 2 characters, got "a"']),
        ({"pattern": "^a$"}, "b", ['x: does not match "^a$", got "b"']),
        ({"format": "email"}, "b", ['x: is not a "email", got "b"']),
        ({"format": "date-time"}, "now", ['x: is not a "date-time", got "now"']),
        ({"uniqueItems": True}, [1, 1], ["x: has non-unique elements, got [1,1]"]),
        ({"minItems": 2}, [1], ["x: has less than 2 items, got [1]"]),
        ({"items": {"type": "integer"}}, [1, "a", None], ['x[1]: is not of type "integer", got "a"',
                                                          'x[2]: is not of type "integer", got null']),
        ({"contains": {"type": "integer"}}, ["a"], ['x: lacks an item that it must have, got ["a"]']),
        ({"not": {"type": "string"}}, "a", ['x: is not allowed, got "a"']),
        (False, 1, ["x: is not allowed, got 1"]),
        ({"propertyNames": {"pattern": "^a"}}, {"b": 1}, ['x: has a member "b", whose name does not match "^a"']),
        ({"required": ["a"]}, {}, ["x.a: is missing"]),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, ["x.b: is missing"]),
        ({"properties": {"name": {}}, "additionalProperties": False}, {"nam": 1},
         ["x.nam: is unknown; did you mean 'name'?"]),
        ({"properties": {"name": {}}, "unevaluatedProperties": False}, {"q": 1}, ["x.q: is unknown; known are 'name'"]),
        ({"if": {"type": "string"}, "then": {"minLength": 3}}, "a", ['x: is shorter than 3 characters, got "a"']),
    ],
)  # fmt: skip
def test_a_problem_says_where_what_and_what_came(schema: Any, value: Any, told: list[str]) -> None:
    """Everything that a model needs to write it right the next time."""
    assert problems(member(schema), {"x": value}) == told


def test_the_problems_of_each_alternative_are_told() -> None:
    """ "Not valid under any of the schemas" is no help to anybody."""
    schema = member(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"k": {"oneOf": [{"type": "integer"}, {"type": "null"}]}},
                    "required": ["id"],
                },
            ]
        }
    )
    assert problems(schema, {"x": {"k": "v"}}) == [
        'x: fits none of the 2 alternatives, got {"k":"v"}',
        'x: (alternative 1) is not of type "string", got {"k":"v"}',
        "x.id: (alternative 2) is missing",
        'x.k: (alternative 2) fits none of the 2 alternatives, got "v"',
        'x.k: (alternative 2) (alternative 1) is not of type "integer", got "v"',
        'x.k: (alternative 2) (alternative 2) is not of type "null", got "v"',
    ]
    assert problems(member({"oneOf": [{"minimum": 1}, {"maximum": 5}]}), {"x": 3}) == [
        "x: fits more than one alternative, got 3"
    ]


def test_names_behind_references_and_alternatives_are_known() -> None:
    """A hint that looks only at the surface misses most of them."""
    schema = member({"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]})
    schema["$defs"] = {"place": {"type": "object", "properties": {"street": {}}, "additionalProperties": False}}
    assert "x.stret: (alternative 1) is unknown; did you mean 'street'?" in problems(schema, {"x": {"stret": 1}})


def test_a_schema_decides_for_itself_about_more_members() -> None:
    """Open is what JSON Schema is when nothing is said."""
    made = raw(member({"type": "integer"}))
    assert made.invoke(made.prepare('{"x": 1, "more": [1]}'), ToolContext()) == {"x": 1, "more": [1]}
    assert problems(member({}) | {"additionalProperties": False}, {"y": 1}) == ["y: is unknown; known are 'x'"]
