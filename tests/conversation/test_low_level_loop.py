"""The loop without a memory: `agent.run` over messages, as a stream of events, in the documented order."""

from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    AssistantMessage,
    CallInfo,
    CustomMessage,
    Hooks,
    MessageFinished,
    MessageStarted,
    RunError,
    RunFinished,
    RunStarted,
    Text,
    TextDelta,
    Thinking,
    ToolContext,
    ToolFinished,
    ToolOptions,
    ToolProgress,
    ToolRequested,
    ToolResult,
    ToolStarted,
    TurnFinished,
    UsageError,
    UserMessage,
    tool,
)
from antiphon.testing import Scripted, record

from .talks import AT_ONCE, Gate, add, call, fails, lines

pytestmark = pytest.mark.anyio

HISTORY = [UserMessage.of("a"), AssistantMessage(parts=(Text("b"),))]


def agent(*replies: Any, **more: Any) -> Agent[Any]:
    return Agent(Scripted(*replies), recovery=AT_ONCE, **more)


@pytest.mark.parity("C19")
async def test_a_run_over_messages_is_a_stream_of_events() -> None:
    """Prompts in, events out, the new messages at the end; the caller's list stays as it was."""
    given = list(HISTORY)
    async with agent("Hi").run([UserMessage.of("c"), UserMessage.of("d")], messages=given) as run:
        events = [event async for event in run]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert lines(run.result.new_messages) == ["user: c", "user: d", "assistant: Hi"]
    assert lines(run.result.messages) == ["user: a", "assistant: b", "user: c", "user: d", "assistant: Hi"]
    assert given == HISTORY


@pytest.mark.parity("C19")
async def test_going_on_adds_no_prompt_and_does_not_extend_the_callers_list() -> None:
    given: list[Any] = [*HISTORY, UserMessage.of("c")]
    run = agent("Hi").run(messages=given)
    told = record(run)
    result = await run
    assert lines(result.new_messages) == ["assistant: Hi"]
    assert [event.role for event in told.of(MessageStarted)] == ["assistant"]
    assert len(given) == 3


@pytest.mark.parity("C19")
async def test_going_on_is_refused_at_once_where_there_is_nothing_to_answer() -> None:
    """Before anything starts, and with the way out; an application's own message may be last."""
    with pytest.raises(UsageError, match="nothing to do"):
        agent().run()
    with pytest.raises(UsageError, match="not the model's turn"):
        agent().run(messages=HISTORY)
    custom = [CustomMessage(kind="note", data="hello")]
    say = agent("Hi", to_model=lambda messages, cancel: [UserMessage.of(str(m.data)) for m in messages])
    assert (await say.run(messages=custom)).text == "Hi"


@pytest.mark.parity("C19")
async def test_a_run_does_not_wait_for_a_slow_reader_and_ends_when_it_is_left() -> None:
    """The stream observes: what reads it late sees all of it; leaving it is leaving the run."""
    calls = [call("add", f"a{n}", f'{{"a": {n}, "b": 1}}') for n in range(3)]
    async with agent(*[[each] for each in calls], "done", tools=[add]).run("go") as run:
        await run
        assert [type(event) async for event in run][-1] is RunFinished
    gate = Gate()
    async with agent(["so far", gate]).run("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    assert (run.result.status, lines(run.result.messages)[-1]) == ("aborted", "assistant: so far <aborted>")


@pytest.mark.parity("C19")
async def test_a_failing_hook_ends_the_stream_with_the_failure() -> None:
    """A reader must never wait for an event that cannot come."""
    hooks = Hooks[Any](before_model_request=fails)
    async with agent("never", hooks=hooks).run("go") as run:
        events = [event async for event in run]
        with pytest.raises(RunError, match="ValueError: broken"):
            await run
    assert isinstance(events[-1], RunFinished)
    assert events[-1].status == "error"


@pytest.mark.parity("C4")
async def test_the_events_of_a_run_come_in_their_order() -> None:
    """Start, turn, message, calls, results, end: the order that every viewer is written against."""

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Work."""
        ctx.progress("half", {"done": 50})
        return "worked"

    run = agent([Thinking(text="hm"), "Let me.", call("work", "w1")], "Done.", tools=[work]).run("go")
    told = record(run)
    await run
    told.check()
    assert told.kinds() == [
        "run_started",
        "message_started", "message_finished",
        "turn_started",
        "message_started", "thinking_delta", "text_delta", "tool_call_delta", "message_finished",
        "tool_requested", "tool_started", "tool_progress", "tool_finished",
        "message_started", "message_finished",
        "turn_finished",
        "turn_started",
        "message_started", "text_delta", "message_finished",
        "turn_finished",
        "run_finished",
    ]  # fmt: skip


@pytest.mark.parity("C4")
async def test_events_say_who_and_what() -> None:
    """Names, arguments and results are in the events: a viewer needs to look nothing up."""

    @tool
    async def work(n: int, ctx: ToolContext[Any]) -> ToolResult:
        """Work."""
        ctx.progress("half", {"done": 50})
        return ToolResult("worked", details={"n": n})

    model = Scripted([call("work", "w1", '{"n": 3}')], "Done.")
    run = Agent(model, tools=[work], recovery=AT_ONCE).run("go")
    told = record(run)
    await run
    started = told.one(RunStarted)
    assert started.model is not None
    assert (started.model.origin, started.thinking) == ("scripted:scripted", None)
    assert told.one(ToolRequested).call == call("work", "w1", '{"n": 3}')
    begun = told.one(ToolStarted)
    assert (begun.call_id, begun.name, begun.arguments) == ("w1", "work", {"n": 3})
    progress = told.one(ToolProgress)
    assert (progress.call_id, progress.name, progress.content, progress.details) == ("w1", "work", "half", {"done": 50})
    done = told.one(ToolFinished)
    assert (done.call_id, done.name, done.outcome, done.result.is_error) == ("w1", "work", "ok", False)
    assert (done.result.text, done.result.details, done.arguments) == ("worked", {"n": 3}, {"n": 3})
    turn = told.of(TurnFinished)[0]
    assert (turn.message and turn.message.calls, turn.results) == ((call("work", "w1", '{"n": 3}'),), (done.result,))


@pytest.mark.parity("C4")
async def test_the_message_so_far_is_there_at_every_delta() -> None:
    so_far: list[tuple[str, Any]] = []
    run = Agent(Scripted(["abc", call("add", "a1", '{"a": 12, "b": 3}')], "ok", piece=2), tools=[add]).run("go")
    run.subscribe(
        lambda event: (
            so_far.append((run.partial, run.partial_arguments("a1")))
            if type(event).__name__ in ("TextDelta", "ToolCallDelta")
            else None
        )
    )
    await run
    assert so_far[:2] == [("ab", None), ("abc", None)]
    arguments = [found for _, found in so_far if found is not None]
    assert arguments[0] == {}
    assert arguments[-1] == {"a": 12, "b": 3}
    assert all(isinstance(found, dict) for found in arguments)
    assert {"a": 12} in arguments
    assert (run.partial, run.partial_arguments("a1")) == ("", None)


@pytest.mark.parity("C8")
@pytest.mark.parametrize("execution", ["parallel", "sequential"])
async def test_the_end_of_a_message_is_a_barrier_before_its_tools(execution: Any) -> None:
    """What a listener does with the reply (store it, check it) is done before any call of it is judged."""
    log: list[str] = []

    async def store(event: Any) -> None:
        if isinstance(event, MessageFinished) and isinstance(event.message, AssistantMessage):
            await anyio.sleep(0.01)
            log.append(f"stored {event.message.text}")

    def approve(info: CallInfo) -> bool:
        log.append("judged")
        return False

    @tool(needs_approval=approve)
    async def work() -> str:
        """Work."""
        log.append("ran")
        return "worked"

    calls = ["x", call("work", "w1"), call("work", "w2")]
    run = agent(calls, "y", tools=[work], tool_options=ToolOptions(execution=execution)).run("go")
    run.subscribe(store)
    await run
    assert log[0] == "stored x"
    assert sorted(log[1:-1]) == ["judged", "judged", "ran", "ran"]
    assert log[-1] == "stored y"


@pytest.mark.parity("C8")
async def test_the_stream_of_a_watched_run_only_observes() -> None:
    """Its reader may be slow or stop reading: nothing waits for it."""
    log: list[str] = []

    @tool
    async def work() -> str:
        """Work."""
        log.append("ran")
        return "worked"

    async with agent([call("work", "w1")], "y", tools=[work]).run("go") as run:
        async for event in run:
            if isinstance(event, MessageFinished) and isinstance(event.message, AssistantMessage):
                await run
                log.append("read")
                break
    assert log == ["ran", "read"]
