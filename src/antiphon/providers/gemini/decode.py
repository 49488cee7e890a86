"""The stream of Gemini's `generateContent` as deltas. Pure, and lenient: what can be understood is taken.

Shape: ai.google.dev/api/generate-content, "GenerateContentResponse". A chunk has whole parts; a call comes in one piece.
Three things end a reply in an error, since going on would give a wrong answer or run a wrong call: an error or a block
that the server reports, data that is not JSON (a piece of the text or a call is gone), and an end without a
`finishReason`.
"""

from contextlib import suppress
from typing import Any, cast

import msgspec

from antiphon.errors import Dropped, Filtered, Garbled, ModelError, Recovery, Rejected, Unauthorized, UsageError
from antiphon.providers.gemini._chunk import Candidate, Chunk, Part, lenient
from antiphon.providers.gemini._marks import OPAQUE_KINDS, opaque_part_of, signature_mark
from antiphon.providers.gemini._usage import usage_of
from antiphon.providers.json_text import dumps, read_patiently
from antiphon.providers.lenient import object_in, text_in
from antiphon.providers.peer import DONE, Peer
from antiphon.types.messages import StopReason
from antiphon.types.request import Delta, FinishChunk, TextChunk, ThinkingChunk, UsageChunk, WholeCall

__all__ = ["GeminiDecoder"]

_read_chunk = msgspec.json.Decoder(Chunk).decode

# ai.google.dev/api/generate-content, "FinishReason".
_REASONS: dict[str, StopReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "filtered",
    "RECITATION": "filtered",
    "LANGUAGE": "filtered",
    "BLOCKLIST": "filtered",
    "PROHIBITED_CONTENT": "filtered",
    "SPII": "filtered",
    "IMAGE_SAFETY": "filtered",
    "IMAGE_PROHIBITED_CONTENT": "filtered",
    "IMAGE_RECITATION": "filtered",
    "ESCALATION": "filtered",
    "MODEL_ARMOR": "filtered",
}
# Reasons that say that the reply cannot be used: what the model wrote was no call, or the request was at fault.
_BROKEN: dict[str, tuple[type[ModelError], Recovery]] = {
    "MALFORMED_FUNCTION_CALL": (Garbled, "now"),
    "UNEXPECTED_TOOL_CALL": (Garbled, "now"),
    "MALFORMED_RESPONSE": (Garbled, "now"),
    "MISSING_THOUGHT_SIGNATURE": (Rejected, "never"),
    "PUP_LIMITED_DISABLED": (Unauthorized, "never"),
}
_UNSAID = frozenset({"", "FINISH_REASON_UNSPECIFIED", "BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED"})


class GeminiDecoder:
    """Decodes one reply: `feed` it the data of each event, then `finish`.

    `origin` is the `provider:model` that opaque data is marked with, so that it goes back only there. `terminal` says that
    the reply is whole. More may follow that (usage, say): `done` is never true before the end of the stream.
    """

    __slots__ = (
        "_blocked", "_called", "_counts", "_head", "_message", "_origin", "_peer", "_reason", "_thinking",
    )  # fmt: skip

    done = False

    def __init__(self, provider: str = "gemini", *, origin: str | None = None, request_id: str | None = None) -> None:
        self._peer = Peer(provider, request_id)
        self._origin = origin
        self._head: tuple[str | None, str | None] = (None, None)  # the reply's id, and the model that was served
        self._counts: dict[str, Any] = {}
        self._reason: str | None = None
        self._message: str | None = None  # what the server says of its reason
        self._blocked: str | None = None  # why the prompt was refused
        self._called = False
        self._thinking = False  # the last part was a thought that a signature can close

    @property
    def terminal(self) -> bool:
        """Whether a terminal marker came."""
        return self._reason is not None or self._blocked is not None

    def feed(self, payload: bytes, event: str = "message") -> list[Delta]:
        """What the data of one event adds. Raises the `ModelError` that the server reports, and `Garbled`."""
        out: list[Delta] = []
        try:
            self._feed(payload, event, out)
        except (RecursionError, UsageError) as error:
            raise self._peer.too_deep() from error
        return out

    def finish(self) -> list[Delta]:
        """The stream has ended: the last deltas. Raises `Dropped` if the reply is not whole."""
        reason, peer = self._reason, self._peer
        if self._blocked is not None:
            text = f"blocked the prompt ({self._blocked}); say it differently, or take another model"
            raise peer.error(Filtered, text, code=self._blocked)
        if reason is None:
            raise peer.error(Dropped, "ended its reply without a finish reason; ask again")
        if reason in _BROKEN:
            kind, recovery = _BROKEN[reason]
            said = f": {self._message[:500]!r}" if self._message else ""
            raise peer.error(kind, f"gave up its reply ({reason}){said}; ask again", code=reason, recovery=recovery)
        out: list[Delta] = []
        if reason not in _REASONS:
            peer.warn("finish_reason", f"{peer.name!r} ended its reply for an unusual reason: {reason!r}", out)
        label = _REASONS.get(reason, "stop")
        if self._called and label == "stop":
            label = "tool_calls"
        out.append(FinishChunk(label, reason, *self._head))
        return out

    def _feed(self, payload: bytes, event: str, out: list[Delta]) -> None:
        try:
            chunk = _read_chunk(payload)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._take_odd(self._peer.read(payload, event), out)
            return
        if chunk.error or event == "error":
            raise self._peer.reported(payload)
        self._take(chunk, out)

    def _take(self, chunk: Chunk, out: list[Delta]) -> None:
        self._head = (self._head[0] or chunk.response_id, self._head[1] or chunk.model_version)
        for candidate in chunk.candidates or ():
            if not candidate.index:  # one was asked for
                self._take_candidate(candidate, out)
        if chunk.usage_metadata:
            counts = {**self._counts, **{k: v for k, v in chunk.usage_metadata.items() if v is not None}}
            if counts != self._counts:
                self._counts = counts
                out.append(UsageChunk(usage_of(counts)))
        reason: Any = (chunk.prompt_feedback or {}).get("blockReason")
        if isinstance(reason, str) and reason not in _UNSAID:
            self._blocked = reason

    def _take_candidate(self, candidate: Candidate, out: list[Delta]) -> None:
        for part in (candidate.content.parts if candidate.content else None) or ():
            self._take_part(part, out)
        if candidate.finish_reason and candidate.finish_reason not in _UNSAID:
            self._reason = candidate.finish_reason
        self._message = candidate.finish_message or self._message

    def _take_part(self, part: Part, out: list[Delta]) -> None:
        if part.function_call is not None:
            self._take_call(part, out)
        elif opaque := {name: value for name, value in _opaque_fields(part) if value is not None}:
            if part.thought_signature:
                opaque["thoughtSignature"] = part.thought_signature
            self._take_opaque(opaque, out)
        elif part.inline_data is not None or part.file_data is not None:
            self._peer.warn(
                "media_left_out", "a picture or file in the reply was left aside: replies are text and calls", out
            )
        elif part.text or part.thought_signature:
            self._take_text(part, part.text or "", out)

    def _take_opaque(self, part: dict[str, Any], out: list[Delta]) -> None:
        """A step of a tool that the server runs: nothing to read, and it must go back."""
        signature = opaque_part_of(part, self._origin)
        if signature is not None:
            out.append(ThinkingChunk("", signature, redacted=True))
            self._thinking = False

    def _take_text(self, part: Part, text: str, out: list[Delta]) -> None:
        """Text or thought. A signature closes the part that it came in, and tells how long that was."""
        mark = signature_mark(part.thought_signature, len(text), self._origin) if part.thought_signature else None
        if not part.thought:
            out.append(TextChunk(text, mark))
            self._thinking = False
            return
        out.append(ThinkingChunk(text, mark, redacted=not text and not self._thinking))
        self._thinking = mark is None

    def _take_call(self, part: Part, out: list[Delta]) -> None:
        """A whole call. Its id may be empty; a unique one is made where calls are collected."""
        call = part.function_call
        assert call is not None
        opaque = {"origin": self._origin, "id": call.id, "thoughtSignature": part.thought_signature}
        kept = {name: value for name, value in opaque.items() if value}
        arguments = bytes(call.args).decode(errors="replace").strip()
        if arguments[:1] == '"':  # text where an object belongs
            with suppress(ValueError):  # as it came, then: whoever runs the call finds out
                arguments = text_in(read_patiently(arguments)) or ""
        elif arguments == "null":
            arguments = ""
        has_more = len(kept) > ("origin" in kept)
        out.append(WholeCall(call.name or "", arguments, call.id or "", kept if has_more else None))
        self._called = True
        self._thinking = False

    def _take_odd(self, value: object, out: list[Delta]) -> None:
        if isinstance(value, list):  # a stream that is not asked for as events comes as a list of chunks
            for item in cast("list[object]", value):
                self._take_odd(item, out)
        elif (known := object_in(value)) is not None:
            chunk = lenient(known)
            if chunk.error:
                raise self._peer.reported(dumps({"error": chunk.error}))
            self._take(chunk, out)
        elif value is not None and value is not DONE and value != "":
            self._peer.warn("odd_chunk", f"a chunk that is no object was left aside: {value!r:.80}", out)


def _opaque_fields(part: Part) -> list[tuple[str, Any]]:
    values = (part.tool_call, part.tool_response, part.executable_code, part.code_execution_result)
    return list(zip(OPAQUE_KINDS, values, strict=True))
