"""The one thread in which a run lives: whoever calls from another has it done there."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any, TypeVar

from antiphon.errors import UsageError

__all__ = ["Home"]

T = TypeVar("T")

LOOK_AGAIN = 1.0
"""Seconds after which a waiting thread looks whether the loop is still there."""


class Home:
    """The running loop and its thread, of the moment it is made."""

    __slots__ = ("_loop", "_thread")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def do(self, act: Callable[..., T], *args: Any) -> T:
        """Call `act` in the loop's thread. There it is called at once; another thread waits for its turn.

        Raises what `act` raises, and `UsageError` when the loop is gone.
        """
        if threading.get_ident() == self._thread:
            return act(*args)
        done: Future[T] = Future()
        try:
            self._loop.call_soon_threadsafe(answer, done, act, args)
        except RuntimeError as error:
            raise UsageError("the run is over, and its event loop is closed: nothing can be said to it") from error
        while True:
            try:
                return done.result(LOOK_AGAIN)
            except NotYet:
                if done.done():
                    raise  # `act` itself ran out of some time
                if self._loop.is_closed():
                    raise UsageError("the run is over, and its event loop is closed") from None


def answer(done: "Future[Any]", act: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        done.set_result(act(*args))
    except Exception as error:  # noqa: BLE001 - raised again in the thread that asked
        done.set_exception(error)
