"""A terminal that shows an answer above the line that is being typed.

Whole lines are printed and stay; the line that has not ended yet is part of the prompt, and is drawn again as it grows.
"""

import io
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO

from antiphon.cli._lines import printable

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.formatted_text import StyleAndTextTuples

__all__ = ["Screen"]

KEPT_ROWS: Final = 6
"""Rows of the terminal that the unfinished line leaves to the prompt and to what came before it."""

ESCAPES: Final = 4
"""How much longer a piece may be than what is seen of it."""

RESET: Final = "\x1b[0m"


class Screen(io.TextIOBase):
    """What is written to it goes above the prompt of the application that is attached, if that one runs."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._app: Application[str] | None = None
        self._tail: list[str] = []

    def attach(self, app: "Application[str] | None") -> None:
        """From now on this is the prompt that is written above; with `None` there is none any more."""
        self._app = app
        if app is None and self._tail:
            self.write("\n")

    def write(self, s: str, /) -> int:
        """Whole lines are printed at once, the rest is kept until its line ends."""
        whole, newline, rest = s.rpartition("\n")
        if newline:
            lines = "".join([*self._tail, whole, RESET, "\n"])
            self._tail.clear()
            self._print(lines)
        if rest:
            self._tail.append(rest)
        if self._app is None:
            self._print("".join(self._tail))
            self._tail.clear()
        else:
            self._app.invalidate()
        return len(s)

    @contextmanager
    def above(self) -> Generator[None]:
        """What is written in the block goes above the line that has not ended; it is whole lines."""
        tail, self._tail = self._tail, []
        try:
            yield
        finally:
            self._tail = tail

    def take_back(self) -> None:
        """Forget the line that has not ended."""
        self._tail.clear()
        if self._app is not None:
            self._app.invalidate()

    def unfinished(self, columns: int, rows: int) -> "StyleAndTextTuples":
        """The line that has not ended, as far as the terminal has room for it, each of its rows ended."""
        from prompt_toolkit.formatted_text import ANSI, to_formatted_text
        from prompt_toolkit.utils import get_cwidth

        room = max(rows - KEPT_ROWS, 1)
        drawn: list[StyleAndTextTuples] = [[]]
        column = 0
        for style, text, *_ in to_formatted_text(ANSI("".join(self._last(ESCAPES * room * columns)))):
            for letter in printable(text):
                width = get_cwidth(letter)
                if column + width > columns:
                    drawn.append([])
                    column = 0
                drawn[-1].append((style, letter))
                column += width
        shown = drawn[-room:]
        return [piece for row in shown if row for piece in (*row, ("", "\n"))]

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - the stream's, never set
        return self._stream.encoding

    def _last(self, length: int) -> list[str]:
        """The last pieces, each with its own style, so that drawing a long line again stays cheap."""
        pieces: list[str] = []
        for piece in reversed(self._tail):
            pieces.append(piece)
            length -= len(piece)
            if length <= 0:
                break
        return pieces[::-1]

    def _print(self, text: str) -> None:
        if not text:
            return
        if self._app is not None and self._app.is_running:
            self._app.renderer.erase()
        self._stream.write(text)
        self._stream.flush()
