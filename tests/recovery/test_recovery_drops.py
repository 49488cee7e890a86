"""Attempts that fail in passing are thrown away and made again: how often, how patiently, and what is told of it."""

from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    AttemptDiscarded,
    CancelToken,
    Dropped,
    Garbled,
    Hooks,
    LimitReached,
    Limits,
    MessageFinished,
    MessageStarted,
    ModelError,
    ModelRequest,
    Overloaded,
    RateLimited,
    Recovery,
    Rejected,
    RunFinished,
    ToolCall,
    ToolStarted,
    TurnStarted,
    Unauthorized,
    Unreachable,
    Usage,
    UseRequest,
    validate,
)
from antiphon.testing import Scripted, record
from antiphon.types.request import CallChunk, Delta, FinishChunk, TextChunk, UsageChunk

from .drills import LOOKED, STEADY, Streams, counted, outcome, reply, says, shown, waits, whys

pytestmark = pytest.mark.anyio

CALL = ToolCall(id="c1", name="look", arguments='{"city": "Oslo"}')


@pytest.mark.parity("C12")
async def test_j5_a_dropped_stream_is_asked_for_again_three_times() -> None:
    """One lost connection in a long run must not cost the run; patience doubles, and has an end."""
    model = Scripted(["a", Dropped("cut")], ["ab", Dropped("cut")], [Dropped("cut")], "abc")
    began = anyio.current_time()
    result, told, _ = await outcome(model)
    assert (result.status, result.text) == ("done", "abc")
    assert anyio.current_time() - began == pytest.approx(1 + 2 + 4)
    assert waits(told) == [1, 2, 4]
    assert counted(told) == [(1, 3), (2, 3), (3, 3)]
    assert set(whys(told)) == {"dropped"}


@pytest.mark.parity("C12")
async def test_a_stream_that_just_ends_was_dropped() -> None:
    """Servers and proxies close quietly: only the terminal marker says that a reply is whole (peers' D7)."""
    whole = says(TextChunk("whole"), FinishChunk())
    result, told, _ = await outcome(Streams(says(TextChunk("ha")), says(), whole))
    assert result.text == "whole"
    assert whys(told) == ["dropped", "dropped"]


@pytest.mark.parity("C12")
async def test_a_drop_may_come_from_the_call_or_from_the_iteration() -> None:
    """A provider may fail before it has a stream to give."""

    class Raises:
        calls = 0

        def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            self.calls += 1
            if self.calls == 1:
                raise Unreachable("nobody there")
            return says(TextChunk("there"), FinishChunk())()

    result, told, _ = await outcome(Raises())
    assert result.text == "there"
    assert whys(told) == ["unreachable"]


@pytest.mark.parity("C12")
async def test_the_same_request_is_sent_again_and_no_hook_is_asked_again() -> None:
    """A hook that compacts or counts would do it once per hiccup of the network."""
    asked: list[str] = []

    async def to_model(messages: Any, cancel: Any) -> Any:
        asked.append("to_model")
        return messages

    hooks = Hooks[Any](
        prepare_context=lambda context: asked.append("prepare_context"),
        before_model_request=lambda context: asked.append("before_model_request") or UseRequest(),
        after_model_response=lambda context: asked.append(f"after_model_response {context.message.text}"),
    )
    model = Scripted(["a", Dropped("cut")], Overloaded("busy"), "kept")
    await outcome(model, hooks=hooks, to_model=to_model)
    assert asked == ["prepare_context", "before_model_request", "to_model", "after_model_response kept"]
    assert model.requests[0] is model.requests[1] is model.requests[2]


@pytest.mark.parity("C12")
async def test_j2_one_start_for_each_attempt_and_one_for_the_turn() -> None:
    """A viewer that opens a bubble per turn would open another for each hiccup."""
    model = Scripted(Overloaded("busy"), ["a", Dropped("cut")], "kept")
    _, told, _ = await outcome(model)
    assert len(told.of(TurnStarted)) == 1
    starts = [event for event in told.of(MessageStarted) if event.role == "assistant"]
    assert [start.attempt for start in starts] == [2, 3]
    assert len({start.message_id for start in starts}) == 1
    finished = [event.message for event in told.of(MessageFinished)]
    assert reply(finished).id == starts[0].message_id


@pytest.mark.parity("C12")
async def test_j1_what_was_shown_is_taken_back_before_it_comes_again() -> None:
    """The complaint of every peer: the text stood there twice."""
    model = Scripted(["Hello", Dropped("cut")], ["Hello wor", Dropped("cut")], "Hello world", piece=2)
    _, told, _ = await outcome(model)
    discarded = told.of(AttemptDiscarded)
    assert [event.partial and event.partial.text for event in discarded] == ["Hello", "Hello wor"]
    assert shown(told)[-1] == "Hello world"
    assert told.text() == "Hello world"
    assert all(len(after) > len(before) or after == "" for before, after in pairwise(shown(told)))


@pytest.mark.parity("C12")
async def test_discarded_without_a_word_there_is_nothing_to_take_back() -> None:
    _, told, _ = await outcome(Scripted(Overloaded("busy"), "kept"))
    assert told.one(AttemptDiscarded).partial is None


@pytest.mark.parity("C12")
async def test_j4_no_call_of_a_discarded_attempt_is_ever_run() -> None:
    """Half a command is another command: a call counts when its reply is whole, and from its own attempt alone."""
    cut = says(CallChunk(0, "c1", "look", '{"city": "Os'), TextChunk("x"))
    complete = says(CallChunk(0, "c1", "look", '{"city": "Rome"}'))
    whole = says(CallChunk(0, "c1", "look", '{"city": "Oslo"}'), FinishChunk("tool_calls"))
    result, _, _ = await outcome(Streams(cut, complete, whole, says(TextChunk("done"), FinishChunk())))
    assert LOOKED == ["Oslo"]
    assert result.text == "done"
    assert result.turns == 2


async def test_j3_what_was_shown_does_not_forbid_to_ask_again() -> None:
    """Words and even a whole call are only words, until a call of the turn has started: then the turn is past asking."""
    shown_all = ["Let me look.", CALL, Dropped("just before the end")]
    result, told, _ = await outcome(Scripted(shown_all, ["Let me look.", CALL], "rain"))
    assert (result.status, result.text, LOOKED) == ("done", "rain", ["Oslo"])
    assert counted(told) == [(1, 3)]
    kinds = told.kinds(AttemptDiscarded, ToolStarted)
    assert kinds == ["attempt_discarded", "tool_started"]


@pytest.mark.parity("C12")
async def test_a_used_up_budget_ends_the_run_with_what_was_received() -> None:
    """A person should see what there was, why it stopped, and be able to go on."""
    model = Scripted(*[[f"try {n}", CALL, Dropped("cut off")] for n in range(4)])
    result, told, cause = await outcome(model)
    assert result.status == "error"
    assert isinstance(cause, Dropped)
    assert result.reason == "cut off (after 4 attempts)"
    last = reply(result.messages)
    assert (last.text, last.stop_reason, last.partial, last.calls) == ("try 3", "error", True, ())
    assert LOOKED == []
    assert validate(result.messages) == []
    assert told.one(RunFinished).error == result.reason


@pytest.mark.parity("C12")
async def test_no_retries_means_none() -> None:
    result, told, _ = await outcome(Scripted(["a", Dropped("cut")], "never"), Recovery(retries=0))
    assert (result.status, result.requests) == ("error", 1)
    assert told.of(AttemptDiscarded) == []


@pytest.mark.parametrize(
    ("error", "requests"),
    [
        (Dropped("x"), 3),
        (Overloaded("x"), 3),
        (RateLimited("x"), 3),
        (Unreachable("x"), 3),
        (Garbled("x"), 3),
        (Rejected("x", status=400), 1),
        (Unauthorized("x"), 1),
        (RateLimited("no money", recovery="never"), 1),
        (ModelError("whatever"), 1),
        (ModelError("odd", recovery="now"), 3),
        (ValueError("not a model's error at all"), 1),
    ],
    ids=repr,
)
async def test_j7_only_what_may_pass_is_repeated(error: Exception, requests: int) -> None:
    """A refused request is refused again; repeating it only makes the server angry."""
    model = Scripted(*[error] * 5)
    result, _, cause = await outcome(model, Recovery(retries=2, delay=0.01))
    assert result.status == "error"
    assert len(model.requests) == result.requests == requests
    assert cause is error or (cause is not None and cause.__cause__ is error)


async def test_waits_have_jitter_within_its_bounds() -> None:
    """A thousand clients that lost one server must not come back in the same instant."""
    seen: list[float] = []
    for _ in range(20):
        model = Scripted(Overloaded("x"), Overloaded("x"), "ok")
        _, told, _ = await outcome(model, Recovery(delay=1, jitter=0.5))
        first, second = waits(told)
        assert 1 <= first <= 1.5
        assert 2 <= second <= 3
        seen.append(first)
    assert len(set(seen)) > 1


@pytest.mark.parity("C12")
async def test_stopping_ends_the_wait_at_once() -> None:
    """A person who presses stop while it waits must not wait with it."""
    for stop in ("run.stop", "token", "leave", "task"):
        model = Scripted(["a", Dropped("cut")], "never")
        token = CancelToken()
        run = Agent(model, recovery=Recovery(delay=50)).run("go", cancel=token)
        told = record(run)
        began = anyio.current_time()
        with anyio.CancelScope() as scope:
            async with run:
                async for event in run:
                    if isinstance(event, AttemptDiscarded):
                        match stop:
                            case "run.stop":
                                run.stop("enough")
                            case "token":
                                token.cancel("enough")
                            case "leave":
                                break
                            case _:
                                scope.cancel()
        assert anyio.current_time() - began < 1, stop
        assert run.result.status == "aborted"
        assert len(model.requests) == 1
        assert validate(run.result.messages) == []
        told.check()


async def test_what_is_discarded_is_told_before_the_wait_begins() -> None:
    """The barrier holds here too: a viewer has taken the words back when the pause begins."""
    log: list[str] = []

    async def slow(event: Any) -> None:
        if isinstance(event, AttemptDiscarded):
            await anyio.sleep(0.5)
            log.append(f"taken back at {anyio.current_time() - began:g}")

    model = Scripted(["a", Dropped("cut")], lambda request: log.append("asked again") or "b")
    run = Agent(model, recovery=STEADY).run("go")
    run.subscribe(slow)
    began = anyio.current_time()
    await run
    assert log == ["taken back at 0.5", "asked again"]
    assert anyio.current_time() - began == pytest.approx(1.5)


@pytest.mark.parity("B1")
async def test_discarded_attempts_count_in_the_usage() -> None:
    """They are paid for."""
    first = [UsageChunk(Usage(input=10, output=2)), "a", Dropped("cut")]
    second = [UsageChunk(Usage(input=10, output=5)), "ab"]
    result, _, _ = await outcome(Scripted(first, second))
    assert result.usage == Usage(input=20, output=7)
    assert result.last_usage == Usage(input=10, output=5)
    assert (result.turns, result.requests) == (1, 2)


async def test_j8_attempts_count_as_requests_and_not_as_turns() -> None:
    """A limit on requests is a limit on what is paid; a limit on turns is one on the conversation."""
    reached, told, _ = await outcome(Scripted(Overloaded("x"), Overloaded("x"), "late"), limits=Limits(requests=2))
    assert (reached.status, reached.requests) == ("limit", 2)
    limit = told.one(LimitReached)
    assert (limit.which, limit.limit) == ("requests", 2)
    edge, _, _ = await outcome(Scripted(Overloaded("x"), "in time"), limits=Limits(requests=2, turns=1))
    assert (edge.status, edge.text) == ("done", "in time")


async def test_a_whole_reply_whose_stream_does_not_close_is_a_reply() -> None:
    """Everything was said: what breaks after the terminal marker changes nothing."""

    async def breaks() -> AsyncIterator[Delta]:
        try:
            yield TextChunk("all")
            yield FinishChunk()
        finally:
            raise Dropped("the connection broke while it was closed")

    result, _, _ = await outcome(Streams(breaks))
    assert (result.status, result.text, result.requests) == ("done", "all", 1)
    assert [code for code, _ in result.warnings] == ["model_close_failed"]
