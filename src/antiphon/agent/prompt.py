"""What a person may hand to a run: text, parts, a message, or several."""

from collections.abc import Sequence
from typing import TypeAlias, cast, get_args

from antiphon.errors import UsageError
from antiphon.types.content import Content, Part
from antiphon.types.messages import CustomMessage, Message, SystemMessage, UserMessage

__all__ = ["Prompt", "as_message", "as_messages"]

Prompt: TypeAlias = str | Part | Message | Sequence[Message] | Sequence[Content]

PROMPTS = (SystemMessage, UserMessage, CustomMessage)
PARTS = get_args(Part)


def as_messages(prompt: Prompt) -> tuple[Message, ...]:
    """The prompt as messages. Raises `UsageError` for what nobody can say."""
    if isinstance(prompt, str):
        return (UserMessage.of(prompt),)
    if isinstance(prompt, PROMPTS):
        return (prompt,)
    if isinstance(prompt, PARTS):
        return (UserMessage.of(cast("Part", prompt)),)
    if not isinstance(prompt, Sequence):
        raise UsageError(f"a prompt is text, parts, a message or several, not {type(prompt).__name__}")
    items = list(cast("Sequence[object]", prompt))
    if items and all(isinstance(item, PROMPTS) for item in items):
        return tuple(cast("list[Message]", items))
    if items and all(isinstance(item, (str, *PARTS)) for item in items):
        return (UserMessage.of(*cast("list[Content]", items)),)
    if not items:
        raise UsageError("the prompt is empty: give text, parts or messages, or leave it out to go on from messages=")
    kinds = ", ".join(sorted({type(item).__name__ for item in items}))
    raise UsageError(
        f"a prompt of several is either all messages (user, system, custom) or all text and parts; this has {kinds}. "
        "a transcript goes into messages="
    )


def as_message(prompt: Prompt) -> Message:
    """The prompt as one message, for what is queued by itself. Raises `UsageError` when it is several."""
    messages = as_messages(prompt)
    if len(messages) != 1:
        raise UsageError(f"{len(messages)} messages cannot be queued as one: queue each by itself")
    return messages[0]
