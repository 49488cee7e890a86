"""A pseudo terminal with the command in it, to be typed into and looked at."""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from .conftest import COMMAND

# A process becomes the master of a terminal by opening it, once it leads a session: then Ctrl-C reaches it as a signal.
TAKE = "import os; os.close(os.open(os.ttyname(0), os.O_RDWR)); "
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")
BRACKETED_PASTE = b"\x1b[?2004h"  # what the line editor asks the terminal for, when it begins
IDLE = re.compile(r"^openai:test(?![^\r\n]*answering)[^\r\n]*[\r\n]", re.MULTILINE)  # a status line, when it is whole
PATIENCE = 20.0


class Terminal:
    """What is on the screen so far, and the keyboard."""

    def __init__(self, keyboard: int, popen: "subprocess.Popen[bytes]") -> None:
        self._keyboard = keyboard
        self._popen = popen
        self._raw = b""

    @property
    def screen(self) -> str:
        """All that was ever shown, without colours and movements."""
        return ESCAPES.sub("", self._raw.decode(errors="replace"))

    def type(self, text: str) -> None:
        os.write(self._keyboard, text.encode())

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until a text is on the screen, or was there so many times."""
        self._wait(lambda: self.screen.count(text) >= times, text)

    def wait_for_prompt(self) -> None:
        """Until keys are taken as they are: before that, Ctrl-D means something else. From then on none is lost."""
        self._wait(lambda: BRACKETED_PASTE in self._raw, "a prompt")

    def wait_for_end(self, text: str) -> None:
        """Until a text is on the screen and the answer that it is from is over: a status line that says so follows."""
        self.wait_for(text)
        self._wait(lambda: IDLE.search(self.screen.rpartition(text)[2]) is not None, f"the end of {text!r}")

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < until, f"{what!r} does not come; the screen has: {self.screen}"
            assert self._read(), f"{what!r} did not come before the end; the screen has: {self.screen}"

    def end(self) -> int:
        """Until the command has ended; its exit code."""
        while self._read():
            pass
        return self._popen.wait(PATIENCE)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._keyboard], [], [], PATIENCE)
        assert ready, f"nothing happens; the screen has: {self.screen}"
        with suppress(OSError):  # Linux says so when nobody has the other side open any more
            if data := os.read(self._keyboard, 65536):
                self._raw += data
                return True
        return False


@contextmanager
def opened(*arguments: str, code: str = COMMAND) -> Iterator[Terminal]:
    """The command in a terminal of its own, ended with the block."""
    keyboard, screen = os.openpty()
    environ = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "COLUMNS": "100", "LINES": "40"}
    popen = subprocess.Popen(
        [sys.executable, "-c", TAKE + code, *arguments],
        stdin=screen,
        stdout=screen,
        stderr=screen,
        env=environ,
        start_new_session=True,
    )
    os.close(screen)
    try:
        yield Terminal(keyboard, popen)
    finally:
        if popen.poll() is None:
            popen.kill()
        popen.wait()
        os.close(keyboard)
