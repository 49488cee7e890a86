"""What the tests of this folder are made of: calls, tools, agents on a script, and things to wait for."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import anyio.lowlevel

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.loop.hooks import Hooks
from antiphon.testing.recording import Recording, record
from antiphon.tools.hooks import ToolHooks
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
            given: Any = result(arguments) if callable(result) and not isinstance(result, type) else result
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


def said(messages: Sequence[Message]) -> list[str]:
    """The text of every message, empty for those that have none."""
    return [getattr(message, "text", "") for message in messages]


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


POINTS = (
    "on_run_start",
    "on_run_end",
    "before_tools_resolved",
    "after_tools_resolved",
    "should_continue",
    "prepare_context",
    "before_model_request",
    "after_model_response",
    "before_tool_execute",
    "after_tool_execute",
)
"""The hooks that are given one context."""


def failing(error: BaseException) -> Callable[[Any], Any]:
    """A callable that raises."""

    def fail(_given: Any) -> Any:
        raise error

    return fail


class Spy:
    """Hooks at every point that note what they saw in `seen`, and answer what `answers` says."""

    def __init__(self, level: Any = "agent", seen: Any = None, **answers: Any) -> None:
        self.level: str = level
        self.seen: list[tuple[str, str, Any]] = [] if seen is None else seen
        self.answers = answers

    @property
    def order(self) -> list[str]:
        """What was called, as `level.point`."""
        return [f"{level}.{point}" for level, point, _ in self.seen]

    def at(self, point: str) -> list[Any]:
        """The contexts that were given at one point, those of all levels that share this list."""
        return [context for _, name, context in self.seen if name == point]

    def hooks(self, *points: str, wait: bool = False) -> Hooks[Any]:
        """Hooks at these points (all, if none is named), async when they `wait`."""
        made: dict[str, Any] = {point: (self._async if wait else self._sync)(point) for point in points or POINTS}
        return Hooks(**made)

    def tool_hooks(self, *, wait: bool = False) -> ToolHooks[Any]:
        """The same around one tool."""
        make = self._async if wait else self._sync
        return ToolHooks(before_execute=make("before_execute"), after_execute=make("after_execute"))

    def _note(self, point: str, context: Any) -> Any:
        self.seen.append((self.level, point, context))
        answer = self.answers.get(point)
        if isinstance(answer, BaseException):
            raise answer
        return answer(context) if callable(answer) else answer

    def _sync(self, point: str) -> Callable[[Any], Any]:
        return lambda context: self._note(point, context)

    def _async(self, point: str) -> Callable[[Any], Any]:
        async def hook(context: Any) -> Any:
            await anyio.lowlevel.checkpoint()
            return self._note(point, context)

        return hook
