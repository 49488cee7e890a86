"""Calls that wait for a person: the conversation rests, shows what waits, and goes on with the decisions."""

from typing import Any

import pytest

from antiphon import (
    Agent,
    Answer,
    ApprovalRequested,
    Approve,
    Deny,
    RunFinished,
    ToolContext,
    ToolFinished,
    ToolStarted,
    UsageError,
    UserMessage,
    View,
    tool,
    validate,
)
from antiphon.testing import Scripted

from .talks import ADD, AT_ONCE, PAY, add, call, heard, lines, pay, talk

pytestmark = pytest.mark.anyio

PAY_TOO = call("pay", "p2", '{"amount": 7}')


@pytest.mark.parity("C3")
async def test_a_paused_conversation_shows_what_it_waits_for() -> None:
    chat, _ = talk([ADD, PAY], "done", tools=[add, pay])
    view = View()
    chat.subscribe(view.apply)
    result = await chat.prompt("both")
    assert (result.status, chat.status, chat.paused, chat.running) == ("paused", "paused", True, False)
    assert [waits.id for waits in chat.pending] == ["p1"]
    assert view.waiting_calls == {"p1"}
    assert lines(chat.messages) == ["user: both", "assistant: [a1] [p1]"]


@pytest.mark.parity("C2")
async def test_a_prompt_while_paused_is_refused_with_the_way_out() -> None:
    """A reply whose calls have no results cannot be sent; deciding is the way on, denying everything the way out."""
    chat, _ = talk([PAY], "denied", tools=[pay])
    await chat.prompt("pay")
    for attempt in (chat.prompt("hello?"), chat.live("hello?").__aenter__()):
        with pytest.raises(
            UsageError, match=r"calls wait for decisions \('p1'\): resume\(decisions=…\), with all denied"
        ):
            await attempt
    for change in (lambda: chat.clear_messages(), lambda: chat.append_message(UserMessage.of("x"))):
        with pytest.raises(UsageError, match="while calls wait for decisions"):
            change()
    with pytest.raises(UsageError, match="no run goes on"):
        chat.decide({"p1": Approve()})
    chat.abort()
    assert chat.paused
    await chat.resume(decisions={waits.id: Deny("changed my mind") for waits in chat.pending})
    assert lines(chat.messages)[2] == 'p1 denied: <tool_error name="pay">changed my mind</tool_error>'
    assert not chat.paused


@pytest.mark.parity("C3")
async def test_resume_with_decisions_goes_on_where_it_paused() -> None:
    chat, model = talk([ADD, PAY, PAY_TOO], "done", tools=[add, pay])
    told = heard(chat)
    await chat.prompt("all")
    first = await chat.resume(decisions={"p2": Approve({"amount": 70})})
    assert (first.status, [waits.id for waits in chat.pending]) == ("paused", ["p1"])
    second = await chat.resume(decisions={"p1": Deny()})
    assert second.status == "done"
    assert [line[:12] for line in lines(chat.messages)[2:]] == [
        "a1 ok: 5",
        "p1 denied: <",
        "p2 ok: paid ",
        "assistant: d",
    ]
    assert "paid 70" in lines(chat.messages)[4]
    assert [event.call_id for event in told.of(ToolStarted)] == ["a1", "p2"]
    assert [event.call_id for event in told.of(ToolFinished)] == ["a1", "p2", "p1"]
    assert [event.status for event in told.of(RunFinished)] == ["paused", "paused", "done"]
    assert len(model.requests) == 2


@pytest.mark.parity("C3")
async def test_resume_without_decisions_pauses_again() -> None:
    chat, model = talk([PAY], "done", tools=[pay])
    await chat.prompt("pay")
    assert (await chat.resume()).status == "paused"
    assert (len(model.requests), [waits.id for waits in chat.pending]) == (1, ["p1"])
    assert (await chat.resume(decisions={"p1": Approve()})).status == "done"


@pytest.mark.parity("C3")
async def test_a_wrong_decision_is_refused_and_changes_nothing() -> None:
    chat, _ = talk([PAY], "done", tools=[pay])
    await chat.prompt("pay")
    wrongs: list[Any] = [{"p9": Approve()}, {"p1": Answer(1)}, {"p1": "yes"}]
    for wrong in wrongs:
        with pytest.raises(UsageError):
            await chat.resume(decisions=wrong)
    assert (chat.paused, chat.running, [waits.id for waits in chat.pending]) == (True, False, ["p1"])
    assert (await chat.resume(decisions={"p1": Approve()})).text == "done"


@pytest.mark.parity("C15")
async def test_a_tool_that_is_gone_is_an_error_result() -> None:
    """Settings changed while it waited hold for the run that goes on."""
    chat, _ = talk([PAY], "sorry", tools=[pay], instructions="Old.")
    await chat.prompt("pay")
    chat.configure(tools=[add])
    await chat.resume(decisions={"p1": Approve()})
    assert "p1 error" in lines(chat.messages)[2]
    assert "does not exist any more" in lines(chat.messages)[2]
    assert validate(chat.messages) == []


async def test_a_watched_run_waits_for_its_person_instead() -> None:
    """Somebody is there to decide."""
    chat, _ = talk([PAY], "paid", tools=[pay])
    view = View()
    chat.subscribe(view.apply)
    async with chat.live("pay") as run:
        async for event in run:
            if isinstance(event, ApprovalRequested):
                assert [waits.id for waits in chat.pending] == ["p1"]
                assert (chat.paused, chat.running, view.waiting_calls) == (False, True, {"p1"})
                chat.decide({event.call_id: Approve()})
                assert view.waiting_calls == set()
    assert (chat.status, chat.pending) == ("done", ())


async def test_a_paused_run_may_go_on_as_a_watched_one() -> None:
    chat, _ = talk([PAY, PAY_TOO], "paid", tools=[pay])
    await chat.prompt("pay")
    async with chat.live(decisions={"p1": Approve()}) as run:
        async for event in run:
            if isinstance(event, ToolFinished) and event.call_id == "p1":
                chat.decide({"p2": Deny("once is enough")})
    assert [line.split(":")[0] for line in lines(chat.messages)[2:4]] == ["p1 ok", "p2 denied"]


async def test_a_question_of_a_tool_is_answered_on_resume() -> None:
    @tool
    async def book(ctx: ToolContext[Any]) -> str:
        """Book a table."""
        return f"booked for {await ctx.ask('How many?')}"

    chat, _ = talk([call("book", "b1")], "done", tools=[book])
    view = View()
    chat.subscribe(view.apply)
    await chat.prompt("a table")
    assert (chat.paused, view.waiting_calls) == (True, {"b1"})
    await chat.resume(decisions={"b1": Answer(4)})
    assert lines(chat.messages)[2] == "b1 ok: booked for 4"
    assert (view.waiting_calls, view.running_calls) == (set(), set())


async def test_what_waits_inside_a_sub_agent_is_shown_with_its_path() -> None:
    """A person decides on the call, wherever it is made."""
    inner = Agent(Scripted([PAY, PAY_TOO], "paid both"), tools=[pay], recovery=AT_ONCE)
    chat, _ = talk([call("clerk", "k1", '{"prompt": "pay"}')], "done", tools=[inner.as_tool("clerk", "Pays.")])
    view = View()
    chat.subscribe(view.apply)
    await chat.prompt("pay")
    assert [waits.id for waits in chat.pending] == ["k1/p1", "k1/p2"]
    assert view.waiting_calls == {"k1/p1", "k1/p2"}
    await chat.resume(decisions={"k1/p1": Approve()})
    assert [waits.id for waits in chat.pending] == ["k1/p2"]
    assert view.waiting_calls == {"k1/p2"}
    await chat.resume(decisions={"k1/p2": Approve()})
    assert lines(chat.messages)[2:] == ["k1 ok: paid both", "assistant: done"]
    assert (view.waiting_calls, view.messages == chat.messages) == (set(), True)


async def test_h10_the_same_id_in_a_later_turn_is_another_call() -> None:
    """Gateways number their calls from one in each reply: ids are unique in their turn and no further."""
    chat, _ = talk([PAY], [PAY], "done", "again", tools=[pay])
    told = heard(chat)
    await chat.prompt("twice")
    await chat.resume(decisions={"p1": Approve()})
    assert chat.paused
    await chat.resume(decisions={"p1": Approve({"amount": 9})})
    assert [line for line in lines(chat.messages) if line.startswith("p1")] == ["p1 ok: paid 5", "p1 ok: paid 9"]
    assert [event.call_id for event in told.of(ToolStarted)] == ["p1", "p1"]
    await chat.prompt("more")
    assert validate(chat.messages) == []
