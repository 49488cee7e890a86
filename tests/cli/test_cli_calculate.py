"""The built-in arithmetic: right, and harmless whatever a model writes."""

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.cli._calculate import work_out
from antiphon.errors import ToolError

NUMBERS = st.integers(0, 10_000).map(str) | st.decimals(0, 1000, places=3).map(str)


def answer(expression: str) -> str:
    """What the model reads: the value, or what is wrong. Nothing else may be raised."""
    try:
        return work_out(expression)
    except ToolError as error:
        return str(error)


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(" ".join)
    return pairs.map("({})".format) | inner.map("-({})".format) | inner.map("abs({})".format)


@given(st.recursive(NUMBERS, grown, max_leaves=8))
def test_it_says_what_python_says(expression: str) -> None:
    value = eval(expression)
    assert math.isclose(float(work_out(expression)), value, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1234 * 56", "69104"),
        ("1234 \u00d7 56 =", "69104"),
        ("12 x 3", "36"),
        ("0.1 + 0.2", "0.3"),
        ("10 / 4", "2.5"),
        ("10 / 5", "2"),
        ("-7 // 2", "-4"),
        ("7 % 3", "1"),
        ("-2 ** 2", "-4"),
        ("2 ** 100", "1267650600228229401496703205376"),
        ("2 ** -1", "0.5"),
        ("sqrt(16) + max(1, 2, 3)", "7"),
        ("round(2.567, 1)", "2.6"),
        ("factorial(5)", "120"),
        ("cos(pi)", "-1"),
        ("1.5e3", "1500"),
    ],
)
def test_people_write_arithmetic_in_many_ways(expression: str, value: str) -> None:
    assert work_out(expression) == value


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("2^3", "write '**' for a power"),
        ("1,234 * 5", "write 1234.5, not 1,234.5"),
        ("1 / 0", "divides by zero"),
        ("sqrt(-1)", "cannot be worked out"),
        ("(-8) ** 0.5", "no real number"),
        ("size(1)", "'size' is not known; there are pi, "),
        ("two plus two", "is no arithmetic; write it as in"),
        ("", "1 to 1000 characters"),
        ("min()", "min"),
        ("True", "no arithmetic"),
        ("0x10", "no arithmetic"),
    ],
)
def test_what_is_wrong_is_told_with_the_way_out(expression: str, says: str) -> None:
    """The model reads it, and writes a better one."""
    with pytest.raises(ToolError) as raised:
        work_out(expression)
    assert says in str(raised.value)


@pytest.mark.parametrize(
    "expression",
    [
        "9 ** 9 ** 9",
        "2 ** 100000",
        "10 ** 400 / 3",
        "1e308 * 10",
        "factorial(100000)",
        "round(1, -1000000000)",
        "*".join(["99999999999999999999"] * 45) + " ** 99",
        "(" * 499 + "1" + ")" * 499,
        "-" * 999 + "1",
        "9" * 999 + "**" + "9",
        "a" * 999 + "!",
    ],
)
def test_nothing_takes_long(expression: str) -> None:
    """It runs in the process of the loop: what cannot be interrupted must not be slow."""
    before = time.process_time()
    assert len(answer(expression)) < 4000
    assert time.process_time() - before < 0.5


@given(st.text(st.sampled_from("0123456789.eE+-*/%(), xXjJ_=^'\"[]{}:;<>!&|~@\\\n\tabs"), max_size=40) | st.text())
def test_any_text_gives_a_number_or_a_tool_error(expression: str) -> None:
    assert answer(expression)


@pytest.mark.parametrize(
    "expression", ["__import__('os')", "().__class__", "open", "lambda: 1", "[1]*10**9", "1 if 1 else 2"]
)
def test_nothing_but_arithmetic_is_done(expression: str) -> None:
    with pytest.raises(ToolError):
        work_out(expression)
