"""Deltas to a message: fragments are kept as they come and joined once, at the end."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from antiphon.types.content import Part, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, StopReason
from antiphon.types.request import CallChunk, Delta, FinishChunk, TextChunk, ThinkingChunk, UsageChunk, WholeCall
from antiphon.types.usage import Usage

__all__ = ["Joiner", "join"]


class OpenPart:
    """A part that still grows."""

    __slots__ = ("fragments", "id", "key", "kind", "name", "opaque", "redacted", "signature")

    def __init__(self, kind: str, key: int = -1) -> None:
        self.kind = kind
        self.key = key
        self.fragments: list[str] = []
        self.id = ""
        self.name = ""
        self.opaque: dict[str, Any] | None = None
        self.signature: str | None = None
        self.redacted = False


class Joiner:
    """One reply as it comes. `mint` makes the ids of calls whose own are empty or repeated."""

    __slots__ = ("_calls", "_ids", "_mint", "_parts", "finish", "usage")

    def __init__(self, mint: Callable[[], str] | None = None) -> None:
        self._parts: list[OpenPart] = []
        self._calls: dict[int, OpenPart] = {}
        self._ids: set[str] = set()
        self._mint = mint
        self.usage: Usage | None = None
        self.finish: FinishChunk | None = None

    @property
    def empty(self) -> bool:
        """Nothing has come that a reader could see."""
        return not self._parts

    def text(self, chunk: TextChunk) -> int:
        """Append text; the place of its part."""
        parts = self._parts
        if not parts or parts[-1].kind != "text" or parts[-1].signature is not None:
            if not chunk.text and chunk.signature is None:
                return len(parts)  # nothing began: servers send empty text ahead of calls
            parts.append(OpenPart("text"))
        part = parts[-1]
        part.fragments.append(chunk.text)
        if chunk.signature is not None:
            part.signature = chunk.signature
        return len(parts) - 1

    def thinking(self, chunk: ThinkingChunk) -> int:
        """Append thinking; a signature closes the thought, a redacted one stands alone."""
        parts = self._parts
        if chunk.redacted or not parts or parts[-1].kind != "thinking" or parts[-1].signature is not None:
            if not (chunk.text or chunk.redacted) and chunk.signature is None:
                return len(parts)
            parts.append(OpenPart("thinking"))
        part = parts[-1]
        if chunk.text:
            part.fragments.append(chunk.text)
        part.redacted = part.redacted or chunk.redacted
        if chunk.signature is not None:
            part.signature = chunk.signature
        return len(parts) - 1

    def call(self, chunk: CallChunk) -> int:
        """Append to the call of the chunk's key: what names it is set once, only arguments grow."""
        part = self._calls.get(chunk.key)
        if part is None:
            part = self._calls[chunk.key] = OpenPart("call", chunk.key)
            self._parts.append(part)
            part.id = self._own_id(chunk.id)
        elif chunk.id and not part.id:
            part.id = self._own_id(chunk.id)
        if chunk.name and not part.name:
            part.name = chunk.name
        if chunk.arguments:
            part.fragments.append(chunk.arguments)
        if chunk.opaque:
            part.opaque = {**(part.opaque or {}), **chunk.opaque}
        return chunk.key

    def _own_id(self, given: str) -> str:
        """The id that the call keeps: an empty or repeated one is replaced at once, so that no event shows another."""
        if self._mint is not None:
            while not given or given in self._ids:
                given = self._mint()
        self._ids.add(given)
        return given

    def whole(self, call: WholeCall) -> CallChunk:
        """Append a complete call; the one chunk that says the same."""
        arguments = call.arguments
        text = arguments if isinstance(arguments, str) else as_text(arguments)
        chunk = CallChunk(max(self._calls, default=-1) + 1, call.id, call.name, text, call.opaque)
        self.call(chunk)
        return chunk

    def open_call(self, key: int) -> tuple[str, str]:
        """Id and name of the call at `key`, as far as they are known."""
        part = self._calls[key]
        return part.id, part.name

    def add(self, delta: Delta) -> None:
        """Append any delta."""
        match delta:
            case TextChunk():
                self.text(delta)
            case ThinkingChunk():
                self.thinking(delta)
            case CallChunk():
                self.call(delta)
            case WholeCall():
                self.whole(delta)
            case UsageChunk(usage=usage):
                self.usage = usage
            case FinishChunk():
                self.finish = delta
            case _:  # a warning is told, not kept
                pass

    def partial_text(self) -> str:
        """The reply's text so far."""
        return "".join(["".join(part.fragments) for part in self._parts if part.kind == "text"])

    def partial_arguments(self, call_id: str) -> str | None:
        """The JSON text so far of the call with this id, `None` if there is no such call."""
        for part in self._calls.values():
            if part.id == call_id:
                return "".join(part.fragments)
        return None

    def parts(self, origin: str | None = None) -> tuple[Part, ...]:
        """The parts so far: text and thinking as they came, calls in the order of their keys."""
        ordered = iter(sorted(self._calls.values(), key=lambda part: part.key))
        closed: list[Part] = []
        for part in self._parts:
            text = "".join(part.fragments)
            if part.kind == "call":
                call = next(ordered)
                arguments = "".join(call.fragments)
                closed.append(ToolCall(id=call.id, name=call.name, arguments=arguments, opaque=call.opaque))
            elif part.kind == "thinking":
                closed.append(
                    Thinking(text=text, signature=part.signature, redacted=part.redacted, origin=origin),
                )
            elif text or part.signature is not None:
                closed.append(Text(text, part.signature))
        return tuple(closed)

    def message(
        self,
        *,
        provider: str | None = None,
        model: str | None = None,
        stop_reason: StopReason | None = None,
        error: str | None = None,
        message_id: str = "",
        created_at: float | None = None,
    ) -> AssistantMessage:
        """The message so far. Its stop reason is the finish marker's unless given."""
        finish = self.finish
        served = finish.model if finish and finish.model else model
        origin = f"{provider}:{model}" if provider and model else None
        return AssistantMessage(
            parts=self.parts(origin),
            stop_reason=stop_reason or (finish.reason if finish else "error"),
            usage=self.usage,
            provider=provider,
            model=served,
            response_id=finish.response_id if finish else None,
            error=error,
            id=message_id,
            created_at=created_at,
        )


def as_text(arguments: dict[str, Any]) -> str:
    """The object as JSON text, encoded once."""
    try:
        return msgspec.json.encode(arguments).decode()
    except UnicodeEncodeError:  # half a character, which only escaped text can carry
        return json.dumps(arguments)


def join(deltas: list[Delta]) -> AssistantMessage:
    """The message that these deltas make."""
    joiner = Joiner()
    for delta in deltas:
        joiner.add(delta)
    return joiner.message()
