"""Ctrl-C as a signal while a run is live: the first one asks it to stop, the next one insists."""

import asyncio
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "interrupts"]


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
