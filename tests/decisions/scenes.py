"""What the tests of this folder are made of: calls, tools, agents on a script, and things to wait for."""

import json
from collections.abc import Sequence
from typing import Any

import anyio

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.testing.recording import Recording, record
from antiphon.tools.tool import Tool
from antiphon.types.content import ToolCall
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage
from antiphon.types.result import RunError, RunResult

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "unit": {"type": "string", "default": "C"},
        "days": {"type": "array", "items": {"type": "integer"}, "default": [1]},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def call(name: str, call_id: str = "", /, **arguments: Any) -> ToolCall:
    """A call as a model makes it. Without an id it is that of the name."""
    return ToolCall(id=call_id or f"{name}-1", name=name, arguments=json.dumps(arguments))


class Bodies:
    """Makes tools that note what they were called with, in `ran`, in the order in which they ran."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []

    @property
    def names(self) -> list[str]:
        """The tools that ran, in order."""
        return [name for name, _ in self.ran]

    def tool(self, name: str, result: Any = None, parameters: dict[str, Any] = EMPTY, **traits: Any) -> Tool:
        """A tool that gives `result` (its name if there is none), or raises it, or awaits what it gives."""

        async def body(arguments: dict[str, Any]) -> Any:
            self.ran.append((name, arguments))
            given = result(arguments) if callable(result) and not isinstance(result, type) else result
            if hasattr(given, "__await__"):
                given = await given
            if isinstance(given, BaseException):
                raise given
            return name if given is None else given

        return Tool.from_schema(name, f"Does {name}.", parameters, body, **traits)


class Gate:
    """Something that a test opens: `await gate.wait()` goes on when it is open."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self.reached = anyio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self._event.wait()

    def open(self) -> None:
        self._event.set()


def results(messages: Sequence[Message]) -> list[ToolResultMessage]:
    """The tool results of a transcript."""
    return [message for message in messages if isinstance(message, ToolResultMessage)]


def outcomes(messages: Sequence[Message]) -> dict[str, str]:
    """How each call ended, by its id."""
    return {message.call_id: message.outcome for message in results(messages)}


def texts(messages: Sequence[Message]) -> dict[str, str]:
    """What the model reads of each call, by its id."""
    return {message.call_id: message.text for message in results(messages)}


def replies(messages: Sequence[Message]) -> list[AssistantMessage]:
    """The assistant messages of a transcript."""
    return [message for message in messages if isinstance(message, AssistantMessage)]


async def finished(run: Run[Any]) -> tuple[RunResult[Any], Recording]:
    """The result and the events of a run, also of one that ends in error."""
    recording = record(run)
    try:
        return await run, recording
    except RunError as error:
        return error.result, recording


async def outcome(agent: Agent[Any], prompt: Any = "go", **options: Any) -> tuple[RunResult[Any], Recording]:
    """As `finished`, for a run of `agent`."""
    return await finished(agent.run(prompt, **options))
