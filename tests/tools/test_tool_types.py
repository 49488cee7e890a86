"""Every type that a parameter may have: what is taken, what is refused, and that nothing is coerced."""

import datetime as dt
import enum
import json
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, List, Literal, NamedTuple, NotRequired, Optional, TypedDict  # noqa: UP035 - the older spelling is out there
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr

from antiphon.errors import FatalToolError
from antiphon.tools import ArgumentError, Field, ToolContext, tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Bag:
    words: frozenset[str] = frozenset()


class Place(TypedDict):
    name: str
    zip: NotRequired[int]


class Span(NamedTuple):
    start: int
    end: int = 9


class Step(TypedDict):
    at: Place
    then: "NotRequired[list[Step]]"


class Order(BaseModel):
    item: str
    count: Annotated[int, Field(ge=1)] = 1
    to: Point | None = None


class Tree(BaseModel):
    value: int
    leaves: "list[Tree]" = []


def taken(kind: Any, value: Any) -> Any:
    """What a parameter of type `kind` is given for a JSON value."""

    def f(x: Any) -> Any:
        return x

    f.__annotations__["x"] = kind
    made = tool(f)
    return made.invoke(made.prepare(json.dumps({"x": value})), ToolContext())


def refusal(kind: Any, value: Any) -> list[str]:
    with pytest.raises(ArgumentError) as caught:
        taken(kind, value)
    return [str(problem) for problem in caught.value.problems]


GOOD: list[tuple[Any, Any, Any]] = [
    (int, 3, 3),
    (int, 3.0, 3),
    (int, 10**30, 10**30),
    (float, 1, 1.0),
    (float, 1.5, 1.5),
    (bool, True, True),
    (str, "a", "a"),
    (None, None, None),
    (Any, {"a": [1, None]}, {"a": [1, None]}),
    (int | None, None, None),
    (int | str, "1", "1"),
    (int | str, 1, 1),
    (Literal["a", "b"], "b", "b"),
    (Literal[1, 2], 2.0, 2),
    (Literal[True], True, True),
    (bool | Literal[1, "a"], True, True),
    (Literal["a"] | Level, 1, Level.LOW),
    (tuple[Literal[1], dict[str, Any]], [1, {"a": True}], (1, {"a": True})),
    (Colour, "red", Colour.RED),
    (Level, 2, Level.HIGH),
    (dt.date, "2024-02-29", dt.date(2024, 2, 29)),
    (dt.datetime, "2024-02-29T12:30:00", dt.datetime(2024, 2, 29, 12, 30)),  # noqa: DTZ001 - what was said has no zone
    (dt.datetime, "2024-02-29T12:30:00Z", dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)),
    (dt.time, "12:30:00", dt.time(12, 30)),
    (dt.timedelta, "PT1H", dt.timedelta(hours=1)),
    (Decimal, "1.50", Decimal("1.50")),
    (Decimal, 0.1, Decimal("0.1")),
    (Decimal, 2, Decimal(2)),
    (UUID, "12345678-1234-5678-1234-567812345678", UUID(int=0x12345678123456781234567812345678)),
    (Path, "/a/b", Path("/a/b")),
    (bytes, "é", "é".encode()),
    (list[int], [1, 2], [1, 2]),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2, 3], (1, 2, 3)),
    (set[int], [1, 2, 2], {1, 2}),
    (frozenset[str], ["a"], frozenset({"a"})),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (Point, {"x": 1}, Point(1)),
    (list[Point], [{"x": 1, "y": 2}], [Point(1, 2)]),
    (Place, {"name": "a"}, {"name": "a"}),
    (list[Place] | None, [{"name": "a", "zip": 1}], [{"name": "a", "zip": 1}]),
    (Place | Point, {"name": "a"}, {"name": "a"}),
    (Optional[Place], {"name": "a"}, {"name": "a"}),  # noqa: UP045 - the older spelling is out there
    (Annotated[List[Place], Field(min_length=1)], [{"name": "a"}], [{"name": "a"}]),  # noqa: UP006 - as above
    (
        Step,
        {"at": {"name": "a"}, "then": [{"at": {"name": "b"}}]},
        {"at": {"name": "a"}, "then": [{"at": {"name": "b"}}]},
    ),
    (Span, [1, 2], Span(1, 2)),
    (Span, [1], Span(1)),
    (Order, {"item": "a", "to": {"x": 1}}, Order(item="a", to=Point(1))),
    (Order | Point, {"x": 1}, Point(1)),
    (dict[str, list[Order]], {"a": [{"item": "b"}]}, {"a": [Order(item="b")]}),
    (Tree, {"value": 1, "leaves": [{"value": 2}]}, Tree(value=1, leaves=[Tree(value=2)])),
    (Annotated[int, Field(ge=1, le=3)], 2, 2),
    (Annotated[str, AfterValidator(str.upper)], "a", "A"),
]

BAD: list[tuple[Any, Any, list[str]]] = [
    (int, "3", ['x: should be a valid integer, got "3"']),
    (int, 3.5, ["x: should be a valid integer, got 3.5"]),
    (int, True, ["x: should be a valid integer, got true"]),
    (int, None, ["x: should be a valid integer, got null"]),
    (float, True, ["x: should be a valid number, got true"]),
    (float, "1.5", ['x: should be a valid number, got "1.5"']),
    (float, "NaN", ['x: should be a valid number, got "NaN"']),
    (bool, 1, ["x: should be a valid boolean, got 1"]),
    (bool, "true", ['x: should be a valid boolean, got "true"']),
    (str, 1, ["x: should be a valid string, got 1"]),
    (str, None, ["x: should be a valid string, got null"]),
    (int | None, "1", ['x: should be a valid integer, got "1"']),
    (
        int | str,
        True,
        ["x: (as int) should be a valid integer, got true", "x: (as str) should be a valid string, got true"],
    ),
    (Literal["a", "b"], "c", ["x: should be 'a' or 'b', got \"c\""]),
    (Literal[1, 2], True, ["x: is not one of those listed, got true"]),
    (Literal[True], 1, ["x: is not one of those listed, got 1"]),
    (Literal["a"] | Level | None, True, ["x: is not one of those listed, got true"]),
    (Literal[1] | None, True, ["x: is not one of those listed, got true"]),
    (list[Literal[0, 5]], [5, False], ["x[1]: is not one of those listed, got false"]),
    (Colour, "RED", ["x: should be 'red' or 'blue', got \"RED\""]),
    (Level, True, ["x: is not one of those listed, got true"]),
    (Level, "1", ['x: should be 1 or 2, got "1"']),
    (dt.date, 0, ["x: should be a valid date, got 0"]),
    (
        dt.date,
        "2024-02-29T12:30:00",
        [
            'x: should be a valid date in the format YYYY-MM-DD, unexpected extra characters at the end of the input, got "2024-02-29T12:30:00"',
        ],
    ),
    (dt.datetime, 1.5, ["x: should be a valid datetime, got 1.5"]),
    (dt.time, 10, ["x: should be a valid time, got 10"]),
    (dt.timedelta, 3600, ["x: should be a valid duration, got 3600"]),
    (Decimal, True, ["x: decimal input should be an integer, float, string or Decimal object, got true"]),
    (Decimal, "NaN", ['x: should be a finite number, got "NaN"']),
    (UUID, 1, ["x: UUID input should be a string, bytes or UUID object, got 1"]),
    (Path, 1, ["x: should be a valid string, got 1"]),
    (bytes, 1, ["x: should be a valid bytes, got 1"]),
    (list[int], 1, ["x: should be a valid array, got 1"]),
    (list[int], [1, "2", None], ['x[1]: should be a valid integer, got "2"', "x[2]: should be a valid integer, got null"]),
    (Step, {"at": {"name": "a"}, "then": [{"at": {"nam": "b"}}]},
     ["x.then[0].at.name: is missing", "x.then[0].at.nam: is unknown; did you mean 'name'?"]),
    (tuple[int, str], [1], ["x[1]: is missing"]),
    (set[int], ["1"], ['x[0]: should be a valid integer, got "1"']),
    (dict[str, int], {"a b": "1"}, ['x["a b"]: should be a valid integer, got "1"']),
    (
        dict[int, str],
        {"a": "b"},
        ['x.a: (as a name) should be a valid integer, unable to parse string as an integer, got "a"'],
    ),
    (Point, {}, ["x.x: is missing"]),
    (Point, {"x": 1, "z": 2}, ["x.z: is unknown; known are 'x', 'y'"]),
    (Point, {"x": "1"}, ['x.x: should be a valid integer, got "1"']),
    (Place, {"nam": "a"}, ["x.name: is missing", "x.nam: is unknown; did you mean 'name'?"]),
    (Span, ["a"], ['x[0]: should be a valid integer, got "a"']),
    (
        Order,
        {"item": 1, "count": 0, "to": {"x": 1, "q": 2}},
        [
            "x.item: should be a valid string, got 1",
            "x.count: should be greater than or equal to 1, got 0",
            "x.to.q: is unknown; known are 'x', 'y'",
        ],
    ),
    (Tree, {"value": 1, "leaves": [{"value": "2", "leafs": []}]},
     ['x.leaves[0].value: should be a valid integer, got "2"', "x.leaves[0].leafs: is unknown; did you mean 'leaves'?"]),
    (
        int | Point,
        {"x": "a"},
        ['x: (as int) should be a valid integer, got {"x":"a"}', 'x.x: (as Point) should be a valid integer, got "a"'],
    ),
]  # fmt: skip


@pytest.mark.parity("A19")
@pytest.mark.parametrize(("kind", "value", "given"), GOOD)
def test_json_becomes_the_value_of_its_type(kind: Any, value: Any, given: Any) -> None:
    """The body gets what its signature promises."""
    found = taken(kind, value)
    assert found == given
    assert type(found) is type(given)


@pytest.mark.parity("A19")
@pytest.mark.parametrize(("kind", "value", "problems"), BAD)
def test_json_of_another_type_is_refused(kind: Any, value: Any, problems: list[str]) -> None:
    """A value that was guessed at is worse than a model that is told to look again."""
    assert refusal(kind, value) == problems


@pytest.mark.parametrize(
    ("kind", "default", "shown"),
    [
        (int, 3, 3),
        (float, 1, 1),
        (str, "é", "é"),
        (int | None, None, None),
        (Colour, Colour.RED, "red"),
        (dt.date, dt.date(2024, 1, 2), "2024-01-02"),
        (Decimal, Decimal("1.50"), "1.50"),
        (Path, Path("/a"), "/a"),
        (tuple[int, ...], (1, 2), [1, 2]),
        (set[str], {"c", "a", "b"}, ["a", "b", "c"]),
        (list[set[int]], [{3, 1, 2}], [[1, 2, 3]]),
        (tuple[frozenset[int], dict[str, set[int]]], (frozenset({2, 1}), {"a": {9, 8}}), [[1, 2], {"a": [8, 9]}]),
        (Point, Point(1), {"x": 1, "y": 0}),
        (Order, Order(item="a"), {"item": "a", "count": 1, "to": None}),
        (Span, Span(1), [1, 9]),
    ],
)
def test_a_default_is_shown_as_json_and_filled_in(kind: Any, default: Any, shown: Any) -> None:
    """What hooks and people see is what will be used; what the body gets is equal to what Python would have used."""

    def f(x: Any = default) -> Any:
        return x

    f.__annotations__["x"] = kind
    made = tool(f)
    assert made.parameters["properties"]["x"]["default"] == shown
    prepared = made.prepare("{}")
    assert prepared.object == {"x": shown}
    assert made.invoke(prepared, ToolContext()) == default


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (str, None),
        (Annotated[int, Field(ge=1)], 0),
        (float, float("inf")),
        (SecretStr, SecretStr("hidden")),
        (dt.date, "today"),
        (Bag, Bag(words=frozenset({"b", "a"}))),
        (Any, object()),
    ],
)
def test_a_default_that_json_would_change_is_left_to_python(kind: Any, default: Any) -> None:
    """A sentinel outside the type, a secret, a moment in words: shown and filled in it would be another value, or none."""

    def f(x: Any = default) -> Any:
        return x

    f.__annotations__["x"] = kind
    made = tool(f)
    assert "default" not in made.parameters["properties"]["x"]
    assert made.parameters["required"] == []
    prepared = made.prepare("{}")
    assert prepared.object == {}
    found = made.invoke(prepared, ToolContext())
    assert found is default or found == default


def test_a_default_made_anew_is_made_for_each_call() -> None:
    """A list that calls share is a leak from one to the next."""

    @dataclass
    class Bag:
        items: list[int] = field(default_factory=list)

    def f(bag: Bag, more: list[int] = []) -> Any:  # noqa: B006 - the rule under test
        bag.items.append(1)
        more.append(1)
        return bag.items, more

    f.__annotations__["bag"] = Bag
    made = tool(f)
    for _ in range(2):
        assert made.invoke(made.prepare('{"bag": {}}'), ToolContext()) == ([1], [1])


class Loose(BaseModel):
    model_config = ConfigDict(extra="allow")
    inner: Order


def test_objects_are_closed_in_the_schema_and_in_fact() -> None:
    """A misspelt member that is dropped in silence is a call that does something else."""

    def f(order: Order, place: Place) -> None: ...

    schema = tool(f).parameters
    assert [each["additionalProperties"] for each in schema["$defs"].values()] == [False, False, False]
    assert all(isinstance(each["required"], list) for each in schema["$defs"].values())


def test_a_model_that_speaks_for_itself_opens_what_says_nothing() -> None:
    """`extra="allow"` was written on purpose, and pydantic has one switch for all that do not say."""
    assert taken(Loose, {"inner": {"item": "a"}, "more": 1}).model_extra == {"more": 1}
    assert taken(Loose, {"inner": {"item": "a", "more": 1}}).inner == Order(item="a")


def test_there_are_no_made_up_titles() -> None:
    """They cost tokens and say nothing that the name does not say; those that somebody wrote stay."""

    def f(order: Order, colour: Colour, level: Annotated[Level, Field(title="Loudness")], tree: Tree) -> None: ...

    text = json.dumps(tool(f).parameters)
    assert text.count('"title"') == 1
    assert '"title": "Loudness"' in text


def test_a_check_of_ones_own_tells_the_model_what_it_says() -> None:
    """The sentence of a validator is written for whoever has to mend the value."""

    def even(n: int) -> int:
        if n % 2:
            raise ValueError("must be even")
        return n

    assert refusal(Annotated[int, AfterValidator(even)], 3) == ["x: must be even, got 3"]


def test_a_check_that_fails_by_itself_is_told_and_a_fatal_one_passes() -> None:
    """A bug in a validator is no reason to end a run, unless it says so."""

    def broken(n: int) -> int:
        raise KeyError(n)

    def fatal(n: int) -> int:
        raise FatalToolError("no database")

    with pytest.raises(
        ArgumentError, match=r"^the arguments could not be checked: KeyError: 3; call again with others$"
    ):
        taken(Annotated[int, AfterValidator(broken)], 3)
    with pytest.raises(FatalToolError, match="no database"):
        taken(Annotated[int, AfterValidator(fatal)], 3)
