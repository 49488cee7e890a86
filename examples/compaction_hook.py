# A long talk that stays short: a hook replaces old exchanges by a summary before they fill the context window.
#
# `prepare_context` is asked before every request; what it returns replaces the run's messages, and the conversation's,
# at once or not at all. The cut is made between exchanges, so that no call is parted from its result.

import asyncio
from collections.abc import Sequence

from antiphon import (
    Agent,
    AssistantMessage,
    ContextReplaced,
    Event,
    Hooks,
    Message,
    ModelContext,
    UseContext,
    UserMessage,
)
from antiphon.testing import Scripted

KEEP = 2  # exchanges that stay word for word
FULL = 8  # messages at which it is time to compact

writer = Scripted("They talked about tea, and found that water of 80 °C is best for a green one.")


async def summary_of(messages: Sequence[Message]) -> str:
    """Ask a (smaller) model for the gist of what is left out."""
    spoken = [f"{type(m).__name__}: {m.text}" for m in messages if isinstance(m, UserMessage | AssistantMessage)]
    result = await Agent(writer, instructions="Sum up in one sentence.").run("\n".join(spoken))
    return result.text


def cut(messages: Sequence[Message]) -> int:
    """Where the exchanges begin that stay: at a user message, never between a call and its result."""
    starts = [index for index, message in enumerate(messages) if isinstance(message, UserMessage)]
    return starts[-KEEP] if len(starts) > KEEP else 0


async def compact(context: ModelContext[None]) -> UseContext | None:
    if len(context.messages) < FULL:
        return None
    at = cut(context.messages)
    if at == 0:
        return None
    summary = await summary_of(context.messages[:at])
    return UseContext(messages=[UserMessage.of(f"[so far: {summary}]"), *context.messages[at:]])


def show(event: Event) -> None:
    if isinstance(event, ContextReplaced):
        print(f"  (compacted: {len(event.messages or ())} messages are left)")


async def main() -> None:
    answers = ["Green tea.", "80 °C.", "Two minutes.", "A teapot of clay.", "Yes, twice."]
    model = Scripted(*answers)
    chat = Agent(model, hooks=Hooks(prepare_context=compact)).conversation()
    chat.subscribe(show)
    for question in ["Which tea?", "How hot?", "How long?", "In what?", "Can I use the leaves again?"]:
        result = await chat.prompt(question)
        print(f"{question} {result.text}  [{len(model.requests[-1].messages)} messages were sent]")

    print("the transcript now:")
    for message in chat.messages:
        print("  ", getattr(message, "text", message))


asyncio.run(main())
