"""One value to several listeners."""

import logging
from collections.abc import Callable

import pytest

from antiphon.errors import UsageError
from antiphon.types.emitter import Emitter, Listener


def fails(value: int) -> None:
    raise ValueError(f"no {value}")


def test_listeners_hear_in_the_order_in_which_they_subscribed() -> None:
    """A store that comes before a viewer has stored what the viewer shows."""
    emitter: Emitter[int] = Emitter()
    heard: list[str] = []
    emitter.subscribe(lambda value: heard.append(f"first {value}"))
    emitter.subscribe(lambda value: heard.append(f"second {value}"))
    emitter.emit(1)
    emitter.emit(2)
    assert heard == ["first 1", "second 1", "first 2", "second 2"]


def test_who_unsubscribed_hears_no_more() -> None:
    """Twice is as good as once."""
    emitter: Emitter[int] = Emitter()
    heard: list[int] = []
    leave = emitter.subscribe(heard.append)
    emitter.emit(1)
    leave()
    leave()
    emitter.emit(2)
    assert heard == [1]


def test_a_function_that_subscribes_twice_hears_twice() -> None:
    """Two parts of a program may share a function; neither may end the other's subscription."""
    emitter: Emitter[int] = Emitter()
    heard: list[int] = []
    leave = emitter.subscribe(heard.append)
    emitter.subscribe(heard.append)
    emitter.emit(1)
    leave()
    leave()
    emitter.emit(2)
    assert heard == [1, 1, 2]


def test_after_close_nothing_is_heard() -> None:
    """Who subscribes then is told nothing either, and may leave as usual."""
    emitter: Emitter[int] = Emitter()
    heard: list[int] = []
    emitter.subscribe(heard.append)
    emitter.close()
    emitter.emit(1)
    leave = emitter.subscribe(heard.append)
    emitter.emit(2)
    leave()
    emitter.close()
    assert heard == []


def test_a_closed_emitter_keeps_no_listener_alive() -> None:
    """A listener often holds a window or a connection."""
    emitter: Emitter[int] = Emitter()
    emitter.subscribe(fails)
    emitter.close()
    emitter.subscribe(fails)
    assert not emitter._listeners


def test_a_listener_that_raises_starves_no_other() -> None:
    """The failures are told when all have heard, so that telling them cannot starve anybody either."""
    trace: list[object] = []

    def told(listener: Listener[int], error: Exception) -> None:
        trace.append((listener, str(error)))

    emitter: Emitter[int] = Emitter(told)
    emitter.subscribe(fails)
    emitter.subscribe(trace.append)
    emitter.emit(1)
    emitter.emit(2)
    assert trace == [1, (fails, "no 1"), 2, (fails, "no 2")]


def test_without_a_handler_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """An error that nobody sees is found by the user."""
    emitter: Emitter[int] = Emitter()
    emitter.subscribe(fails)
    with caplog.at_level(logging.ERROR, "antiphon"):
        emitter.emit(1)
    (record,) = caplog.records
    assert record.name == "antiphon"
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no 1"


def test_what_the_handler_raises_reaches_the_emitting_side() -> None:
    """That is how a strict application ends at the first failure; the emitter still works."""

    def strict(listener: Listener[int], error: Exception) -> None:
        raise error

    emitter: Emitter[int] = Emitter(strict)
    heard: list[int] = []
    emitter.subscribe(fails)
    emitter.subscribe(heard.append)
    for value in (1, 2):
        with pytest.raises(ValueError, match=f"no {value}"):
            emitter.emit(value)
    assert heard == [1, 2]


def test_a_stop_from_the_keyboard_passes_through() -> None:
    """Only failures are collected, not the end of the program."""

    def interrupted(value: int) -> None:
        raise KeyboardInterrupt

    emitter: Emitter[int] = Emitter()
    emitter.subscribe(interrupted)
    with pytest.raises(KeyboardInterrupt):
        emitter.emit(1)


def test_who_subscribes_during_delivery_hears_the_next_value() -> None:
    """Not the one on its way, and not one that was emitted before it came."""
    emitter: Emitter[int] = Emitter()
    late: list[int] = []

    def joins(value: int) -> None:
        if value == 1:
            emitter.emit(2)
            emitter.subscribe(late.append)

    emitter.subscribe(joins)
    emitter.emit(1)
    emitter.emit(3)
    assert late == [3]


def test_who_is_taken_away_during_delivery_is_not_called() -> None:
    """Whoever closed a window may count on its listener being silent."""
    emitter: Emitter[int] = Emitter()
    heard: list[str] = []
    leave: list[Callable[[], None]] = []
    emitter.subscribe(lambda value: [each() for each in leave])
    leave.append(emitter.subscribe(lambda value: heard.append("gone")))
    emitter.subscribe(lambda value: heard.append("stays"))
    emitter.emit(1)
    assert heard == ["stays"]


def test_closing_during_delivery_ends_it() -> None:
    """Closed is closed, for those who have not heard yet too."""
    emitter: Emitter[int] = Emitter()
    heard: list[int] = []

    def closes(value: int) -> None:
        emitter.emit(2)
        emitter.close()

    emitter.subscribe(closes)
    emitter.subscribe(heard.append)
    emitter.emit(1)
    assert heard == []


def test_a_value_emitted_by_a_listener_comes_after_the_one_it_heard() -> None:
    """All hear the same order; the first listener's answer must not overtake the question."""
    emitter: Emitter[int] = Emitter()
    heard: list[int] = []

    def answers(value: int) -> None:
        if value < 3:
            emitter.emit(value + 1)

    emitter.subscribe(answers)
    emitter.subscribe(heard.append)
    emitter.emit(1)
    assert heard == [1, 2, 3]


def test_a_coroutine_function_is_refused() -> None:
    """It would never run, and say so only when the garbage is collected."""

    async def listener(value: int) -> None: ...

    with pytest.raises(UsageError, match="nobody would await; give a plain one"):
        Emitter[int]().subscribe(listener)
