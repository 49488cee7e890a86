"""`antiphon ask --json`: every event as a line of JSON on stdout, for programs."""

import threading
from collections.abc import Sequence

import pytest

from antiphon.types.codec import load_event
from antiphon.types.content import Unknown
from antiphon.types.events import Event, RunFinished, TextDelta, ToolFinished

from .conftest import Command, Start
from .server import ModelServer, Reply, called, chunk, refused, said


def events_of(out: str) -> list[Event]:
    """The events, each on a line of its own."""
    events = [load_event(line) for line in out.splitlines()]
    return [event for event in events if not isinstance(event, Unknown)]


def assert_sound(events: Sequence[Event], lines: int) -> None:
    """Every line is an event, numbers have no gaps, the run is finished once, at the end."""
    assert len(events) == lines
    assert [event.seq for event in events] == list(range(1, lines + 1))
    assert [isinstance(event, RunFinished) for event in events] == [False] * (lines - 1) + [True]


def test_every_event_is_a_line(command: Command, server: ModelServer) -> None:
    server.script(called("calculate", {"expression": "6 * 7"}), said("It is 42."))
    ended = command("ask", "--json", "-m", "openai:test", "What is 6 * 7?")
    events = events_of(ended.out)
    assert ended.code == 0
    assert_sound(events, ended.out.count("\n"))
    assert [event.result.text for event in events if isinstance(event, ToolFinished)] == ["42"]
    assert "".join([event.text for event in events if isinstance(event, TextDelta)]) == "It is 42."


@pytest.mark.usefixtures("impatient")
def test_a_failure_is_an_event_and_a_line_on_stderr(command: Command, server: ModelServer) -> None:
    server.script(refused(401, "wrong key"))
    ended = command("ask", "--json", "-m", "openai:test", "Hi")
    events = events_of(ended.out)
    assert ended.code == 1
    assert_sound(events, ended.out.count("\n"))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "error"
    assert ended.complaint == f"antiphon: {events[-1].error}"


def test_nothing_is_told_of_a_run_that_cannot_begin(command: Command) -> None:
    ended = command("ask", "--json", "-m", "nope", "Hi")
    assert (ended.code, ended.out) == (2, "")


def test_ctrl_c_leaves_whole_lines(start: Start, server: ModelServer) -> None:
    """A program that reads along must see the end, whoever caused it."""
    hold = threading.Event()
    server.script(Reply([chunk({"content": "It began"}), hold]))
    running = start("ask", "--json", "-m", "openai:test", "Go on")
    seen = running.read_until(b"text_delta") + running.read_until(b"\n")
    running.interrupt()
    ended = running.end()
    hold.set()
    out = seen.decode() + ended.out
    events = events_of(out)
    assert ended.code == 130
    assert_sound(events, out.count("\n"))
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "aborted"
