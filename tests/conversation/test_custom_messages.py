"""Messages of the application's own: typed, kept, stored, and turned into what a model understands at the last moment."""

import enum
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypedDict, cast

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from antiphon import (
    AssistantMessage,
    CancelSignal,
    CustomKind,
    CustomMessage,
    Hooks,
    ModelContext,
    RunError,
    RunStarted,
    SystemMessage,
    Text,
    TurnStarted,
    UsageError,
    UseContext,
    UseRequest,
    UserMessage,
    dump_messages,
    load_messages,
    validate,
)
from antiphon.testing import Scripted

from .talks import ADD, add, heard, lines, talk

pytestmark = pytest.mark.anyio


class Level(enum.Enum):
    INFO = "info"


class Notice(Struct, frozen=True):
    text: str
    at: datetime
    seats: dict[int, str] = {}
    price: Decimal = Decimal(0)
    data: bytes = b""
    tags: tuple[str, ...] = ()
    level: Level = Level.INFO


@dataclass
class Place:
    x: int
    y: int


class Bill(TypedDict):
    items: list[int]


NOTICE = CustomKind("notice", Notice)
BILL = CustomKind("bill", Bill)
FULL = Notice("hi", datetime(2026, 1, 2, tzinfo=UTC), {1: "me"}, Decimal("1.50"), b"\x00\xff", ("a",))


@pytest.mark.parity("C5")
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (NOTICE, FULL),
        (CustomKind("place", Place), Place(1, 2)),
        (BILL, {"items": [1, 2]}),
        (CustomKind("number", int), 7),
        (CustomKind("many", list[Place]), [Place(1, 2)]),
        (CustomKind("some", cast("Any", Place | None)), None),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_typed_message_survives_storage(kind: CustomKind[Any], value: Any) -> None:
    """What is put in comes out, of the same type, in this process or in one of next year."""
    message = kind.message(value, id="m1", created_at=5.0)
    assert isinstance(message, CustomMessage)
    assert (message.kind, message.id, message.created_at) == (kind.kind, "m1", 5.0)
    assert kind.read(message) == value
    assert kind.read(load_messages(dump_messages([message]))[0]) == value


@pytest.mark.parity("C5")
@given(st.recursive(st.none() | st.booleans() | st.text("aé🌧") | st.integers(-9, 9), lambda d: st.lists(d, max_size=3)))
def test_any_json_is_a_message(value: Any) -> None:
    kind: CustomKind[Any] = CustomKind("any", cast("Any", Any))
    assert kind.read(load_messages(dump_messages([kind.message(value)]))[0]) == value


@pytest.mark.parity("C5")
def test_other_messages_are_not_read() -> None:
    assert NOTICE.read(UserMessage.of("hi")) is None
    assert NOTICE.read(BILL.message({"items": []})) is None


@pytest.mark.parity("C5")
def test_what_is_no_json_or_does_not_fit_is_told() -> None:
    """A type that has changed since must not read as something else."""
    endless: list[Any] = []
    endless.append(endless)
    for value in (object(), endless, "\ud800", {("a", "b"): 1}):
        with pytest.raises(UsageError, match="a 'any' message must be JSON"):
            CustomKind("any", object).message(value)
    changed = CustomKind("notice", Place)
    with pytest.raises(UsageError, match=r"a stored 'notice' message does not fit Place: .*`x`"):
        changed.read(NOTICE.message(FULL))
    with pytest.raises(UsageError, match="does not fit"):
        CustomKind("number", list[int]).read(CustomKind("number", int).message(1))


async def test_h3_a_message_is_a_copy_of_its_value() -> None:
    """What the application does with its object afterwards does not change what was said."""
    bill: Bill = {"items": [1]}
    message = BILL.message(bill)
    bill["items"].append(2)
    assert BILL.read(message) == {"items": [1]}
    found = BILL.read(message)
    assert found is not None
    found["items"].append(3)
    assert BILL.read(message) == {"items": [1]}


@pytest.mark.parity("C5")
async def test_by_default_they_are_kept_and_not_sent() -> None:
    """A notice on the screen is part of the talk, and none of the model's business."""
    chat, model = talk("Hi", "again")
    await chat.prompt([NOTICE.message(FULL), UserMessage.of("hello")])
    chat.append_message(CustomMessage(kind="mark", data=1))
    await chat.prompt("and?")
    assert NOTICE.read(chat.messages[0]) == FULL
    assert [type(message).__name__ for message in chat.messages] == [
        "CustomMessage", "UserMessage", "AssistantMessage", "CustomMessage", "UserMessage", "AssistantMessage",
    ]  # fmt: skip
    assert [lines(request.messages) for request in model.requests] == [
        ["user: hello"],
        ["user: hello", "assistant: Hi", "user: and?"],
    ]


async def to_model(messages: Any, cancel: CancelSignal) -> list[Any]:
    """One to none, one to one, one to several."""
    assert not cancel.cancelled
    await anyio.lowlevel.checkpoint()
    sent: list[Any] = []
    for message in messages:
        match message:
            case CustomMessage(kind="hidden"):
                pass
            case CustomMessage(kind="note", data=data):
                sent.append(UserMessage.of(f"note: {data}"))
            case CustomMessage(kind="pair", data=data):
                sent += [SystemMessage.of("a pair follows"), UserMessage.of(str(data))]
            case _:
                sent.append(message)
    return sent


@pytest.mark.parity("C5")
@pytest.mark.parametrize(
    ("custom", "sent"),
    [
        (CustomMessage(kind="hidden"), []),
        (CustomMessage(kind="note", data="n"), ["user: note: n"]),
        (CustomMessage(kind="pair", data=2), ["system: a pair follows", "user: 2"]),
        (CustomMessage(kind="unheard of"), []),
    ],
    ids=["none", "one", "several", "unmapped"],
)
async def test_one_may_become_none_one_or_several(custom: CustomMessage, sent: list[str]) -> None:
    chat, model = talk("Hi", to_model=to_model)
    await chat.prompt([custom, UserMessage.of("go")])
    assert lines(model.requests[0].messages) == [*sent, "user: go"]
    assert isinstance(chat.messages[0], CustomMessage)


@pytest.mark.parity("C5")
async def test_a_steered_notification_reaches_the_model_in_words() -> None:
    """The background job is done: the application says so in its own type, the model reads a sentence."""
    chat, model = talk([ADD], "noted", tools=[add], to_model=to_model)
    chat.subscribe(
        lambda e: chat.steer(CustomMessage(kind="note", data="done")) if type(e).__name__ == "ToolStarted" else None
    )
    await chat.prompt("go")
    assert lines(model.requests[1].messages)[-1] == "user: note: done"
    assert [type(message).__name__ for message in chat.messages][3] == "CustomMessage"


@pytest.mark.parity("C5")
@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([UserMessage(parts=())], "message 0: a user message without parts"),
        ([UserMessage.of("a"), AssistantMessage(parts=(ADD,))], "message 1: call 'a1' has no result"),
        ([UserMessage.of("a"), AssistantMessage(parts=(Text("b"),))], "would end in an assistant message"),
    ],
)
@pytest.mark.parametrize("where", ["to_model", "before_model_request"])
async def test_what_cannot_be_sent_is_not_sent(given: Any, complaint: str, where: str) -> None:
    """A provider's 400 names nothing; the index and the fix do."""
    if where == "to_model":
        chat, model = talk("never", to_model=lambda messages, cancel: given)
    else:
        hooks = Hooks[Any](before_model_request=lambda context: UseRequest(messages=given))
        chat, model = talk("never", hooks=hooks)
    with pytest.raises(RunError, match=complaint):
        await chat.prompt("go")
    assert model.requests == []
    assert validate(chat.messages) == []


@pytest.mark.parity("C5")
async def test_the_order_of_a_request() -> None:
    """Everything that has a word on a request, in one log: whoever adds a hook can rely on where it stands."""
    log: list[str] = []

    class Source:
        name = "source"

        def __init__(self) -> None:
            self.changed: Any = None

        async def list(self, cancel: CancelSignal | None = None) -> Any:
            log.append("source listed")
            return [add]

        def on_invalidated(self, listener: Any) -> Any:
            self.changed = listener
            return lambda: None

    source = Source()

    async def convert(messages: Any, cancel: CancelSignal) -> Any:
        log.append(f"to_model {len(messages)}")
        return [UserMessage.of("!") if isinstance(m, CustomMessage) else m for m in messages]

    def before_request(context: ModelContext[Any]) -> UseRequest:
        kinds = {type(message).__name__ for message in context.messages}
        log.append(f"before_model_request {'sees custom' if 'CustomMessage' in kinds else ''}")
        return UseRequest(messages=context.messages)

    async def prepare(context: ModelContext[Any]) -> None:
        await anyio.lowlevel.checkpoint()
        log.append(f"prepare_context step {context.step}")

    hooks = Hooks[Any](
        should_continue=lambda context: log.append(f"should_continue after {len(context.results)} result"),
        prepare_context=prepare,
        before_model_request=before_request,
        on_append=lambda message: log.append(f"append {type(message).__name__}"),
        after_model_response=lambda context: log.append("after_model_response"),
        after_tool_execute=lambda context: source.changed(),
    )
    chat, model = talk(lambda r: log.append("request") or [ADD], lambda r: log.append("request") or "five")
    chat.configure(hooks=hooks, to_model=convert, sources=[source])

    def tell(event: Any) -> None:
        if isinstance(event, TurnStarted):
            log.append(f"TurnStarted {event.turn}")
        elif type(event).__name__ in ("MessageFinished", "ToolFinished", "MessageDelivered"):
            log.append(type(event).__name__)
            if log[-1] == "ToolFinished":
                chat.steer("hurry")

    chat.subscribe(tell)
    await chat.prompt([CustomMessage(kind="x"), UserMessage.of("2+3?")])
    assert log == [
        "source listed",
        "append CustomMessage",
        "MessageFinished",
        "append UserMessage",
        "MessageFinished",
        "prepare_context step 1",
        "TurnStarted 1",
        "before_model_request sees custom",
        "to_model 2",
        "request",
        "after_model_response",
        "append AssistantMessage",
        "MessageFinished",
        "ToolFinished",
        "append ToolResultMessage",
        "MessageFinished",
        "source listed",
        "should_continue after 1 result",
        "append UserMessage",
        "MessageFinished",
        "prepare_context step 2",
        "TurnStarted 2",
        "before_model_request sees custom",
        "to_model 5",
        "MessageDelivered",
        "request",
        "after_model_response",
        "append AssistantMessage",
        "MessageFinished",
    ]
    assert len(model.requests) == 2


@pytest.mark.parity("C5")
async def test_prepare_context_gets_a_snapshot_and_replaces_both_or_nothing() -> None:
    """Two hooks: the first replaces, the second fails; nothing of it is applied."""
    other = Scripted("from the other")
    snapshots: list[Any] = []

    def replaces(context: ModelContext[Any]) -> UseContext:
        snapshots.append(context.messages)
        return UseContext(messages=[UserMessage.of("short")], model=other)

    chat, model = talk("a", "b", hooks=Hooks[Any](prepare_context=replaces))
    with pytest.raises(RunError, match="second"):
        await chat.prompt("long", hooks=Hooks[Any](prepare_context=lambda c: fails("second")))
    assert lines(chat.messages) == ["user: long", "assistant:  <error>"]
    assert (model.requests, other.requests) == ([], [])
    assert isinstance(snapshots[0], tuple)
    told = heard(chat)
    result = await chat.prompt("longer")
    assert (result.text, lines(chat.messages)) == ("from the other", ["user: short", "assistant: from the other"])
    kinds = told.kinds()
    assert kinds.index("context_replaced") < kinds.index("turn_started")
    assert (len(other.requests), len(model.requests)) == (1, 0)


def fails(text: str) -> None:
    raise ValueError(text)


@pytest.mark.parity("C5")
async def test_a_failing_prepare_context_leaves_an_assistant_message_with_the_error() -> None:
    chat, model = talk([ADD], "never", tools=[add])
    hooks = Hooks[Any](prepare_context=lambda c: fails("no room") if c.step == 2 else None)
    told = heard(chat)
    with pytest.raises(RunError):
        await chat.prompt("go", hooks=hooks)
    last = chat.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.stop_reason, last.error) == ("error", "ValueError: no room")
    assert len(told.of(TurnStarted)) == 1
    told.check()
    assert len(model.requests) == 1


async def test_h2_what_a_hook_does_to_its_copy_is_not_in_the_history() -> None:
    """Messages are frozen, and lists are the hook's own: a request-only change stays in its request."""

    def enrich(context: ModelContext[Any]) -> UseRequest:
        messages = list(context.messages)
        messages[-1] = UserMessage.of("enriched")
        return UseRequest(messages=messages)

    chat, model = talk("a", hooks=Hooks[Any](before_model_request=enrich))
    await chat.prompt("plain")
    assert lines(model.requests[0].messages) == ["user: enriched"]
    assert lines(chat.messages)[0] == "user: plain"
    with pytest.raises(AttributeError):
        setattr(chat.messages[0], "parts", ())  # noqa: B010 - a type checker would see it


async def test_a_model_replaced_for_the_run_is_the_runs_alone() -> None:
    other = Scripted([ADD], "other")
    chat, model = talk(
        "mine",
        tools=[add],
        hooks=Hooks[Any](prepare_context=lambda c: UseContext(model=other) if c.step == 1 else None),
    )
    told = heard(chat)
    await chat.prompt("go")
    assert (len(other.requests), len(model.requests)) == (2, 0)
    chat.configure(hooks=None)
    assert (await chat.prompt("next")).text == "mine"
    assert len(told.of(RunStarted)) == 2
