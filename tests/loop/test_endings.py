"""Endings: whatever happens, the transcript can be sent again, nothing that was said is lost, and nothing is sent twice."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.errors import Dropped, Rejected
from antiphon.loop.hooks import Hooks, ModelContext, Stop, UseRequest
from antiphon.loop.limits import Limits
from antiphon.loop.spec import Recovery
from antiphon.providers.scripted import Scripted
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.events import (
    MessageFinished,
    MessageStarted,
)
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from antiphon.types.request import FinishChunk, ModelRequest
from antiphon.types.result import RunError, RunResult
from antiphon.types.transcript import validate
from antiphon.types.usage import Usage

from .scenarios import Gate, Heard, accepted, call, faults, hopping, id_of, outcomes, tool

pytestmark = pytest.mark.anyio


async def failed(*replies: Any, **options: Any) -> tuple[RunResult[str], Heard]:
    """A run that ends in an error, and is sound."""
    run = Agent(Scripted(*replies), tools=[tool("look")], recovery=Recovery(retries=0), **options).run("hi")
    heard = Heard(run)
    with pytest.raises(RunError):
        await run
    assert faults(heard.events, run.result) == []
    return run.result, heard


async def aborted(script: list[Any]) -> RunResult[str]:
    """A run that was stopped after what the script says."""
    gate = Gate()
    run = Agent(Scripted([*script, gate])).run("hi")
    task = asyncio.create_task(hopping(run))
    await gate.reached.wait()
    run.stop()
    return await task


async def sent_after(result: RunResult[str]) -> list[Message]:
    """What the next request has, when a person goes on from there."""
    seen: list[ModelRequest] = []

    def answer(request: ModelRequest) -> str:
        seen.append(request)
        return "fine"

    await Agent(answer).run("and now?", messages=result.messages)
    assert validate(seen[0].messages) == []
    return list(seen[0].messages)


def told(messages: list[Message]) -> list[tuple[str, str]]:
    """Who says what."""
    return [(type(message).__name__.removesuffix("Message"), getattr(message, "text", "")) for message in messages]


# What the next request has


async def test_a_failed_reply_is_left_out_of_later_requests() -> None:
    """Half a sentence that an error cut off is no turn of the conversation."""
    result, _ = await failed(["Half of it", Rejected("no")])
    assert told(await sent_after(result)) == [("User", "hi"), ("User", "and now?")]


async def test_an_aborted_reply_is_sent_as_text_once_a_user_message_follows() -> None:
    """The person read it and answers to it."""
    result = await aborted([Thinking(text="hm"), "Half of ", "it"])
    sent = await sent_after(result)
    assert told(sent) == [("User", "hi"), ("Assistant", "Half of it"), ("User", "and now?")]
    reply = sent[1]
    assert isinstance(reply, AssistantMessage)
    assert (reply.partial, reply.parts) == (False, (Text("Half of it"),))
    stored = result.messages[1]
    assert isinstance(stored, AssistantMessage)
    assert stored.partial


async def test_an_aborted_reply_without_text_leaves_nothing_to_send() -> None:
    result = await aborted([Thinking(text="hm")])
    assert told(await sent_after(result)) == [("User", "hi"), ("User", "and now?")]
    reply = result.messages[1]
    assert isinstance(reply, AssistantMessage)
    assert (reply.parts[0], reply.partial) == (Thinking(text="hm", origin="scripted:scripted"), True)


async def test_calls_of_a_reply_that_was_cut_off_are_not_calls() -> None:
    """Half of the arguments is nothing that could be run or answered."""
    result = await aborted(["I look.", ToolCall(id="c1", name="look", arguments='{"city": "Os')])
    reply = result.messages[1]
    assert isinstance(reply, AssistantMessage)
    assert (reply.calls, reply.text) == ((), "I look.")
    assert outcomes(result) == {}


async def test_resuming_after_an_abort_asks_again_without_the_half_reply() -> None:
    """Nobody said anything new: the model is asked for its turn again."""
    result = await aborted(["Half"])
    model = Scripted("whole")
    again = await Agent(model).run(messages=result.messages)
    assert told(list(model.requests[0].messages)) == [("User", "hi")]
    assert told(list(again.messages)) == [("User", "hi"), ("Assistant", "whole")]


@pytest.mark.parity("C3")
async def test_resuming_after_an_error_drops_the_failed_reply_and_tells_the_new_one_once() -> None:
    result, _ = await failed([call("look")], ["Half", Rejected("no")])
    model = Scripted("whole")
    run = Agent(model, tools=[tool("look")]).run(resume=result.state)
    heard = Heard(run)
    again = await run
    assert told(list(model.requests[0].messages))[-1] == ("ToolResult", "look")
    assert [event.message.text for event in heard.of(MessageFinished)] == ["whole"]
    assert list(again.new_messages) == [again.messages[-1]]
    assert [message.text for message in again.messages if isinstance(message, AssistantMessage)] == ["", "whole"]


async def test_a_request_that_would_end_in_an_assistant_message_is_not_sent() -> None:
    """Half of all providers refuse it, the other half goes on writing it."""

    def shorten(context: ModelContext[Any]) -> Any:
        return UseRequest(messages=[*context.messages, AssistantMessage(parts=(Text("so"),))])

    model = Scripted("unheard")
    run = Agent(model, hooks=Hooks(before_model_request=shorten)).run("hi")
    with pytest.raises(RunError, match="end in an assistant message"):
        await run
    assert model.requests == []


async def test_a_transcript_that_cannot_be_sent_is_refused_by_name_and_not_sent() -> None:
    """F9: a call that an older program left open in the middle would be refused by the provider in its own words."""
    broken = [
        UserMessage.of("a", id="u1"),
        AssistantMessage(parts=(ToolCall(id="c1", name="look"),), id="a1"),
        UserMessage.of("b", id="u2"),
    ]
    model = Scripted("unheard")
    run = Agent(model).run("c", messages=broken)
    with pytest.raises(RunError, match=r"message 1: call 'c1' has no result"):
        await run
    assert model.requests == []


async def test_open_calls_at_the_end_of_a_transcript_become_unknown() -> None:
    """F9: nobody knows how far the program came that left them; the model is told so."""
    left = [UserMessage.of("a"), AssistantMessage(parts=(ToolCall(id="c1", name="look"),), id="a1")]
    ran: list[int] = []
    look = tool("look", lambda: ran.append(1))
    result = await Agent(Scripted("I see"), tools=[look]).run("b", messages=left)
    assert (ran, outcomes(result)) == ([], {"c1": "unknown"})
    again = await Agent(Scripted("I see"), tools=[look]).run(messages=left, rerun_open=True)
    assert (ran, outcomes(again)) == ([1], {"c1": "ok"})


# What an ending leaves


async def test_a_failure_before_the_first_delta_leaves_a_message_that_says_so() -> None:
    """The conversation shows what happened, with a start and an end like every message."""
    result, heard = await failed(Rejected("no such model"))
    reply = result.messages[-1]
    assert isinstance(reply, AssistantMessage)
    assert (reply.parts, reply.error, reply.stop_reason) == ((), "no such model", "error")
    starts = [event.message_id for event in heard.of(MessageStarted)]
    assert starts.count(reply.id) == 1


async def test_a_failure_of_a_repeated_attempt_is_started_and_finished_like_any_message() -> None:
    run = Agent(Scripted(["Half", Dropped("lost")], Rejected("no")), recovery=Recovery(delay=0)).run("hi")
    heard = Heard(run)
    with pytest.raises(RunError, match="after 2 attempts"):
        await run
    assert faults(heard.events, run.result) == []


@pytest.mark.parametrize(
    "point", ["on_run_start", "prepare_context", "before_model_request", "after_model_response", "should_continue"]
)
async def test_a_hook_that_fails_leaves_the_prompt_and_an_error_that_can_be_seen(point: str) -> None:
    """The person's words are never lost to somebody's hook."""

    def broken(_context: object) -> None:
        raise ValueError("no database")

    points: dict[str, Any] = {point: broken}
    result, _ = await failed([call("look")], "unheard", hooks=Hooks(**points))
    assert told([result.messages[0]]) == [("User", "hi")]
    assert result.error == "ValueError: no database"
    assert await accepted(result.messages) == []


async def test_on_append_that_fails_ends_the_run_and_the_rest_is_announced_on_resume() -> None:
    """B16: an append-only log has neither a hole nor a message twice."""
    log: list[str] = []

    def append(message: Message) -> None:
        if len(log) == 2:
            raise OSError("disk full")
        log.append(id_of(message))

    result, _ = await failed([call("look")], "done", hooks=Hooks[Any](on_append=append))
    assert log == [id_of(message) for message in result.messages[:2]]
    healed: list[str] = []
    hooks = Hooks[Any](on_append=lambda message: healed.append(id_of(message)))
    again = await Agent(Scripted("done"), tools=[tool("look")], hooks=hooks).run(resume=result.state)
    assert log + healed == [id_of(message) for message in again.messages]


@pytest.mark.parity("A13")
@pytest.mark.parametrize("ending", ["done", "stopped", "aborted", "limit", "paused", "error"])
async def test_the_end_hook_is_called_once_for_every_ending_after_the_last_event(ending: str) -> None:
    """I6: with how it ended, why, and the whole transcript."""
    ends: list[Any] = []
    order: list[str] = []

    def end(context: Any) -> None:
        ends.append(context)
        order.append("on_run_end")

    def stop(context: ModelContext[Any]) -> Stop | None:
        if ending == "aborted":
            run.stop("enough")
        return Stop("veto") if ending == "stopped" else None

    replies = {"error": [Rejected("no")], "limit": [call("look")], "paused": [call("ask")]}.get(ending, ["fine"])
    agent = Agent(
        Scripted(replies, "unheard"),
        tools=[tool("look"), tool("ask", needs_approval=True)],
        hooks=Hooks[Any](on_run_end=end, before_model_request=stop),
        limits=Limits(turns=1),
    )
    run = agent.run("hi")
    run.subscribe(lambda event: order.append(type(event).__name__))
    with suppress(RunError):
        await run
    (context,) = ends
    assert (context.status, context.reason) == (ending, run.result.reason)
    assert list(context.messages) == list(run.result.messages)
    assert isinstance(context.error, Rejected if ending == "error" else type(None))
    assert order[-2:] == ["RunFinished", "on_run_end"]


async def test_an_end_hook_that_fails_only_warns_and_the_next_is_called(caplog: pytest.LogCaptureFixture) -> None:
    called: list[str] = []

    def broken(_context: object) -> None:
        called.append("agent")
        raise ValueError("no log")

    hooks, second = Hooks[Any](on_run_end=broken), Hooks[Any](on_run_end=lambda _context: called.append("run"))
    result = await Agent(Scripted("x"), hooks=hooks).run("hi", hooks=second)
    assert (result.status, called) == ("done", ["agent", "run"])
    assert result.warnings == (("on_run_end_failed", "on_run_end raised ValueError: no log"),)


async def test_what_a_reply_consumed_counts_whatever_became_of_it() -> None:
    """Discarded and failed attempts are paid for too."""
    used = Usage(input=10, output=1)
    replies = ([used, Dropped("lost")], [used, "half", Dropped("lost")], [used, Rejected("no")])
    run = Agent(Scripted(*replies), recovery=Recovery(delay=0)).run("hi")
    with pytest.raises(RunError):
        await run
    assert (run.result.usage.input, run.result.requests, run.result.turns) == (30, 3, 0)


async def test_an_empty_reply_that_is_kept_is_told_like_any_other() -> None:
    run = Agent(Scripted([FinishChunk()]), recovery=Recovery(empty_retries=0, on_empty="keep")).run("hi")
    heard = Heard(run)
    result = await run
    assert (result.status, result.text) == ("done", "")
    assert faults(heard.events, result) == []


async def test_a_reply_that_a_stop_from_its_hook_overtakes_is_kept_with_its_calls_not_run() -> None:
    """It was complete, the person may have read it; what it asked for was not done."""
    hooks = Hooks[Any](after_model_response=lambda _context: Stop("veto"))
    run = Agent(Scripted(["I look.", call("look")]), tools=[tool("look")], hooks=hooks).run("hi")
    heard = Heard(run)
    result = await run
    assert (result.status, outcomes(result)) == ("stopped", {"look-1": "not_run"})
    assert isinstance(result.messages[-1], ToolResultMessage)
    assert faults(heard.events, result) == []
    assert await accepted(result.messages) == []
