"""A model that reads its replies from a script: for tests, where nothing may depend on a real model or on time."""

import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias, cast, runtime_checkable

from antiphon.errors import ModelError, Rejected, UsageError
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    ModelInfo,
    ModelRequest,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)
from antiphon.types.usage import Usage

__all__ = ["Scripted", "ScriptedItem", "ScriptedReply", "Waitable"]


@runtime_checkable
class Waitable(Protocol):
    """Something to wait for, such as an event of anyio or asyncio: so a test says when the reply goes on."""

    def wait(self) -> Awaitable[object]: ...


ScriptedItem: TypeAlias = str | Text | Thinking | ToolCall | Usage | Delta | Waitable | Exception | type[Exception]
"""A step of a reply: what it says, a delta as it is, something to wait for first, or an exception to raise."""

ScriptedReply: TypeAlias = (
    str
    | AssistantMessage
    | ScriptedItem
    | Sequence[ScriptedItem]
    | Callable[[ModelRequest], "ScriptedReply | Awaitable[ScriptedReply]"]
)
"""A whole reply: text, a message, steps, an exception, or a function of the request that gives any of these."""

_DELTAS = (TextChunk, ThinkingChunk, CallChunk, WholeCall, UsageChunk, WarningChunk, FinishChunk)


class Scripted:
    """Answers each request with the next reply of the script, and keeps the requests in `requests`.

    A reply ends normally after its last step, unless a `FinishChunk` is among the steps or an exception ends it: write
    `[..., Dropped("cut")]` for a reply that is lost half way. Text, thinking and arguments come whole, or in deltas of
    `piece` characters. Any number of runs may use it at once. A request more than there are replies raises `Rejected`.
    """

    def __init__(self, *replies: ScriptedReply, piece: int | None = None, info: ModelInfo | None = None) -> None:
        if piece is not None and piece < 1:
            raise UsageError(f"a piece has at least one character, not {piece}; leave it out for whole texts")
        self.info = info or ModelInfo(provider="scripted", id="scripted")
        self.requests: list[ModelRequest] = []
        self._replies = replies
        self._piece = piece
        self._lock = threading.Lock()

    @property
    def remaining(self) -> int:
        """How many replies are left."""
        return max(0, len(self._replies) - len(self.requests))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The next reply of the script."""
        reply = self._next(request)
        while callable(reply) and not isinstance(reply, type | Waitable):
            made = reply(request)
            reply = cast("ScriptedReply", await made if inspect.isawaitable(made) else made)
        player = _Player(self._piece)
        async for delta in player.play(_steps(reply)):
            yield delta
        if not player.finished:
            yield FinishChunk("tool_calls" if player.calls else "stop")

    def _next(self, request: ModelRequest) -> ScriptedReply:
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        if number >= len(self._replies):
            raise Rejected(
                f"the script has {len(self._replies)} replies, and this is request {number + 1}; add a reply to it",
                provider=self.info.provider,
            )
        return self._replies[number]


def _steps(reply: object) -> Sequence[object]:
    """The steps of a reply. Raises `UsageError` for what cannot be one."""
    if isinstance(reply, AssistantMessage):
        end: list[object] = [reply.usage] if reply.usage else []
        if reply.stop_reason == "error":
            return (*reply.parts, *end, ModelError(reply.error or "the scripted reply failed"))
        end.append(FinishChunk(reply.stop_reason, None, reply.response_id, reply.model))
        return (*reply.parts, *end)
    if isinstance(reply, list | tuple):
        return cast("Sequence[object]", reply)
    return (reply,)


class _Player:
    """Turns steps into deltas."""

    __slots__ = ("_keys", "_piece", "finished")

    def __init__(self, piece: int | None) -> None:
        self._piece = piece
        self._keys: set[int] = set()
        self.finished = False

    @property
    def calls(self) -> bool:
        return bool(self._keys)

    async def play(self, steps: Sequence[object]) -> AsyncIterator[Delta]:
        for step in steps:
            if isinstance(step, Waitable):
                await step.wait()
                continue
            for delta in self._deltas(step):
                yield delta

    def _deltas(self, step: object) -> list[Delta]:
        match step:
            case str():
                return [TextChunk(piece) for piece in self._pieces(step)]
            case Text():
                return self._closed([TextChunk(piece) for piece in self._pieces(step.text)], step)
            case Thinking():
                return self._closed([ThinkingChunk(piece) for piece in self._pieces(step.text)], step)
            case ToolCall():
                return self._call(step)
            case Usage():
                return [UsageChunk(step)]
            case Exception():
                raise step
            case type() if issubclass(step, Exception):
                raise step("a failure of the script")
            case _:
                return [self._delta(step)]

    def _delta(self, step: Any) -> Delta:
        if not isinstance(step, _DELTAS):
            raise UsageError(
                f"a scripted reply is made of text, parts, deltas, exceptions and things to wait for, not {step!r}"
            )
        if isinstance(step, CallChunk):
            self._keys.add(step.key)
        elif isinstance(step, WholeCall):
            self._keys.add(self._free_key())
        self.finished = self.finished or isinstance(step, FinishChunk)
        return step

    def _call(self, call: ToolCall) -> list[Delta]:
        key = self._free_key()
        self._keys.add(key)
        first, *rest = self._pieces(call.arguments) or [""]
        opening = CallChunk(key, call.id, call.name, first, call.opaque)
        return [opening, *[CallChunk(key, arguments=piece) for piece in rest]]

    def _free_key(self) -> int:
        return max(self._keys, default=-1) + 1

    def _closed(self, deltas: list[Delta], part: Text | Thinking) -> list[Delta]:
        if isinstance(part, Thinking) and part.redacted:
            return [ThinkingChunk(part.text, part.signature, redacted=True)]
        if part.signature is not None:
            deltas.append(
                TextChunk("", part.signature) if isinstance(part, Text) else ThinkingChunk("", part.signature)
            )
        return deltas

    def _pieces(self, text: str) -> list[str]:
        size = self._piece or max(1, len(text))
        return [text[at : at + size] for at in range(0, len(text), size)]
