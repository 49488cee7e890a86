"""The keyboard while a run is live: the first Ctrl-C asks it to stop, the next one insists, other keys wait."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "interrupts", "silent_keys"]


class Interrupt:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.pressed = False


@contextmanager
def interrupts(stop: Callable[[], None]) -> Generator[Interrupt]:
    """Call `stop` in the running loop at the first Ctrl-C; a second one does what it did before this block.

    Where interrupts are ignored (a job in the background of a script), and in threads, nothing is changed.
    """
    told = Interrupt()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield told
        return
    loop = asyncio.get_running_loop()

    def pressed(number: int, frame: FrameType | None) -> None:
        if not told.pressed:
            told.pressed = True
            loop.call_soon_threadsafe(stop)
        elif callable(before):
            before(number, frame)
        else:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, pressed)
    try:
        yield told
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def silent_keys() -> Generator[None]:
    """Do not show what is typed, so that it does not run into the answer: the next prompt gets it."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(descriptor, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
