"""The stream of Chat Completions as deltas. Pure, and lenient: what servers send is odd in many ways and mostly usable.

Shape: platform.openai.com/docs/api-reference/chat-streaming. What can be understood is taken, what is missing is missing,
what is unknown is left aside. Three things end a reply in an error, since going on would give a wrong answer or run a
wrong call: an error that the server reports, data that is not JSON (a piece of the text or of a call is gone), and an end
without a terminal marker (`finish_reason` or `[DONE]`).
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from antiphon.errors import Dropped, Garbled, ModelError, Overloaded, UsageError
from antiphon.providers.json_text import dumps
from antiphon.providers.lenient import object_in
from antiphon.providers.openai_chat._calls import Calls
from antiphon.providers.openai_chat._chunk import Choice, Chunk, FirstChunk, Fragment, lenient, whole_message
from antiphon.providers.openai_chat._chunk import Delta as WireDelta
from antiphon.providers.openai_chat._details import Details, said_in
from antiphon.providers.openai_chat._halves import Halves
from antiphon.providers.openai_chat._rescue import Rescuer
from antiphon.providers.openai_chat._think_tags import TagSplitter
from antiphon.providers.openai_chat._usage import Report
from antiphon.providers.openai_chat.profiles import PROFILES, Profile
from antiphon.providers.peer import DONE, Peer
from antiphon.types.messages import StopReason
from antiphon.types.request import CallChunk, Delta, FinishChunk, TextChunk, ThinkingChunk, ToolSpec, UsageChunk

__all__ = ["ChatDecoder"]

_read_first = msgspec.json.Decoder(FirstChunk).decode
_read_next = msgspec.json.Decoder(Chunk).decode

_REASONS: dict[str, StopReason] = {
    "stop": "stop",
    "end_turn": "stop",  # gateways to Anthropic
    "eos": "stop",  # Together, Text Generation Inference
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_length": "length",  # Mistral
    "content_filter": "filtered",
    "safety": "filtered",
    "refusal": "refused",
}
# Finish reasons that say that the reply is not whole through no fault of the request.
_BROKEN: dict[str | None, type[ModelError]] = {
    "error": Overloaded,  # OpenRouter, Mistral
    "insufficient_system_resource": Overloaded,  # DeepSeek
    "abort": Dropped,  # vLLM, SGLang
}


class ChatDecoder:
    """Decodes one reply: `feed` it the data of each event, then `finish`.

    `origin` is the `provider:model` that a call's opaque data is marked with, so that it goes back only there. `tools` are
    those that were offered: only their calls are found in text, if the profile wants that. `done`
    says that `[DONE]` came: nothing that matters will follow. `terminal` says that the reply is whole.
    """

    __slots__ = (
        "_calls", "_choice", "_details", "_halves", "_head", "_peer", "_read", "_reason", "_refused", "_report", "_rescuer",
        "_splitter", "_spoke", "_thinking", "done",
    )  # fmt: skip

    def __init__(
        self,
        profile: Profile | None = None,
        *,
        origin: str | None = None,
        request_id: str | None = None,
        tools: Sequence[ToolSpec] = (),
    ) -> None:
        profile = profile or PROFILES["generic"]
        self._peer = Peer(profile.name, request_id)
        self._splitter = TagSplitter(profile.think_tags) if profile.think_tags else None
        self._rescuer = Rescuer(profile.rescue, tools, self._peer) if self._splitter or profile.rescue else None
        self._read: Callable[[bytes], Chunk] = _read_first
        self._head: tuple[str | None, str | None] = (None, None)  # the reply's id, and the model that was served
        self._choice: int | None = None  # which candidate is read: the first that was seen
        self._calls = Calls(origin)
        self._details = Details()
        self._thinking = False  # details of a thought wait for its end
        self._halves = Halves()
        self._report = Report()
        self._reason: str | None = None
        self._refused = False
        self._spoke = False  # something of the reply was told
        self.done = False

    @property
    def terminal(self) -> bool:
        """Whether a terminal marker came."""
        return self.done or self._reason is not None

    def feed(self, payload: bytes, event: str = "message") -> list[Delta]:
        """What the data of one event adds. Raises the `ModelError` that the server reports, and `Garbled`."""
        try:
            try:
                chunk = self._read(payload)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                return self._feed_odd(payload, event)
            if chunk.choices is None or chunk.error or event == "error":
                return self._feed_odd(payload, event)
            return self._take(chunk)
        except (RecursionError, UsageError) as error:
            raise self._peer.too_deep() from error

    def feed_object(self, chunk: object) -> list[Delta]:
        """As `feed`, for a chunk that is decoded already; text and bytes are taken as JSON."""
        if isinstance(chunk, str | bytes | bytearray):
            return self.feed(chunk.encode(errors="replace") if isinstance(chunk, str) else bytes(chunk))
        try:
            return self._mended(self._odd(chunk))
        except (RecursionError, UsageError) as error:
            raise self._peer.too_deep() from error

    def finish(self) -> list[Delta]:
        """The stream has ended: the last deltas. Raises `Dropped` if the reply is not whole."""
        reason = self._reason
        if not self.terminal:
            raise self._peer.error(Dropped, "ended its reply without a finish marker; ask again")
        if reason in _BROKEN:
            text = f"broke off its reply and gave {reason!r} as the reason; ask again"
            raise self._peer.error(_BROKEN[reason], text, code=reason)
        out = self._halves.flush()
        self._end_thought(out)
        called = self._end_text(out)
        self._calls.close(out)
        self._tell_rest(out)
        label = _REASONS.get(reason.lower(), "stop") if reason else ("tool_calls" if self._calls else "stop")
        if called and label == "stop":
            label = "tool_calls"
        if self._refused and label == "stop":
            label = "refused"
        out.append(FinishChunk(label, reason, *self._head))
        return out

    def _take(self, chunk: Chunk) -> list[Delta]:
        out: list[Delta] = []
        if isinstance(chunk, FirstChunk):
            self._note_head(chunk)
        if chunk.usage or chunk.timings or chunk.x_groq or chunk.prompt_filter_results:
            self._take_facts(chunk, out)
        for choice in chunk.choices or ():
            if self._choice != (choice.index or 0):
                if self._choice is not None:
                    continue  # another candidate: one was asked for
                self._choice = choice.index or 0
            if choice.delta is not None:
                self._add(choice.delta, out)
            if choice.finish_reason or choice.message or choice.content_filter_results or choice.error:
                self._take_end(choice, out)
        if not self._spoke and out:
            self._spoke = _speaks(out)
        return out

    def _add(self, delta: WireDelta, out: list[Delta]) -> None:
        """Thought before text before calls, as a model brings them forth, where one delta has several."""
        if delta.reasoning_content or delta.reasoning or delta.reasoning_text or delta.reasoning_details:
            self._take_thought(delta, out)
        if delta.content:
            if delta.extra_content or self._thinking or self._rescuer:
                self._take_marked(delta, out)
            else:
                out.append(TextChunk(delta.content))
        if delta.tool_calls:
            self._end_thought(out)
            if self._rescuer:
                self._rescuer.give_up(out)
            self._calls.add(delta.tool_calls, out)
        if delta.function_call or delta.refusal:
            self._take_rare(delta, out)

    def _note_head(self, chunk: FirstChunk) -> None:
        """Id and model are the same in every chunk: read until they are known (Azure's first chunk has neither)."""
        known = self._head
        self._head = (known[0] or chunk.id or None, known[1] or chunk.model or None)
        if all(self._head) and self._read is _read_first:
            self._read = _read_next

    def _take_thought(self, delta: WireDelta, out: list[Delta]) -> None:
        """One of the fields' text: some servers say the same in two of them."""
        text = delta.reasoning_content or delta.reasoning or delta.reasoning_text or ""
        if delta.reasoning_details:
            text = text or said_in(delta.reasoning_details)
            self._details.add(delta.reasoning_details)
            self._thinking = True
        if text:
            out.append(ThinkingChunk(text))

    def _end_thought(self, out: list[Delta]) -> None:
        """What follows is no thought: its details close it, as the signature that goes back with it."""
        if self._thinking:
            self._thinking = False
            signature, readable = self._details.close()
            out.append(ThinkingChunk("", signature, redacted=not readable))

    def _take_marked(self, delta: WireDelta, out: list[Delta]) -> None:
        """Content after a thought, of which Google says that it is one (ai.google.dev/gemini-api/docs/openai), or in which
        a profile looks for thoughts and calls.
        """
        google: Any = delta.extra_content.get("google") if delta.extra_content else None
        if (object_in(google) or {}).get("thought") is True:
            out.append(ThinkingChunk(delta.content or ""))
            return
        self._end_thought(out)
        if self._rescuer is None:
            out.append(TextChunk(delta.content or ""))
            return
        self._spoke = True  # some of it may be held back
        text = delta.content or ""
        self._rescuer.feed(self._splitter.feed(text, out) if self._splitter else text, out)

    def _end_text(self, out: list[Delta]) -> bool:
        """What was held back of the text is told; whether it was a call."""
        if self._rescuer is None:
            return False
        rest: list[Delta] = []
        if self._splitter:
            self._rescuer.feed(self._splitter.finish(rest), rest)
        self._rescuer.finish(rest)
        out.extend(self._halves.mend(rest))
        out.extend(self._halves.flush())
        return self._rescuer.called

    def _take_rare(self, delta: WireDelta, out: list[Delta]) -> None:
        """A refusal, which is text for the reader; the call of the older API, which knew only one."""
        if delta.refusal:
            self._refused = True
            out.append(TextChunk(delta.refusal))
        if delta.function_call:
            self._calls.add([Fragment(index=0, function=delta.function_call)], out)

    def _take_end(self, choice: Choice, out: list[Delta]) -> None:
        if choice.error:
            raise self._fault(dumps({"error": choice.error}))
        if choice.content_filter_results:
            self._report.facts["content_filter_results"] = choice.content_filter_results
        # A whole reply counts only where no deltas came: some servers send both.
        if choice.message and not self._spoke and not _speaks(out):
            self._add(whole_message(choice.message), out)
        reason = choice.finish_reason
        if reason and reason not in {"null", "None"}:
            self._reason = reason

    def _take_facts(self, chunk: Chunk, out: list[Delta]) -> None:
        if chunk.x_groq and (error := chunk.x_groq.get("error")):
            raise self._fault(dumps({"error": error}))
        if usage := self._report.take(chunk):
            out.append(UsageChunk(usage))

    def _tell_rest(self, out: list[Delta]) -> None:
        """Facts that came after the usage. Without any usage, an objection of a filter is still told."""
        if usage := self._report.rest():
            out.append(UsageChunk(usage))
        elif b'"filtered":true' in (found := dumps(self._report.facts)):
            self._peer.warn("content_filter", f"a content filter objected: {found.decode()}", out)

    def _feed_odd(self, payload: bytes, event: str) -> list[Delta]:
        """What is no plain chunk: the end, an error, JSON that only a patient reader takes, or no JSON at all."""
        if payload == b"[DONE]":
            self.done = True
            return []
        value = self._peer.read(payload) if event != "error" else self._reported(payload)
        if value is DONE:
            self.done = True
            return []
        return self._mended(self._odd(value))

    def _reported(self, payload: bytes) -> Any:
        """What an event named `error` says, unless it says nothing."""
        if payload.strip():
            raise self._fault(payload)

    def _odd(self, value: object) -> list[Delta]:
        out: list[Delta] = []
        self._take_odd(value, out)
        return out

    def _take_odd(self, value: object, out: list[Delta]) -> None:
        if isinstance(value, list):  # Google wraps errors in a list
            for item in cast("list[object]", value):
                self._take_odd(item, out)
        elif (known := object_in(value)) is not None:
            chunk = lenient(known)
            if chunk.error:
                raise self._fault(dumps(known))
            if known and known.keys().isdisjoint(_KNOWN):
                names = sorted(map(str, known))
                self._peer.warn("unknown_chunk", f"a chunk of an unknown kind was left aside: {names!r}", out)
            out.extend(self._take(chunk))
        elif value is not None and value != "":
            self._peer.warn("odd_chunk", f"a chunk that is no object was left aside: {value!r:.80}", out)

    def _fault(self, body: bytes) -> ModelError:
        """The error that the server reports."""
        error = self._peer.reported(body)
        if error.code == "tool_use_failed" or b"tool_use_failed" in body:
            # Groq: the model's own output was no valid call (console.groq.com/docs/tool-use). Another try may be one.
            return Garbled(
                str(error), code="tool_use_failed", recovery="now", provider=error.provider, request_id=error.request_id
            )
        return error

    def _mended(self, out: list[Delta]) -> list[Delta]:
        """Whole characters. While half of one is waited for, every payload takes the patient road, which leads here."""
        out = self._halves.mend(out)
        if self._halves:
            self._read = _refuse
        else:
            self._read = _read_next if all(self._head) else _read_first
        return out


_KNOWN = frozenset(
    {"choices", "usage", "timings", "x_groq", "prompt_filter_results", "id", "object", "model", "created"}
)


def _refuse(_: bytes) -> Chunk:
    raise msgspec.DecodeError


def _speaks(deltas: list[Delta]) -> bool:
    """Whether any of these is a part of the reply."""
    return any(isinstance(delta, TextChunk | ThinkingChunk | CallChunk) for delta in deltas)
