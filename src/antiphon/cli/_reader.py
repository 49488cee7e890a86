"""What a person types: in a terminal with history and several lines, or line by line from a pipe or a file.

A line that ends in a backslash goes on in the next one, in both.
"""

import asyncio
import codecs
import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from antiphon.cli.render import Renderer

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings

__all__ = ["LineReader", "Reader", "TerminalReader", "make_reader"]

BLOCK: Final = 65536


class Reader(Protocol):
    """Where prompts come from."""

    interrupted: bool
    """Ctrl-C was pressed, and nothing was said since: the next one leaves."""

    async def read(self) -> str | None:
        """The next prompt, `None` when there will be no other. Raises `KeyboardInterrupt` to leave at once."""
        ...


class TerminalReader:
    """Reads from a terminal. Enter sends, Escape and Enter begin a new line, the history is kept in a file."""

    def __init__(self, renderer: Renderer, history: Path, words: list[str]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory, InMemoryHistory
        from prompt_toolkit.output import create_output

        self.interrupted = False
        self._renderer = renderer
        self._session: PromptSession[str] = PromptSession(
            message=[("bold ansicyan", "> ")],
            multiline=True,
            prompt_continuation="  ",
            history=FileHistory(str(history)) if is_writable(history) else InMemoryHistory(),
            completer=WordCompleter(words, sentence=True),
            complete_while_typing=False,
            key_bindings=bindings(),
            output=create_output(always_prefer_tty=True),
        )

    async def read(self) -> str | None:
        """What was typed. Ctrl-C throws the line away, and leaves when nothing was said since the last one."""
        while True:
            try:
                text = await self._session.prompt_async()
            except EOFError:
                return None
            except KeyboardInterrupt:
                if self.interrupted:
                    raise
                self.interrupted = True
                self._renderer.note("Ctrl-C again, or Ctrl-D, leaves")
                continue
            self.interrupted = False
            return text


class LineReader:
    """Reads lines of a file descriptor, in a thread: the loop never waits for it, and nothing waits for the thread."""

    def __init__(self, descriptor: int) -> None:
        self.interrupted = False
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        arguments = (descriptor, asyncio.get_running_loop())
        threading.Thread(target=self._pump, args=arguments, name="antiphon-stdin", daemon=True).start()

    async def read(self) -> str | None:
        """The next line, with those that it goes on in."""
        self.interrupted = False
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


def make_reader(renderer: Renderer, history: Path, words: list[str]) -> Reader:
    """The reader that fits stdin."""
    if sys.stdin.isatty():
        return TerminalReader(renderer, history, words)
    return LineReader(sys.stdin.fileno())


def is_writable(history: Path) -> bool:
    """Whether the history can be kept there. It is the person's own: nobody else may read it."""
    try:
        history.parent.mkdir(parents=True, exist_ok=True)
        history.touch(mode=0o600)
    except OSError:
        return False
    return os.access(history, os.R_OK | os.W_OK)


def bindings() -> "KeyBindings":
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

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
