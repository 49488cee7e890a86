"""The value of JSON text that is still on its way."""

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.types.partial_json import parse_partial

from .strategies import JSON, OBJECTS

often = settings(deadline=None, max_examples=150)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # nothing yet, or nothing at all
        ("", None),
        ("   ", None),
        ("\ufeff", None),
        ("garbage", None),
        ("}{", None),
        ("-", None),
        # objects grow key by key
        ("{", {}),
        ("{}", {}),
        ('{"', {}),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a":', {}),
        ('{"a": ', {}),
        ('{"a":1,', {"a": 1}),
        ('{"a":"x","b', {"a": "x"}),
        ('{"a":{"b":', {"a": {}}),
        ('{"a":{"b":"c"}', {"a": {"b": "c"}}),
        ('{"a":1,"a":', {"a": 1}),
        (' {"a" : [ 1 , { "b" : 2 } ] , "c" : 3 ', {"a": [1, {"b": 2}], "c": 3}),
        # lists
        ("[", []),
        ("[1", [1]),
        ("[1,", [1]),
        ("[[],[1,[", [[], [1, []]]),
        ('{"a":[1,2]', {"a": [1, 2]}),
        # strings are shown as far as they are sure
        ('"', ""),
        ('"text', "text"),
        ('{"a":"x\\', {"a": "x"}),
        ('{"a":"x\\n', {"a": "x\n"}),
        ('{"a":"x\\u', {"a": "x"}),
        ('{"a":"x\\u00', {"a": "x"}),
        ('{"a":"x\\u00e9', {"a": "xé"}),
        ('{"a":"\\\\ud83d', {"a": "\\ud83d"}),
        ('{"a":"😀', {"a": "😀"}),
        # pairs of surrogates come together or not at all
        ('"\\ud83d', ""),
        ('"x\\ud83d\\', "x"),
        ('"x\\ud83d\\ude', "x"),
        ('"x\\ud83d\\ude00', "x😀"),
        ('"x\\ud83dy', "x\ufffdy"),
        ('"x\\ud83d"', "x\ufffd"),
        ('["x\\ude00"]', ["x\ufffd"]),
        ('"x\ud83d', "x"),
        ('"x\ud83d\ude00', "x😀"),
        ('"x\ude00y', "x\ufffdy"),
        ('{"\\ud800":1}', {"\ufffd": 1}),
        # numbers, as far as they are numbers
        ("12", 12),
        ('{"a":-', {}),
        ('{"a":-0', {"a": 0}),
        ('{"a":1.', {"a": 1}),
        ('{"a":1.5', {"a": 1.5}),
        ('{"a":1e', {"a": 1}),
        ('{"a":1e+', {"a": 1}),
        ('{"a":1e2', {"a": 100.0}),
        ('{"a":01', {"a": 0}),
        ("[1e999, 2", [None, 2]),
        ("[" + "9" * 5000 + ",2", [None, 2]),
        # literals are completed
        ("t", True),
        ('{"a":tru', {"a": True}),
        ('{"a":f', {"a": False}),
        ('{"a":nul', {"a": None}),
        ("[null", [None]),
        ("[null,", [None]),
        ("[trueish", [True]),
        ("[trub", []),
        ("[nan", []),
        # what some models write
        ('{"a":NaN', {"a": None}),
        ('{"a":[Infinity,-Infinity,1', {"a": [None, None, 1]}),
        ('{"a":1,}', {"a": 1}),
        ("[1,]", [1]),
        ('\ufeff{"a":1}', {"a": 1}),
        # behind a fault nothing is read
        ("{a:1}", {}),
        ("{'a':1}", {}),
        ('{"a" 1}', {}),
        ('{"a":1 "b":2}', {"a": 1}),
        ('{"a":"line\nbreak"}', {}),
        ('{"a":"\\x","b":1}', {}),
        ('{"a\tb":1}', {}),
        ("[1}", [1]),
        ('{"a":1]', {"a": 1}),
        ("[,1]", []),
        ("{,}", {}),
        # nor behind the value
        ('{"a":1}}', {"a": 1}),
        ('{"a":1} trailing', {"a": 1}),
        ("12 13", 12),
        ("1]", 1),
        ("[1]]", [1]),
    ],
)
def test_the_value_so_far(text: str, value: Any) -> None:
    """Viewers show arguments while they stream."""
    read = parse_partial(text)
    assert read == value
    assert json.dumps(read) == json.dumps(value)


def keys_stay(part: Any, whole: Any) -> bool:
    """Every key of `part` is in `whole`, and every list is no longer."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and keys_stay(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) <= len(whole) and all(map(keys_stay, part, whole))
    return not isinstance(whole, dict | list)


@given(JSON | OBJECTS, st.booleans(), st.booleans())
@often
def test_every_prefix_has_a_value_that_the_whole_text_keeps(value: Any, ascii_only: bool, spaced: bool) -> None:
    """A key that was shown and then taken back would make a viewer flicker."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1 if spaced else None)
    assert parse_partial(text) == value
    for end in range(len(text)):
        part = parse_partial(text[:end])
        assert part is None or keys_stay(part, value)


@given(st.text(st.sampled_from('{}[]:,"\\u0d8cetrufalsn-+.19 \n\ud83d\ude00é'), max_size=30) | st.text(max_size=20))
@settings(deadline=None, max_examples=500)
def test_no_text_raises(text: str) -> None:
    """Models write anything; what is made of it can always be shown."""
    json.dumps(parse_partial(text), allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":', "[[],"])
def test_nesting_has_no_end(opening: str) -> None:
    """A model that repeats itself opens thousands of brackets; that must not stop a viewer."""
    value = parse_partial(opening * 50_000)
    for _ in range(100):
        value = value["a"] if isinstance(value, dict) else value[-1]
    assert value


def test_long_closed_nesting_is_read_too() -> None:
    """Deeper than the fast parser goes."""
    assert parse_partial("[" * 5000 + "]" * 5000) is not None


@pytest.mark.parametrize("piece", ["\\n", "é", "x", '\\"', "\\ud83d\\ude00", "\\\\"])
def test_the_work_grows_with_the_text_alone(piece: str) -> None:
    """It is done for every delta: a pattern that went back and forth would take minutes here, not milliseconds."""
    value = parse_partial('{"a":"' + piece * 200_000)
    assert len(value["a"]) == 200_000
    assert parse_partial('{"a":"' + piece * 200_000 + "\\x") == {}


def test_a_number_too_long_for_python_is_not_fatal() -> None:
    """Python refuses to read integers of more than 4300 digits."""
    assert parse_partial("9" * 5000) is None
    assert parse_partial("9" * 400) == int("9" * 400)
    assert not math.isinf(parse_partial("[1e400, 1.5")[1])
