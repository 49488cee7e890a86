"""From the application's transcript to what a model may see: custom messages mapped, failed replies left out."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from antiphon.errors import UsageError
from antiphon.loop.hooks import resolved
from antiphon.loop.spec import ToModel
from antiphon.types.cancel import CancelSignal
from antiphon.types.content import Text, Unknown
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage
from antiphon.types.transcript import validate

__all__ = ["outgoing", "sendable"]


def changes(message: Message) -> bool:
    """A model does not see this message as it stands."""
    if isinstance(message, AssistantMessage):
        return message.partial or message.stop_reason in ("error", "aborted")
    return isinstance(message, CustomMessage | Unknown)


def sendable(messages: Sequence[Message]) -> list[Message]:
    """The messages as a model may see them.

    A failed reply is left out together with its results, an aborted one becomes its text; custom and unknown messages
    are left out.
    """
    seen: list[Message] = []
    left_out: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            left_out = set()
            if changes(message):
                left_out = {call.id for call in message.calls}
                texts = tuple([Text(part.text) for part in message.parts if isinstance(part, Text) and part.text])
                if message.stop_reason == "error" or not texts:
                    continue
                message = replace(message, parts=texts, partial=False, stop_reason="stop")  # noqa: PLW2901 - its text
            seen.append(message)
        elif isinstance(message, ToolResultMessage):
            if message.call_id not in left_out:
                seen.append(message)
        elif not changes(message):
            seen.append(message)
    return seen


def default_outgoing(messages: Sequence[Message]) -> History:
    """What `sendable` gives, grown along with the transcript so that a provider encodes each message once.

    As long as nothing has to change, it is the transcript itself.
    """
    if not isinstance(messages, History):
        return History(sendable(messages))
    memo: dict[Any, Any] = messages.memo
    count, sent = memo.get("outgoing", (0, None))
    if count > len(messages):
        return History(sendable(messages))
    tail = messages[count:]
    if sent is None:
        if not any(map(changes, tail)):
            memo["outgoing"] = (len(messages), None)
            return messages
        sent = History(sendable(messages))
    elif tail:
        sent = sent.extended(*sendable(tail))
    memo["outgoing"] = (len(messages), sent)
    return sent


async def outgoing(
    messages: Sequence[Message], to_model: ToModel | None, cancel: CancelSignal, *, check: bool
) -> Sequence[Message]:
    """The messages of a request. Raises `UsageError`, naming the index, when an application's list cannot be sent."""
    if to_model is None:
        sent = default_outgoing(messages)
    else:
        sent = History(sendable(await resolved(to_model(messages, cancel))))
    if check or to_model is not None:
        problems = validate(sent)
        if problems:
            first = problems[0]
            raise UsageError(f"the request cannot be sent: message {first.index}: {first.text}")
    if len(sent) > 0 and isinstance(sent[-1], AssistantMessage):
        raise UsageError(
            f"the request would end in an assistant message (index {len(sent) - 1}): a model answers a user or a tool; "
            "add a user message, or take the last message away",
        )
    return sent
