"""One JSON Schema in, what each server takes of it out; what is lost is told."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from antiphon.providers.anthropic.encode import AnthropicEncoder
from antiphon.providers.dialect import DIALECTS
from antiphon.providers.dialects import Translated, answer_schema, tool_schema
from antiphon.providers.gemini.provider import Gemini
from antiphon.providers.openai_chat.encode import ChatEncoder
from antiphon.providers.openai_chat.profiles import PROFILES
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.providers.openai_responses.encode import ResponsesEncoder
from antiphon.tools._nulls import drop_nulls
from antiphon.types.messages import UserMessage
from antiphon.types.request import ModelRequest, ModelSettings, ToolSpec

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
PLACE: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"value": {"type": "string"}, "sons": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    "required": ["value", "sons"],
}


def told(schema: dict[str, Any], name: str, *, strict: bool | None = None) -> Translated:
    return tool_schema(schema, DIALECTS[name], strict=strict)


def members(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def with_place(**beside: Any) -> dict[str, Any]:
    return {**members(at={"$ref": "#/$defs/Place", **beside}), "$defs": {"Place": PLACE}}


class TestStrict:
    def test_k01_objects_are_closed_and_every_member_is_required(self) -> None:
        assert told(CITY, "openai", strict=True) == Translated(
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}},
                "required": ["city", "days"],
                "additionalProperties": False,
            },
            strict=True,
        )

    @pytest.mark.parametrize(
        ("member", "nullable"),
        [
            ({"type": "string"}, {"type": ["string", "null"]}),
            ({"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}),
            ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
            ({"type": "string", "enum": ["a"]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
            ({"enum": ["a", None]}, {"enum": ["a", None]}),
            ({"const": 1, "title": "One"}, {"title": "One", "anyOf": [{"const": 1}, {"type": "null"}]}),
            (
                {"anyOf": [{"type": "string"}, {"type": "integer"}], "description": "d"},
                {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], "description": "d"},
            ),
            ({"$ref": "#/$defs/Tree"}, {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]}),
        ],
    )
    def test_what_may_be_left_out_may_be_null(self, member: dict[str, Any], nullable: dict[str, Any]) -> None:
        schema = {"type": "object", "properties": {"m": member}, "$defs": {"Tree": TREE}}
        assert told(schema, "openai", strict=True).schema["properties"]["m"] == nullable

    @pytest.mark.parametrize(
        ("member", "why"),
        [
            ({"type": "object"}, "/properties/m: the object may have members of any name"),
            ({"type": "object", "additionalProperties": True, "properties": {}}, "members of any name"),
            ({"type": "object", "additionalProperties": {"type": "string"}}, "members of any name"),
            ({"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False}, "'patternProperties'"),
            ({}, "/properties/m: anything is allowed there"),
            ({"description": "whatever"}, "anything is allowed there"),
            ({"type": "array", "items": True}, "/properties/m/items: anything is allowed there"),
            ({"type": "array"}, "/properties/m/items: anything is allowed there"),
            ({"$ref": "https://x.org/s.json"}, "leads out of the schema"),
        ],
    )
    def test_k03_k04_what_is_free_is_sent_without_strict_and_that_is_told(self, member: Any, why: str) -> None:
        """Closed by force, a free-form object could hold nothing."""
        free = told(members(m=member, n={"type": "array", "items": {"type": "string"}}), "openai", strict=True)
        assert not free.strict
        assert why in free.notes[0]
        assert free.notes[0].startswith("not held to its schema: ")

    def test_k03_pointers_are_decoded(self) -> None:
        schema = {
            **members(a={"$ref": "#/$defs/a~1b"}, b={"$ref": "#/$defs/c%20d"}),
            "$defs": {"a/b": PLACE, "c d": {"type": "string"}},
        }
        inlined = told(schema, "inlined").schema["properties"]
        assert inlined == {"a": PLACE, "b": {"type": "string"}}
        kept = told(schema, "openai", strict=True)
        assert kept.strict
        assert kept.schema["properties"]["a"] == {"$ref": "#/$defs/a_b"}
        assert set(kept.schema["$defs"]) == {"a_b", "c_d"}

    def test_what_strict_does_not_know_is_said_in_the_description(self) -> None:
        """The arguments are checked against the original, so the model had better know."""
        schema = members(
            n={"type": "string", "minLength": 2, "format": "uri", "default": "x", "description": "A name."}
        )
        strict = told(schema, "openai", strict=True)
        assert strict.schema["properties"]["n"] == {
            "type": "string",
            "description": 'A name. (minLength: 2; format: "uri"; default: "x")',
        }
        assert strict.notes == ("/properties/n: not told as rules: minLength, format, default",)

    def test_members_may_be_left_out_where_the_provider_knows_that(self) -> None:
        strict = told(CITY, "anthropic", strict=True)
        assert strict.schema == {**CITY, "additionalProperties": False}

    def test_recursion_is_strict_only_where_it_is_known(self) -> None:
        schema = {**members(tree={"$ref": "#/$defs/Tree"}), "$defs": {"Tree": TREE}}
        assert told(schema, "openai", strict=True).strict
        refused = told(schema, "anthropic", strict=True)
        assert not refused.strict
        assert "contains itself" in refused.notes[0]
        assert refused.schema["$defs"]["Tree"]["properties"]["sons"]["items"] == {"$ref": "#/$defs/Tree"}

    def test_one_of_and_all_of_become_what_strict_knows(self) -> None:
        schema = members(
            a={"oneOf": [{"type": "string"}, {"type": "integer"}]},
            b={"allOf": [{"$ref": "#/$defs/Place"}, {"properties": {"zip": {"type": "string"}}}]},
        )
        strict = told({**schema, "$defs": {"Place": PLACE}}, "openai", strict=True).schema["properties"]
        assert strict["a"] == {"anyOf": [{"type": "string"}, {"type": "integer"}]}
        assert strict["b"]["properties"] == {"name": {"type": "string"}, "zip": {"type": ["string", "null"]}}

    def test_more_members_than_the_mode_takes_are_sent_without_it(self) -> None:
        schema = members(**{f"m{number}": {"type": "string"} for number in range(5_001)})
        assert not told(schema, "openai", strict=True).strict

    @pytest.mark.parametrize("strict", [None, False])
    def test_nothing_is_closed_that_nobody_wants_strict(self, *, strict: bool | None) -> None:
        assert told(CITY, "openai", strict=strict) == Translated(CITY, strict=False)


class TestReferences:
    def test_k02_nothing_stands_beside_a_reference(self) -> None:
        """`default` beside it is refused by some servers, and whatever stands there is ignored by others."""
        for name in DIALECTS:
            at = told(with_place(default={"name": "x"}, description="Where."), name).schema["properties"]["at"]
            assert "$ref" not in at
            assert at["type"] == "object"
            assert at["description"].startswith("Where.")

    def test_a_plain_reference_is_kept_or_copied_by_dialect(self) -> None:
        assert told(with_place(), "plain").schema == with_place()
        assert told(with_place(), "inlined").schema == members(at=PLACE)

    def test_definitions_that_nothing_refers_to_are_left_out(self) -> None:
        assert "$defs" not in told({**CITY, "$defs": {"Place": PLACE}}, "plain").schema

    def test_references_that_contain_themselves_are_kept_where_all_others_are_copied(self) -> None:
        schema = {**members(tree={"$ref": "#/definitions/Tree"}), "definitions": {"Tree": TREE}}
        fixed = json.loads(json.dumps(schema).replace("#/$defs/", "#/definitions/"))
        assert told(fixed, "inlined").schema == {
            **members(tree={"$ref": "#/$defs/Tree"}),
            "$defs": {"Tree": TREE},
        }

    def test_what_is_said_beside_a_reference_that_must_be_kept_is_noted(self) -> None:
        schema = {**members(tree={"$ref": "#/$defs/Tree", "default": None}), "$defs": {"Tree": TREE}}
        kept = told(schema, "plain")
        assert kept.schema["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
        assert kept.notes == ("/properties/tree: what stands beside the reference was left out: default",)

    def test_the_root_may_be_referred_to(self) -> None:
        node = members(next={"anyOf": [{"$ref": "#"}, {"type": "null"}]})
        strict = told(node, "openai", strict=True)
        assert strict.schema["properties"]["next"] == {"anyOf": [{"$ref": "#"}, {"type": "null"}]}

    def test_definitions_are_not_copied_without_end(self) -> None:
        """Each of twenty definitions refers to the next one twice: copied, that would be a million objects."""
        definitions = {
            f"d{number}": members(a={"$ref": f"#/$defs/d{number + 1}"}, b={"$ref": f"#/$defs/d{number + 1}"})
            for number in range(20)
        }
        schema = {**members(m={"$ref": "#/$defs/d0"}), "$defs": {**definitions, "d20": {"type": "string"}}}
        assert len(json.dumps(told(schema, "inlined").schema)) < 300_000


class TestTop:
    @pytest.mark.parametrize("name", ["plain", "inlined", "openai", "anthropic", "gemini"])
    def test_k05_a_bare_schema_is_an_empty_closed_object(self, name: str) -> None:
        assert told({}, name).schema == {
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": False,
        }

    @pytest.mark.parametrize("name", ["openai", "anthropic"])
    @pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
    def test_alternatives_at_the_top_are_one_object_where_they_are_refused(self, name: str, keyword: str) -> None:
        one = members(kind={"const": "a"}, x={"type": "string"})
        other = members(kind={"const": "b"}, y={"type": "string"})
        top = told({keyword: [one, other]}, name)
        assert top.schema == {
            "type": "object",
            "properties": {
                "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
                "x": {"type": "string"},
                "y": {"type": "string"},
            },
            "required": ["kind"],
        }
        assert "alternatives at the top" in top.notes[0]
        assert not told({keyword: [one, other]}, name, strict=True).strict

    def test_a_reference_at_the_top_is_followed(self) -> None:
        schema = {"$ref": "#/$defs/Place", "$defs": {"Place": PLACE}}
        assert told(schema, "openai").schema == PLACE
        assert told(schema, "gemini").schema == schema

    def test_an_object_without_members_has_a_list_of_them(self) -> None:
        assert told({"type": "object"}, "openai").schema == {"type": "object", "properties": {}}
        assert told({"type": "object"}, "plain").schema == {"type": "object"}

    def test_k01_a_closed_object_says_what_is_required(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
        for name in DIALECTS:
            assert told(schema, name).schema["required"] == []


class TestGemini:
    def test_only_the_listed_keywords_are_sent(self) -> None:
        schema = members(
            a={"const": "x"},
            b={"type": "string", "pattern": "^a", "minLength": 1},
            c={"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
        )
        gemini = told({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, "gemini")
        assert gemini.schema["properties"] == {
            "a": {"enum": ["x"]},
            "b": {"type": "string", "description": '(pattern: "^a"; minLength: 1)'},
            "c": {"type": "integer", "minimum": 1, "description": "(exclusiveMaximum: 9)"},
        }
        assert "$schema" not in gemini.schema
        assert "description" not in gemini.schema


class TestAnswers:
    def test_an_answer_is_strict_where_it_can_be(self) -> None:
        assert answer_schema(CITY, DIALECTS["openai"]).strict
        assert answer_schema(CITY, DIALECTS["anthropic"]).strict
        assert answer_schema(CITY, DIALECTS["plain"]) == Translated(CITY, strict=False)

    def test_an_answer_that_is_no_object_is_not_strict(self) -> None:
        listed = answer_schema({"type": "array", "items": {"type": "string"}}, DIALECTS["openai"])
        assert not listed.strict
        assert "an answer must be an object" in listed.notes[0]


def test_the_original_is_never_changed() -> None:
    schema = {**with_place(default=None), "allOf": [PLACE]}
    before = json.dumps(schema)
    for name in DIALECTS:
        told(schema, name, strict=True)
    assert json.dumps(schema) == before


@pytest.mark.parametrize("name", DIALECTS)
def test_a_schema_that_is_nested_without_end_is_left_as_it_is(name: str) -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        schema = {"type": "array", "items": schema}
    assert "nested too deeply" in told(members(m=schema), name, strict=True).notes[-1]


# --- over all schemas

LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0, "maximum": 5},
        {"type": "boolean"},
        {"type": ["string", "null"]},
        {"enum": ["a", "b"]},
        {"const": 3},
        {"type": "string", "maxLength": 3, "default": "x"},
        {"$ref": "#/$defs/Leaf"},
        {"$ref": "#/$defs/Place", "description": "d"},
        {"type": "object"},
        {},
    ]
)
NAMES = st.sampled_from("abc")


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    @st.composite
    def made(draw: st.DrawFn) -> dict[str, Any]:
        properties = draw(st.dictionaries(NAMES, inner, max_size=3))
        schema: dict[str, Any] = {"type": "object", "properties": properties}
        schema["required"] = [name for name in properties if draw(st.booleans())]
        if draw(st.booleans()):
            schema["additionalProperties"] = False
        return schema

    return made()


SCHEMAS = objects(
    st.recursive(
        LEAVES,
        lambda inner: (
            objects(inner)
            | st.builds(lambda each: {"type": "array", "items": each}, inner)
            | st.builds(lambda each: {"anyOf": each}, st.lists(inner, min_size=1, max_size=2))
            | st.builds(lambda each: {"allOf": each}, st.lists(objects(inner), min_size=1, max_size=2))
        ),
        max_leaves=6,
    )
)
DEFINITIONS = {"Leaf": {"type": "string", "minLength": 1}, "Place": PLACE}


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, st.sampled_from(sorted(DIALECTS)), st.booleans())
def test_the_same_schema_is_always_the_same_bytes_and_a_valid_schema(
    schema: dict[str, Any], name: str, strict: bool
) -> None:
    whole = {**schema, "$defs": DEFINITIONS}
    one = told(whole, name, strict=strict)
    assert json.dumps(one.schema) == json.dumps(told(json.loads(json.dumps(whole)), name, strict=strict).schema)
    jsonschema_rs.validator_for(one.schema)


def every_object(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for each in node for found in every_object(each)]
    if not isinstance(node, dict):
        return []
    inner = [found for each in node.values() for found in every_object(each)]
    return [node, *inner] if isinstance(node.get("properties"), dict) else inner


@settings(max_examples=300, deadline=None)
@given(SCHEMAS)
def test_k01_a_strict_schema_is_closed_everywhere(schema: dict[str, Any]) -> None:
    one = told({**schema, "$defs": DEFINITIONS}, "openai", strict=True)
    if one.strict:
        for node in every_object(one.schema):
            assert node["additionalProperties"] is False
            assert sorted(node["required"]) == sorted(node["properties"])


def instances(node: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a model held to a strict schema may write."""
    if "$ref" in node:
        return instances(root["$defs"][node["$ref"].rpartition("/")[2]], root)
    if "anyOf" in node:
        return st.one_of([instances(each, root) for each in node["anyOf"]])
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if "const" in node:
        return st.just(node["const"])
    kinds = node.get("type", "null")
    return st.one_of([of_kind(kind, node, root) for kind in (kinds if isinstance(kinds, list) else [kinds])])


def of_kind(kind: str, node: dict[str, Any], root: dict[str, Any]) -> st.SearchStrategy[Any]:
    match kind:
        case "string":
            return st.sampled_from(["a", "bb"])
        case "integer":
            return st.integers(node.get("minimum", 0), node.get("maximum", 9))
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(instances(node["items"], root), max_size=2)
        case "object":
            return st.fixed_dictionaries({name: instances(each, root) for name, each in node["properties"].items()})
        case _:
            return st.none()


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, st.data())
def test_k06_what_a_strict_mode_allows_the_original_allows_once_the_nulls_are_taken_back(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    whole = {**schema, "$defs": DEFINITIONS}
    one = told(whole, "openai", strict=True)
    if not one.strict:
        return
    value = data.draw(instances(one.schema, one.schema))
    assume(jsonschema_rs.is_valid(one.schema, value))  # parts that contradict each other allow nothing
    drop_nulls(whole, value)
    assert jsonschema_rs.is_valid(whole, value), (whole, value)


# --- what is told of it

FREE = {"type": "object", "properties": {"query": {"type": "object"}}}


@pytest.mark.parametrize(
    "encoder",
    [
        ChatEncoder("m", PROFILES["openai"]),
        ResponsesEncoder("m"),
        AnthropicEncoder("claude-sonnet-4-5"),
    ],
)
def test_k03_a_tool_that_is_not_held_to_its_schema_is_told_of_once(encoder: Any) -> None:
    tools = (ToolSpec(name="find", parameters=FREE, strict=True), ToolSpec(name="other", parameters=FREE))
    request = ModelRequest(messages=[UserMessage.of("hi")], tools=tools)
    body = json.loads(encoder.encode(request))
    named = {tool.get("name") or tool["function"]["name"]: tool.get("function", tool) for tool in body["tools"]}
    assert named["find"]["strict"] is False
    [remark] = encoder.remarks(request)
    assert (remark.code, "'find'" in remark.text) == ("schema", True)
    assert "members of any name" in remark.text
    assert encoder.remarks(request) == []


def test_what_an_answers_schema_loses_is_told_too() -> None:
    settings = ModelSettings(response_schema=members(a={"type": "string", "maxLength": 3}))
    request = ModelRequest(messages=[UserMessage.of("hi")], settings=settings)
    [remark] = ResponsesEncoder("m").remarks(request)
    assert remark.text == "the schema of the answer: /properties/a: not told as rules: maxLength"


def test_a_model_reports_what_its_server_cannot_be_told() -> None:
    tool = ToolSpec(name="find", parameters=members(a={"type": "string", "pattern": "^a"}))
    assert Gemini("gemini-3-pro").schema_notes(tool) == {"find": ("/properties/a: not told as rules: pattern",)}
    assert OpenAIChat("gpt-5").schema_notes(tool) == {}
