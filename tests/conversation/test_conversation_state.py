"""What a conversation shows of itself, and how its settings and its transcript are changed."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from antiphon import (
    Agent,
    AssistantMessage,
    ContextReplaced,
    Hooks,
    MessageFinished,
    MessageStarted,
    ModelInfo,
    ModelSettings,
    Recovery,
    Rejected,
    RunError,
    RunStarted,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolOptions,
    ToolResultMessage,
    ToolStarted,
    UsageError,
    UseContext,
    UserMessage,
    tool,
    validate,
)
from antiphon.testing import Scripted

from .talks import ADD, AT_ONCE, PAY, Gate, add, call, heard, lines, pay, talk

pytestmark = pytest.mark.anyio

THINKER = ModelInfo(provider="scripted", id="thinker", thinking_levels=("off", "low", "high"))


@pytest.mark.parity("C1")
async def test_a_conversation_begins_with_what_it_is_given() -> None:
    """System prompt, model, thinking level, tools and messages: what a stored chat is made of."""
    model = Scripted("Hi", info=THINKER)
    agent = Agent(model, instructions="Be brief.", tools=[add], settings=ModelSettings(thinking="high"))
    before = [UserMessage.of("a"), AssistantMessage(parts=(Text("b"),))]
    chat = agent.conversation(messages=before, session_id="s-1", deps="mine")
    assert (chat.agent.model, chat.agent.instructions, chat.agent.tools) == (model, "Be brief.", (add,))
    assert (chat.agent.settings.thinking, chat.session_id, chat.deps) == ("high", "s-1", "mine")
    assert (list(chat.messages), chat.streaming, chat.partial, chat.pending, chat.error) == (
        before,
        False,
        None,
        (),
        None,
    )
    assert (chat.running, chat.paused, chat.status, chat.running_calls) == (False, False, None, frozenset())
    await chat.prompt("c")
    request = model.requests[0]
    assert (request.instructions, request.session_id, request.settings.thinking) == ("Be brief.", "s-1", "high")
    assert lines(request.messages) == ["user: a", "assistant: b", "user: c"]


@pytest.mark.parity("C14")
async def test_the_state_is_right_at_every_moment() -> None:
    """A listener sees the state after its event; state and events never disagree."""
    gate = Gate()

    @tool
    async def slow() -> str:
        """Take its time."""
        await gate.wait()
        return "slow"

    chat, _ = talk([Thinking(text="hm"), "Let me", call("slow", "s1")], "so", tools=[slow])
    seen: list[tuple[str, Any]] = []

    def watch(event: Any) -> None:
        match event:
            case RunStarted():
                seen.append(("start", (chat.streaming, chat.error, chat.status)))
            case TextDelta() | ThinkingDelta() | ToolCallDelta():
                partial = chat.partial
                assert partial is not None
                seen.append(("partial", tuple(type(part).__name__ for part in partial.parts)))
            case MessageFinished(message=AssistantMessage()):
                seen.append(("kept", (chat.partial, chat.messages[-1] == event.message)))
            case ToolStarted():
                seen.append(("runs", chat.running_calls))
            case ToolFinished():
                seen.append(("ran", chat.running_calls))
            case _:
                pass

    chat.subscribe(watch)
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "go")
        await gate.reached.wait()
        assert (chat.running_calls, chat.streaming, chat.running) == ({"s1"}, True, True)
        gate.open()
    assert seen == [
        ("start", (True, None, None)),
        ("partial", ("Thinking",)),
        ("partial", ("Thinking", "Text")),
        ("partial", ("Thinking", "Text", "ToolCall")),
        ("kept", (None, True)),
        ("runs", {"s1"}),
        ("ran", frozenset()),
        ("partial", ("Text",)),
        ("kept", (None, True)),
    ]
    assert (chat.streaming, chat.running, chat.status) == (False, False, "done")


@pytest.mark.parity("C14")
async def test_the_error_is_there_until_the_next_run_begins() -> None:
    chat, _ = talk(Rejected("broken"), "ok", recovery=Recovery(retries=0))
    with pytest.raises(RunError):
        await chat.prompt("one")
    assert chat.error == "broken"
    at_start: list[str | None] = []
    chat.subscribe(lambda event: at_start.append(chat.error) if isinstance(event, RunStarted) else None)
    await chat.prompt("two")
    assert (at_start, chat.error) == ([None], None)


@pytest.mark.parity("C15")
@pytest.mark.parametrize(
    ("change", "read", "before", "after"),
    [
        ({"instructions": "Later."}, lambda r: r.instructions, "Now.", "Later."),
        ({"settings": ModelSettings(thinking="high")}, lambda r: r.settings.thinking, None, "high"),
        ({"tools": [add, pay]}, lambda r: [spec.name for spec in r.tools], ["add"], ["add", "pay"]),
    ],
    ids=["instructions", "settings", "tools"],
)
async def test_a_setting_changed_in_a_run_is_for_the_next(change: Any, read: Any, before: Any, after: Any) -> None:
    """A run is what it was when it began: nobody has to think about half-changed runs."""
    chat, model = talk([ADD], "one", "two", instructions="Now.", tools=[add])
    chat.subscribe(lambda event: chat.configure(**change) if isinstance(event, ToolStarted) else None)
    await chat.prompt("go")
    await chat.prompt("again")
    assert [read(request) for request in model.requests] == [before, before, after]


@pytest.mark.parity("C15")
async def test_model_hooks_and_execution_mode_are_settings_too() -> None:
    first, second = Scripted([ADD], "one"), Scripted("two", info=THINKER)
    chat = Agent(first, tools=[add], recovery=AT_ONCE).conversation()
    asked: list[str] = []
    hooks = Hooks[Any](before_model_request=lambda context: asked.append(context.run_id))
    told = heard(chat)

    def change(event: Any) -> None:
        if isinstance(event, ToolStarted):
            chat.configure(model=second, hooks=hooks, tool_options=ToolOptions(execution="sequential"))
            chat.configure(settings=chat.agent.settings.merged(ModelSettings(thinking="high")))

    chat.subscribe(change)
    await chat.prompt("go")
    assert (len(first.requests), len(second.requests), asked) == (2, 0, [])
    await chat.prompt("again")
    assert (len(first.requests), len(second.requests), len(asked)) == (2, 1, 1)
    started = told.of(RunStarted)[-1]
    assert started.model is not None
    assert (started.model.origin, started.thinking) == ("scripted:thinker", "high")


@pytest.mark.parity("C15")
async def test_a_whole_other_agent_can_take_over_the_talk() -> None:
    chat, _ = talk("a")
    await chat.prompt("one")
    other = Agent(Scripted("from the other"), recovery=AT_ONCE)
    chat.use_agent(other)
    assert chat.agent is other
    assert (await chat.prompt("two")).text == "from the other"
    assert lines(chat.messages)[:2] == ["user: one", "assistant: a"]


@pytest.mark.parity("C15")
async def test_an_unknown_setting_is_refused_and_changes_nothing() -> None:
    chat, _ = talk("a")
    before = chat.agent
    with pytest.raises(UsageError, match="an agent has no 'modle'"):
        chat.configure(modle="x")
    assert chat.agent is before
    with pytest.raises(UsageError, match="a conversation has its own queues"):
        await chat.prompt("x", steering=[UserMessage.of("y")])
    with pytest.raises(UsageError, match="a conversation has its own transcript"):
        await chat.prompt("x", messages=[UserMessage.of("y")])


@pytest.mark.parity("C15")
async def test_session_budgets_and_display_can_be_set_between_runs() -> None:
    chat, model = talk("a", "b")
    await chat.prompt("one")
    chat.session_id = "later"
    chat.configure(settings=ModelSettings(thinking_budgets={"high": 9000}, thinking_display="omitted"))
    await chat.prompt("two")
    first, second = model.requests
    assert (first.session_id, first.settings) == (None, ModelSettings())
    assert (second.session_id, second.settings.thinking_budgets) == ("later", {"high": 9000})
    assert second.settings.thinking_display == "omitted"


@pytest.mark.parity("C15")
async def test_what_a_run_is_given_for_itself_is_not_kept() -> None:
    chat, model = talk("a", "b")
    await chat.prompt("one", settings=ModelSettings(temperature=0.9), meta={"trace": 1}, session_id="only")
    await chat.prompt("two")
    assert [(r.settings.temperature, r.meta, r.session_id) for r in model.requests] == [
        (0.9, {"trace": 1}, "only"),
        (None, None, None),
    ]


@pytest.mark.parity("C15")
async def test_messages_can_be_replaced_appended_and_cleared_between_runs() -> None:
    """An undo, an import, a note: without asking the model, and without an event."""
    chat, model = talk("a", "b", "c")
    told = heard(chat)
    await chat.prompt("one")
    chat.append_message(UserMessage.of("by the way"))
    appended = chat.messages[-1]
    assert isinstance(appended, UserMessage)
    assert appended.id
    assert appended.created_at
    await chat.prompt("two")
    assert lines(model.requests[1].messages) == ["user: one", "assistant: a", "user: by the way", "user: two"]
    chat.replace_messages(chat.messages[:2])
    assert lines(chat.messages) == ["user: one", "assistant: a"]
    chat.clear_messages()
    assert list(chat.messages) == []
    await chat.prompt("three")
    assert lines(model.requests[2].messages) == ["user: three"]
    assert told.of(ContextReplaced) == []


@pytest.mark.parity("C15")
async def test_what_would_corrupt_the_transcript_is_repaired_or_refused() -> None:
    """A transcript is always valid to send, whoever wrote it."""
    chat, _ = talk("a", tools=[add])
    reply = AssistantMessage(parts=(ADD,))
    result = ToolResultMessage(call_id="a1", tool_name="add", parts=(Text("5"),))
    chat.append_message(UserMessage.of("2+3?"))
    with pytest.raises(UsageError, match="message 0 cannot be appended: call 'a1' has no result"):
        chat.append_message(reply)
    with pytest.raises(UsageError, match="answers no call"):
        chat.append_message(result)
    assert lines(chat.messages) == ["user: 2+3?"]
    chat.append_message(reply, result)
    assert lines(chat.messages)[-1] == "a1 ok: 5"
    chat.replace_messages([UserMessage.of("q"), reply])
    assert [line.split(":")[0] for line in lines(chat.messages)] == ["user", "assistant", "a1 unknown"]
    assert validate(chat.messages) == []


@pytest.mark.parity("C15")
async def test_reset_forgets_what_was_said_and_keeps_the_settings() -> None:
    chat, model = talk(Rejected("no"), "b", instructions="Stay.")
    chat.session_id = "kept"
    chat.steering_mode = "all"
    with pytest.raises(RunError):
        await chat.prompt("one")
    chat.steer("s")
    chat.follow_up("f")
    assert lines(await chat.reset()) == ["user: s", "user: f"]
    assert (list(chat.messages), chat.error, chat.status, chat.queued("steering")) == ([], None, None, ())
    await chat.prompt("two")
    request = model.requests[1]
    assert (lines(request.messages), request.instructions, request.session_id) == (["user: two"], "Stay.", "kept")
    assert chat.steering_mode == "all"


@pytest.mark.parity("C15")
async def test_reset_from_outside_ends_the_run_first() -> None:
    """The old run must not write into the emptied transcript."""
    gate = Gate()
    chat, _ = talk(["Once upon", gate], "new")
    told = heard(chat)
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "one")
        await gate.reached.wait()
        chat.steer("lost?")
        assert lines(await chat.reset()) == ["user: lost?"]
        assert (chat.running, list(chat.messages), chat.partial) == (False, [], None)
        gate.open()
    assert list(chat.messages) == []
    assert told.kinds()[-1] == "run_finished"
    await chat.prompt("two")
    assert lines(chat.messages) == ["user: two", "assistant: new"]


@pytest.mark.parity("C15")
async def test_reset_wins_against_prompts_that_come_meanwhile() -> None:
    """Who waits for idle to speak is as quick as who waits for it to forget."""
    gates = [Gate() for _ in range(3)]
    chat, _ = talk(*[[gate] for gate in gates], "after")

    async def keen() -> None:
        for _ in range(3):
            await chat.wait_for_idle()
            try:
                await chat.prompt("me too")
            except UsageError:
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(keen)
        await gates[0].reached.wait()
        await chat.reset()
        assert list(chat.messages) == [] or chat.running
        group.cancel_scope.cancel()
    await chat.reset()
    assert (list(chat.messages), chat.running) == ([], False)


@pytest.mark.parity("C15")
async def test_reset_while_paused_drops_the_question() -> None:
    chat, _ = talk([PAY], "fine", tools=[pay])
    await chat.prompt("pay")
    assert chat.paused
    await chat.reset()
    assert (chat.paused, chat.pending, list(chat.messages)) == (False, (), [])
    assert (await chat.prompt("hello")).text == "fine"


@pytest.mark.parity("C5")
async def test_what_prepare_context_puts_in_place_shows_at_once() -> None:
    """A compaction that the person cannot see would be a lie about what the model knows."""
    summary = UserMessage.of("Summary of it all.")
    seen: list[list[str]] = []
    chat, _ = talk("a", hooks=Hooks[Any](prepare_context=lambda context: UseContext(messages=[summary])))
    chat.subscribe(lambda event: seen.append(lines(chat.messages)) if isinstance(event, ContextReplaced) else None)
    await chat.prompt("long story")
    assert seen == [["user: Summary of it all."]]
    assert lines(chat.messages) == ["user: Summary of it all.", "assistant: a"]
    assert all(getattr(message, "id", "") for message in chat.messages)


async def test_messages_of_a_run_have_one_start_each() -> None:
    chat, _ = talk([ADD], "five", tools=[add])
    told = heard(chat)
    await chat.prompt("2+3?")
    assert [event.role for event in told.of(MessageStarted)] == ["user", "assistant", "tool_result", "assistant"]
    assert len({event.message_id for event in told.of(MessageStarted)}) == 4
    told.check()
