"""What a server asks for: its hint is the least that is waited, and too long a wait is not waited at all."""

import anyio
import pytest

from antiphon import AttemptDiscarded, Overloaded, RateLimited, Recovery
from antiphon.testing import Scripted

from .drills import STEADY, outcome, waits

pytestmark = pytest.mark.anyio


@pytest.mark.parity("C21")
@pytest.mark.parametrize(
    ("hint", "recovery", "waited"),
    [
        (None, STEADY, 1),
        (0.0, STEADY, 1),
        (7.5, STEADY, 7.5),
        (0.25, STEADY, 1),
        (60.0, STEADY, 60),
        (3600.0, Recovery(jitter=0, max_wait=None), 3600),
        (9.0, Recovery(jitter=0, max_wait=10, delay=100), 10),
        (-5.0, STEADY, 1),
    ],
)
async def test_j6_the_hint_is_the_minimum(hint: float | None, recovery: Recovery, waited: float) -> None:
    """Asking earlier than told costs another refusal; two layers that both wait would lose the hint."""
    began = anyio.current_time()
    result, told, _ = await outcome(Scripted(RateLimited("slow down", retry_after=hint), "ok"), recovery)
    assert result.text == "ok"
    assert waits(told) == [waited]
    assert anyio.current_time() - began == pytest.approx(waited)


@pytest.mark.parity("C21")
async def test_a_hint_above_the_cap_ends_the_run_at_once_and_is_told() -> None:
    """Nobody sits before a screen for an hour; the application can wait on its own, if it knows for how long."""
    began = anyio.current_time()
    result, told, cause = await outcome(Scripted(RateLimited("quota used up", retry_after=90.0), "never"))
    assert anyio.current_time() == began
    assert result.status == "error"
    assert result.reason == "quota used up; the server asks to wait 90 s, and max_wait allows 60 s"
    assert isinstance(cause, RateLimited)
    assert cause.retry_after == 90
    assert told.of(AttemptDiscarded) == []


@pytest.mark.parity("C21")
async def test_the_cap_is_an_option() -> None:
    result, _, _ = await outcome(Scripted(Overloaded("x", retry_after=90.0), "ok"), Recovery(max_wait=100))
    assert result.text == "ok"
    result, _, _ = await outcome(Scripted(Overloaded("x", retry_after=3.0), "ok"), Recovery(max_wait=2))
    assert result.status == "error"


async def test_growing_waits_stay_under_the_cap() -> None:
    """Doubling forever is giving up without saying so."""
    model = Scripted(*[Overloaded("x")] * 9, "ok")
    result, told, _ = await outcome(model, Recovery(retries=9, jitter=0))
    assert result.text == "ok"
    assert waits(told) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_a_huge_budget_is_a_budget() -> None:
    """Powers of two outgrow a float after a thousand failures."""
    model = Scripted(*[Overloaded("x")] * 1100, "ok")
    result, told, _ = await outcome(model, Recovery(retries=2000, jitter=0))
    assert result.text == "ok"
    assert max(waits(told)) == 60


async def test_what_may_be_asked_again_now_is_asked_without_a_wait() -> None:
    began = anyio.current_time()
    failure = Overloaded("the connection was stale", recovery="now")
    result, told, _ = await outcome(Scripted(failure, failure, "ok"))
    assert result.text == "ok"
    assert waits(told) == [0, 0]
    assert anyio.current_time() == began
