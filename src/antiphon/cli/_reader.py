"""What a person types: in a terminal with history and several lines, or line by line from a pipe or a file.

A line that ends in a backslash goes on in the next one, in both.
"""

import asyncio
import codecs
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self

from antiphon.cli._screen import Screen
from antiphon.cli.render import Renderer

if TYPE_CHECKING:
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.key_binding import KeyBindings

__all__ = ["Asking", "LineReader", "TerminalReader"]

BLOCK: Final = 65536

REDRAW_SECONDS: Final = 0.03
"""The shortest time between two drawings of the prompt while an answer comes."""


class Asking(Protocol):
    """What a person is asked, at every moment: the text before the line and above it, and what the line begins with."""

    @property
    def prompt(self) -> str: ...
    @property
    def draft(self) -> str: ...
    @property
    def status(self) -> str: ...

    def abort(self, reason: str) -> bool:
        """Stop what is under way; whether there was anything."""
        ...


class TerminalReader:
    """Reads from a terminal. Enter sends, Escape and Enter begin a new line, the history is kept in a file.

    Above the line that is typed stand the answer's unfinished line and a status line. Ctrl-C stops what is under way,
    or throws the line away; a second one leaves. In the block no key is lost between two lines.
    """

    def __init__(self, asking: Asking, renderer: Renderer, screen: Screen, history: Path, words: list[str]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.output import create_output
        from prompt_toolkit.renderer import CPR_Support

        self._asking = asking
        self._renderer = renderer
        self._screen = screen
        self._interrupted = False
        self._session: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            prompt_continuation="  ",
            history=FileHistory(str(history)) if is_writable(history) else InMemoryHistory(),
            completer=WordCompleter(words, sentence=True),
            complete_while_typing=False,
            key_bindings=bindings(self._press),
            output=create_output(always_prefer_tty=True),
        )
        self._session.app.renderer.cpr_support = CPR_Support.NOT_SUPPORTED  # the answer would be late: the cursor moves
        self._session.app.min_redraw_interval = REDRAW_SECONDS
        self._raw: AbstractContextManager[None] = self._session.input.raw_mode()

    def __enter__(self) -> Self:
        self._raw.__enter__()
        self._screen.attach(self._session.app)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._screen.attach(None)
        self._raw.__exit__(None, None, None)

    async def read(self) -> str | None:
        """What was typed, `None` when there will be nothing else. Raises `KeyboardInterrupt` to leave at once."""
        try:
            text = await self._session.prompt_async(default=self._asking.draft, set_exception_handler=False)
        except EOFError:
            return None
        self._interrupted = False
        return text

    def _press(self) -> bool:
        """Ctrl-C was pressed; whether to leave."""
        if self._interrupted:
            return True
        buffer = self._session.default_buffer
        if self._asking.abort("interrupted"):
            self._interrupted = True
        elif buffer.text:
            buffer.reset()
        else:
            self._interrupted = True
            self._renderer.note("Ctrl-C again, or Ctrl-D, leaves")
        return False

    def _message(self) -> "StyleAndTextTuples":
        """What stands before the line. What is above it does not stay on the screen when the line is sent."""
        line: StyleAndTextTuples = [("bold ansicyan", self._asking.prompt)]
        app = self._session.app
        if app.is_done:
            return line
        size = app.output.get_size()
        status = self._asking.status[: size.columns - 1]
        return [*self._screen.unfinished(size.columns, size.rows), ("ansibrightblack", f"{status}\n"), *line]


class LineReader:
    """Reads lines of a file descriptor, in a thread: the loop never waits for it, and nothing waits for the thread."""

    def __init__(self, descriptor: int) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        arguments = (descriptor, asyncio.get_running_loop())
        threading.Thread(target=self._pump, args=arguments, name="antiphon-stdin", daemon=True).start()

    async def read(self) -> str | None:
        """The next line, with those that it goes on in."""
        lines: list[str] = []
        while (line := await self._lines.get()) is not None:
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                break
        if line is None:
            self._lines.put_nowait(None)  # the end stays the end
        return "\n".join(lines) if lines else None

    def _pump(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        """Read past Python's own buffer, whose lock a thread that sleeps in it would hold at the end of the process."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = ""
        with suppress(RuntimeError):  # the loop was closed: nobody reads any more
            while data := os.read(descriptor, BLOCK):
                *lines, rest = (rest + decoder.decode(data)).split("\n")
                for line in lines:
                    loop.call_soon_threadsafe(self._lines.put_nowait, line.removesuffix("\r"))
            if rest := rest + decoder.decode(b"", final=True):
                loop.call_soon_threadsafe(self._lines.put_nowait, rest)
            loop.call_soon_threadsafe(self._lines.put_nowait, None)


def is_writable(history: Path) -> bool:
    """Whether the history can be kept there. It is the person's own: nobody else may read it."""
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch(mode=0o600)
    except OSError:
        return False
    return os.access(history, os.R_OK | os.W_OK)


def bindings(press: Callable[[], bool]) -> "KeyBindings":
    """The keys. `press` is told of Ctrl-C, as a key or as a signal, and says whether to leave."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("c-c")
    @keys.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        if press():
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
