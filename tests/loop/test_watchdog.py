"""The watchdog of an attempt: which silence is too long, on a clock that the test turns."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from antiphon.agent.agent import Agent
from antiphon.loop.spec import Recovery
from antiphon.loop.watchdog import Watchdog
from antiphon.providers.scripted import Scripted
from antiphon.types.events import AttemptDiscarded, Event, TextDelta
from antiphon.types.request import CallChunk, Delta, TextChunk, ThinkingChunk, UsageChunk, WarningChunk
from antiphon.types.usage import Usage

from .scenarios import Gate, Heard, faults

LIMITS = Recovery(first_token=10, idle=5, request=100)


class Timer:
    def __init__(self, clock: "Clock", when: float, call: Callable[[], None]) -> None:
        self.clock, self.when, self.call = clock, when, call

    def cancel(self) -> None:
        if self in self.clock.timers:
            self.clock.timers.remove(self)


class Clock:
    """A loop that has only a clock and timers; `turn` lets time go by."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self, when, call)
        self.timers.append(timer)
        return timer

    def turn(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.when <= end]:
            timer = min(due, key=lambda timer: timer.when)
            timer.cancel()
            self.now = max(self.now, timer.when)
            timer.call()
        self.now = end


class Scope:
    cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("antiphon.loop.watchdog.get_running_loop", lambda: clock)
    return clock


def watched(limits: Recovery = LIMITS) -> tuple[Any, Scope]:
    scope: Any = Scope()
    return Watchdog(scope, limits), scope


def test_the_first_token_may_take_its_own_time(clock: Clock) -> None:
    watchdog, scope = watched()
    with watchdog:
        clock.turn(9.9)
        assert not scope.cancelled
        clock.turn(0.2)
        assert scope.cancelled
        assert watchdog.stalled == "no first token came from the model for 10 s"


def test_after_it_the_gaps_count(clock: Clock) -> None:
    """A long thought before the first word is normal; a long silence in the middle is a dead connection."""
    watchdog, scope = watched()
    with watchdog:
        clock.turn(9)
        watchdog.beat(TextChunk("a"))
        clock.turn(4.9)
        watchdog.beat(TextChunk("b"))
        clock.turn(4.9)
        assert not scope.cancelled
        clock.turn(0.2)
        assert (scope.cancelled, watchdog.stalled) == (True, "nothing more came from the model for 5 s")


@pytest.mark.parametrize(
    "delta",
    [TextChunk(""), ThinkingChunk(""), UsageChunk(Usage(input=1)), WarningChunk("odd", "line"), CallChunk(0)],
)
def test_heartbeats_do_not_keep_a_dead_stream_alive(clock: Clock, delta: Delta) -> None:
    """Proxies send empty chunks for minutes after the model behind them has died."""
    watchdog, scope = watched()
    with watchdog:
        watchdog.beat(TextChunk("a"))
        for _ in range(4):
            clock.turn(1)
            watchdog.beat(delta)
        assert not scope.cancelled
        clock.turn(1.1)
        assert scope.cancelled


@pytest.mark.parametrize(
    "delta",
    [TextChunk("a"), ThinkingChunk("a"), ThinkingChunk("", "sig"), CallChunk(0, "c1"), CallChunk(0, arguments="{")],
)
def test_whatever_a_reader_could_use_is_a_sign_of_life(clock: Clock, delta: Delta) -> None:
    watchdog, scope = watched()
    with watchdog:
        for _ in range(10):
            clock.turn(4)
            watchdog.beat(delta)
        assert not scope.cancelled


def test_the_whole_reply_has_a_limit_too(clock: Clock) -> None:
    """A model that says one word every four seconds for ever."""
    watchdog, scope = watched()
    with watchdog:
        for _ in range(26):
            clock.turn(4)
            watchdog.beat(TextChunk("a"))
        assert (scope.cancelled, watchdog.stalled) == (True, "the model did not finish its reply in time")


def test_while_somebody_else_is_waited_for_no_clock_runs(clock: Clock) -> None:
    """A listener that writes to a slow socket is not the model's silence."""
    watchdog, scope = watched()
    with watchdog:
        watchdog.beat(TextChunk("a"))
        watchdog.rest()
        clock.turn(1000)
        assert not scope.cancelled
        watchdog.resume()
        clock.turn(4.9)
        assert not scope.cancelled
        clock.turn(0.2)
        assert scope.cancelled


@pytest.mark.parametrize("off", [None, 0])
def test_every_limit_can_be_turned_off(clock: Clock, off: float | None) -> None:
    watchdog, scope = watched(Recovery(first_token=off, idle=off, request=off))
    with watchdog:
        clock.turn(1e6)
        watchdog.beat(TextChunk("a"))
        clock.turn(1e6)
        assert not scope.cancelled
        assert clock.timers == []


def test_nothing_is_left_of_it_afterwards(clock: Clock) -> None:
    """A timer that is not taken back holds the whole run until it is due."""
    watchdog, scope = watched()
    with watchdog:
        watchdog.beat(TextChunk("a"))
    assert clock.timers == []
    clock.turn(1000)
    assert not scope.cancelled


@pytest.mark.anyio
async def test_a_stalled_attempt_is_discarded_and_repeated() -> None:
    """In a run, on the loop's own clock."""
    never = Gate()
    limits = Recovery(first_token=0.2, idle=0.2, delay=0)
    run = Agent(Scripted([never], ["Half", never], "whole"), recovery=limits).run("hi")
    heard = Heard(run)
    result = await run
    assert (result.text, result.requests) == ("whole", 3)
    assert [event.why for event in heard.of(AttemptDiscarded)] == ["stalled", "stalled"]
    assert faults(heard.events, result) == []


@pytest.mark.anyio
async def test_a_slow_listener_does_not_stall_the_model() -> None:
    async def slow(event: Event) -> None:
        if isinstance(event, TextDelta):
            await anyio.sleep(0.4)

    run = Agent(Scripted("ab", piece=1), recovery=Recovery(first_token=0.3, idle=0.3, request=0.3)).run("hi")
    run.subscribe(slow)
    result = await run
    assert (result.text, result.requests) == ("ab", 1)
