"""What the tests of this folder are made of: models that fail in order, and what a viewer saw of it."""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio

from antiphon import (
    Agent,
    AssistantMessage,
    AttemptDiscarded,
    Hooks,
    Message,
    ModelRequest,
    Recovery,
    RunError,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolResultMessage,
    tool,
)
from antiphon.testing import Recording, record
from antiphon.types.request import Delta, FinishChunk, ModelInfo

STEADY = Recovery(jitter=0)
LENGTH = FinishChunk("length")


class Streams:
    """A model whose replies are functions that yield deltas; nothing is added, no end either."""

    def __init__(self, *replies: Callable[[], AsyncIterator[Delta]], info: ModelInfo | None = None) -> None:
        self.info = info
        self.requests: list[ModelRequest] = []
        self._replies = replies

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.requests.append(request)
        return self._replies[len(self.requests) - 1]()


def says(*deltas: Delta | float) -> Callable[[], AsyncIterator[Delta]]:
    """A reply of these deltas; a number is a pause in seconds."""

    async def stream() -> AsyncIterator[Delta]:
        for delta in deltas:
            if isinstance(delta, float | int):
                await anyio.sleep(delta)
            else:
                yield delta

    return stream


@tool
async def look(city: str) -> str:
    """Look at a city."""
    LOOKED.append(city)
    return f"{city}: rain"


LOOKED: list[str] = []
"""The cities that the tool was called with. Emptied by `outcome`."""


async def outcome(
    model: Any, recovery: Recovery = STEADY, *, hooks: Hooks[Any] | None = None, **options: Any
) -> tuple[RunResult[Any], Recording, BaseException | None]:
    """How a run of `model` ends, what it told, and the cause of its failure."""
    LOOKED.clear()
    run = Agent(model, tools=[look], recovery=recovery, hooks=hooks).run("go", **options)
    recording = record(run)
    cause: BaseException | None = None
    try:
        await run
    except RunError as error:
        cause = error.__cause__
    recording.check()
    return run.result, recording, cause


def reply(messages: Sequence[Message], index: int = -1) -> AssistantMessage:
    """The message at this place, which is a reply."""
    message = messages[index]
    assert isinstance(message, AssistantMessage)
    return message


def result_of(messages: Sequence[Message], index: int = -1) -> ToolResultMessage:
    """The message at this place, which is the result of a call."""
    message = messages[index]
    assert isinstance(message, ToolResultMessage)
    return message


def waits(recording: Recording) -> list[float]:
    """The waits before the repeated attempts, in seconds."""
    return [event.wait for event in recording.of(AttemptDiscarded)]


def whys(recording: Recording) -> list[str]:
    return [event.why for event in recording.of(AttemptDiscarded)]


def counted(recording: Recording) -> list[tuple[int, int]]:
    """Which attempts were discarded, of how many."""
    return [(event.attempt, event.of) for event in recording.of(AttemptDiscarded)]


def shown(recording: Recording) -> list[str]:
    """What a viewer has on the screen after each event that changes it, taking back what is discarded."""
    screens: list[str] = []
    screen = ""
    for event in recording:
        match event:
            case TextDelta(text=text) | ThinkingDelta(text=text) | ToolCallDelta(text=text):
                screen += text
            case AttemptDiscarded():
                screen = ""
            case _:
                continue
        screens.append(screen)
    return screens
