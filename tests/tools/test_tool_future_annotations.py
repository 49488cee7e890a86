"""Annotations as text, as `from __future__ import annotations` leaves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from antiphon.tools import Field, Tool, ToolContext, tool

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass
class Point:
    x: int
    y: int = 0


class Line(TypedDict):
    start: Point
    end: Point


@tool
def measure(line: Line, factor: Annotated[float, Field(gt=0)] = 1.0, *, ctx: ToolContext[str]) -> Decimal:
    return (line["end"].x - line["start"].x) * factor  # type: ignore[return-value] - only the name matters


def handle(arguments: dict[str, Any], given: ToolContext[str]) -> str:
    return given.deps


def test_annotations_as_text_are_resolved() -> None:
    """A return type that exists for the type checker alone does no harm: nobody needs it."""
    assert list(measure.parameters["properties"]) == ["line", "factor"]
    prepared = measure.prepare('{"line": {"start": {"x": 1}, "end": {"x": 4}}, "factor": 2}')
    assert measure.invoke(prepared, ToolContext(deps="")) == 6.0


def test_types_of_the_function_around_are_found() -> None:
    """Text alone does not say where a name was defined; the scope that makes the tool does."""

    @dataclass
    class Size:
        width: int

    @tool
    def area(size: Size) -> int:
        return size.width**2

    assert area.invoke(area.prepare('{"size": {"width": 3}}'), ToolContext()) == 9


def test_a_handler_may_say_what_it_wants_as_text() -> None:
    """The context is found in a raw tool's handler as well."""
    made = Tool.from_schema("t", "", {}, handle)
    assert made.invoke(made.prepare(""), ToolContext(deps="here")) == "here"
