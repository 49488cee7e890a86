"""antiphon's messages, events and contexts in the words of the recordings."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from antiphon import (
    AssistantMessage,
    Event,
    MessageFinished,
    MessageStarted,
    RunFinished,
    SystemMessage,
    TextDelta,
    ThinkingDelta,
    ToolResultMessage,
    TurnStarted,
    UserMessage,
)
from antiphon.types.content import Text, ToolCall
from antiphon.types.messages import Message

__all__ = ["Teller", "call_from", "calls_of", "message_of", "messages_from", "messages_of", "roles_of", "status_of"]

STATUS = {"aborted": "abort"}
NO_REASON = "stopped by "
"""How ours begins a reason that nobody gave: it says which hook it was."""
ROLES = {SystemMessage: "system", UserMessage: "user", AssistantMessage: "assistant", ToolResultMessage: "tool"}


def status_of(status: str) -> str:
    """The recordings' word for an ending. They have none for a limit and none for a pause: those keep ours."""
    return STATUS.get(status, status)


def calls_of(calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


def message_of(message: Message) -> dict[str, Any]:
    """A message of ours, in their shape."""
    role = ROLES[type(message)]  # pyright: ignore[reportArgumentType] - a custom message is in no scenario
    if isinstance(message, AssistantMessage):
        spoken: dict[str, Any] = {"role": role, "content": message.text or None}
        return spoken | {"toolCalls": calls_of(message.calls)} if message.calls else spoken
    text = cast("Any", message).text
    if isinstance(message, ToolResultMessage):
        return {"role": role, "toolCallId": message.call_id, "content": text}
    return {"role": role, "content": text}


def messages_of(messages: Iterable[Message]) -> list[dict[str, Any]]:
    return [message_of(message) for message in messages]


def roles_of(messages: Iterable[Message]) -> list[str]:
    return [message_of(message)["role"] for message in messages]


def call_from(call: dict[str, Any]) -> ToolCall:
    """A call of theirs, as ours."""
    return ToolCall(id=call["id"], name=call["name"], arguments=call["arguments"])


def messages_from(given: Sequence[dict[str, Any]]) -> list[Message]:
    """Messages of theirs, as ours. A result of ours names its tool; theirs only its call."""
    names = {call["id"]: call["name"] for message in given for call in message.get("toolCalls") or ()}
    return [message_from(message, names) for message in given]


def message_from(given: dict[str, Any], names: dict[str, str]) -> Message:
    parts = (Text(given["content"]),) if given.get("content") is not None else ()
    match given["role"]:
        case "system":
            return SystemMessage(parts=parts)
        case "user":
            return UserMessage(parts=parts)
        case "assistant":
            return AssistantMessage(parts=(*parts, *map(call_from, given.get("toolCalls") or ())))
        case _:
            call_id = given.get("toolCallId", "")
            return ToolResultMessage(call_id=call_id, tool_name=names.get(call_id, "?"), parts=parts)


class Teller:
    """Their events of one run, made of ours. `turns` counts the rounds that have begun."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.turns = 0

    def told(self, event: Event) -> dict[str, Any] | None:
        """Their event for one of ours, if they have one."""
        if event.run_id != self.run_id:
            return None
        match event:
            case TurnStarted():
                self.turns += 1
            case MessageStarted(role="assistant"):
                return {"type": "assistant_start"}
            case TextDelta(text=text):
                return {"type": "content", "delta": text}
            case ThinkingDelta(text=text):
                return {"type": "reasoning", "delta": text}
            case MessageFinished(message=AssistantMessage(partial=False) as message) if message.calls:
                return {"type": "tool_calls", "calls": calls_of(message.calls)}
            case MessageFinished(message=ToolResultMessage() as result):
                return {"type": "tool_result", "id": result.call_id, "result": result.text, "name": result.tool_name}
            case RunFinished():
                return ending_of(event)
            case _:
                pass
        return None


def ending_of(event: RunFinished) -> dict[str, Any]:
    ending: dict[str, Any] = {"type": status_of(event.status)}
    if event.status == "error":
        ending["error"] = event.error
    elif event.status == "stopped" and event.reason is not None and not event.reason.startswith(NO_REASON):
        ending["reason"] = event.reason
    return ending
