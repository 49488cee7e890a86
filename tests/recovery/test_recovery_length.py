"""Replies that the output limit cut off, and replies that say nothing: each with a budget of its own."""

from typing import Any

import anyio
import pytest

from antiphon import (
    Dropped,
    Empty,
    Hooks,
    MessageFinished,
    Recovery,
    Thinking,
    ToolCall,
    ToolFinished,
    ToolRequested,
    ToolStarted,
    Truncated,
    TurnStarted,
    validate,
)
from antiphon.testing import Scripted
from antiphon.types.request import FinishChunk
from antiphon.types.usage import Usage

from .drills import LENGTH, LOOKED, counted, outcome, reply, result_of, shown, waits, whys

pytestmark = pytest.mark.anyio

HALF = ToolCall(id="c1", name="look", arguments='{"city": "Os')
WHOLE = ToolCall(id="c2", name="look", arguments='{"city": "Oslo"}')


@pytest.mark.parity("C12")
async def test_a_cut_off_answer_is_asked_for_again_at_the_same_limit() -> None:
    """The same question often has a shorter answer; a longer limit would be a decision about money."""
    model = Scripted(["to", LENGTH], ["too", LENGTH], "short")
    began = anyio.current_time()
    result, told, _ = await outcome(model)
    assert result.text == "short"
    assert counted(told) == [(1, 2), (2, 2)]
    assert set(whys(told)) == {"truncated"}
    assert waits(told) == [0, 0]
    assert anyio.current_time() == began
    assert model.requests[0] is model.requests[2]
    assert len(told.of(TurnStarted)) == 1
    assert shown(told)[-1] == "short"


@pytest.mark.parity("C12")
async def test_a_used_up_length_budget_is_an_error_with_the_text_so_far() -> None:
    """A cut-off answer that is passed on as whole is worse than none; what there is stays readable."""
    result, _, cause = await outcome(Scripted(*[[f"long {n}", LENGTH] for n in range(3)]))
    assert result.status == "error"
    assert isinstance(cause, Truncated)
    assert "cut off by the output limit" in (result.reason or "")
    assert "after 3 attempts" in (result.reason or "")
    assert (result.text, reply(result.messages).stop_reason) == ("long 2", "error")


@pytest.mark.parity("C12")
async def test_length_retries_can_be_turned_off() -> None:
    result, told, _ = await outcome(Scripted(["lo", LENGTH], "never"), Recovery(length_retries=0))
    assert (result.status, result.requests, counted(told)) == ("error", 1, [])


@pytest.mark.parity("C12")
async def test_a_cut_off_answer_can_be_kept_when_asking_again_is_over() -> None:
    """For a text that may end anywhere the first half is better than an error."""
    model = Scripted(["a", LENGTH], ["ab", LENGTH])
    kept, told, _ = await outcome(model, Recovery(length_retries=1, on_length="keep"))
    assert (kept.status, kept.text, reply(kept.messages).stop_reason) == ("done", "ab", "length")
    assert counted(told) == [(1, 1)]
    at_once, told, _ = await outcome(Scripted(["a", LENGTH]), Recovery(length_retries=0, on_length="keep"))
    assert (at_once.status, at_once.text, counted(told)) == ("done", "a", [])


@pytest.mark.parametrize("on_length", ["error", "keep"])
async def test_e2_no_call_of_a_cut_off_reply_is_run(on_length: Any) -> None:
    """A salvaged half of a command was run by a peer; also a call that looks whole may be half of what was meant."""
    model = Scripted(["Let me look.", HALF, LENGTH], [WHOLE], "rain")
    result, told, _ = await outcome(model, Recovery(on_length=on_length))
    assert (result.status, result.text, LOOKED) == ("done", "rain", ["Oslo"])
    assert [event.call_id for event in told.of(ToolStarted)] == ["c2"]
    said, cut = reply(result.messages, 1), result_of(result.messages, 2)
    assert (said.text, said.stop_reason) == ("Let me look.", "length")
    assert (cut.call_id, cut.outcome, cut.is_error) == ("c1", "not_run", True)
    assert counted(told) == []
    assert validate(result.messages) == []


async def test_e3_the_model_reads_that_it_was_cut_off() -> None:
    """Told that an argument is missing, it would write the same long text again."""
    model = Scripted([HALF, LENGTH], "shorter")
    await outcome(model)
    result = result_of(model.requests[1].messages)
    assert "cut off by the output limit" in result.text
    assert "shorter" in result.text
    assert "missing" not in result.text


async def test_e2_asking_again_after_cut_off_calls_is_bounded_and_never_runs_them() -> None:
    """The two ways of being cut off share one budget; keeping is for what can be read, not for half a call."""
    for on_length in ("error", "keep"):
        model = Scripted([HALF, LENGTH], ["a", LENGTH], [WHOLE, LENGTH], "never")
        result, _, _ = await outcome(model, Recovery(length_retries=2, on_length=on_length))
        assert (result.status, len(model.requests), LOOKED) == ("error", 3, [])
        assert "cut off by the output limit" in (result.reason or "")
        assert validate(result.messages) == []


async def test_a_good_reply_gives_the_length_budget_back() -> None:
    """The budget is for being stuck, not for a long run."""
    script = [[["x", LENGTH], [ToolCall(id=f"c{n}", name="look", arguments='{"city": "A"}')]] for n in range(4)]
    model = Scripted(*[reply for pair in script for reply in pair], "done")
    result, _, _ = await outcome(model, Recovery(length_retries=1))
    assert (result.status, result.turns, result.requests) == ("done", 5, 9)


async def test_every_call_of_a_cut_off_reply_is_told_of_and_finished() -> None:
    """Whoever shows calls must see each of them end, in the order of every other call."""
    _, told, _ = await outcome(Scripted([HALF, WHOLE, LENGTH], "ok"))
    assert [event.call.id for event in told.of(ToolRequested)] == ["c1", "c2"]
    assert [(event.call_id, event.outcome) for event in told.of(ToolFinished)] == [("c1", "not_run"), ("c2", "not_run")]
    kinds = told.kinds(MessageFinished, ToolRequested, ToolFinished)
    assert kinds[1:6] == ["message_finished", *["tool_requested"] * 2, *["tool_finished"] * 2]


async def test_a_hook_on_calls_sees_cut_off_calls_as_well() -> None:
    """after_tool_execute comes for refusals too (peers' I3: hooks pair, whatever the outcome)."""
    hooks = Hooks[object](after_model_response=lambda context: pytest.fail("the reply is not complete"))
    result, _, _ = await outcome(Scripted([HALF, LENGTH]), Recovery(length_retries=0), hooks=hooks)
    assert result.status == "error"


# Empty replies


async def test_e4_an_empty_reply_is_asked_for_once_more() -> None:
    """A run that ends in silence leaves a person before an empty bubble."""
    result, told, _ = await outcome(Scripted([WHOLE], [], "rain"))
    assert (result.status, result.text) == ("done", "rain")
    assert (whys(told), counted(told), waits(told)) == (["empty"], [(1, 1)], [0])


async def test_e4_then_it_is_a_typed_error() -> None:
    result, _, cause = await outcome(Scripted([], [], "never"))
    assert (result.status, result.requests) == ("error", 2)
    assert isinstance(cause, Empty)


async def test_thinking_alone_is_empty() -> None:
    """A person reads the answer; a model that only thought has not answered."""
    result, told, _ = await outcome(Scripted([Thinking(text="hm")], [Thinking(text="hm hm"), "so"]))
    assert result.text == "so"
    assert whys(told) == ["empty"]
    assert shown(told) == ["hm", "", "hm hm", "hm hmso"]


async def test_e5_consecutive_empties_are_counted_and_progress_resets_them() -> None:
    """Forever is not a number of attempts; one hiccup per turn is none to die of."""
    calls = [ToolCall(id=f"c{n}", name="look", arguments='{"city": "A"}') for n in range(3)]
    result, _, _ = await outcome(Scripted([], [calls[0]], [], [calls[1]], [], [calls[2]], [], "done"))
    assert (result.status, result.text) == ("done", "done")


async def test_an_empty_reply_can_be_kept_when_asking_again_is_over() -> None:
    """For a tool-driven run with nothing left to say, silence is an answer."""
    kept, told, _ = await outcome(Scripted([], []), Recovery(on_empty="keep"))
    assert (kept.status, kept.text, counted(told)) == ("done", "", [(1, 1)])
    second, _, _ = await outcome(Scripted([], "words"), Recovery(on_empty="keep"))
    assert second.text == "words"
    at_once, told, _ = await outcome(Scripted([]), Recovery(on_empty="keep", empty_retries=0))
    assert (at_once.status, counted(told)) == ("done", [])


async def test_the_budgets_are_separate() -> None:
    """A cut-off reply does not use up the patience for drops, nor the other way round."""
    once = Recovery(retries=1, length_retries=1, empty_retries=1, jitter=0)
    model = Scripted(["a", Dropped("x")], ["ab", LENGTH], [], "abc")
    result, told, _ = await outcome(model, once)
    assert result.text == "abc"
    assert whys(told) == ["dropped", "truncated", "empty"]
    assert counted(told) == [(1, 1), (1, 1), (1, 1)]


async def test_usage_of_cut_off_and_empty_replies_counts() -> None:
    used = Usage(input=10, output=100)
    result, _, _ = await outcome(Scripted([used, "a", LENGTH], [used], [used, "b", FinishChunk()]))
    assert result.usage == Usage(input=30, output=300)
