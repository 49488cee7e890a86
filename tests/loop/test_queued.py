"""Messages for later: delivered at their moment, or handed back, or kept in the state; never lost and never said twice."""

from contextlib import suppress
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.errors import Rejected
from antiphon.loop.hooks import Hooks, ModelContext, Stop
from antiphon.loop.limits import Limits
from antiphon.loop.state import Approve
from antiphon.providers.scripted import Scripted
from antiphon.types.events import (
    MessageDelivered,
    MessageReturned,
    RunFinished,
    TurnStarted,
)
from antiphon.types.messages import Message, UserMessage
from antiphon.types.result import RunError

from .scenarios import Heard, call, faults, tool

pytestmark = pytest.mark.anyio


def told(messages: list[Message]) -> list[tuple[str, str]]:
    """Who says what."""
    return [(type(message).__name__.removesuffix("Message"), getattr(message, "text", "")) for message in messages]


@pytest.mark.parity("C9")
async def test_steering_comes_after_the_running_tools_and_before_the_next_request() -> None:
    async def look() -> str:
        run.steer("in Celsius, please")
        return "6"

    model = Scripted([call("look")], "6 °C")
    run = Agent(model, tools=[tool("look", look)]).run("weather?")
    heard = Heard(run)
    result = await run
    assert told(list(model.requests[1].messages))[-2:] == [("ToolResult", "6"), ("User", "in Celsius, please")]
    assert faults(heard.events, result) == []


async def test_a_follow_up_waits_until_nothing_else_is_left_to_do() -> None:
    model = Scripted([call("look")], "fine", "and more")
    run = Agent(model, tools=[tool("look")]).run("hi")
    run.subscribe(
        lambda event: (
            (run.follow_up("more?"), run.steer("first")) if isinstance(event, TurnStarted) and event.turn == 1 else None
        )
    )
    heard = Heard(run)
    result = await run
    assert [told(list(request.messages))[-1] for request in model.requests] == [
        ("User", "hi"),
        ("User", "first"),
        ("User", "more?"),
    ]
    assert [event.queue for event in heard.of(MessageDelivered)] == ["steering", "follow_up"]
    assert faults(heard.events, result) == []


@pytest.mark.parametrize("ending", ["limit", "stopped", "aborted", "error"])
async def test_what_was_queued_and_not_delivered_is_handed_back_once(ending: str) -> None:
    """In `undelivered` and in receipts; not in the state as well, or a resumed run would say it twice."""

    def stop(context: ModelContext[Any]) -> Stop | None:
        return Stop("veto") if ending == "stopped" and context.step == 2 else None

    async def look() -> str:
        run.follow_up("one")
        run.follow_up("two")
        if ending == "aborted":
            run.stop()
        return "x"

    replies = [[call("look")], Rejected("no") if ending == "error" else [call("look", "again")], "unheard"]
    limits = Limits(turns=1 if ending == "limit" else 9)
    agent = Agent(Scripted(*replies), tools=[tool("look", look)], hooks=Hooks(before_model_request=stop), limits=limits)
    run = agent.run("hi")
    heard = Heard(run)
    with suppress(RunError):
        await run
    result = run.result
    assert result.status == ending
    assert [message.text for message in result.undelivered if isinstance(message, UserMessage)] == ["one", "two"]
    assert [(event.queue, event.why) for event in heard.of(MessageReturned)] == [("follow_up", ending)] * 2
    assert (result.state.get("steering", []), result.state.get("follow_ups", [])) == ([], [])
    assert faults(heard.events, result) == []


async def test_a_paused_run_keeps_what_was_queued_and_delivers_it_first_when_resumed() -> None:
    run = Agent(Scripted([call("ask")]), tools=[tool("ask", needs_approval=True)]).run("hi")
    run.subscribe(lambda event: run.steer("quickly") if isinstance(event, TurnStarted) else None)
    heard = Heard(run)
    result = await run
    assert (result.status, result.undelivered) == ("paused", ())
    assert faults(heard.events, result) == []
    model = Scripted("done")
    again = Agent(model, tools=[tool("ask", needs_approval=True)]).run(
        resume=result.state, decisions={"ask-1": Approve()}
    )
    second = Heard(again)
    final = await again
    assert told(list(model.requests[0].messages))[-2:] == [("ToolResult", "ask"), ("User", "quickly")]
    assert len(second.of(MessageDelivered)) == 1
    assert faults(second.events, final) == []


async def test_a_message_queued_while_the_run_closes_is_refused_not_swallowed() -> None:
    """From the moment that queues are handed back, nobody may believe that they were heard."""
    refused: list[str] = []

    def late(event: object) -> None:
        if isinstance(event, MessageReturned | RunFinished):
            try:
                run.steer("too late")
            except Exception as error:  # noqa: BLE001 - what it says is looked at
                refused.append(str(error))
        elif isinstance(event, TurnStarted):
            run.follow_up("in time")
            run.stop()

    run = Agent(Scripted("x")).run("hi")
    run.subscribe(late)
    heard = Heard(run)
    result = await run
    assert len(result.undelivered) == 1
    assert len(refused) == 2
    assert all("start another run" in text for text in refused)
    assert faults(heard.events, result) == []
