"""Saying something, going on, ending, waiting: what a person does with a conversation."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from antiphon import (
    AssistantMessage,
    ContextReplaced,
    CustomMessage,
    Deny,
    Dropped,
    Hooks,
    Image,
    MessageFinished,
    MessageStarted,
    Recovery,
    Rejected,
    RunError,
    Text,
    TextDelta,
    UsageError,
    UserMessage,
    dump_messages,
    load_messages,
    validate,
)

from .talks import ADD, PAY, Gate, add, call, heard, lines, pay, talk

pytestmark = pytest.mark.anyio

PIXEL = Image("iVBORw0KGgo=", "image/png")


@pytest.mark.parity("C2")
@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Hello", [UserMessage.of("Hello")]),
        ("", [UserMessage.of("")]),
        (["Look:", PIXEL], [UserMessage.of("Look:", PIXEL)]),
        (PIXEL, [UserMessage.of(PIXEL)]),
        (UserMessage.of("one"), [UserMessage.of("one")]),
        ([UserMessage.of("one"), UserMessage.of("two")], [UserMessage.of("one"), UserMessage.of("two")]),
        ([CustomMessage(kind="note", data=1), UserMessage.of("b")], [UserMessage.of("b")]),
    ],
    ids=["text", "empty text", "text and image", "image", "message", "messages", "custom and user"],
)
async def test_a_prompt_is_text_or_parts_or_a_message_or_several(prompt: Any, expected: Any) -> None:
    """Images are parts beside the text, as base64 with a media type."""
    chat, model = talk("Hi")
    result = await chat.prompt(prompt)
    assert (result.status, result.text, result.output) == ("done", "Hi", "Hi")
    sent = [message for message in model.requests[0].messages if isinstance(message, UserMessage)]
    assert [message.parts for message in sent] == [message.parts for message in expected]
    assert list(chat.messages) == [*result.new_messages]
    assert all(getattr(message, "id", "") and getattr(message, "created_at", None) for message in chat.messages)


@pytest.mark.parity("C2")
async def test_a_given_id_and_time_are_kept() -> None:
    """The application's own ids are what it finds its messages by."""
    chat, _ = talk("Hi")
    await chat.prompt(UserMessage.of("a", id="mine", created_at=12.5))
    first = chat.messages[0]
    assert isinstance(first, UserMessage)
    assert (first.id, first.created_at) == ("mine", 12.5)


@pytest.mark.parity("C2")
@pytest.mark.parametrize("prompt", [[], 7, [AssistantMessage(parts=(Text("no"),))], ["a", UserMessage.of("b")]])
async def test_what_nobody_can_say_is_refused_and_changes_nothing(prompt: Any) -> None:
    chat, model = talk("Hi")
    with pytest.raises(UsageError):
        await chat.prompt(prompt)
    assert (list(chat.messages), chat.running, model.requests) == ([], False, [])
    assert (await chat.prompt("still works")).text == "Hi"


@pytest.mark.parity("C2")
async def test_a_second_prompt_while_running_is_refused_with_the_way_out() -> None:
    """Two runs over one transcript would write over each other."""
    gate = Gate()
    chat, model = talk([gate, "Hi"])
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "one")
        await gate.reached.wait()
        for attempt in (chat.prompt("two"), chat.resume(), chat.live("two").__aenter__()):
            with pytest.raises(UsageError, match=r"a run goes on: steer\(\) or follow_up\(\) .* abort\(\)"):
                await attempt
        gate.open()
    assert lines(chat.messages) == ["user: one", "assistant: Hi"]
    assert len(model.requests) == 1


@pytest.mark.parity("C2")
async def test_a_failure_raises_and_stays_in_state_and_transcript() -> None:
    """A person sees it where the reply would be, the program where it waited for the reply."""
    chat, _ = talk(["So far", Rejected("no such model")], "fine")
    with pytest.raises(RunError, match="no such model") as caught:
        await chat.prompt("one")
    assert isinstance(caught.value.__cause__, Rejected)
    assert (chat.error, chat.status, chat.running) == ("no such model", "error", False)
    assert lines(chat.messages) == ["user: one", "assistant: So far <error>"]
    assert caught.value.result.messages == chat.messages
    await chat.prompt("two")
    assert (chat.error, chat.status) == (None, "done")


@pytest.mark.parity("C2")
@pytest.mark.parametrize("point", ["on_run_start", "prepare_context", "before_model_request", "on_append"])
async def test_a_failing_hook_is_such_a_failure_too(point: Any) -> None:
    """Whatever breaks, nobody is left before a prompt without an answer."""

    def fail(_context: Any) -> None:
        if not failed:
            failed.append(point)
            raise ValueError("broken hook")

    failed: list[str] = []
    hook: dict[str, Any] = {point: fail}
    chat, _ = talk("fine", hooks=Hooks[Any](**hook))
    with pytest.raises(RunError, match="broken hook"):
        await chat.prompt("one")
    assert chat.error is not None
    assert "broken hook" in chat.error
    last = chat.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert last.error is not None
    assert validate(chat.messages) == []
    assert (await chat.resume()).text == "fine"
    assert lines(chat.messages) == ["user: one", "assistant: fine"]


@pytest.mark.parity("C3")
@pytest.mark.parametrize("ending", ["user", "tool result", "custom"])
async def test_resume_goes_on_from_what_a_model_answers(ending: str) -> None:
    """Restored from storage, or appended by hand: it is the model's turn."""
    chat, _ = talk([ADD], "so", "there", tools=[add], to_model=shown)
    if ending == "tool result":
        await chat.prompt("2+3?")
        chat.replace_messages(chat.messages[:3])
    elif ending == "user":
        chat.append_message(UserMessage.of("2+3?"))
    else:
        chat.append_message(CustomMessage(kind="note", data="2+3?"))
    before = list(chat.messages)
    told = heard(chat)
    result = await chat.resume()
    assert result.status == "done"
    assert list(chat.messages[: len(before)]) == before
    assert len(result.new_messages) == (1 if ending == "tool result" else 3)
    finished = [event.message for event in told.of(MessageFinished)]
    assert finished == list(result.new_messages), "old messages are not told again"


async def shown(messages: Any, _cancel: Any) -> Any:
    return [UserMessage.of(str(m.data)) if isinstance(m, CustomMessage) else m for m in messages]


@pytest.mark.parity("C3")
async def test_resume_is_refused_where_there_is_nothing_to_answer() -> None:
    chat, _ = talk("Hi")
    with pytest.raises(UsageError, match="nothing to do"):
        await chat.resume()
    await chat.prompt("one")
    with pytest.raises(UsageError, match="it is not the model's turn"):
        await chat.resume()
    with pytest.raises(UsageError, match="no call waits for a decision"):
        await chat.resume(decisions={"c1": Deny()})
    assert (chat.running, chat.status) == (False, "done")


@pytest.mark.parity("C3")
async def test_resume_after_an_assistant_message_delivers_what_is_queued() -> None:
    """Steering first; a follow-up only when nothing is steered."""
    chat, model = talk("one", "two", "three", "four")
    await chat.prompt("hello")
    chat.follow_up("later")
    chat.steer("now")
    chat.steer("and now")
    await chat.resume()
    assert lines(chat.messages)[2:] == [
        "user: now",
        "assistant: two",
        "user: and now",
        "assistant: three",
        "user: later",
        "assistant: four",
    ]
    assert [len(request.messages) for request in model.requests] == [1, 3, 5, 7]


@pytest.mark.parity("C3")
async def test_resume_after_an_error_leaves_the_failed_reply_out_first() -> None:
    """Sent along, half a reply would be taken for what was said; and viewers must know that it is gone."""
    chat, model = talk(["Half a", Dropped("cut")], "Whole.", recovery=Recovery(retries=0))
    with pytest.raises(RunError):
        await chat.prompt("tell me")
    told = heard(chat)
    await chat.resume()
    assert lines(chat.messages) == ["user: tell me", "assistant: Whole."]
    receipt = told.one(ContextReplaced)
    assert lines(receipt.messages or ()) == ["user: tell me"]
    assert "failed reply" in receipt.why
    assert told.kinds()[:3] == ["run_started", "context_replaced", "turn_started"]
    assert [event.role for event in told.of(MessageStarted)] == ["assistant"]
    assert lines(model.requests[1].messages) == ["user: tell me"]


@pytest.mark.parity("C3")
async def test_resume_after_an_abort_asks_again_and_a_prompt_keeps_what_was_said() -> None:
    """Going on is not the same as saying something: the one repeats, the other refers to what was shown."""
    for way in ("resume", "prompt"):
        gate = Gate()
        chat, model = talk(["Once upon", gate], "Again.")
        chat.subscribe(lambda event, chat=chat: chat.abort() if isinstance(event, TextDelta) else None)
        await chat.prompt("tell me")
        assert lines(chat.messages) == ["user: tell me", "assistant: Once upon <aborted>"]
        chat.subscribe(lambda event: None)
        chat._listeners.clear()
        await (chat.resume() if way == "resume" else chat.prompt("go on"))
        sent = lines(model.requests[1].messages)
        assert sent == (
            ["user: tell me"] if way == "resume" else ["user: tell me", "assistant: Once upon", "user: go on"]
        )


@pytest.mark.parity("C3")
async def test_a_conversation_is_restored_from_its_messages() -> None:
    """A chat is stored as its transcript; what the process died in is repaired."""
    chat, _ = talk([ADD, PAY], tools=[add, pay])
    await chat.prompt("both")
    assert chat.paused
    stored = dump_messages(chat.messages)
    restored, model = talk("what now?", messages=load_messages(stored), tools=[add, pay])
    assert not restored.paused
    assert lines(restored.messages)[:2] == ["user: both", "assistant: [a1] [p1]"]
    assert [line.split(":")[0] for line in lines(restored.messages)[2:]] == ["a1 unknown", "p1 unknown"]
    await restored.prompt("hello?")
    assert validate(model.requests[0].messages) == []


async def test_h1_the_callers_list_is_never_changed() -> None:
    """A list that was handed in is still the caller's."""
    given = [UserMessage.of("a"), AssistantMessage(parts=(Text("b"), call("add", "x")))]
    copy = list(given)
    chat, _ = talk("Hi", messages=given, tools=[add])
    prompt = [UserMessage.of("c")]
    await chat.prompt(prompt)
    chat.replace_messages(given)
    chat.clear_messages()
    assert (given, prompt) == (copy, [UserMessage.of("c")])


@pytest.mark.parity("C3")
async def test_what_is_queued_can_open_a_conversation() -> None:
    """Something was said; it need not have been said by a prompt."""
    chat, _ = talk("a", "b")
    chat.follow_up("f")
    chat.steer("s")
    await chat.resume()
    assert lines(chat.messages) == ["user: s", "assistant: a", "user: f", "assistant: b"]


@pytest.mark.parity("C3")
async def test_a_failed_reply_behind_an_answer_is_nothing_to_go_on_from() -> None:
    """Without it the transcript ends in an assistant message; refused before anything is told."""
    chat, model = talk("a", hooks=Hooks[Any](on_run_start=lambda c: 1 / 0 if len(c.messages) > 1 else None))
    await chat.prompt("one")
    chat.follow_up("f")
    with pytest.raises(RunError):
        await chat.resume()
    chat.clear_queue("follow_up")
    told = heard(chat)
    with pytest.raises(UsageError, match="not the model's turn"):
        await chat.resume()
    assert (told.events, len(model.requests), chat.running) == ([], 1, False)
