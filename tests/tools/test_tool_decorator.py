"""`@tool`: which functions become tools, and what they become."""

import functools
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import pytest

from antiphon.tools import Field, FunctionTool, Tool, ToolContext, tool

pytestmark = pytest.mark.anyio


def run(made: Tool, arguments: str, context: ToolContext[Any] | None = None) -> Any:
    return made.invoke(made.prepare(arguments), context or ToolContext())


@pytest.mark.parity("A20")
def test_a_signature_is_the_schema_and_the_docstring_the_description() -> None:
    """Handler and schema cannot drift apart when one is made from the other."""

    @tool
    def weather(city: str, days: Annotated[int, Field(ge=1, le=7)] = 3) -> str:
        """Current weather in a city."""
        return f"{city} {days}"

    assert (weather.name, weather.description) == ("weather", "Current weather in a city.")
    assert weather.parameters == {
        "additionalProperties": False,
        "properties": {
            "city": {"type": "string"},
            "days": {"default": 3, "maximum": 7, "minimum": 1, "type": "integer"},
        },
        "required": ["city"],
        "type": "object",
    }
    assert run(weather, '{"city": "Oslo"}') == "Oslo 3"


@pytest.mark.parity("A19")
def test_a_spec_is_what_a_request_says_of_the_tool_and_always_the_same_object() -> None:
    """A request is encoded again and again; nothing of a tool may change in between."""

    @tool(strict=True, instructions="Use it rarely.")
    def look() -> None:
        """Look."""

    spec = look.spec()
    assert spec is look.spec()
    assert (spec.name, spec.description, spec.strict, spec.instructions) == ("look", "Look.", True, "Use it rarely.")
    assert spec.parameters is look.parameters


def test_a_tool_without_parameters_has_an_empty_closed_object() -> None:
    """Some servers refuse a bare `{}`, and strict readers take an absent list of required members for null."""

    @tool
    def now() -> str:
        return "noon"

    assert now.parameters == {"additionalProperties": False, "properties": {}, "required": [], "type": "object"}
    assert run(now, "") == "noon"


@pytest.mark.parity("A20")
def test_options_are_kept_as_they_are_given() -> None:
    """What the definition says must be what the engine reads."""

    @tool(
        name="remove",
        description="Remove a file.",
        label="Remove",
        timeout=2.5,
        exclusive=True,
        repeatable=True,
        needs_approval=True,
        on_error="raise",
        max_turns=2,
        max_calls=5,
        kind="write",
    )
    def rm(path: str) -> None:
        """Something else."""

    assert (rm.name, rm.description, rm.label, rm.timeout) == ("remove", "Remove a file.", "Remove", 2.5)
    assert (rm.exclusive, rm.repeatable, rm.needs_approval, rm.on_error) == (True, True, True, "raise")
    assert (rm.max_turns, rm.max_calls, rm.kind) == (2, 5, "write")


async def test_a_decorated_function_can_still_be_called() -> None:
    """Its author tests it as the function that it is, without a model."""

    @tool
    def double(n: int) -> int:
        return 2 * n

    @tool
    async def later(n: int) -> int:
        return 3 * n

    assert double(2) == 4
    assert await later(n=2) == 6
    assert isinstance(double, FunctionTool)
    assert repr(double) == "FunctionTool('double')"


async def test_async_is_told_by_the_function_itself() -> None:
    """A sync body taken for an async one would block the loop, the other way round its coroutine would be lost."""

    async def wait(n: int) -> int:
        return n

    def at_once(n: int) -> int:
        return n

    class Waits:
        async def __call__(self, n: int) -> int:
            return n

        async def method(self, n: int) -> int:
            return n

        @staticmethod
        async def alone(n: int) -> int:
            return n

    for function in (wait, functools.partial(wait), Waits(), Waits().method, Waits.alone, staticmethod(wait)):
        made = tool(function, name="t")
        assert made.is_async
        assert await run(made, '{"n": 1}') == 1
    for function in (at_once, functools.partial(at_once)):
        made = tool(function, name="t")
        assert not made.is_async
        assert run(made, '{"n": 1}') == 1


async def test_a_plain_wrapper_of_an_async_function_gives_its_awaitable() -> None:
    """Nobody can see from outside that such a function hands on a coroutine: its value says so."""

    async def inner(n: int) -> int:
        return n + 1

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    made = tool(outer)
    assert not made.is_async
    assert await run(made, '{"n": 1}') == 2


def test_a_wrapper_keeps_the_signature_of_what_it_wraps() -> None:
    """Retry and logging decorators are common, and should not hide the schema."""

    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @logged
    def add(a: int, b: int) -> int:
        return a + b

    assert list(add.parameters["properties"]) == ["a", "b"]
    assert run(add, '{"a": 1, "b": 2}') == 3


def test_a_method_of_an_instance_is_a_function() -> None:
    """What a tool works on is often an object that was made before."""

    class Shop:
        def __init__(self) -> None:
            self.stock = {"tea": 3}

        def count(self, item: str) -> int:
            """How many there are."""
            return self.stock.get(item, 0)

        @classmethod
        def name(cls, short: bool) -> str:
            return "S" if short else cls.__name__

    made = tool(Shop().count)
    assert (made.name, made.description, list(made.parameters["properties"])) == (
        "count",
        "How many there are.",
        ["item"],
    )
    assert run(made, '{"item": "tea"}') == 3
    assert run(tool(Shop.name), '{"short": false}') == "Shop"


def test_an_object_with_call_is_a_function() -> None:
    """It takes the name of its class and the docstring of its call, or else of its class."""

    class Search:
        """Searches."""

        def __call__(self, query: str) -> str:
            return query.upper()

    class Find:
        """A finder."""

        def __call__(self, query: str) -> str:
            """Find it."""
            return query

    made = tool(Search())
    assert (made.name, made.description) == ("Search", "Searches.")
    assert run(made, '{"query": "a"}') == "A"
    assert tool(Find()).description == "Find it."


def test_a_partial_hides_what_it_has_settled() -> None:
    """The application's own objects are bound this way; a model must neither see nor change them."""

    def search(database: Any, query: str, limit: int = 5, *, index: object) -> str:
        """Search it."""
        return f"{database}:{query}:{limit}:{index}"

    made = tool(functools.partial(search, "db", index="main"))
    assert (made.name, made.description) == ("search", "Search it.")
    assert list(made.parameters["properties"]) == ["query", "limit"]
    assert run(made, '{"query": "x"}') == "db:x:5:main"


def test_positional_only_parameters_are_given_by_position() -> None:
    """Python would refuse them by name."""

    @tool
    def power(base: int, exponent: int = 2, /, *, plus: int = 0) -> int:
        return base**exponent + plus

    assert run(power, '{"base": 3, "plus": 1}') == 10


@pytest.mark.parametrize(
    "name",
    ["json", "copy", "schema", "model_config", "model_fields", "self", "dict", "_x", "__y", "class_", "p0", "validate"],
)
def test_any_parameter_name_is_a_name(name: str) -> None:
    """What validates must not forbid names that only it uses."""
    scope: dict[str, Any] = {}
    exec(f"def f({name}: int, other: int = 1) -> int: return {name} + other", scope)
    made = tool(scope["f"])
    assert list(made.parameters["properties"]) == [name, "other"]
    assert run(made, f'{{"{name}": 2}}') == 3


def test_an_alias_is_the_name_that_the_model_sees() -> None:
    """Words that Python keeps for itself are good names for a model."""

    @tool
    def pick(class_: Annotated[str, Field(alias="class", description="Which one.")]) -> str:
        return class_

    assert pick.parameters["properties"] == {"class": {"description": "Which one.", "type": "string"}}
    assert run(pick, '{"class": "a"}') == "a"


def test_a_field_may_stand_where_the_default_stands() -> None:
    """The older way to write it."""

    @tool
    def pick(n: int = Field(3, ge=1, description="How many.")) -> int:
        return n

    assert pick.parameters["properties"]["n"] == {
        "default": 3,
        "description": "How many.",
        "minimum": 1,
        "type": "integer",
    }
    assert run(pick, "{}") == 3


class Shelf:
    """What the application hands to its tools."""

    size = 7


def test_the_context_goes_to_the_parameter_that_asks_for_it() -> None:
    """By its type, whatever its name and place, and the model never sees it."""

    @tool
    def first(ctx: ToolContext[Shelf], a: int) -> int:
        return ctx.deps.size + a

    @tool
    def last(a: int, *, context: ToolContext) -> str:
        return f"{context.call_id}{a}"

    @tool
    def maybe(a: int, run: ToolContext[Shelf] | None = None) -> int:
        return a + (run.deps.size if run else 0)

    @tool
    def only(context: Annotated[ToolContext, "noted"], /) -> str:
        return context.call_id

    context = ToolContext(call_id="c1", deps=Shelf())
    assert run(first, '{"a": 1}', context) == 8
    assert run(last, '{"a": 1}', context) == "c11"
    assert run(maybe, '{"a": 1}', context) == 8
    assert maybe(1) == 1
    assert run(only, "", context) == "c1"
    for made in (first, last, maybe):
        assert list(made.parameters["properties"]) == ["a"]


def test_a_type_of_the_function_around_can_be_named() -> None:
    """Tools that close over a connection are made inside a function, and so are their types."""

    class Pair(NamedTuple):
        left: int
        right: int

    @tool
    def add(pair: "Pair") -> int:
        return pair.left + pair.right

    assert run(add, '{"pair": [1, 2]}') == 3
