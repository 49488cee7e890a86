"""One reply: deltas in, events out, a message at the end; whatever a model does, its stream is closed and nothing hangs."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from antiphon.agent.agent import Agent
from antiphon.errors import Dropped, ModelError
from antiphon.loop.spec import Recovery
from antiphon.providers.scripted import Scripted
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.events import AttemptDiscarded, MessageStarted, RunFinished, TextDelta, Warned
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    ModelInfo,
    ModelRequest,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)
from antiphon.types.result import RunError
from antiphon.types.usage import Usage

from .scenarios import Gate, Heard, call, faults, hopping, tool

pytestmark = [pytest.mark.anyio, pytest.mark.parity("A16")]

ANY: dict[str, Any] = {"type": "object"}
ONCE = Recovery(retries=0)


class Streaming:
    """A model whose stream a test makes."""

    info = ModelInfo(provider="test", id="test-1")

    def __init__(self, *streams: Callable[[], AsyncIterator[Delta]]) -> None:
        self.streams = list(streams)
        self.closed = 0

    def stream(self, _request: ModelRequest) -> AsyncIterator[Delta]:
        return self.streams.pop(0)()


async def reply_to(*deltas: Any) -> AssistantMessage:
    """The first reply of a run that is sound."""
    run = Agent(Scripted(list(deltas), "done"), tools=[tool("look", parameters=ANY)]).run("hi")
    heard = Heard(run)
    result = await run
    assert faults(heard.events, result) == []
    return next(message for message in result.messages if isinstance(message, AssistantMessage))


async def test_fragments_become_parts_in_the_order_in_which_they_came() -> None:
    reply = await reply_to(
        ThinkingChunk("I "),
        ThinkingChunk("think", "sig"),
        TextChunk("Let "),
        TextChunk("me "),
        CallChunk(0, "c1", "look", '{"city"'),
        CallChunk(1, "c2", "look", "{}"),
        CallChunk(0, arguments=': "Oslo"}'),
        TextChunk("see."),
    )
    assert reply.parts == (
        Thinking(text="I think", signature="sig", origin="scripted:scripted"),
        Text("Let me "),
        ToolCall(id="c1", name="look", arguments='{"city": "Oslo"}'),
        ToolCall(id="c2", name="look", arguments="{}"),
        Text("see."),
    )


@pytest.mark.parity("A16")
@pytest.mark.parametrize("arguments", ['{"city":"Oslo"}', {"city": "Oslo"}])
async def test_a_whole_call_has_its_arguments_as_text_or_as_an_object(arguments: Any) -> None:
    reply = await reply_to(WholeCall("look", arguments, "c1"))
    assert reply.calls == (ToolCall(id="c1", name="look", arguments='{"city":"Oslo"}'),)
    assert reply.calls[0].parse() == {"city": "Oslo"}


async def test_a_reply_says_where_it_came_from_and_what_it_took() -> None:
    usage = Usage(input=3, output=2)
    reply = await reply_to("hi", UsageChunk(usage), FinishChunk("stop", response_id="resp-1", model="served-2"))
    assert (reply.provider, reply.model, reply.response_id) == ("scripted", "served-2", "resp-1")
    assert (reply.usage, reply.stop_reason, reply.partial) == (usage, "stop", False)
    assert reply.id
    assert reply.created_at


async def test_complete_calls_decide_what_follows_not_the_label() -> None:
    """Servers say `stop` and mean `tool_calls`, and the other way round."""
    model = Scripted([call("look"), FinishChunk("stop")], ["fine", FinishChunk("tool_calls")])
    result = await Agent(model, tools=[tool("look")]).run("hi")
    assert (result.status, result.turns, result.text) == ("done", 2, "fine")


@pytest.mark.parity("B18")
async def test_what_is_no_delta_is_told_of_and_passed_over() -> None:
    """A newer provider may say more than this version understands."""

    async def strange() -> AsyncIterator[Any]:
        yield TextChunk("a")
        yield {"type": "from the future"}
        yield TextChunk("b")
        yield FinishChunk()

    run = Agent(Streaming(strange)).run("hi")
    heard = Heard(run)
    result = await run
    assert result.text == "ab"
    assert [event.code for event in heard.of(Warned)] == ["unknown_delta"]
    assert faults(heard.events, result) == []


async def test_a_models_warning_is_told_and_ends_nothing() -> None:
    run = Agent(Scripted(["a", WarningChunk("odd_sse", "a line without a colon"), "b"])).run("hi")
    result = await run
    assert (result.text, result.warnings) == ("ab", (("odd_sse", "a line without a colon"),))


async def test_nothing_is_read_after_the_end_of_a_reply() -> None:
    """Some servers hold the connection open for minutes after it."""
    ended: list[str] = []

    async def stream() -> AsyncIterator[Delta]:
        try:
            yield TextChunk("all")
            yield FinishChunk()
            await asyncio.Event().wait()
        finally:
            ended.append("closed")

    async with asyncio.timeout(5):
        assert (await Agent(Streaming(stream)).run("hi")).text == "all"
    assert ended == ["closed"]


async def test_a_stop_closes_the_stream_before_the_run_is_over() -> None:
    """F1: a server's slot, and the bill for it, end with the run, not with the garbage collector."""
    order, gate = list[str](), Gate()

    async def stream() -> AsyncIterator[Delta]:
        try:
            yield TextChunk("Half")
            await gate.wait()
        finally:
            with anyio.CancelScope(shield=True):  # a wait that must be, says so
                await asyncio.sleep(0)
            order.append("closed")

    run = Agent(Streaming(stream)).run("hi")
    run.subscribe(lambda event: order.append("finished") if isinstance(event, RunFinished) else None)
    task = asyncio.create_task(hopping(run))
    await gate.reached.wait()
    run.stop()
    await task
    assert order == ["closed", "finished"]


async def test_a_stop_between_two_deltas_closes_the_stream_too() -> None:
    closed: list[str] = []

    async def stream() -> AsyncIterator[Delta]:
        try:
            for _ in range(100):
                yield TextChunk("x")
        finally:
            closed.append("closed")

    run = Agent(Streaming(stream)).run("hi")
    run.subscribe(lambda event: run.stop() if isinstance(event, TextDelta) else None)
    assert (await run).text == "x"
    assert closed == ["closed"]


async def test_a_model_whose_stream_is_no_generator_is_a_model_too() -> None:
    """`Model` asks for an async iterator, no more."""

    class Plain:
        def __init__(self) -> None:
            self.rest: list[Delta] = [TextChunk("plain"), FinishChunk()]

        def __aiter__(self) -> "Plain":
            return self

        async def __anext__(self) -> Delta:
            if not self.rest:
                raise StopAsyncIteration
            return self.rest.pop(0)

    result = await Agent(Streaming(Plain)).run("hi")
    assert (result.text, result.warnings) == ("plain", ())


async def test_a_stream_that_ends_without_its_end_was_dropped() -> None:
    """A cut connection looks like a short answer to whoever does not look for the end."""

    async def cut() -> AsyncIterator[Delta]:
        yield TextChunk("Half")

    async def whole() -> AsyncIterator[Delta]:
        yield TextChunk("Whole")
        yield FinishChunk()

    run = Agent(Streaming(cut, whole), recovery=Recovery(delay=0)).run("hi")
    heard = Heard(run)
    result = await run
    assert (result.text, result.requests, result.turns) == ("Whole", 2, 1)
    (discarded,) = heard.of(AttemptDiscarded)
    assert (discarded.why, discarded.partial.text) == ("dropped", "Half")
    assert [event.attempt for event in heard.of(MessageStarted) if event.role == "assistant"] == [1, 2]
    assert faults(heard.events, result) == []
    with pytest.raises(RunError, match="without its terminal marker") as caught:
        await Agent(Streaming(cut), recovery=ONCE).run("hi")
    assert isinstance(caught.value.__cause__, Dropped)


async def test_what_a_model_raises_besides_its_own_errors_is_final_and_keeps_its_cause() -> None:
    """A bug in a model is not repeated three times."""
    bug = KeyError("choices")

    async def buggy() -> AsyncIterator[Delta]:
        yield TextChunk("Half")
        raise bug

    run = Agent(Streaming(buggy)).run("hi")
    with pytest.raises(RunError, match="the model raised KeyError: 'choices'") as caught:
        await run
    assert isinstance(caught.value.__cause__, ModelError)
    assert caught.value.__cause__.__cause__ is bug
    assert run.result.text == "Half"


async def test_a_model_that_fails_before_it_streams_fails_the_same_way() -> None:
    class Broken:
        info = None

        def stream(self, _request: ModelRequest) -> AsyncIterator[Delta]:
            raise KeyError("url")

    with pytest.raises(RunError, match="KeyError"):
        await Agent(Broken()).run("hi")


async def test_a_stream_that_cannot_be_closed_does_not_take_the_whole_reply_back() -> None:
    async def stream() -> AsyncIterator[Delta]:
        try:
            yield TextChunk("all")
            yield FinishChunk()
        finally:
            raise OSError("connection reset")

    result = await Agent(Streaming(stream)).run("hi")
    assert (result.status, result.text) == ("done", "all")
    assert [code for code, _ in result.warnings] == ["model_close_failed"]


async def test_streams_leave_nothing_for_the_garbage_collector() -> None:
    """An async generator that is found later is closed in whatever task then runs."""
    for replies in (["x"], ["Half", Dropped("lost")], ["Half", KeyError("bug")]):
        run = Agent(Scripted(replies), recovery=ONCE).run("hi")
        run.subscribe(lambda event: run.stop() if isinstance(event, TextDelta) and event.text == "Half" else None)  # noqa: B023
        await run
    gc.collect()
    assert [task for task in asyncio.all_tasks() if "athrow" in repr(task)] == []
