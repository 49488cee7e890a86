"""A conversation is used from everywhere: listeners, hooks, tools, other tasks, other threads, in the middle of its run."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from antiphon import (
    Agent,
    Approve,
    Conversation,
    Hooks,
    MessageFinished,
    RunFinished,
    TextDelta,
    ToolRegistry,
    ToolStarted,
    UsageError,
    stream_sync,
    tool,
    validate,
)
from antiphon.testing import Scripted

from .talks import ADD, AT_ONCE, PAY, Gate, add, call, heard, lines, pay, talk

pytestmark = pytest.mark.anyio

Act = Callable[[Conversation[Any]], Any]
Place = Callable[[Act], Awaitable[tuple[Conversation[Any], list[Any]]]]


def on_event(kind: type[Any], *, wait: bool) -> Place:
    """In a listener, when the first event of its kind comes."""

    async def run(act: Act) -> tuple[Conversation[Any], list[Any]]:
        chat, found = scene()

        def sync(event: Any) -> None:
            if isinstance(event, kind) and not found:
                found.append(outcome(act, chat))

        async def later(event: Any) -> None:
            await anyio.lowlevel.checkpoint()
            if isinstance(event, kind) and not found:
                found.append(await awaited(outcome(act, chat)))

        chat.subscribe(later if wait else sync)
        await chat.prompt("go")
        return chat, found

    return run


def in_hook(point: str) -> Place:
    async def run(act: Act) -> tuple[Conversation[Any], list[Any]]:
        found: list[Any] = []

        async def hook(*_context: Any) -> None:
            if not found:
                found.append(await awaited(outcome(act, chat)))

        chat, _ = scene(hooks=Hooks[Any](**{point: hook}))
        await chat.prompt("go")
        return chat, found

    return run


def in_tool(*, sync: bool) -> Place:
    async def run(act: Act) -> tuple[Conversation[Any], list[Any]]:
        found: list[Any] = []

        @tool(name="step")
        async def loop_step() -> str:
            """Take a step."""
            found.append(await awaited(outcome(act, chat)))
            return "stepped"

        @tool(name="step")
        def thread_step() -> str:
            """Take a step."""
            found.append(outcome(act, chat))
            return "stepped"

        chat, _ = scene(tools=[thread_step if sync else loop_step])
        await chat.prompt("go")
        return chat, found

    return run


def elsewhere(*, thread: bool) -> Place:
    async def run(act: Act) -> tuple[Conversation[Any], list[Any]]:
        gate = Gate()

        @tool
        async def step() -> str:
            """Take a step."""
            await gate.wait()
            return "stepped"

        chat, found = scene(tools=[step])
        async with anyio.create_task_group() as group:
            group.start_soon(chat.prompt, "go")
            await gate.reached.wait()
            found.append(await anyio.to_thread.run_sync(outcome, act, chat) if thread else outcome(act, chat))
            gate.open()
        return chat, found

    return run


def scene(**agent: Any) -> tuple[Conversation[Any], list[Any]]:
    @tool
    async def step() -> str:
        """Take a step."""
        return "stepped"

    chat, _ = talk([call("step", "c1")], "one", "two", "three", "four", **{"tools": [step], **agent})
    return chat, []


def outcome(act: Act, chat: Conversation[Any]) -> Any:
    try:
        return act(chat)
    except UsageError as error:
        return error


async def awaited(value: Any) -> Any:
    try:
        return await value if hasattr(value, "__await__") else value
    except UsageError as error:
        return error


PLACES: dict[str, Place] = {
    "listener of the run's start": on_event(MessageFinished, wait=False),
    "listener of a delta": on_event(TextDelta, wait=False),
    "listener of a tool's start": on_event(ToolStarted, wait=False),
    "async listener": on_event(ToolStarted, wait=True),
    "prepare_context": in_hook("prepare_context"),
    "before_model_request": in_hook("before_model_request"),
    "after_model_response": in_hook("after_model_response"),
    "should_continue": in_hook("should_continue"),
    "before_tool_execute": in_hook("before_tool_execute"),
    "on_append": in_hook("on_append"),
    "tool": in_tool(sync=False),
    "tool in a thread": in_tool(sync=True),
    "another task": elsewhere(thread=False),
    "another thread": elsewhere(thread=True),
}
EVERYWHERE = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
INSIDE = [name for name in PLACES if not name.startswith("another")]


@pytest.mark.parity("C9")
@EVERYWHERE
@pytest.mark.parametrize("queue", ["steer", "follow_up"])
async def test_a_message_can_be_queued_from_everywhere(place: Place, queue: str) -> None:
    """A tool that has finished in the background, a person who types, a hook that counts: all of them speak."""
    chat, found = await place(lambda chat: getattr(chat, queue)("by the way"))
    assert isinstance(found[0], str)
    delivered = [message for message in chat.messages if getattr(message, "id", "") == found[0]]
    assert lines(delivered) == ["user: by the way"]
    assert (chat.queued("steering"), chat.queued("follow_up"), chat.status) == ((), (), "done")
    assert validate(chat.messages) == []


@pytest.mark.parity("C16")
@EVERYWHERE
async def test_the_run_can_be_aborted_from_everywhere(place: Place) -> None:
    """After a stop no further request is made and no further tool starts."""
    chat, _ = await place(lambda chat: chat.abort("enough"))
    assert (chat.status, chat.running) == ("aborted", False)
    assert validate(chat.messages) == []


@pytest.mark.parity("C2")
@EVERYWHERE
@pytest.mark.parametrize("verb", ["prompt", "resume"])
async def test_a_prompt_from_the_inside_is_refused(place: Place, verb: str) -> None:
    def act(chat: Conversation[Any]) -> Any:
        asked = chat.prompt("again") if verb == "prompt" else chat.resume()
        try:
            asked.send(None)
        except UsageError as error:
            return error
        asked.close()
        return None

    chat, found = await place(act)
    assert "a run goes on" in str(found[0])
    assert chat.status == "done"


@pytest.mark.parity("C16")
@pytest.mark.parametrize("place", [PLACES[name] for name in INSIDE], ids=INSIDE)
@pytest.mark.parametrize("verb", ["wait_for_idle", "reset"])
async def test_waiting_for_oneself_is_found_and_refused(place: Place, verb: str) -> None:
    """It would never come back; in tool threads and behind an await as well."""

    def act(chat: Conversation[Any]) -> Any:
        waits = getattr(chat, verb)()
        try:
            waits.send(None)
        except UsageError as error:
            return error
        waits.close()
        return None

    chat, found = await place(act)
    assert "would wait for the run that is calling it" in str(found[0])
    assert chat.status == "done"


@pytest.mark.parity("C15")
@EVERYWHERE
@pytest.mark.parametrize("verb", ["replace", "append", "clear"])
async def test_the_transcript_of_a_run_that_goes_on_is_not_touched(place: Place, verb: str) -> None:
    """The run and the conversation would have two truths."""

    def act(chat: Conversation[Any]) -> Any:
        match verb:
            case "replace":
                chat.replace_messages(chat.messages[:1])
            case "append":
                chat.append_message(chat.messages[0])
            case _:
                chat.clear_messages()

    chat, found = await place(act)
    assert "while a run goes on: abort() and wait_for_idle() first" in str(found[0])
    assert lines(chat.messages)[0] == "user: go"


@pytest.mark.parity("C9")
@EVERYWHERE
async def test_queues_can_be_cleared_from_everywhere(place: Place) -> None:
    def act(chat: Conversation[Any]) -> Any:
        chat.steer("a")
        chat.follow_up("b")
        return lines(chat.clear_queue("steering") + chat.clear_queue("follow_up"))

    chat, found = await place(act)
    assert found[0] == ["user: a", "user: b"]
    assert "user: a" not in lines(chat.messages)
    assert chat.status == "done"


async def test_decisions_can_be_made_from_a_listener_and_from_a_thread() -> None:
    """A person's answer may come from the thread of a user interface."""
    for thread in (False, True):
        chat, _ = talk([PAY], "paid", tools=[pay])
        chosen = threading.Event()

        def decide(chat: Conversation[Any] = chat, chosen: threading.Event = chosen) -> None:
            chosen.wait(5)
            chat.decide({"p1": Approve()})

        async with chat.live("go") as run:
            async for event in run:
                if type(event).__name__ == "ApprovalRequested":
                    chosen.set()
                    await anyio.to_thread.run_sync(decide) if thread else decide()
        assert (chat.status, lines(chat.messages)[-2:]) == ("done", ["p1 ok: paid 5", "assistant: paid"])


async def test_other_threads_go_through_the_loop_for_everything_else() -> None:
    """`call_soon_threadsafe` is the documented way for what is no message, no decision and no stop."""
    import asyncio

    loop = asyncio.get_running_loop()
    chat, _ = talk("a", "b")
    done = anyio.Event()

    def other() -> None:
        loop.call_soon_threadsafe(chat.steer, "from afar")
        loop.call_soon_threadsafe(setattr, chat, "steering_mode", "all")
        loop.call_soon_threadsafe(done.set)

    await anyio.to_thread.run_sync(other)
    await done.wait()
    assert (lines(chat.queued("steering")), chat.steering_mode) == (["user: from afar"], "all")
    await chat.prompt("hello")
    assert lines(chat.messages)[:2] == ["user: hello", "user: from afar"]


async def test_the_consumer_of_a_portal_may_steer_its_run() -> None:
    """`stream_sync` lives in a thread of its own; who iterates it is always in another one."""

    steered = threading.Event()

    @tool(name="add")
    def slow_add(a: int, b: int) -> int:
        """Add, when somebody has spoken."""
        steered.wait(5)
        return a + b

    def script() -> list[str]:
        run = Agent(Scripted([ADD], "five"), tools=[slow_add], recovery=AT_ONCE).run("2+3?")
        for event in stream_sync(run):
            if isinstance(event, ToolStarted):
                run.steer("quickly")
                steered.set()
        return lines(run.result.messages)

    said = await anyio.to_thread.run_sync(script)
    assert "user: quickly" in said


async def test_a_thread_that_comes_too_late_is_told() -> None:
    """A run's loop may be gone when a thread that it left behind wants to speak."""
    runs: list[Any] = []

    def script() -> None:
        run = Agent(Scripted("a"), recovery=AT_ONCE).run("go")
        for _ in stream_sync(run):
            pass
        runs.append(run)

    await anyio.to_thread.run_sync(script)
    with pytest.raises(UsageError, match="the run is over"):
        runs[0].steer("hello?")


@pytest.mark.parity("C16")
async def test_no_prompt_slips_in_before_the_clean_up_is_done() -> None:
    """At its last event a run still has its hooks and listeners to call; a second run beside it had no owner."""
    found: list[Any] = []

    async def end_hook(_context: Any) -> None:
        found.append(await awaited(chat.prompt("again")))

    chat, model = talk("a", "b", hooks=Hooks[Any](on_run_end=end_hook))

    async def listener(event: Any) -> None:
        if isinstance(event, RunFinished):
            found.append(await awaited(chat.prompt("again")))

    chat.subscribe(listener)
    await chat.prompt("one")
    assert [type(error) for error in found] == [UsageError, UsageError]
    assert len(model.requests) == 1


@pytest.mark.parity("C9")
async def test_what_is_said_at_the_very_end_waits_for_the_next_run() -> None:
    """Nothing is lost between the last event and idle; clearing works there as well."""
    chat, _ = talk("a", "b", "c")
    told = heard(chat)
    ids: list[str] = []

    def late(event: Any) -> None:
        if isinstance(event, RunFinished) and not ids:
            ids.append(chat.steer("late"))
            ids.append(chat.follow_up("later"))
            chat.follow_up("never")
            assert lines(chat.queued("follow_up")) == ["user: later", "user: never"]
            kept = chat.clear_queue("follow_up")[0]
            chat.follow_up(kept)

    chat.subscribe(late)
    await chat.prompt("one")
    assert (lines(chat.queued("steering")), lines(chat.queued("follow_up"))) == (["user: late"], ["user: later"])
    await chat.prompt("two")
    assert lines(chat.messages)[2:] == ["user: two", "user: late", "assistant: b", "user: later", "assistant: c"]
    assert told.kinds()[-1] == "run_finished"


async def test_a_registry_that_grows_in_a_run_is_seen_by_the_next() -> None:
    """A setter's moment is the next run, for tools too."""
    registry = ToolRegistry([add])

    @tool
    async def install() -> str:
        """Install another tool."""
        registry.register(pay)
        return "installed"

    registry.register(install)
    chat, model = talk([call("install", "i1")], "ok", "ok", tools=registry)
    await chat.prompt("go")
    await chat.prompt("again")
    names = [[spec.name for spec in request.tools] for request in model.requests]
    assert names == [["add", "install"], ["add", "install"], ["add", "install", "pay"]]
