"""Two queues: steering before the next request, follow-ups when nothing else is left; and a receipt for every message."""

from typing import Any, cast

import anyio
import pytest

from antiphon import (
    Image,
    MessageDelivered,
    MessageFinished,
    TextDelta,
    ToolFinished,
    ToolOptions,
    ToolResult,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageError,
    UserMessage,
    tool,
    validate,
)

from .talks import ADD, Gate, add, call, heard, lines, once, receipts, talk

pytestmark = pytest.mark.anyio


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
