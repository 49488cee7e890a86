"""The terminal of a chat: whole lines stay, the unfinished one can be changed; and the status line under it."""

import io
from typing import TextIO, cast

from prompt_toolkit.application import Application
from prompt_toolkit.output import DummyOutput

from antiphon.cli._screen import Screen
from antiphon.cli._status import Meter, status_line
from antiphon.cli.render import Renderer, terminal
from antiphon.types.events import AttemptDiscarded, MessageFinished, MessageQueued, RunFinished, RunStarted, TextDelta
from antiphon.types.messages import AssistantMessage, UserMessage
from antiphon.types.usage import Usage


def screen() -> tuple[Screen, io.StringIO]:
    """A screen whose prompt does not run, and what stays on the terminal."""
    stream = io.StringIO()
    made = Screen(cast("TextIO", stream))
    made.attach(Application[str](output=DummyOutput()))
    return made, stream


def text(said: str) -> TextDelta:
    return TextDelta(run_id="r", seq=1, message_id="m", text=said)


def drawn(made: Screen, columns: int = 20, rows: int = 10) -> str:
    return "".join([piece[1] for piece in made.unfinished(columns, rows)])


def test_whole_lines_stay_and_the_rest_is_drawn() -> None:
    made, stream = screen()
    made.write("One\nTw")
    made.write("o")
    assert (stream.getvalue(), drawn(made)) == ("One\x1b[0m\n", "Two\n")
    made.write("!\n")
    assert (stream.getvalue(), drawn(made)) == ("One\x1b[0m\nTwo!\x1b[0m\n", "")


def test_an_unfinished_line_leaves_room_for_the_prompt() -> None:
    """The end of it is what is new."""
    made, _ = screen()
    made.write("a" * 20 + "b" * 20 + "語" * 11)
    assert drawn(made, rows=9) == f"{'b' * 20}\n{'語' * 10}\n語\n"
    for _ in range(1000):
        made.write("word ")
    assert drawn(made, columns=5, rows=8) == "word \n" * 2


def test_without_a_prompt_everything_is_printed() -> None:
    made, stream = screen()
    made.write("Unfinished")
    made.attach(None)
    made.write(" and more")
    assert stream.getvalue() == "Unfinished\x1b[0m\n and more"


def renderer() -> tuple[Renderer, Screen, io.StringIO]:
    made, stream = screen()
    return Renderer(terminal(file=made), terminal(stderr=True, file=made), made), made, stream


def plain(stream: io.StringIO) -> list[str]:
    return [
        line.replace("\x1b[0m", "").replace("\x1b[2m", "").replace("\x1b[33m", "")
        for line in stream.getvalue().splitlines()
    ]


def test_a_receipt_does_not_cut_the_line_that_is_being_said() -> None:
    show, made, stream = renderer()
    show.show(text("It is"))
    show.show(MessageQueued(run_id="r", seq=2, message=UserMessage.of("x"), queue="steering"))
    show.show(text(" so."))
    assert (plain(stream), drawn(made)) == (["queued (steering)"], "It is so.\n")


def test_an_unfinished_line_is_taken_back_without_a_trace() -> None:
    again = AttemptDiscarded(run_id="r", seq=2, why="dropped", attempt=1, of=3, message_id="m")
    show, made, stream = renderer()
    show.show(text("It is wrong"))
    show.show(again)
    assert drawn(made) == ""
    assert "wrong" not in stream.getvalue()
    assert "[taken back]" not in stream.getvalue()
    show.show(text("One line.\nAnd"))
    show.show(again)
    assert plain(stream)[1:4] == ["One line.", "And", "[taken back]"]


def test_the_status_line_sums_the_runs_of_a_chat() -> None:
    """A reply counts when it ends; the end of its run says the sum, with what was thrown away."""
    meter = Meter()
    assert status_line("openai:x", meter, running=False, queued=0) == "openai:x"
    reply = AssistantMessage(parts=(), usage=Usage(input=1000, output=20, cost=0.01))
    events = [
        RunStarted(run_id="r", seq=1, thinking="high"),
        MessageFinished(run_id="r", seq=2, message=reply),
    ]
    for event in events:
        meter.apply(event)
    now = status_line("openai:x", meter, running=True, queued=2)
    assert now == "openai:x | thinking high | 1,000 in, 20 out | $0.0100 | 2 queued | answering, Ctrl-C stops"
    meter.apply(RunFinished(run_id="r", seq=3, status="done", usage=Usage(input=1500, output=25, cost=0.02)))
    for event in events[1:]:
        meter.apply(event)
    assert meter.usage == Usage(input=2500, output=45, cost=0.03)
