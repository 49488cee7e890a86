"""Two queues: steering before the next request, follow-ups when nothing else is left; and a receipt for every message."""

from typing import Any, cast

import anyio
import pytest

from antiphon import (
    Approve,
    AttemptDiscarded,
    Dropped,
    Event,
    Hooks,
    Image,
    Limits,
    MessageDelivered,
    MessageFinished,
    MessageQueued,
    MessageReturned,
    MessageStarted,
    RunError,
    RunFinished,
    Stop,
    TextDelta,
    ToolFinished,
    ToolOptions,
    ToolResult,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageError,
    UseContext,
    UserMessage,
    tool,
    validate,
)
from antiphon.testing import Recording

from .talks import ADD, PAY, Gate, add, call, fails, heard, lines, pay, talk

pytestmark = pytest.mark.anyio


def receipts(recording: Recording) -> list[str]:
    """What became of the queued messages, in order."""
    found: list[str] = []
    for event in recording:
        match event:
            case MessageQueued(message=message, queue=queue):
                found.append(f"queued {queue} {lines([message])[0]}")
            case MessageDelivered(queue=queue):
                found.append(f"delivered {queue}")
            case MessageReturned(message=message, queue=queue, why=why):
                found.append(f"returned {queue} {lines([message])[0]}: {why}")
            case _:
                pass
    return found


def once(kind: type[Any], act: Any) -> Any:
    """A listener that acts at the first event of its kind."""
    done: list[Any] = []

    def listener(event: Event) -> None:
        if isinstance(event, kind) and not done:
            done.append(event)
            act()

    return listener


@pytest.mark.parity("C9")
async def test_steering_comes_after_the_running_tools_and_before_the_next_request() -> None:
    """A correction is heard as soon as it can be, and interrupts no tool."""
    chat, model = talk([ADD], "five", tools=[add])
    told = heard(chat)
    chat.subscribe(once(ToolStarted, lambda: chat.steer("in words")))
    await chat.prompt("2+3?")
    assert lines(model.requests[1].messages) == ["user: 2+3?", "assistant: [a1]", "a1 ok: 5", "user: in words"]
    assert receipts(told) == ["queued steering user: in words", "delivered steering"]
    kinds = told.kinds(ToolFinished, TurnFinished, MessageDelivered, TurnStarted)
    assert kinds == [
        "turn_started",
        "tool_finished",
        "turn_finished",
        "turn_started",
        "message_delivered",
        "turn_finished",
    ]


@pytest.mark.parity("C9")
async def test_a_follow_up_waits_until_nothing_else_is_left() -> None:
    chat, model = talk([ADD], "five", "bye", tools=[add])
    chat.subscribe(once(ToolStarted, lambda: chat.follow_up("and then?")))
    await chat.prompt("2+3?")
    assert lines(chat.messages)[-3:] == ["assistant: five", "user: and then?", "assistant: bye"]
    assert len(model.requests) == 3


@pytest.mark.parity("C9")
async def test_m7_steering_goes_before_follow_ups_however_old_they_are() -> None:
    """Who steers wants to be heard now; an older follow-up has time."""
    chat, _ = talk("a", "b", "c", "d")

    def both() -> None:
        chat.follow_up("f1")
        chat.follow_up("f2")
        chat.steer("s1")

    chat.subscribe(once(TextDelta, both))
    await chat.prompt("go")
    said = [line for line in lines(chat.messages) if line.startswith("user")]
    assert said == ["user: go", "user: s1", "user: f1", "user: f2"]


@pytest.mark.parity("C9")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("one", ["user: go", "user: 1", "assistant: a", "user: 2", "assistant: b", "user: 3", "assistant: c"]),
        ("all", ["user: go", "user: 1", "user: 2", "user: 3", "assistant: a"]),
    ],
)
async def test_steering_one_at_a_time_or_all(mode: Any, expected: list[str]) -> None:
    chat, _ = talk("a", "b", "c")
    assert (chat.steering_mode, chat.follow_up_mode) == ("one", "one")
    chat.steering_mode = mode
    assert chat.steering_mode == mode
    for text in "123":
        chat.steer(text)
    await chat.prompt("go")
    assert lines(chat.messages) == expected


@pytest.mark.parity("C9")
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("one", ["user: go", "assistant: a", "user: 1", "assistant: b", "user: 2", "assistant: c"]),
        ("all", ["user: go", "assistant: a", "user: 1", "user: 2", "assistant: b"]),
    ],
)
async def test_follow_ups_one_at_a_time_or_all(mode: Any, expected: list[str]) -> None:
    chat, _ = talk("a", "b", "c")
    chat.follow_up_mode = mode
    for text in "12":
        chat.follow_up(text)
    await chat.prompt("go")
    assert lines(chat.messages) == expected


@pytest.mark.parity("C9")
async def test_a_mode_is_read_live_and_must_be_one() -> None:
    """It is how the next delivery goes, also in a run that has begun."""
    chat, _ = talk("a", "b", "c")
    for text in "123":
        chat.steer(text)
    chat.subscribe(once(TextDelta, lambda: setattr(chat, "steering_mode", "all")))
    await chat.prompt("go")
    assert lines(chat.messages) == ["user: go", "user: 1", "assistant: a", "user: 2", "user: 3", "assistant: b"]
    with pytest.raises(UsageError, match="'one' message at a time or 'all', not 'some'"):
        setattr(chat, "steering_mode", "some")  # noqa: B010 - a type checker would see it
    assert chat.steering_mode == "all"


@pytest.mark.parity("C9")
async def test_cleared_messages_are_handed_back_and_give_receipts() -> None:
    """A message that is taken back was not said, and whoever showed it as waiting must know."""
    chat, model = talk([ADD], "five", tools=[add])
    told = heard(chat)
    taken: list[Any] = []

    def act() -> None:
        chat.steer("s")
        chat.follow_up("f")
        taken.extend(chat.clear_queue("steering"))
        assert lines(chat.queued("follow_up")) == ["user: f"]
        taken.extend(chat.clear_queue("follow_up"))

    chat.subscribe(once(ToolStarted, act))
    await chat.prompt("2+3?")
    assert lines(taken) == ["user: s", "user: f"]
    assert receipts(told)[2:] == ["returned steering user: s: cleared", "returned follow_up user: f: cleared"]
    assert len(model.requests) == 2
    assert (chat.queued("steering"), chat.queued("follow_up")) == ((), ())


@pytest.mark.parity("C9")
async def test_between_runs_the_queues_wait() -> None:
    """Said before the first prompt, or after the last: it belongs to the next run."""
    chat, _ = talk("a", "b")
    told = heard(chat)
    chat.steer("s")
    chat.follow_up("gone")
    assert lines(chat.clear_queue("follow_up")) == ["user: gone"]
    assert told.events == []
    await chat.prompt("go")
    assert lines(chat.messages) == ["user: go", "user: s", "assistant: a"]
    assert receipts(told) == ["queued steering user: s", "delivered steering"]


@pytest.mark.parity("C9")
async def test_what_is_queued_may_be_more_than_text() -> None:
    chat, model = talk("a")
    picture = Image("iVBORw0KGgo=", "image/png")
    ids = [chat.steer(["look", picture]), chat.steer(UserMessage.of("m", id="mine"))]
    chat.steering_mode = "all"
    await chat.prompt("go")
    first, second = [message for message in model.requests[0].messages if isinstance(message, UserMessage)][1:]
    assert first.parts == UserMessage.of("look", picture).parts
    assert ids == [first.id, "mine"]
    assert second.id == "mine"
    with pytest.raises(UsageError, match="2 messages cannot be queued as one"):
        chat.steer([UserMessage.of("a"), UserMessage.of("b")])
    with pytest.raises(UsageError):
        chat.follow_up(cast("Any", 7))


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


@pytest.mark.parity("C21")
async def test_after_end_turn_queued_messages_still_open_a_turn() -> None:
    """A tool may end the turn; it does not end what the person has to say. Both queues are delivered then."""

    @tool
    async def done() -> ToolResult:
        """Finish."""
        return ToolResult("finished", end_turn=True)

    for moment in (ToolStarted, ToolFinished, TurnFinished):
        chat, _ = talk([call("done", "d1")], "b", tools=[done])

        def both(chat: Any = chat) -> None:
            chat.follow_up("f")
            chat.steer("s")

        chat.subscribe(once(moment, both))
        await chat.prompt("go")
        assert lines(chat.messages)[2:] == ["d1 ok: finished", "user: s", "user: f", "assistant: b"], moment


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


@pytest.mark.parametrize("execution", ["parallel", "sequential"])
async def test_m8_steering_works_with_parallel_batches(execution: Any) -> None:
    """The rest of the batch runs to its end, each call with its result, and then the message is heard."""
    gates = [Gate(), Gate()]

    @tool
    async def wait(n: int) -> int:
        """Wait."""
        await gates[n].wait()
        return n

    calls = [call("wait", f"w{n}", f'{{"n": {n}}}') for n in range(2)]
    chat, model = talk(calls, "heard", tools=[wait], tool_options=ToolOptions(execution=execution))
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "go")
        await gates[0].reached.wait()
        chat.steer("hurry")
        gates[0].open()
        await gates[1].reached.wait()
        gates[1].open()
    assert lines(model.requests[1].messages)[2:] == ["w0 ok: 0", "w1 ok: 1", "user: hurry"]


async def test_a_queue_that_is_emptied_at_the_last_moment_ends_the_run() -> None:
    """The turn that was to be opened has nobody to open it: no request may end in an assistant message."""
    chat, model = talk("a", "never")
    chat.subscribe(lambda e: chat.clear_queue("steering") if isinstance(e, MessageFinished) else None)

    def says_and_unsays(event: Any) -> None:
        if isinstance(event, TextDelta):
            chat.steer("never mind")

    chat.subscribe(says_and_unsays)
    result = await chat.prompt("go")
    assert (result.status, len(model.requests)) == ("done", 1)
    assert validate(chat.messages) == []


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
