"""What a docstring says to the model, in the three common styles."""

from typing import Annotated, Any

import docstring_parser
import pytest

from antiphon.tools import Field, tool


def google(city: str, days: int = 1) -> None:
    """Forecast for a city.

    Not for the sea.

    Args:
        city: Its name,
            in any language.
        days (int): How many.

    Returns:
        Text.
    """


def numpy(city: str, days: int = 1) -> None:
    """Forecast for a city.

    Not for the sea.

    Parameters
    ----------
    city : str
        Its name,
        in any language.
    days : int, optional
        How many.

    Returns
    -------
    str
        Text.
    """


def sphinx(city: str, days: int = 1) -> None:
    """Forecast for a city.

    Not for the sea.

    :param city: Its name,
        in any language.
    :param int days: How many.
    :returns: Text.
    """


def descriptions(function: Any) -> dict[str, str | None]:
    return {name: each.get("description") for name, each in tool(function).parameters["properties"].items()}


@pytest.mark.parity("A20")
@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_each_style_describes_tool_and_parameters(function: Any) -> None:
    """The description is what stands before the sections; each parameter's own goes to the parameter."""
    assert tool(function).description == "Forecast for a city.\n\nNot for the sea."
    assert descriptions(function) == {"city": "Its name, in any language.", "days": "How many."}


def test_a_field_says_it_better_than_a_docstring() -> None:
    """It was written for the model."""

    def f(a: Annotated[int, Field(description="Mine.")], b: int) -> None:
        """Do it.

        Args:
            a: The docstring's.
            b: The other.
        """

    assert descriptions(f) == {"a": "Mine.", "b": "The other."}


def test_plain_text_is_the_description() -> None:
    """Most docstrings have no sections."""

    def f(a: int) -> None:
        """Do it: at once.

        And well.
        """

    assert tool(f).description == "Do it: at once.\n\nAnd well."
    assert descriptions(f) == {"a": None}


def test_without_a_docstring_there_is_no_description() -> None:
    """A partial or an object must not be described by what Python says of its kind."""

    def f(a: int) -> None: ...

    class Call:
        def __call__(self, a: int) -> None: ...

    assert tool(f).description == ""
    assert tool(Call()).description == ""


def test_a_docstring_that_nobody_can_read_is_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was written for somebody."""

    def unreadable(text: str) -> None:
        raise docstring_parser.ParseError(text)

    monkeypatch.setattr(docstring_parser, "parse", unreadable)
    assert tool(sphinx).description.startswith("Forecast for a city.\n\nNot for the sea.\n\n:param city: ")


def test_a_given_description_stands_alone() -> None:
    """The parameters keep theirs from the docstring."""
    made = tool(google, description="Short.")
    assert made.description == "Short."
    assert made.parameters["properties"]["days"]["description"] == "How many."
