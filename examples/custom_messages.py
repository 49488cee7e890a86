# Messages of an application's own: a build tells the chat that it has ended.
#
# They are typed here, plain data in the transcript and in storage; the model reads what `to_model` makes of them.

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from antiphon import Agent, CancelSignal, CustomKind, CustomMessage, Message, UserMessage, dump_messages, load_messages
from antiphon.testing import Scripted


class BuildEnded(Struct, frozen=True):
    commit: str
    passed: bool
    seconds: float


class Divider(Struct, frozen=True):
    title: str


BUILD = CustomKind("build_ended", BuildEnded)
DIVIDER = CustomKind("divider", Divider)


def to_model(messages: Sequence[Message], _cancel: CancelSignal) -> list[Message]:
    """A build becomes a sentence; a divider is for people and becomes nothing; the rest stays as it is."""
    sent: list[Message] = []
    for message in messages:
        build = BUILD.read(message)
        if build is not None:
            outcome = "passed" if build.passed else "failed"
            sent.append(UserMessage.of(f"[the build of {build.commit} {outcome} after {build.seconds:g} s]"))
        elif not isinstance(message, CustomMessage):
            sent.append(message)
    return sent


async def main() -> None:
    model = Scripted("I will look at it when the build is through.", "It failed: I would start with the linker.")
    chat = Agent(model, to_model=to_model).conversation()

    chat.append_message(DIVIDER.message(Divider("Today")))
    await chat.prompt("Is the build all right?")
    chat.steer(BUILD.message(BuildEnded("3f2a1", passed=False, seconds=41.5)))
    await chat.resume()

    print("what the model read:")
    for message in model.requests[-1].messages:
        print("  ", getattr(message, "text", message))

    stored = dump_messages(chat.messages)
    print("what was stored and read again:")
    for message in load_messages(stored):
        value = BUILD.read(message) or DIVIDER.read(message)
        print("  ", value or f"{type(message).__name__} {getattr(message, 'text', '')!r}")


asyncio.run(main())
