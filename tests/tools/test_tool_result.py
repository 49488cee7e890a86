"""What a tool gives back, as a model reads it."""

import datetime as dt
import decimal
import enum
import json
import pathlib
import uuid
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.tools import RESULT_LIMIT, Shaped, ToolResult, cap_text, error_text, shape
from antiphon.types.content import File, Image, Text


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    YES = "yes"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Point:
    x: int
    note: Any = None


class Span(NamedTuple):
    start: int
    end: int


class Model(pydantic.BaseModel):
    day: dt.date
    price: decimal.Decimal = decimal.Decimal("1.50")


class Struct(msgspec.Struct, tag="struct"):
    n: int
    inner: Any = None


class Odd:
    def __str__(self) -> str:
        return "odd"

    def __repr__(self) -> str:
        return "Odd()"


class Array:
    """As numpy and others do it."""

    def tolist(self) -> list[int]:
        return [1, 2]


def text_of(value: Any) -> str:
    shaped = shape(value, "t")
    assert shaped.warnings == ()
    assert not shaped.is_error
    return shaped.text


@pytest.mark.parity("A19")
@pytest.mark.parametrize("text", ["", "plain", '"quoted"', "é\n", "<a> & b"])
def test_text_stays_as_it_is(text: str) -> None:
    """What a tool writes is what the model reads."""
    assert shape(text).parts == (Text(text),)


@pytest.mark.parity("A19")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (1.5, "1.5"),
        (10**30, str(10**30)),
        ([], "[]"),
        ([1, "a", None], '[1,"a",null]'),
        ((1, 2), "[1,2]"),
        ({"a": 1, "b": {"c": "é"}}, '{"a":1,"b":{"c":"é"}}'),
        ({1: "a", None: "b", False: "c"}, '{"1":"a","null":"b","false":"c"}'),
        ({Colour.RED: 1, dt.date(2024, 1, 2): 2, (1, 2): 3}, '{"red":1,"2024-01-02":2,"[1,2]":3}'),
        ({"b", "a"}, '["a","b"]'),
        (frozenset({10, 9}), "[10,9]"),
        (deque([1, 2]), "[1,2]"),
        (range(3), "[0,1,2]"),
        ({"a": 1}.values(), "[1]"),
        ({"a": 1}.keys(), '["a"]'),
        (Colour.RED, '"red"'),
        ([Word.YES, Level.LOW], '["yes",1]'),
        (dt.date(2024, 1, 2), '"2024-01-02"'),
        (dt.datetime(2024, 1, 2, 3, 4, tzinfo=dt.UTC), '"2024-01-02T03:04:00Z"'),
        (dt.time(3, 4), '"03:04:00"'),
        (dt.timedelta(hours=1), '"PT3600S"'),
        (decimal.Decimal("1.50"), '"1.50"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (pathlib.PurePosixPath("/a/b"), '"/a/b"'),
        (b"text", '"text"'),
        (Point(1, {"y": Point(2)}), '{"x":1,"note":{"y":{"x":2,"note":null}}}'),
        (Span(1, 2), "[1,2]"),
        (Model(day=dt.date(2024, 1, 2)), '{"day":"2024-01-02","price":"1.50"}'),
        ([Model(day=dt.date(2024, 1, 2))], '[{"day":"2024-01-02","price":"1.50"}]'),
        (Struct(n=1, inner=Point(2)), '{"type":"struct","n":1,"inner":{"x":2,"note":null}}'),
        (Array(), "[1,2]"),
        ({"error": ValueError("no")}, '{"error":"ValueError: no"}'),
    ],
)
def test_other_values_become_compact_json(value: Any, text: str) -> None:
    """One reading for whatever Python code returns."""
    assert text_of(value) == text


def test_parts_stay_parts() -> None:
    """Pictures and files alone, in a list, and with words between them."""
    image, file = Image("https://example.org/a.png"), File("aGk=", "text/plain")
    assert shape(image).parts == (image,)
    assert shape([image, file]).parts == (image, file)
    assert shape((Text("a"), image)).parts == (Text("a"), image)
    assert shape(["a", image, "b"]).parts == (Text("a"), image, Text("b"))


def test_a_list_with_anything_else_is_json() -> None:
    """A list of words is data; parts among data are data too."""
    assert shape(["a", "b"]).parts == (Text('["a","b"]'),)
    assert shape([Text("a"), 1]).parts == (Text('[{"type":"text","text":"a"},1]'),)


def test_bytes_that_are_no_text_are_base64() -> None:
    """Nothing is lost, and the warning says what happened."""
    shaped = shape(b"\xff\x00", "t")
    assert shaped.text == '"/wA="'
    assert shaped.warnings == (
        ("result_base64", "in the result of 't', bytes that are not UTF-8 text were written as base64"),
    )


def test_numbers_that_are_not_finite_become_null() -> None:
    """JSON has no word for them; the application is told."""
    shaped = shape({"a": float("nan"), "b": [float("inf"), 1.5]}, "t")
    assert shaped.text == '{"a":null,"b":[null,1.5]}'
    assert shaped.warnings == (
        ("result_not_finite", "in the result of 't', a number that is not finite (NaN, Infinity) was replaced by null"),
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ({"\ud800": ["\udc00"]}, '{"\ufffd":["\ufffd"]}'),
        ([Text("\ud800"), Image("x")], "\ufffd"),
        (ValueError("\ud800"), '<tool_error name="t">\ufffd</tool_error>'),
    ],
)
def test_text_that_utf8_cannot_carry_is_mended(value: Any, text: str) -> None:
    """File names and broken decoders give such text, and one of them must not cost a run."""
    shaped = shape(value, "t")
    assert shaped.text == text
    assert [code for code, _ in shaped.warnings] == ["result_surrogates"]
    shaped.text.encode()


def test_what_has_no_json_form_is_its_own_text() -> None:
    """Unquoted when it is the whole result, and the application is told what it was."""
    shaped = shape(Odd(), "t")
    assert shaped.text == "odd"
    assert [code for code, _ in shaped.warnings] == ["result_not_json"]
    assert "Odd has no JSON form; its text was taken instead" in shaped.warnings[0][1]
    assert shape({"a": [Odd()]}).text == '{"a":["odd"]}'


def test_what_json_refuses_is_a_failure() -> None:
    """The model learns that the tool ran, and that nothing can be said of its result."""
    ring: list[Any] = []
    ring.append({"ring": ring})
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for value, why in [
        (ring, "the value refers to itself"),
        (deep, "the value is nested too deeply for JSON"),
        ((each for each in "ab"), "a generator is not a value yet; return what comes out of it"),
        ([10**5000], "Exceeds the limit"),
    ]:
        shaped = shape(value, "t")
        assert shaped.is_error
        assert shaped.text.startswith(f'<tool_error name="t">the tool ran, but what it returned cannot be told: {why}')


def test_the_same_value_twice_is_no_ring() -> None:
    """Only what contains itself has no end."""
    shared = Point(1)
    assert text_of({"a": shared, "b": [shared]}) == '{"a":{"x":1,"note":null},"b":[{"x":1,"note":null}]}'


def test_an_exception_that_is_returned_is_a_failure() -> None:
    """Whoever returns it means it."""
    shaped = shape(ValueError("a < b"), "t")
    assert (shaped.text, shaped.is_error) == ('<tool_error name="t">a &lt; b</tool_error>', True)
    assert shape(TimeoutError(), "t").text == '<tool_error name="t">TimeoutError</tool_error>'


@pytest.mark.parity("B12")
@pytest.mark.parity("C17")
def test_a_tool_result_says_more_than_content() -> None:
    """Details for the application, a failure in the tool's own words, the end of the turn."""
    assert shape(ToolResult({"n": 1}, details={"seen": {2, 1}}, end_turn=True)) == Shaped(
        parts=(Text('{"n":1}'),), details={"seen": [1, 2]}, end_turn=True
    )
    assert shape(ToolResult("a < b", is_error=True)) == Shaped(parts=(Text("a < b"),), is_error=True)
    assert shape(ToolResult([Image("x")])).parts == (Image("x"),)
    assert shape(ToolResult()).text == "null"


def test_details_are_json_of_their_own() -> None:
    """They are stored with the transcript, and what the tool keeps doing must not change them."""
    mine = {"rows": [(1, 2)], "at": dt.date(2024, 1, 2)}
    shaped = shape(ToolResult("x", details=mine))
    mine["rows"].append((3, 4))
    assert shaped.details == {"rows": [[1, 2]], "at": "2024-01-02"}
    assert shaped.warnings == ()


def test_details_that_are_no_json_are_shown_as_they_are() -> None:
    """A handle in the details is a mistake that should not cost the result."""
    shaped = shape(ToolResult("x", details={"handle": Odd()}), "t")
    assert shaped.details == {"handle": "Odd()"}
    assert [code for code, _ in shaped.warnings] == ["details_not_json"]
    ring: list[Any] = []
    ring.append(ring)
    shaped = shape(ToolResult("x", details=ring), "t")
    assert (shaped.text, shaped.details) == ("x", "[[...]]")
    assert shaped.warnings == (
        ("details_not_json", "in the details of 't', the value refers to itself; their repr was taken instead"),
    )


@given(st.text(), st.text())
def test_the_text_of_a_failure_is_escaped(name: str, message: str) -> None:
    """Text from outside must not be able to close the tag and speak as the engine."""
    text = error_text(name, message)
    assert text.startswith('<tool_error name="')
    assert text.endswith("</tool_error>")
    assert text.count("<") == text.count(">") == 2
    assert text.count('"') == 2 + message.count('"')


def test_the_text_of_a_failure() -> None:
    """The form that models see, word for word."""
    assert error_text('a"b', "x < y & z > 'w'") == (
        "<tool_error name=\"a&quot;b\">x &lt; y &amp; z &gt; 'w'</tool_error>"
    )


def test_text_within_the_limit_is_whole() -> None:
    """The limit itself is allowed."""
    assert cap_text("x" * 100, 100) == ("x" * 100, None)
    assert cap_text("x" * RESULT_LIMIT)[1] is None
    assert RESULT_LIMIT == 262_144


def test_a_cut_says_how_much_is_missing() -> None:
    """A model that does not know that text was cut takes it for all there is."""
    short, whole = cap_text("x" * 1000, 100)
    assert short == "x" * 65 + "\n[cut: 935 of 1000 bytes left out]"
    assert whole == "x" * 1000


@given(st.text(), st.integers(0, 60))
def test_a_cut_keeps_to_its_limit_and_to_whole_characters(text: str, limit: int) -> None:
    """A provider counts bytes; half a character is none."""
    short, whole = cap_text(text, limit)
    assert len(short.encode()) <= limit
    assert (whole is None) == (len(text.encode()) <= limit)
    if whole is not None:
        assert whole == text
        assert text.startswith(short.partition("\n[cut: ")[0]) or short == ""


def test_a_result_is_cut_over_all_its_text_and_the_whole_is_kept() -> None:
    """The application can still show everything."""
    shaped = shape(ToolResult([Text("a" * 50), Image("x"), Text("b" * 50)], details={"n": 1}), "t").capped(70)
    assert shaped.parts == (Text("a" * 50), Image("x"), Text(""))
    assert shaped.details == {"n": 1, "whole_text": "a" * 50 + "b" * 50}
    assert shaped.warnings == (("result_cut", "the result was cut to 70 bytes; the whole is in its details"),)
    assert shape("a" * 50).capped(40).details == {"whole_text": "a" * 50}
    assert shape(ToolResult("a" * 50, details=[1])).capped(40).details == {"details": [1], "whole_text": "a" * 50}
    uncut = shape("a" * 50)
    assert uncut.capped(50) is uncut.capped(None) is uncut


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.decimals(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.booleans(), inner, max_size=3)
        | st.builds(Point, st.integers(), inner)
        | st.builds(Struct, st.integers(), inner)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_any_value_can_be_told(value: Any) -> None:
    """Whatever comes, the transcript can be stored and sent."""
    shaped = shape(ToolResult(value, details=value), "t")
    assert not shaped.is_error
    json.dumps(shaped.details, allow_nan=False).encode()
    text = msgspec.json.encode(shaped)
    assert msgspec.json.decode(text, type=Shaped) == shaped
    if not isinstance(value, str):
        json.loads(shaped.text)
