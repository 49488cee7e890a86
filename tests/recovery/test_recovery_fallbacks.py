"""Other models: asked when the first one is given up, with the same question, in their own measure."""

from typing import Any

import pytest

from antiphon import (
    AttemptDiscarded,
    ContextReplaced,
    Dropped,
    Empty,
    Filtered,
    MessageFinished,
    MessageStarted,
    ModelInfo,
    ModelSettings,
    Overloaded,
    Recovery,
    Rejected,
    ToolCall,
    TurnStarted,
)
from antiphon.testing import Scripted
from antiphon.types.request import FinishChunk

from .drills import LOOKED, STEADY, counted, outcome, reply, shown, whys

pytestmark = pytest.mark.anyio

ONE = Recovery(retries=1, delay=0.01, jitter=0)


def second(*replies: Any) -> Scripted:
    return Scripted(*replies, info=ModelInfo(provider="other", id="second"))


async def test_the_next_model_is_asked_when_patience_with_the_first_is_used_up() -> None:
    """A region may be down for longer than anybody waits."""
    first, other = Scripted(["a", Dropped("x")], ["ab", Dropped("x")]), second("from the other")
    result, told, _ = await outcome(first, ONE, fallbacks=[other])
    assert (result.status, result.text) == ("done", "from the other")
    assert counted(told) == [(1, 1), (1, 1)]
    assert shown(told)[-1] == "from the other"
    replaced = told.one(ContextReplaced)
    assert replaced.model is not None
    assert (replaced.model.origin, replaced.messages) == ("other:second", None)
    assert "x" in replaced.why
    said = reply([event.message for event in told.of(MessageFinished)])
    assert (said.provider, said.model) == ("other", "second")
    assert len(told.of(TurnStarted)) == 1
    assert [event.attempt for event in told.of(MessageStarted) if event.role == "assistant"] == [1, 2, 3]


async def test_the_other_model_gets_the_same_request() -> None:
    first, other = Scripted(Overloaded("x")), second("ok")
    await outcome(first, Recovery(retries=0), fallbacks=[other])
    assert other.requests == [first.requests[0]]
    assert other.requests[0] is first.requests[0]


@pytest.mark.parity("C10")
async def test_the_thinking_level_is_clamped_to_the_model_that_is_asked() -> None:
    """A level that the first model has may be refused by the second."""
    first = Scripted(Overloaded("x"), info=ModelInfo(provider="a", id="a", thinking_levels=("off", "high", "max")))
    other = Scripted("ok", info=ModelInfo(provider="b", id="b", thinking_levels=("off", "low")))
    settings = ModelSettings(thinking="max", temperature=0.5)
    await outcome(first, Recovery(retries=0), fallbacks=[other], settings=settings)
    assert first.requests[0].settings == settings
    assert other.requests[0].settings == ModelSettings(thinking="low", temperature=0.5)


async def test_the_run_stays_with_the_model_that_answered() -> None:
    """Its own thinking and ids are in the transcript now; and the first is still down."""
    first = Scripted(Overloaded("x"))
    other = second([ToolCall(id="c", name="look", arguments='{"city": "Oslo"}')], "rain")
    result, _, _ = await outcome(first, Recovery(retries=0), fallbacks=[other])
    assert (result.text, LOOKED, len(first.requests), len(other.requests)) == ("rain", ["Oslo"], 1, 2)


async def test_a_filter_of_one_provider_is_not_that_of_another() -> None:
    """Filtered means: this model will not, whatever you repeat."""
    raised, told, _ = await outcome(Scripted(Filtered("no")), STEADY, fallbacks=[second("yes")])
    assert (raised.text, whys(told)) == ("yes", ["filtered"])
    said, told, _ = await outcome(Scripted([FinishChunk("filtered")]), STEADY, fallbacks=[second("yes")])
    assert (said.text, whys(told)) == ("yes", ["filtered"])
    alone, _, cause = await outcome(Scripted([FinishChunk("filtered")]))
    assert alone.status == "error"
    assert isinstance(cause, Filtered)


async def test_what_is_wrong_with_the_request_is_wrong_everywhere() -> None:
    other = second("never")
    result, told, _ = await outcome(Scripted(Rejected("bad schema")), STEADY, fallbacks=[other])
    assert (result.status, other.requests, told.of(AttemptDiscarded)) == ("error", [], [])


async def test_too_long_a_wait_goes_to_the_next_model_at_once() -> None:
    hint = Overloaded("x", retry_after=900.0)
    result, told, _ = await outcome(Scripted(hint), STEADY, fallbacks=[second("ok")])
    assert (result.text, [event.wait for event in told.of(AttemptDiscarded)]) == ("ok", [0])


async def test_each_model_has_patience_of_its_own() -> None:
    models = [Scripted(Overloaded("1"), Overloaded("2")), second(Overloaded("3"), Overloaded("4")), second([], [])]
    result, _, cause = await outcome(models[0], ONE, fallbacks=models[1:])
    assert (result.status, result.requests) == ("error", 6)
    assert isinstance(cause, Empty)
    assert "after 6 attempts" in (result.reason or "")
