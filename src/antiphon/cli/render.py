"""Events to a terminal: the answer goes to one console, everything about it to the other."""

import io
from contextlib import AbstractContextManager
from typing import Final, Literal, Protocol, TextIO, cast

from rich.console import Console
from rich.text import Text as Line

from antiphon.cli._lines import ASCII, UNICODE, Brief, line_of, printable
from antiphon.types.events import AttemptDiscarded, Event, MessageFinished, RunFinished, TextDelta, ThinkingDelta

__all__ = ["Renderer", "terminal"]

LOG_WIDTH: Final = 160
"""How long a line about a tool may be where there is no terminal to say."""


class Terminal(Console):
    """A console that lets the command see that nobody reads any more."""

    def on_broken_pipe(self) -> None:
        """Called while the exception is handled."""
        raise  # noqa: PLE0704 - the one that is being handled


def terminal(*, stderr: bool = False, file: io.TextIOBase | None = None) -> Console:
    """The console on one of the two streams, or on what stands in for it. Nothing is wrapped, highlighted or read as
    markup.
    """
    stream = cast("TextIO | None", file)
    return Terminal(stderr=stderr, file=stream, soft_wrap=True, highlight=False, markup=False, emoji=False)


class Live(Protocol):
    """A terminal whose last line, if it has not ended, can still be changed."""

    def above(self) -> AbstractContextManager[None]:
        """What is written in the block goes above that line; it is whole lines."""
        ...

    def take_back(self) -> None:
        """Erase that line."""
        ...


class Renderer:
    """Shows events as they come.

    `out` gets the text of the replies and nothing else. `err` gets a short line for each call, result, warning and
    whatever else happens, and the thinking, dimmed. Where both are one terminal, a line that one has begun is ended
    before the other writes. On a `live` terminal, which both are on, the other writes above that line instead, and what
    is taken back is erased from it.
    """

    def __init__(self, out: Console, err: Console, live: Live | None = None) -> None:
        self._out = out
        self._err = err
        self._live = live if out.is_terminal and err.is_terminal else None
        self._begun: Literal["", "out", "err"] = ""
        self._spoken = False
        self._stays = False
        self._marks = UNICODE if err.encoding.lower().startswith("utf") else ASCII

    def show(self, event: Event) -> None:
        """One event."""
        match event:
            case TextDelta(text=text):
                self._say(text)
            case ThinkingDelta(text=text):
                self._think(text)
            case MessageFinished():
                self._end_line()
                self._spoken = self._stays = False
            case AttemptDiscarded():
                self._take_back()
                self._tell(event)
            case RunFinished():
                self._end_line()
                self._tell(event)
            case _:
                self._tell(event)

    def note(self, text: str, style: str = "dim") -> None:
        """A line of the command's own."""
        self._write(Line(printable(text).replace("\n", " "), style))

    def _tell(self, event: Brief) -> None:
        line = line_of(event, self._marks)
        if line is None:
            return
        if not isinstance(event, RunFinished):
            line.truncate(self._err.width if self._err.is_terminal else LOG_WIDTH, overflow="ellipsis")
        self._write(line)

    def _say(self, text: str) -> None:
        if self._begun == "err":
            self._end_line()
        self._out.out(printable(text) if self._out.is_terminal else text, end="", highlight=False)
        self._begun = "" if text.endswith("\n") else "out"
        self._spoken = True
        self._stays = self._stays or "\n" in text

    def _think(self, text: str) -> None:
        if self._begun == "out":
            self._leave_answer()
        for index, line in enumerate(printable(text).split("\n")):  # each by itself: a style does not outlive its line
            if index:
                self._err.out("")
            self._err.out(line, end="", style="dim italic", highlight=False)
        self._begun = "" if text.endswith("\n") else "err"

    def _write(self, line: Line) -> None:
        if self._begun and self._live is not None:
            with self._live.above():
                self._err.print(line)
            return
        if self._begun == "out":
            self._leave_answer()
        else:
            self._end_line()
        self._err.print(line)

    def _leave_answer(self) -> None:
        """Begin a new line on a screen that both share. In a file the answer goes on as if nothing had come between."""
        if self._out.is_terminal and self._err.is_terminal:
            self._err.out("")
            self._begun = ""
            self._stays = True

    def _end_line(self) -> None:
        if self._begun:
            (self._out if self._begun == "out" else self._err).out("")
        self._begun = ""

    def _take_back(self) -> None:
        """Erase what was said; what cannot be erased any more gets a mark that says that it does not count."""
        if self._begun == "out" and self._live is not None and not self._stays:
            self._live.take_back()
            self._begun = ""
            self._spoken = False
        self._end_line()
        if self._spoken:
            self._out.out("[taken back]", style="dim" if self._out.is_terminal else None, highlight=False)
        self._spoken = self._stays = False
