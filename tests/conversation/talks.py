"""What the tests of this folder are made of: chats on a script, gates, and short views of a transcript."""

from collections.abc import Sequence
from typing import Any

import anyio

from antiphon import (
    Agent,
    AssistantMessage,
    Conversation,
    Event,
    Message,
    MessageDelivered,
    MessageQueued,
    MessageReturned,
    Recovery,
    ToolCall,
    ToolResultMessage,
    tool,
)
from antiphon.testing import Recording, Scripted

AT_ONCE = Recovery(delay=0, jitter=0)


class Gate:
    """Something that a test opens; `reached` says that somebody waits before it."""

    def __init__(self) -> None:
        self._open = anyio.Event()
        self.reached = anyio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self._open.wait()

    def open(self) -> None:
        self._open.set()


def talk(*replies: Any, messages: Sequence[Message] = (), **agent: Any) -> tuple[Conversation[Any], Scripted]:
    """A conversation on a script, and the script."""
    model = Scripted(*replies)
    return Agent(model, **{"recovery": AT_ONCE, **agent}).conversation(messages=messages), model


def heard(chat: Conversation[Any]) -> Recording:
    """A recording of everything that the conversation's runs tell from now on."""
    recording = Recording()
    chat.subscribe(recording)
    return recording


def lines(messages: Sequence[Message]) -> list[str]:
    """A transcript as `role: text`, calls as their ids, results with their outcome."""
    found: list[str] = []
    for message in messages:
        match message:
            case ToolResultMessage():
                found.append(f"{message.call_id} {message.outcome}: {message.text}")
            case AssistantMessage():
                calls = " ".join(f"[{call.id}]" for call in message.calls)
                mark = f" <{message.stop_reason}>" if message.stop_reason in ("error", "aborted") else ""
                found.append(f"assistant: {message.text}{calls}{mark}")
            case _:
                kind = str(message.__struct_config__.tag)
                found.append(f"{kind}: {getattr(message, 'text', getattr(message, 'data', ''))}")
    return found


def fails(*_context: Any) -> Any:
    """A hook or a listener that raises."""
    raise ValueError("broken")


def call(name: str, call_id: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


ADD = call("add", "a1", '{"a": 2, "b": 3}')
PAY = call("pay", "p1", '{"amount": 5}')


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
