"""The stream of the Messages API as deltas. Pure, and lenient: what servers that imitate it send is odd in many ways.

Shape: platform.claude.com/docs/en/build-with-claude/streaming ("Event types", "Error events"); what stop reasons mean:
build-with-claude/handling-stop-reasons. What can be understood is taken, what is missing is missing, what is unknown is
left aside. Three things end a reply in an error, since going on would give a wrong answer or run a wrong call: an error
that the server reports, data that is not JSON (a piece of the text or of a call is gone), and an end without
`message_stop`.
"""

from typing import Any

import msgspec

from antiphon.errors import Dropped, UsageError
from antiphon.providers.anthropic._blocks import Blocks
from antiphon.providers.anthropic._events import Event, lenient
from antiphon.providers.anthropic._usage import Report
from antiphon.providers.lenient import name_in, object_in, objects_in, raw_text_in
from antiphon.providers.peer import DONE, Peer
from antiphon.types.messages import StopReason
from antiphon.types.request import CallChunk, Delta, FinishChunk, TextChunk, UsageChunk

__all__ = ["AnthropicDecoder"]

_read = msgspec.json.Decoder(Event).decode
_ODD = Event()  # for what is no JSON that this reads
_LOOKED_AT_AGAIN = frozenset({None, "message", "error"})

_REASONS: dict[str, StopReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "paused",
    "refusal": "refused",
    "sensitive": "filtered",  # some servers that imitate the API
}


class AnthropicDecoder:
    """Decodes one reply: `feed` it the data of each event, then `finish`.

    `done` says that `message_stop` came: the reply is whole, and nothing that matters will follow.
    """

    __slots__ = ("_blocks", "_head", "_peer", "_reason", "_report", "done")

    def __init__(self, provider: str = "anthropic", *, request_id: str | None = None) -> None:
        self._peer = Peer(provider, request_id)
        self._blocks = Blocks()
        self._head: tuple[str | None, str | None] = (None, None)  # the reply's id, and the model that was served
        self._reason: str | None = None
        self._report = Report()
        self.done = False

    @property
    def terminal(self) -> bool:
        """Whether the terminal marker came."""
        return self.done

    def feed(self, payload: bytes, event: str = "message") -> list[Delta]:
        """What the data of one event adds. Raises the `ModelError` that the server reports, and `Garbled`."""
        if self.done:
            return []
        try:
            said = _read(payload)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            said = _ODD
        if said.type == "content_block_delta" and (change := said.delta) is not None:
            block = self._blocks.find(said.index)
            # The ones that come most often, first. JSON that is read here holds whole characters alone.
            if block is not None and not block.half:
                if change.text and block.kind == "text":
                    return [TextChunk(change.text)]
                if change.partial_json and block.kind == "call":
                    block.given = ""
                    return [CallChunk(block.key, "", "", change.partial_json)]
        out: list[Delta] = []
        try:
            if said.type in _LOOKED_AT_AGAIN or said.error is not None or event == "error":
                self._take_odd(payload, event, out)
            else:
                self._take(said, out)
        except (UsageError, RecursionError) as error:  # it cannot be written as JSON again
            raise self._peer.too_deep() from error
        return out

    def finish(self) -> list[Delta]:
        """The stream has ended: the last deltas. Raises `Dropped` if the reply is not whole."""
        if not self.done:
            raise self._peer.error(Dropped, "ended its reply without the end marker; ask again")
        out: list[Delta] = []
        self._blocks.close_all(out)
        reason = self._reason
        label = _REASONS.get(reason, "stop") if reason else ("tool_calls" if self._blocks.calls else "stop")
        out.append(FinishChunk(label, reason, *self._head))
        return out

    def _take(self, said: Event, out: list[Delta]) -> None:
        match said.type:
            case "content_block_delta":
                self._take_change(said, out)
            case "content_block_start":
                self._start(said.index, said.content_block or {}, out)
            case "content_block_stop":
                self._blocks.stop(said.index, out)
            case "message_start":
                self._take_head(said.message or {}, out)
            case "message_delta":
                self._take_end(said, out)
            case "message_stop":
                self.done = True
            case _:  # `ping`, and what later versions add: "your code should handle unknown event types gracefully"
                pass

    def _take_change(self, said: Event, out: list[Delta]) -> None:
        change = said.delta
        if change is None:
            return
        block = self._blocks.find(said.index) or self._blocks.implied(said.index, change)
        if block is None:
            if change.partial_json:
                self._peer.warn("orphan_delta", "a piece of a call that never began was left aside", out)
            return
        self._blocks.grow(block, change, out)

    def _start(self, index: int | None, content: dict[str, Any], out: list[Delta]) -> None:
        if self._blocks.start(index, content, out).kind == "unknown":
            kind = raw_text_in(content.get("type")) or "?"
            self._peer.warn("unknown_block", f"a block of the kind {kind!r:.60} was left aside", out)

    def _take_head(self, message: dict[str, Any], out: list[Delta]) -> None:
        """Id, model and what was read, as far as they are told."""
        known = self._head
        self._head = (known[0] or name_in(message.get("id")) or None, known[1] or name_in(message.get("model")) or None)
        if usage := self._report.take(object_in(message.get("usage"))):
            out.append(UsageChunk(usage))

    def _take_end(self, said: Event, out: list[Delta]) -> None:
        """Why the reply ends; for a refusal in the server's own words, if it has any (build-with-claude/refusals)."""
        if said.delta is not None:
            self._reason = said.delta.stop_reason or self._reason
            details = said.delta.stop_details or {}
            if explanation := raw_text_in(details.get("explanation")):
                self._peer.warn("refusal", explanation, out)
        if usage := self._report.take(said.usage):
            out.append(UsageChunk(usage))

    def _take_message(self, message: dict[str, Any], out: list[Delta]) -> None:
        """A whole reply, from a server that does not stream."""
        self._take_head(message, out)
        for index, block in enumerate(objects_in(message.get("content"))):
            self._start(index, block, out)
            self._blocks.stop(index, out)
        self._reason = raw_text_in(message.get("stop_reason"))
        self.done = True

    def _take_odd(self, payload: bytes, event: str, out: list[Delta]) -> None:
        """What is no plain event: an error, JSON that only a patient reader takes, or no JSON at all."""
        value = None if event == "ping" else self._peer.read(payload, event)
        if value is None or value is DONE:  # the marker of another API
            return
        if (known := object_in(value)) is None:
            self._peer.warn("odd_event", f"an event that is no object was left aside: {value!r:.80}", out)
            return
        said = lenient(known, event)
        if said.type == "error" or said.error:
            raise self._peer.reported(payload)
        if said.type == "message" and said.message is not None:
            if not self._blocks:  # else it repeats what was streamed
                self._take_message(said.message, out)
            return
        self._take(said, out)
