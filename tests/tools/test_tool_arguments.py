"""The way of a call's arguments: parsed, filled, checked; and what a model reads when they cannot be used."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import ToolError
from antiphon.tools import ArgumentError, Prepared, Tool, ToolContext, tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "f": {"type": "number"},
        "opts": {
            "type": "object",
            "properties": {"verbose": {"type": "boolean", "default": False}},
            "additionalProperties": False,
        },
    },
}


def raw(schema: dict[str, Any] | None = None) -> Tool:
    return Tool.from_schema("raw", "", schema or SCHEMA, lambda arguments: arguments)


@tool
def typed(n: int = 0, f: float = 0.0) -> tuple[int, float]:
    return n, f


def refusal(made: Tool, text: str) -> str:
    with pytest.raises(ArgumentError) as caught:
        made.prepare(text)
    return str(caught.value)


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_blank_text_is_an_empty_object(text: str) -> None:
    """Some models write nothing for a tool without arguments."""
    assert raw().prepare(text).text == "{}"
    assert typed.prepare(text).object == {"n": 0, "f": 0}


@pytest.mark.parametrize("made", [raw(), typed])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("not json", "JSON is malformed: invalid character (byte 4)"),
        ('{"n": 1', "Input data was truncated"),
        ('{"n": 1} and', "JSON is malformed: trailing characters (byte 10)"),
        ("{'n': 1}", "JSON is malformed: object keys must be strings (byte 1)"),
        ('{"f": NaN}', "JSON is malformed: invalid character (byte 6)"),
        ('{"f": -Infinity}', "JSON is malformed: invalid character (byte 7)"),
    ],
)
def test_text_that_is_no_json_is_quoted(made: Tool, text: str, why: str) -> None:
    """The model sees its own text again, and what is asked of it."""
    assert refusal(made, text) == (
        f"the arguments are not valid JSON: {why}\ngot: {json.dumps(text)}\ncall again with one complete JSON object"
    )


@pytest.mark.parametrize("made", [raw(), typed])
def test_a_number_that_is_not_finite_is_refused(made: Tool) -> None:
    """Python reads `1e400` as infinity, which no JSON can say again."""
    assert "the number 1e400 is too large" in refusal(made, '{"f": 1e400}')


@pytest.mark.parametrize("made", [raw(), typed])
@pytest.mark.parametrize("text", ["[]", "[1]", "null", "5", '"x"', "true"])
def test_json_that_is_no_object_is_quoted(made: Tool, text: str) -> None:
    """Arguments have names; a list has none."""
    assert refusal(made, f" {text} ") == (
        f"the arguments must be one JSON object\ngot: {text}\ncall again with an object that has the arguments by name"
    )


def test_what_is_quoted_has_bounds() -> None:
    """A reply full of garbage must not come back in full."""
    text = refusal(raw(), "x" * 10_000)
    assert len(text) < 2_200
    assert "... (10002 characters)" in text
    value = refusal(raw(), json.dumps({"n": "x" * 10_000}))
    assert value.count("x") < 2_300


@pytest.mark.parametrize("text", ['{"n":' + "[" * depth + "]" * depth + "}" for depth in (300, 700, 3000)])
@pytest.mark.parametrize("made", [raw(), typed])
def test_nesting_without_end_is_refused(made: Tool, text: str) -> None:
    """Whatever reads it first, nobody may fall over it."""
    assert refusal(made, text) == "the arguments are nested too deeply; call again with flatter ones"


@pytest.mark.parametrize("depth", [150, 300, 600])
@pytest.mark.parametrize("made", [raw(), raw({"properties": {"a": {"$ref": "#"}, "b": {"default": 1}}}), typed])
def test_deep_nesting_is_taken_or_refused_but_never_breaks(made: Tool, depth: int) -> None:
    """Each of the readers has its own bound."""
    text = '{"a":' * depth + "1" + "}" * depth
    outcome: object
    try:
        outcome = made.prepare(text)
    except ArgumentError as error:
        outcome = error
    assert isinstance(outcome, Prepared | ArgumentError)


@pytest.mark.parametrize("text", ['{"s": "\\ud83d"}', '{"s": "\ud83d"}', '{"\\ud83d": 1}'])
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    """It is JSON by grammar, but no text: it could be neither stored nor sent."""
    assert refusal(raw(), text).startswith("the arguments are not valid JSON: ")


@pytest.mark.parity("A19")
@pytest.mark.parametrize("made", [raw(), typed])
@pytest.mark.parametrize("number", ["3", "3.0", "3e0", "30e-1", "0.3e1"])
def test_a_whole_number_is_an_integer_however_it_is_written(made: Tool, number: str) -> None:
    """JSON knows one kind of number, and some models always write the fraction."""
    prepared = made.prepare(f'{{"n": {number}, "f": {number}}}')
    assert prepared.text == '{"n":3,"f":3}'
    assert type(prepared.object["n"]) is int


def test_a_number_too_large_for_an_integer_form_keeps_its_own() -> None:
    """`1e300` written out would be three hundred digits."""
    assert raw().prepare('{"f": 1e300}').text == '{"f":1e300}'
    assert raw().prepare('{"f": 123456789012345678901234567890}').text == '{"f":123456789012345678901234567890}'
    assert typed.prepare('{"f": 1e300}').values["f"] == 1e300


@pytest.mark.parametrize("made", [raw(), typed])
@pytest.mark.parametrize("value", ["true", '"1"', "1.5", "null", "[]", "{}"])
def test_nothing_becomes_an_integer_that_is_none(made: Tool, value: str) -> None:
    """Least of all a boolean, which Python would take for one."""
    assert refusal(made, f'{{"n": {value}}}').startswith("the arguments do not fit, 1 problem:\n- n: ")


def test_a_refusal_tells_all_problems_and_what_came() -> None:
    """A model that is told one problem at a time needs one turn for each."""
    assert refusal(raw(), '{"n": "1", "f": true, "opts": {"verbos": 1}}') == (
        "the arguments do not fit, 3 problems:\n"
        '- n: is not of type "integer", got "1"\n'
        '- f: is not of type "number", got true\n'
        "- opts.verbos: is unknown; did you mean 'verbose'?\n"
        'got: {"n": "1", "f": true, "opts": {"verbos": 1}}\n'
        "correct them and call again"
    )


def test_a_refusal_of_a_function_reads_the_same() -> None:
    """One wording, whoever made the tool."""

    @tool
    def f(city: str, days: int = 3) -> None: ...

    assert refusal(f, '{"days": "x", "town": "Oslo"}') == (
        "the arguments do not fit, 3 problems:\n"
        "- city: is missing\n"
        '- days: should be a valid integer, got "x"\n'
        "- town: is unknown; known are 'city', 'days'\n"
        'got: {"days": "x", "town": "Oslo"}\n'
        "correct them and call again"
    )


def test_arguments_for_a_tool_that_takes_none_are_refused() -> None:
    """And the sentence does not list what there is not."""

    @tool
    def now() -> None: ...

    assert "- when: is unknown; there are no arguments here\n" in refusal(now, '{"when": 1}')
    assert "- when: is unknown; there are no arguments here\n" in refusal(Tool.from_schema("t", "", {}), '{"when": 1}')


def test_very_many_problems_are_counted() -> None:
    """A list of ten thousand wrong items is one mistake."""

    @tool
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    text = refusal(total, json.dumps({"numbers": ["x"] * 1000}))
    assert text.startswith("the arguments do not fit, 1000 problems:\n")
    assert text.count("\n- ") == 101
    assert "\n- and 900 more\n" in text


def test_a_refusal_is_an_error_for_the_model() -> None:
    """The engine treats it like any sentence that a tool has for the model."""
    with pytest.raises(ToolError) as caught:
        raw().prepare('{"n": "x"}')
    problem = caught.value.problems[0]  # type: ignore[attr-defined] - an ArgumentError
    assert (problem.path, problem.text) == (("n",), 'is not of type "integer", got "x"')


def test_the_canonical_object_and_its_text_agree() -> None:
    """Hooks see the object, storage the text."""
    prepared = raw().prepare('{ "n" : 1.0, "é": "\\u00e9", "opts": {} }')
    assert prepared.text == '{"n":1,"é":"é","opts":{"verbose":false}}'
    assert prepared.object == json.loads(prepared.text)


def test_the_body_has_a_dict_of_its_own() -> None:
    """What it does to its arguments must not change what was recorded."""

    def spoil(arguments: dict[str, Any]) -> None:
        arguments["opts"]["verbose"] = "spoilt"

    made = Tool.from_schema("t", "", SCHEMA, spoil)
    prepared = made.prepare('{"opts": {}}')
    made.invoke(prepared, ToolContext())
    assert prepared.object == {"opts": {"verbose": False}}


@pytest.mark.parity("A9")
@pytest.mark.parity("A11")
def test_arguments_from_a_hook_are_filled_and_checked_like_any_other() -> None:
    """A hook that could bring in what the schema forbids would be a hole in it."""
    made = raw()
    mine: dict[str, Any] = {"n": 2.0, "opts": {}}
    prepared = made.prepare_object(mine)
    assert prepared.text == '{"n":2,"opts":{"verbose":false}}'
    assert mine == {"n": 2.0, "opts": {}}
    with pytest.raises(ArgumentError, match=r'n: is not of type "integer", got "x"'):
        made.prepare_object({"n": "x"})


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", object(), (each for each in "ab")])
def test_arguments_from_a_hook_must_be_json(value: Any) -> None:
    """They are stored, shown to people and sent."""
    with pytest.raises(ArgumentError, match=r"^the arguments given in the model's place are no JSON: "):
        raw().prepare_object({"x": value})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=4))
def test_preparing_twice_changes_nothing_more(arguments: dict[str, Any]) -> None:
    """A call that is resumed is prepared again from its canonical text."""
    made = raw({"type": "object"})
    once = made.prepare(json.dumps(arguments))
    again = made.prepare(once.text)
    assert again.text == once.text
    assert again.object == once.object == arguments


@given(st.text())
def test_any_text_is_prepared_or_refused(text: str) -> None:
    """There is no third way out."""
    said = ""
    given: Any = {}
    try:
        given = raw({"type": "object"}).prepare(text).object
    except ArgumentError as error:
        said = str(error)
    assert isinstance(given, dict)
    assert said == "" or "call again" in said
