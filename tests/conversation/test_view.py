"""The view: nothing but the events is needed to know what a person should see."""

import contextlib
import copy
from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    AttemptDiscarded,
    Conversation,
    Deny,
    Dropped,
    Event,
    Hooks,
    MessageFinished,
    ModelInfo,
    Rejected,
    RunError,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    UseContext,
    UserMessage,
    View,
    dump_event,
    load_event,
    tool,
)
from antiphon.testing import Scripted
from antiphon.types.request import CallChunk, FinishChunk, TextChunk, ThinkingChunk

from .talks import ADD, AT_ONCE, PAY, Gate, add, call, fails, heard, lines, pay, talk

pytestmark = pytest.mark.anyio


def state(view: View | Conversation[Any]) -> dict[str, Any]:
    """What both show."""
    return {
        "messages": list(view.messages),
        "streaming": view.streaming,
        "status": view.status,
        "error": view.error,
        "partial": view.partial,
        "running_calls": set(view.running_calls),
    }


SCENES: dict[str, dict[str, Any]] = {
    "text": {"replies": ["Hi"]},
    "tools": {"replies": [[ADD, call("nope", "n1")], "five"]},
    "thinking": {"replies": [[Thinking(text="hm"), "so"]]},
    "retries": {"replies": [["a", Dropped("x")], ["ab", FinishChunk("length")], [], "abc"]},
    "failure": {"replies": [["a", Rejected("no")]]},
    "pause": {"replies": [[ADD, PAY]]},
    "cut off calls": {"replies": [["x", ADD, FinishChunk("length")], "ok"]},
    "replaced": {
        "replies": ["a"],
        "hooks": Hooks[Any](prepare_context=lambda c: UseContext(messages=[UserMessage.of("s")])),
    },
    "failed hook": {"replies": ["a"], "hooks": Hooks[Any](prepare_context=fails)},
    "refused": {"replies": ["a"], "hooks": Hooks[Any](on_run_start=fails)},
}


@pytest.mark.parity("C14")
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES.keys())
async def test_the_state_is_the_fold_of_the_events_at_every_event(scene: dict[str, Any]) -> None:
    """The conversation keeps no second truth; and the events may come from a file."""
    more = {name: value for name, value in scene.items() if name != "replies"}
    chat, _ = talk(*scene["replies"], tools=[add, pay], **more)
    view, stored = View(), View()

    def follow(event: Event) -> None:
        view.apply(event)
        loaded = load_event(dump_event(event))
        assert isinstance(loaded, Event)
        stored.apply(loaded)
        assert state(view) == state(chat)
        assert state(stored) == state(view)

    chat.subscribe(follow)
    with contextlib.suppress(RunError):
        await chat.prompt("go")
    assert state(view) == state(chat)
    assert list(stored.messages) == list(chat.messages)
    assert [call.id for call in chat.pending] == sorted(view.waiting_calls)


@pytest.mark.parity("C14")
async def test_over_many_runs_the_fold_goes_on() -> None:
    """Resumed failures, pauses and undelivered messages included."""
    chat, _ = talk(["a", Rejected("no")], "b", [PAY], "paid", tools=[pay])
    view = View()
    chat.subscribe(view.apply)
    with pytest.raises(RunError):
        await chat.prompt("one")
    await chat.resume()
    await chat.prompt("two")
    assert chat.paused
    chat.steer("later")
    await chat.resume(decisions={"p1": Deny()})
    assert state(view) == state(chat)
    assert (view.queued, view.waiting_calls) == ([], set())


async def test_partial_parts_stand_in_the_order_in_which_they_came() -> None:
    """Thinking, text and calls, each with its own fragments, however they are mixed."""
    steps = [
        TextChunk(""),
        ThinkingChunk("h"),
        ThinkingChunk("m"),
        TextChunk("Le"),
        CallChunk(0, "a1", "add", '{"a"'),
        CallChunk(1, "a2", "add", "{"),
        CallChunk(0, arguments=": 1}"),
        CallChunk(1, arguments="}"),
        TextChunk("t"),
    ]
    chat = Agent(Scripted(steps, "x"), tools=[add], recovery=AT_ONCE).conversation()
    partials: list[Any] = []
    chat.subscribe(lambda event: partials.append(chat.partial) if type(event).__name__.endswith("Delta") else None)
    await chat.prompt("go")
    last = partials[7]
    assert last is not None
    assert last.parts == (
        Thinking(text="hm"),
        Text("Le"),
        ToolCall(id="a1", name="add", arguments='{"a": 1}'),
        ToolCall(id="a2", name="add", arguments="{}"),
        Text("t"),
    )
    assert partials[0].parts == (Thinking(text="h"),)


async def test_a_partial_is_a_snapshot() -> None:
    """An early event looked at later shows what there was."""
    chat, _ = talk(["abcdef"], "x")
    chat.configure(model=Scripted("abcdef", piece=2))
    partials: list[Any] = []
    chat.subscribe(lambda event: partials.append(chat.partial) if type(event).__name__ == "TextDelta" else None)
    await chat.prompt("go")
    assert [partial.text for partial in partials] == ["ab", "abcd", "abcdef"]


async def test_events_of_a_sub_agent_are_not_the_conversations() -> None:
    """Their messages stand in another transcript, their calls under another's ids."""
    inner = Agent(Scripted([ADD], "inner says five"), tools=[add], recovery=AT_ONCE)
    chat, _ = talk([call("ask", "k1", '{"prompt": "2+3"}')], "five", tools=[inner.as_tool("ask", "Asks.")])
    view = View()
    shown: list[Any] = []

    def follow(event: Event) -> None:
        view.apply(event)
        shown.append((event.parent_run_id is not None, copy.copy(view.running_calls), view.partial is None))

    chat.subscribe(follow)
    await chat.prompt("go")
    assert [running for nested, running, _ in shown if nested] == [{"k1"}] * len([1 for nested, *_ in shown if nested])
    assert lines(view.messages) == lines(chat.messages)
    assert len(lines(view.messages)) == 4


async def test_a_view_that_comes_late_starts_from_the_messages() -> None:
    """Opened in the middle of a talk, it needs what was said so far and every event from now on."""
    chat, _ = talk("a", "b", messages=[])
    await chat.prompt("one")
    view = View(chat.messages)
    chat.subscribe(view.apply)
    await chat.prompt("two")
    assert state(view) == state(chat)


async def test_the_view_knows_model_level_and_queue() -> None:
    info = ModelInfo(provider="p", id="m", thinking_levels=("off", "low"))
    gate = Gate()
    chat = Agent(Scripted([gate, "a"], "b", info=info), recovery=AT_ONCE).conversation()
    view = View()
    chat.subscribe(view.apply)
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "go")
        await gate.reached.wait()
        chat.follow_up("later")
        assert (view.model, view.thinking, lines(view.queued)) == (info, None, ["user: later"])
        gate.open()
    assert view.queued == []


async def test_discarded_attempts_leave_nothing_behind() -> None:
    chat, _ = talk(["a", ADD, Dropped("x")], "b", tools=[add])
    told = heard(chat)
    at: list[Any] = []
    chat.subscribe(lambda event: at.append(chat.partial) if isinstance(event, AttemptDiscarded) else None)
    await chat.prompt("go")
    assert at == [None]
    assert [lines([event.message])[0] for event in told.of(MessageFinished)] == ["user: go", "assistant: b"]


async def test_a_stray_delta_is_not_shown() -> None:
    """Of a message that is not open: a viewer that joined in the middle of one."""
    view = View()
    view.apply(TextDelta(run_id="r", seq=5, message_id="m", text="rest of a word"))
    assert view.partial is None


async def test_a_tool_that_is_aborted_does_not_run_on_the_screen() -> None:
    gate = Gate()

    @tool
    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "x"

    chat, _ = talk([call("wait", "w1")], tools=[wait])
    view = View()
    chat.subscribe(view.apply)
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "go")
        await gate.reached.wait()
        assert view.running_calls == {"w1"}
        chat.abort()
    assert (view.running_calls, view.status) == (set(), "aborted")
    assert list(view.messages) == list(chat.messages)
