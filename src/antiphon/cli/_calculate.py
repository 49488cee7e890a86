"""Arithmetic that a model wrote, worked out without running it: numbers, operators, a few functions, all bounded."""

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from antiphon.errors import ToolError

__all__ = ["work_out"]

Number: TypeAlias = int | float

LONGEST: Final = 1000
"""Characters of an expression."""
BITS: Final = 10_000
"""Bits of a whole number, about 3,000 digits: what is longer takes time to work out, and nobody reads it."""
LARGEST_FACTORIAL: Final = 1000

EXAMPLE: Final = "write it as in '1234 * 56', '2 ** 10' or 'sqrt(2) / 3'"

# A number must not run into a letter: Python would warn about `1if`, and read `1e` or `0x10` in ways nobody means.
TOKENS: Final = re.compile(
    r"(?:\s|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])|[A-Za-z_]\w*\b|\*\*|//|[-+*/%(),])*", re.ASCII
)
# Multiplication sign, middle dot, dot operator; division sign, division slash; minus sign, en dash; no-break space.
SIGNS: Final = str.maketrans("\u00d7\u00b7\u22c5\u00f7\u2215\u2212\u2013\u00a0", "***//-- ")
TIMES: Final = re.compile(r"(?<=[\d)])\s+[xX]\s+(?=[\d(])")


def work_out(expression: str) -> str:
    """The value of an arithmetic expression, floats to 15 digits. Raises `ToolError` for what cannot be worked out."""
    text = TIMES.sub(" * ", expression.translate(SIGNS)).strip().rstrip("=?").strip()
    shown = repr(expression if len(expression) < 60 else f"{expression[:60]}…")
    if not text or len(text) > LONGEST:
        raise ToolError(f"an expression has 1 to {LONGEST} characters, not {len(text)}; {EXAMPLE}")
    if "^" in text:
        raise ToolError(f"{shown} has '^', which means different things; write '**' for a power")
    if TOKENS.fullmatch(text) is None:
        raise ToolError(f"{shown} is no arithmetic; {EXAMPLE}")
    try:
        return _shown(_value(ast.parse(text, mode="eval").body))
    except (SyntaxError, MemoryError, RecursionError):
        raise ToolError(f"{shown} is no arithmetic; {EXAMPLE}") from None
    except ZeroDivisionError:
        raise ToolError(f"{shown} divides by zero; check the divisor") from None
    except OverflowError:
        raise ToolError(f"{shown} is too large to be worked out; ask for something smaller") from None
    except (TypeError, ValueError) as error:
        raise ToolError(f"{shown} cannot be worked out: {error}") from None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return _bounded(number)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _bounded(OPERATORS[type(op)](_value(left), _value(right)))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _bounded(FUNCTIONS[name](*[_value(argument) for argument in args]))
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)):
            raise ValueError(f"{name!r} is not known; there are {', '.join([*CONSTANTS, *FUNCTIONS])}")
        case ast.Tuple():
            raise ValueError("a comma stands only between a function's arguments; write 1234.5, not 1,234.5")
        case _:
            raise ValueError(f"that is no arithmetic; {EXAMPLE}")


def _bounded(value: Any) -> Number:
    if isinstance(value, complex):
        raise ValueError("the result is no real number")  # noqa: TRY004 - of the value, not of the caller
    if isinstance(value, int) and value.bit_length() > BITS:
        raise OverflowError
    if isinstance(value, float) and not math.isfinite(value):
        raise OverflowError
    return value


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > 2 * BITS:
        raise OverflowError
    return base**exponent


def _factorial(number: Number) -> int:
    if not isinstance(number, int) or number < 0:
        raise ValueError("factorial takes a whole number from 0 up")
    if number > LARGEST_FACTORIAL:
        raise OverflowError
    return math.factorial(number)


def _round(number: Number, digits: Number = 0) -> Number:
    if not isinstance(digits, int) or abs(digits) > 300:
        raise ValueError("round takes a whole number of digits, at most 300")
    return round(number, digits) if digits else round(number)


OPERATORS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
CONSTANTS: Final[dict[str, float]] = {"pi": math.pi, "e": math.e, "tau": math.tau}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": abs, "round": _round, "min": min, "max": max, "floor": math.floor, "ceil": math.ceil,
    "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "log2": math.log2, "log10": math.log10,
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "degrees": math.degrees, "radians": math.radians, "gcd": math.gcd, "factorial": _factorial,
}  # fmt: skip


def _shown(value: Number) -> str:
    """Without the noise of binary fractions: 0.1 + 0.2 is 0.3."""
    return str(value) if isinstance(value, int) else f"{value:.15g}"
