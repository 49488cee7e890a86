"""Streams that are open and dead: how long silence may last, and what counts as silence."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from antiphon import Agent, Recovery, Stalled, TextDelta, ToolFinished, Usage, tool
from antiphon.testing import Scripted, record
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)

from .drills import Streams, outcome, says, whys

pytestmark = pytest.mark.anyio

ONCE = Recovery(retries=0)
FOREVER = 10_000.0


async def stalls(*deltas: Delta | float, recovery: Recovery = ONCE) -> tuple[float, str]:
    """After how many seconds the reply is given up, and with what words."""
    began = anyio.current_time()
    result, _, cause = await outcome(Streams(says(*deltas)), recovery)
    assert result.status == "error"
    assert isinstance(cause, Stalled)
    return anyio.current_time() - began, str(cause)


async def test_d10_a_half_open_connection_ends_in_a_typed_stall() -> None:
    """No packet says that the other side is gone: without a limit the reader waits for ever."""
    assert await stalls(FOREVER) == (120, "no first token came from the model for 120 s")


async def test_d10_silence_in_the_middle_is_shorter_than_silence_before_it() -> None:
    """A model may think for two minutes before its first word; between two words it does not."""
    assert await stalls(1, TextChunk("a"), FOREVER) == (61, "nothing more came from the model for 60 s")
    assert await stalls(100, TextChunk("a"), 50, TextChunk("b"), FOREVER) == (
        210,
        "nothing more came from the model for 60 s",
    )


async def test_a_reply_that_never_ends_is_given_up() -> None:
    """Each gap is short, and still it does not come to its end."""
    drip = [item for _ in range(30) for item in (50, TextChunk("a"))]
    assert await stalls(*drip) == (600, "the model did not finish its reply in time")


HEARTBEATS = [
    TextChunk(""),
    ThinkingChunk(""),
    UsageChunk(Usage(input=1)),
    WarningChunk("odd", "a sign of life"),
    CallChunk(0),
]


@pytest.mark.parametrize("beat", HEARTBEATS, ids=lambda beat: type(beat).__name__)
async def test_heartbeats_do_not_keep_a_dead_stream_alive(beat: Delta) -> None:
    """A proxy in between keeps the line warm for a server that died."""
    assert (await stalls(*[beat, 10] * 100))[0] == 120
    assert (await stalls(TextChunk("a"), *[beat, 10] * 100))[0] == 60


SIGNS = [
    TextChunk("a"),
    TextChunk("", "signed"),
    ThinkingChunk("hm"),
    ThinkingChunk("", "signed"),
    CallChunk(0, "c", "look"),
    CallChunk(0, arguments='{"ci'),
    WholeCall("look", '{"city": "Rome"}'),
]


@pytest.mark.parametrize("sign", SIGNS, ids=repr)
async def test_whatever_a_reader_can_use_is_a_sign_of_life(sign: Delta) -> None:
    slow = [item for _ in range(8) for item in (50, sign)]
    began = anyio.current_time()
    recovery = Recovery(retries=0, on_empty="keep", empty_retries=0)
    result, _, _ = await outcome(Streams(says(*slow, FinishChunk()), says(TextChunk("end"), FinishChunk())), recovery)
    assert result.status == "done"
    assert anyio.current_time() - began == 400


@pytest.mark.parametrize("off", [None, 0])
async def test_each_limit_can_be_turned_off(off: float | None) -> None:
    patient = Recovery(first_token=off, idle=off, request=off)
    result, _, _ = await outcome(Streams(says(5000, TextChunk("a"), 5000, TextChunk("b"), FinishChunk())), patient)
    assert result.text == "ab"


@pytest.mark.parametrize(
    ("recovery", "after"),
    [
        (Recovery(retries=0, first_token=None), 61),
        (Recovery(retries=0, first_token=None, idle=None, request=90), 90),
        (Recovery(retries=0, first_token=5, idle=None), 600),
        (Recovery(retries=0, first_token=5, idle=7), 8),
        (Recovery(retries=0, first_token=1000, idle=900, request=0), 901),
    ],
)
async def test_the_limits_are_independent(recovery: Recovery, after: float) -> None:
    assert (await stalls(1, TextChunk("a"), FOREVER, recovery=recovery))[0] == after


async def test_a_stall_is_repeated_like_a_drop() -> None:
    """The connection is closed, and another is tried."""
    closed: list[str] = []

    async def dead() -> AsyncIterator[Delta]:
        try:
            yield TextChunk("a")
            await anyio.sleep_forever()
        finally:
            closed.append("closed")

    result, told, _ = await outcome(Streams(dead, says(TextChunk("ok"), FinishChunk())))
    assert (result.text, told.text(), whys(told), closed) == ("ok", "ok", ["stalled"], ["closed"])


async def test_time_spent_on_listeners_does_not_count() -> None:
    """A slow disk of the application is no fault of the model's, and its listener must not be cut off."""
    finished: list[str] = []

    async def slow(event: Any) -> None:
        if isinstance(event, TextDelta):
            await anyio.sleep(400)
            finished.append(event.text)

    model = Streams(says(1, TextChunk("a"), 30, TextChunk("b"), 30, TextChunk("c"), 30, FinishChunk()))
    run = Agent(model, recovery=ONCE).run("go")
    run.subscribe(slow)
    began = anyio.current_time()
    assert (await run).text == "abc"
    assert finished == ["a", "b", "c"]
    assert anyio.current_time() - began == 3 * 400 + 91


async def test_waiting_for_listeners_does_not_refresh_the_patience_either() -> None:
    """Otherwise a warning for each heartbeat would keep a dead stream alive as soon as somebody listens."""

    async def slow(event: Any) -> None:
        await anyio.sleep(1)

    beats = [item for _ in range(100) for item in (WarningChunk("odd", "beat"), 10)]
    run = Agent(Streams(says(TextChunk("a"), *beats)), recovery=Recovery(retries=0, idle=60)).run("go")
    run.subscribe(slow)
    with pytest.raises(Exception, match="nothing more came from the model for 60 s"):
        await run


async def test_tools_and_persons_are_not_the_model() -> None:
    """The limits are on waiting for the model alone."""

    @tool(timeout=0)
    async def slow() -> str:
        """Take an hour."""
        await anyio.sleep(3600)
        return "done"

    model = Streams(says(WholeCall("slow", "{}"), FinishChunk("tool_calls")), says(TextChunk("ok"), FinishChunk()))
    run = Agent(model, tools=[slow]).run("go")
    told = record(run)
    result = await run
    assert result.text == "ok"
    assert told.one(ToolFinished).outcome == "ok"


async def test_a_finished_reply_is_not_watched_any_more() -> None:
    """A connection that is slow to close belongs to a reply that is whole."""

    async def slow_to_close() -> AsyncIterator[Delta]:
        try:
            yield TextChunk("all")
            yield FinishChunk()
        finally:
            await anyio.sleep(3600)

    result, _, _ = await outcome(Streams(slow_to_close))
    assert (result.status, result.text, result.requests) == ("done", "all", 1)


async def test_nothing_is_left_of_the_watch() -> None:
    """A timer that outlives its run would cancel somebody else's scope."""
    loop: Any = asyncio.get_running_loop()
    before = [timer for timer in loop._scheduled if not timer.cancelled()]
    await Agent(Scripted("a", "b")).run("go")
    assert [timer for timer in loop._scheduled if not timer.cancelled()] == before
