"""From the application's transcript to what a model may see, without saying anything twice or to nobody."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.agent.agent import Agent
from antiphon.errors import UsageError
from antiphon.loop.outgoing import outgoing, sendable
from antiphon.loop.spec import ToModel
from antiphon.providers.scripted import Scripted
from antiphon.types.cancel import CancelSignal
from antiphon.types.content import Text, Thinking, ToolCall, Unknown
from antiphon.types.history import History
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    StopReason,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from antiphon.types.transcript import validate

from .scenarios import call, tool

pytestmark = pytest.mark.parity("A18")


def user(text: str = "hi") -> UserMessage:
    return UserMessage.of(text)


def says(*parts: Any, stop: StopReason = "stop", partial: bool = False) -> AssistantMessage:
    made = tuple([Text(part) if isinstance(part, str) else part for part in parts])
    return AssistantMessage(parts=made, stop_reason=stop, partial=partial, id="a")


def result(call_id: str) -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, tool_name="look", parts=(Text("x"),))


async def sent(
    messages: Sequence[Message], to_model: ToModel | None = None, *, check: bool = True
) -> Sequence[Message]:
    return await outgoing(messages, to_model, CancelSignal(), check=check)


@pytest.mark.anyio
async def test_a_transcript_that_a_model_may_see_is_sent_as_it_is() -> None:
    """The same object: what a provider encoded for the request before is found again."""
    history = History([SystemMessage.of("s"), user(), says("ok", call("look")), result("look-1")])
    assert (await sent(history)) is history
    grown = history.extended(says("fine"), user("more"))
    assert (await sent(grown)) is grown


def test_a_failed_reply_goes_with_its_results_and_only_its_own() -> None:
    """Ids are unique within a reply: the same id in the next one is another call."""
    failed = says("half", call("look", "c0"), stop="error")
    good = says("", call("look", "c0"))
    messages = [user(), failed, result("c0"), user("again"), good, result("c0")]
    assert sendable(messages) == [messages[0], messages[3], good, messages[5]]


def test_an_aborted_reply_becomes_its_text() -> None:
    """Thoughts without their end and calls without an answer are nothing that a provider takes."""
    aborted = says(Thinking(text="hm"), "so ", call("look", "c1"), "far", stop="aborted", partial=True)
    messages = [user(), aborted, result("c1"), user("and?")]
    (_, reply, _) = sendable(messages)
    assert reply == says("so ", "far")


@pytest.mark.parametrize("parts", [(), ("",), (Thinking(text="hm"),)])
def test_an_aborted_reply_without_text_is_left_out(parts: tuple[Any, ...]) -> None:
    assert sendable([user(), says(*parts, stop="aborted", partial=True), user("and?")]) == [user(), user("and?")]


@pytest.mark.parity("C5")
def test_what_is_only_the_applications_own_is_left_out() -> None:
    own = [CustomMessage(kind="note", data=1), Unknown({"type": "later"})]
    assert sendable([user(), *own]) == [user()]


@pytest.mark.anyio
@pytest.mark.parity("C5")
async def test_an_application_maps_its_own_messages_to_none_one_or_several() -> None:
    """Conversion comes last, may wait, and is given the run's cancel signal."""
    signals: list[CancelSignal] = []

    async def to_model(messages: Sequence[Message], cancel: CancelSignal) -> list[Message]:
        signals.append(cancel)
        mapped: list[Message] = []
        for message in messages:
            count = message.data if isinstance(message, CustomMessage) else None
            mapped += [message] if count is None else [user(f"note {number}") for number in range(count)]
        return mapped

    model = Scripted("fine")
    notes = [CustomMessage(kind="notes", data=count, id=f"n{count}") for count in (0, 1, 2)]
    answer = await Agent(model, to_model=to_model).run("hi", messages=notes)
    texts = [message.text for message in model.requests[0].messages if isinstance(message, UserMessage)]
    assert texts == ["note 0", "note 0", "note 1", "hi"]
    assert signals == [model.requests[0].cancel]
    assert list(answer.messages[:3]) == notes


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([user(), says("", call("look")), user("b")], r"message 1: call 'look-1' has no result"),
        ([user(), result("c9")], r"message 1: .*'c9' answers no call"),
        ([user(), says("so")], r"end in an assistant message \(index 1\)"),
        ([UserMessage(parts=())], "message 0: a user message without parts"),
    ],
)
async def test_what_cannot_be_sent_is_refused_with_its_place(messages: list[Message], said: str) -> None:
    """In our words and before anything is sent, not in a provider's after it."""
    with pytest.raises(UsageError, match=said):
        await sent(messages)
    with pytest.raises(UsageError, match=said):
        await sent([], lambda _messages, _cancel: messages)


@pytest.mark.anyio
async def test_each_request_begins_with_the_one_before() -> None:
    """An append-only prefix is what caches live of, also after a reply that was left out."""
    failed, aborted = says("half", stop="error"), says("so far", stop="aborted", partial=True)
    history = History([user("0")])
    before: list[Message] = []
    for number, messages in enumerate([[], [failed, user("1")], [says("ok"), user("2")], [aborted, user("3")]]):
        history = history.extended(*messages)
        now = list(await sent(history, check=False))
        assert now[: len(before)] == before
        assert now == sendable(list(history))
        assert len(now) >= number
        before = now


@pytest.mark.anyio
async def test_an_older_view_of_a_shared_transcript_is_sent_as_it_was() -> None:
    """Two runs may go on from the same place, one far ahead of the other."""
    start = History([user("0"), says("half", stop="error"), user("1")])
    ahead = start.extended(says("ok"), user("2"), says("x", stop="aborted", partial=True), user("3"))
    assert list(await sent(ahead, check=False)) == sendable(list(ahead))
    assert list(await sent(start, check=False)) == sendable(list(start))
    other = start.extended(says("other"), user("4"))
    assert list(await sent(other, check=False)) == sendable(list(other))
    assert list(await sent(ahead, check=False)) == sendable(list(ahead))


TURNS = st.lists(
    st.sampled_from(["said", "called", "failed", "failed call", "aborted", "thought", "custom", "unknown"]), max_size=12
)


def turn(kind: str) -> list[Message]:
    match kind:
        case "said":
            return [says("ok")]
        case "called":
            return [says("", call("look", "c0")), result("c0"), says("ok")]
        case "failed":
            return [says("half", stop="error", partial=True)]
        case "failed call":
            return [says("half", ToolCall(id="c0", name="look"), stop="error"), result("c0")]
        case "aborted":
            return [says("so far", stop="aborted", partial=True)]
        case "thought":
            return [says(Thinking(text="hm"), stop="aborted", partial=True)]
        case "custom":
            return [CustomMessage(kind="note")]
        case _:
            return [Unknown({"type": "later"})]


@settings(max_examples=200, deadline=None)
@given(TURNS)
def test_whatever_happened_what_is_sent_is_fit_to_be_sent(kinds: list[str]) -> None:
    """For every course of a conversation: nothing open, nothing orphaned, nothing half."""
    messages: list[Message] = []
    for kind in kinds:
        messages += [user(kind), *turn(kind)]
    messages.append(user("last"))
    fit = sendable(messages)
    assert validate(fit) == []
    assert fit[-1] == user("last")
    assert [message for message in fit if isinstance(message, AssistantMessage) and message.partial] == []
    asked = [message.text for message in fit if isinstance(message, UserMessage)]
    assert asked == [*kinds, "last"]


@pytest.mark.anyio
async def test_details_and_ids_are_not_a_models_business_but_stay_in_the_transcript() -> None:
    model = Scripted([call("look")], "fine")
    answer = await Agent(model, tools=[tool("look")]).run("hi")
    assert model.requests[1].messages[2] is answer.messages[2]
