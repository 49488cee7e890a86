"""What cannot be a tool, and the sentence that says so."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pytest

from antiphon.errors import UsageError
from antiphon.tools import Field, tool


def refused(function: Callable[..., Any], **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        tool(function, **options)
    return str(caught.value)


def no_type(city, days: int = 1) -> None:  # type: ignore[no-untyped-def] - the rule under test
    ...


def many(*names: str) -> None: ...


def any_names(**options: str) -> None: ...


def nowhere(x: "Nowhere") -> None: ...  # noqa: F821  # pyright: ignore[reportUndefinedVariable] - the rule under test


def streams(n: int) -> Iterator[int]:
    yield n


async def streams_later(n: int) -> AsyncIterator[int]:
    yield n


class Thing:
    def method(self, n: int) -> None: ...


def test_a_parameter_without_a_type_is_named() -> None:
    """The sentence says what to write."""
    assert refused(no_type) == "parameter 'city' of tool 'no_type' has no type; write one, for example `city: str`"


def test_parameters_without_a_number_of_their_own_are_refused() -> None:
    """A schema has a name for everything."""
    assert refused(many) == "tool 'many' takes *names, which has no schema; take a list instead: `names: list[str]`"
    assert refused(any_names) == (
        "tool 'any_names' takes **options, which has no schema; take a dict instead: `options: dict[str, str]`"
    )


def test_a_type_that_does_not_exist_at_run_time_is_named() -> None:
    """Imports for the type checker alone are the usual reason."""
    assert refused(nowhere) == (
        "the type of parameter 'x' of tool 'nowhere' is not known when the program runs: name 'Nowhere' is not defined; "
        "import it outside of TYPE_CHECKING, or define it before the tool"
    )


def test_a_type_that_json_cannot_carry_is_named() -> None:
    """The other parameters are innocent, and the sentence should not accuse them."""

    def call(ok: int, back: Callable[[int], int]) -> None: ...

    def keep(ok: int, thing: Thing) -> None: ...

    assert refused(call) == (
        "parameter 'back' of tool 'call' has a type that a model cannot fill: Cannot generate a JsonSchema for "
        "core_schema.CallableSchema; use types that JSON can carry, and reach other objects through 'ToolContext.deps' "
        "or a partial"
    )
    assert refused(keep).startswith("parameter 'thing' of tool 'keep' has a type that a model cannot fill: Unable")


def test_a_generator_is_refused() -> None:
    """It returns no value; what it yields is progress, and there is a way for that."""
    said = "is a generator; return a value, and report progress with ToolContext.progress"
    assert refused(streams) == f"tool 'streams' {said}"
    assert refused(streams_later) == f"tool 'streams_later' {said}"


def test_what_is_no_typed_function_is_refused() -> None:
    """Each with the reason that applies to it."""
    assert refused(lambda x: x) == "a lambda has no types and cannot be a tool; write a function with `def`"
    assert refused(lambda: 1, name="one") == "a lambda has no types and cannot be a tool; write a function with `def`"
    assert refused(Thing.method) == (
        "tool 'method' is a method without its object; make the tool of a bound one: `tool(x.method)`"
    )
    assert "is no function; give @tool a function, a method, or an object with __call__" in refused(Thing)
    assert "is no function" in refused(3)  # pyright: ignore[reportArgumentType] - the rule under test
    assert refused(len).startswith("parameter 'obj' of tool 'len' has no type")


def test_a_callable_without_a_signature_is_refused() -> None:
    """Some of those written in C have none."""
    assert refused(type) == f"{type!r} is no function; give @tool a function, a method, or an object with __call__"
    assert refused(max) == (
        "tool 'max' has no signature that Python can read; wrap it in a function with typed parameters"
    )


def test_two_parameters_with_one_name_for_the_model_are_refused() -> None:
    """One of them could never be filled."""

    def f(a: int, b: Annotated[int, Field(alias="a")]) -> None: ...

    assert refused(f) == "two parameters of tool 'f' have the same name for the model; change an alias"
