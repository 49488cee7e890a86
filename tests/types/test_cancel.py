"""Cancelling from outside."""

import threading

import pytest

from antiphon.types.cancel import CancelSignal, CancelToken


def test_a_token_is_cancelled_once_and_for_all() -> None:
    """The first reason is the one that ended the runs."""
    token = CancelToken()
    assert (token.cancelled, token.reason) == (False, None)
    token.cancel("enough")
    token.cancel("again")
    assert (token.cancelled, token.reason) == (True, "enough")


def test_every_listener_is_called_once() -> None:
    """One token may stop any number of runs."""
    token = CancelToken()
    heard: list[str] = []
    token.on_cancel(lambda: heard.append("a"))
    token.on_cancel(lambda: heard.append("b"))
    token.cancel()
    token.cancel()
    assert heard == ["a", "b"]


def test_who_comes_late_is_called_at_once() -> None:
    """A run that is given a cancelled token must not start."""
    token = CancelToken()
    token.cancel()
    heard: list[int] = []
    leave = token.on_cancel(lambda: heard.append(1))
    assert heard == [1]
    leave()


def test_who_left_is_not_called() -> None:
    """A finished run must not be kept alive by the token of a longer story."""
    token = CancelToken()
    heard: list[int] = []
    leave = token.on_cancel(lambda: heard.append(1))
    leave()
    leave()
    token.cancel()
    assert heard == []
    assert not token._listeners


def test_the_same_listener_twice_is_two() -> None:
    token = CancelToken()
    heard: list[int] = []

    def listener() -> None:
        heard.append(1)

    leave = token.on_cancel(listener)
    token.on_cancel(listener)
    leave()
    token.cancel()
    assert heard == [1]


def test_a_listener_that_raises_starves_no_other() -> None:
    """A loop that was closed raises when it is called from another thread; the runs of other loops must still end."""
    token = CancelToken()
    heard: list[int] = []

    def fails() -> None:
        raise RuntimeError("event loop is closed")

    token.on_cancel(fails)
    token.on_cancel(lambda: heard.append(1))
    with pytest.raises(ExceptionGroup) as caught:
        token.cancel()
    assert heard == [1]
    assert [str(error) for error in caught.value.exceptions] == ["event loop is closed"]


def test_a_listener_may_use_the_token() -> None:
    """It is called outside the lock: one that looks, listens or leaves must not hang."""
    token = CancelToken()
    heard: list[object] = []

    def listener() -> None:
        heard.append(token.reason)
        leave()
        token.on_cancel(lambda: heard.append("late"))

    leave = token.on_cancel(listener)
    token.cancel("x")
    assert heard == ["x", "late"]


def test_threads_that_listen_and_cancel_at_once_lose_nobody() -> None:
    """A listener is called by the one who cancels or by itself, never by both and never by none."""
    for _ in range(20):
        token = CancelToken()
        heard: list[int] = []
        start = threading.Barrier(5, timeout=10)

        def listens(start: threading.Barrier = start, token: CancelToken = token, heard: list[int] = heard) -> None:
            start.wait()
            for number in range(50):
                token.on_cancel(lambda number=number: heard.append(number))

        def cancels(start: threading.Barrier = start, token: CancelToken = token) -> None:
            start.wait()
            token.cancel()

        threads = [threading.Thread(target=body) for body in (listens, listens, listens, listens, cancels)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert sorted(heard) == sorted([*range(50)] * 4)


def test_a_signal_can_be_read_but_not_set() -> None:
    """Tools and hooks get one: to see a stop is their business, to make one is not."""
    assert not hasattr(CancelSignal(), "cancel")
    assert isinstance(CancelToken(), CancelSignal)
