"""What the small model's prompts and grammars are made of: words, shapes of tools, copies of the question, choices."""

import json
import re
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.providers.llama_cpp._asker import Asker, Prompt, Slot
from antiphon.providers.llama_cpp._choice import MOST_TOOLS, Chooser, nearest, words_for
from antiphon.providers.llama_cpp._grammar import any_json, literal, one_of, spans
from antiphon.providers.llama_cpp._shape import bare_schema, humanized, shape_of
from antiphon.providers.llama_cpp._words import number_of, quoted, stems, words_of
from antiphon.types.request import ToolSpec

from .llama_stand_in import LAMP, PLAN, READ, SEND, TEXT, WHOLE, Completions, allows, tool

pytestmark = pytest.mark.anyio


# Words


def test_words_lose_the_punctuation_of_sentences_and_keep_their_own() -> None:
    text = 'Is "src/main.py" (or 2.5), e.g. a-b, here?'
    assert [word.text for word in words_of(text)] == ["Is", "src/main.py", "(or", "2.5)", "e.g", "a-b", "here"]


@given(st.text(max_size=60))
def test_a_word_is_a_slice_of_its_text(text: str) -> None:
    """Arguments are cut out of the question by these positions."""
    for word in words_of(text):
        assert text[word.start : word.end] == word.text
        assert word.text


@pytest.mark.parametrize(
    ("word", "value"),
    [("12", 12), ("-3", -3), ("007", 7), ("2.50", 2.5), ("four", 4), ("one", None), ("v2", None), ("1,000", None)],
)
def test_numbers(word: str, value: float | None) -> None:
    assert number_of(word) == value


@pytest.mark.parametrize(
    ("word", "is_path", "is_address"),
    [
        ("src/main.py", True, False),
        ("notes.txt", True, False),
        ("Europe/Berlin", True, False),
        ("2.5", False, False),
        ("https://example.org/a", False, True),
        ("www.example.org", False, True),
        ("hello", False, False),
    ],
)
def test_paths_and_addresses_are_known_by_their_look(word: str, is_path: bool, is_address: bool) -> None:
    (found,) = words_of(word)
    assert (found.is_path, found.is_address) == (is_path, is_address)


def test_stems_join_forms_and_take_names_apart() -> None:
    assert stems("list_files") & stems("a file")
    assert stems("translateText") >= stems("translation")
    assert stems("the directory") == stems("folders")
    assert stems("what is the") == set()


def test_quotations() -> None:
    assert quoted('find "a b" and `c` and “d”') == ["a b", "c", "d"]


# Shapes


def test_references_wrappers_and_null_are_taken_off() -> None:
    """Schemas of pydantic say `X | None` as `anyOf`, and enums as references."""
    definitions = {"Day": {"enum": ["monday"], "type": "string"}, "Ring": {"$ref": "#/$defs/Ring"}}
    assert bare_schema({"anyOf": [{"$ref": "#/$defs/Day"}, {"type": "null"}]}, definitions) == (
        definitions["Day"],
        True,
    )
    assert bare_schema({"type": ["string", "null"]}, {}) == ({"type": "string"}, True)
    assert bare_schema({"$ref": "#/$defs/Ring"}, definitions)[0] == {}
    assert bare_schema({"$ref": "#/$defs/Gone"}, definitions)[0] == {}
    assert bare_schema(True, {}) == ({}, False)


def test_a_required_parameter_that_may_be_null_is_optional() -> None:
    shape = shape_of(tool("t", "", ("a",), a={"anyOf": [TEXT, {"type": "null"}]}))
    assert [(each.kind, each.required) for each in shape.parameters] == [("text", False)]


def test_the_sentence_is_the_first_or_the_name() -> None:
    assert shape_of(tool("t", "Add 2.5 to it. Then stop.\n\nArgs: none")).sentence == "Add 2.5 to it"
    assert shape_of(tool("getWeatherNow")).sentence == "get weather now"
    assert humanized("get_stock-price") == "get stock price"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["type", "properties", "required", "enum", "anyOf", "$ref", "items", "a"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_schema_is_too_odd(value: Any) -> None:
    """Tools come from anywhere; a strange schema makes a worse call, not an error."""
    schema = value if isinstance(value, dict) else {"properties": {"a": value}}
    shape = shape_of(ToolSpec(name="t", parameters=schema))
    assert shape.signature.startswith("t(")


# Grammars


@given(st.text(max_size=20))
def test_a_literal_allows_its_text(text: str) -> None:
    """Whatever a user types must not break out of its terminal."""
    terminal = literal(text)
    assert "\n" not in terminal
    body = terminal[1:-1]
    unescaped = re.sub(r"\\(.)", lambda match: {"n": "\n", "r": "\r", "t": "\t"}.get(match[1], match[1]), body)
    assert unescaped == text
    assert re.fullmatch(r'(?:\\.|[^"\\])*', body, re.DOTALL)


def test_a_span_is_copied_from_the_text_with_what_is_between() -> None:
    text = "Find the old man, and the sea in books"
    words = words_of(text)
    grammar = spans(text, words, range(len(words)), range(len(words)))
    assert allows(grammar, '"old man"')
    assert allows(grammar, '"old man, and the sea"')
    assert not allows(grammar, '"the old man"')  # begins with a word that only links
    assert not allows(grammar, '"sea in"')  # ends with one
    assert not allows(grammar, '"old sea"')  # is no run of the text
    assert not allows(grammar, '"young man"')  # is made up


def test_a_span_does_not_go_over_the_end_of_a_clause() -> None:
    text = "Tell Ben: come home"
    words = words_of(text)
    grammar = spans(text, words, range(len(words)), range(len(words)))
    assert allows(grammar, '"come home"')
    assert not allows(grammar, '"Ben: come home"')


def test_a_span_is_made_of_free_words_alone() -> None:
    text = "fly from Rome to Oslo"
    words = words_of(text)
    assert not allows(spans(text, words, [1, 2, 3], [1, 2, 3]), '"Oslo"')
    assert spans(text, words, [1, 3], [1, 3]) is None


def test_quotes_and_backslashes_in_a_text_stay_json() -> None:
    text = r'look for C:\new "x'
    words = words_of(text)
    grammar = spans(text, words, range(len(words)), range(len(words)))
    assert allows(grammar, json.dumps(r"C:\new"))


def test_choices_are_json() -> None:
    grammar = one_of(["a b", 3, True])
    assert [allows(grammar, said) for said in ('"a b"', "3", "true", "a b")] == [True, True, True, False]


def test_nested_values_have_the_schemas_shape_and_the_texts_words() -> None:
    schema = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": TEXT, "size": WHOLE, "kind": {"enum": ["x", "y"]}, "more": TEXT},
            "required": ["name", "size", "kind"],
        },
    }
    text = "tables 12 and chairs 4"
    grammar = any_json(schema, {}, text, words_of(text))
    assert allows(grammar, '[{"name": "tables", "size": 12, "kind": "x"}, {"name": "chairs", "size": 4, "kind": "y"}]')
    assert not allows(grammar, '[{"name": "beds", "size": 12, "kind": "x"}]')
    assert not allows(grammar, '[{"name": "tables", "size": 13, "kind": "x"}]')


def test_a_schema_that_contains_itself_ends() -> None:
    node = {"type": "object", "properties": {"child": {"$ref": "#/$defs/Node"}}, "required": ["child"]}
    assert len(any_json(node, {"Node": node}, "a", words_of("a"))) < 1000


# Choices


def weights(question: str, *tools: ToolSpec) -> dict[str, float]:
    return words_for([shape_of(each) for each in tools], question)


def test_words_of_the_question_speak_for_the_tool_that_has_them() -> None:
    found = weights("switch on the lamp", SEND, LAMP)
    assert found["set_lamp"] > found["send"]


def test_a_tool_that_lacks_what_it_needs_is_held_back() -> None:
    dice = tool("dice", "Roll.", ("sides",), sides=WHOLE)
    assert weights("roll it", dice)["dice"] < weights("roll it with 6", dice)["dice"]
    assert weights("a party", PLAN)["plan"] < weights("a party on friday", PLAN)["plan"]
    assert weights("read it", READ)["read"] < weights("read a.txt", READ)["read"]


async def test_the_preference_without_content_is_taken_off() -> None:
    """A base model prefers some names after any text at all."""

    class Biased(Completions):
        async def completions(
            self, body: dict[str, Any], *, keep: str | None = None
        ) -> AsyncGenerator[dict[str, Any], None]:
            asked = "ping" in body["prompt"].rsplit("User:", 1)[1]
            self.likely = {" alpha": -0.5, " beta": -0.9 if asked else -5.0, " chat": -3.0, " z": -9.0}
            async for chunk in super().completions(body, keep=keep):
                yield chunk

    shapes = [shape_of(tool("alpha", "Do a thing.")), shape_of(tool("beta", "Do another."))]
    chosen = await Chooser().choose(Asker(Biased()), shapes, "ping", must=False)
    assert chosen is shapes[1]


async def test_the_calibration_is_made_once_for_a_set_of_tools() -> None:
    model, chooser = Completions(likely={" a": -1.0, " b": -2.0}), Chooser()
    shapes = [shape_of(tool("a")), shape_of(tool("b"))]
    await chooser.choose(Asker(model), shapes, "one", must=True)
    first = len(model.bodies)
    await chooser.choose(Asker(model), shapes, "two", must=True)
    assert (first, len(model.bodies) - first) == (5, 1)


async def test_names_that_begin_alike_are_told_apart_where_they_part() -> None:
    model = Completions(likely={"user": -0.1, "order": -3.0, " get": -0.2, " zip": -4.0})
    found = await Asker(model).names(Prompt(Slot.CHOICE, "", "Call:"), ["get_user", "get_order", "zip"])
    assert max(found, key=found.__getitem__) == "get_user"
    assert [body["prompt"] for body in model.bodies] == ["Call:", "Call: get_"]


def test_of_many_tools_the_nearest_are_asked_about() -> None:
    shapes = [shape_of(tool(f"tool{i}", f"Handle number{i}.")) for i in range(60)] + [shape_of(LAMP)]
    chosen = nearest(shapes, "switch the lamp on")
    assert len(chosen) == MOST_TOOLS
    assert "set_lamp" in [shape.name for shape in chosen]


def test_a_shape_shows_how_it_is_called() -> None:
    shape = shape_of(READ)
    assert shape.signature == "read(path, start, end)"
    assert [each.name for each in shape.sorted()] == ["path", "start", "end"]
