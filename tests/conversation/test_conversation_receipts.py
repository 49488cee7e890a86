"""A receipt for every message: delivered, or handed back, whatever ends the run and in whatever moment."""

from typing import Any

import pytest

from antiphon import (
    Approve,
    AttemptDiscarded,
    Dropped,
    Hooks,
    Limits,
    MessageDelivered,
    MessageFinished,
    MessageStarted,
    RunError,
    RunFinished,
    Stop,
    TextDelta,
    ToolStarted,
    TurnFinished,
    UseContext,
    UserMessage,
)

from .talks import ADD, PAY, add, fails, heard, lines, once, pay, receipts, talk

pytestmark = pytest.mark.anyio


ENDS: dict[str, dict[str, Any]] = {
    "limit": {"limits": Limits(turns=1)},
    "stopped": {"hooks": Hooks[Any](before_model_request=lambda c: Stop("enough") if c.step == 2 else None)},
    "should_continue": {"hooks": Hooks[Any](should_continue=lambda c: False)},
}


@pytest.mark.parity("C9")
@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
async def test_what_was_not_delivered_is_handed_back_and_waits(end: Any) -> None:
    """No ending eats a message."""
    chat, _ = talk([ADD], "five", "six", tools=[add], **end)
    told = heard(chat)

    def act() -> None:
        chat.steer("s")
        chat.follow_up("f")

    chat.subscribe(once(ToolStarted, act))
    result = await chat.prompt("2+3?")
    waiting = lines(chat.queued("steering") + chat.queued("follow_up"))
    delivered = len(told.of(MessageDelivered))
    assert sorted(lines(result.undelivered)) == sorted(waiting)
    assert len(waiting) + delivered == 2
    assert [line.split(":")[0] for line in receipts(told)[2 + delivered :]] == [
        f"returned {queue} user" for queue in ("steering", "follow_up")[delivered:]
    ]
    chat.use_agent(chat.agent.but(hooks=None, limits=Limits()))
    await chat.resume()
    assert {"user: s", "user: f"} <= set(lines(chat.messages))
    assert (chat.queued("steering"), chat.queued("follow_up")) == ((), ())


@pytest.mark.parity("C9")
async def test_queues_survive_failures() -> None:
    chat, _ = talk(*[["a", Dropped("x")]] * 4, "b", "c")
    chat.subscribe(once(AttemptDiscarded, lambda: chat.steer("s")))
    with pytest.raises(RunError):
        await chat.prompt("go")
    assert lines(chat.queued("steering")) == ["user: s"]
    await chat.resume()
    assert lines(chat.messages) == ["user: go", "user: s", "assistant: b"]


async def test_m5_a_message_of_the_last_moment_is_delivered_or_handed_back() -> None:
    """Between the last look into the queue and the end of the run nothing falls through."""
    moments: list[type[Any]] = [TextDelta, MessageFinished, TurnFinished, RunFinished]
    for moment in moments:
        chat, _ = talk("a", "b")
        told = heard(chat)
        ids: list[str] = []

        def last(event: Any, moment: Any = moment, chat: Any = chat, ids: list[str] = ids) -> None:
            is_reply = not isinstance(event, MessageFinished) or len(chat.messages) > 1
            if isinstance(event, moment) and is_reply and not ids:
                ids.append(chat.follow_up("one more"))

        chat.subscribe(last)
        await chat.prompt("go")
        said = [getattr(message, "id", "") for message in chat.messages]
        waits = [getattr(message, "id", "") for message in chat.queued("follow_up")]
        assert (said + waits).count(ids[0]) == 1, moment
        assert (ids[0] in said) == (moment is not RunFinished)
        told.check()


@pytest.mark.parity("C9")
async def test_what_is_queued_while_the_last_words_are_announced_opens_a_turn() -> None:
    """The reply is final, and the person speaks as soon as it is on the screen: the run is not over yet."""
    for kind in (MessageFinished, TurnFinished):
        chat, _ = talk("a", "b", "c")

        def speak(event: Any, kind: Any = kind, chat: Any = chat) -> None:
            if isinstance(event, kind) and len(chat.messages) == 2:
                chat.follow_up("f")
                chat.steer("s")

        chat.subscribe(speak)
        result = await chat.prompt("go")
        assert result.undelivered == ()
        assert lines(chat.messages)[1:] == ["assistant: a", "user: s", "assistant: b", "user: f", "assistant: c"]


async def test_m6_a_receipt_comes_when_the_request_is_made() -> None:
    """Told too early it would be a lie when the request fails to be made."""
    chat, model = talk("a", "b")
    order: list[str] = []
    hooks = Hooks[Any](
        prepare_context=lambda c: order.append("prepare_context"),
        before_model_request=lambda c: order.append("before_model_request"),
    )
    chat.configure(hooks=hooks)
    chat.subscribe(lambda e: order.append("delivered") if isinstance(e, MessageDelivered) else None)
    chat.subscribe(
        lambda e: order.append("streams") if isinstance(e, MessageStarted) and e.role == "assistant" else None
    )
    chat.steer("s")
    await chat.prompt("go")
    assert order == ["prepare_context", "before_model_request", "delivered", "streams"]
    assert "user: s" in lines(model.requests[0].messages)


async def test_m6_a_message_in_the_transcript_has_its_receipt_whatever_happens_then() -> None:
    """A hook that fails in between must not leave a message that is neither delivered nor handed back."""
    for failing in ("prepare_context", "before_model_request"):
        hook: dict[str, Any] = {failing: fails}
        chat, _ = talk("a", hooks=Hooks[Any](**hook))
        told = heard(chat)
        chat.steer("s")
        with pytest.raises(RunError):
            await chat.prompt("go")
        assert receipts(told) == ["queued steering user: s", "delivered steering"]
        assert lines(chat.messages)[:2] == ["user: go", "user: s"]


async def test_m6_a_context_that_drops_the_message_is_the_applications_own() -> None:
    keep = Hooks[Any](prepare_context=lambda c: UseContext(messages=c.messages[:1]))
    chat, model = talk("a", hooks=keep)
    told = heard(chat)
    chat.steer("s")
    await chat.prompt("go")
    assert lines(model.requests[0].messages) == ["user: go"]
    assert receipts(told)[-1] == "delivered steering"


async def test_the_same_message_queued_twice_is_two_messages() -> None:
    """A receipt is for one of them."""
    chat, _ = talk("a", "b", "c")
    again = UserMessage.of("again", id="same")
    chat.follow_up(again)
    chat.follow_up(again)
    told = heard(chat)
    await chat.prompt("go")
    assert lines(chat.messages).count("user: again") == 2
    assert len(told.of(MessageDelivered)) == 2


@pytest.mark.parity("C9")
async def test_queued_while_paused_it_is_delivered_after_the_decision() -> None:
    """What was said first is delivered first; and it can still be taken back."""
    chat, model = talk([PAY], "paid", "b", "c", tools=[pay])
    told = heard(chat)
    chat.steering_mode = "all"
    chat.subscribe(lambda e: chat.steer("during") if type(e).__name__ == "ApprovalRequested" else None)
    await chat.prompt("pay 5")
    chat.steer("while paused")
    chat.follow_up("unsaid")
    assert lines(chat.queued("steering")) == ["user: during", "user: while paused"]
    assert lines(chat.clear_queue("follow_up")) == ["user: unsaid"]
    await chat.resume(decisions={"p1": Approve()})
    assert lines(model.requests[1].messages)[2:] == ["p1 ok: paid 5", "user: during", "user: while paused"]
    assert [line for line in receipts(told) if line.startswith("delivered")] == ["delivered steering"] * 2
    assert (chat.queued("steering"), chat.queued("follow_up")) == ((), ())
