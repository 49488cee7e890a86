"""The stream of OpenAI's Responses API as deltas. Pure, and lenient: what can be understood is taken.

Shape: platform.openai.com/docs/api-reference/responses-streaming. Events of an unknown type are left aside. Three things
end a reply in an error, since going on would give a wrong answer or run a wrong call: an error that the server reports,
data that is not JSON (a piece of the text or of a call is gone), and an end without one of the API's own terminal events
(`response.completed`, `response.incomplete`, `response.failed`, `error`).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from antiphon.errors import Dropped, Filtered, Garbled, ModelError, Overloaded, Rejected, UsageError
from antiphon.providers.json_text import clean, cut_half, dumps
from antiphon.providers.lenient import object_in, text_in
from antiphon.providers.openai_responses._event import Event, Response, lenient, lenient_response
from antiphon.providers.openai_responses._output import Output, Section
from antiphon.providers.openai_responses._usage import usage_of
from antiphon.providers.peer import DONE, Peer
from antiphon.types.messages import StopReason
from antiphon.types.request import Delta, FinishChunk, UsageChunk

__all__ = ["ResponsesDecoder"]

# The kind of item and of its content that an event's text belongs to.
_GROWING = {
    "response.output_text.delta": ("message", "content"),
    "response.refusal.delta": ("message", "content"),
    "response.reasoning_text.delta": ("reasoning", "content"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary"),
}
_ENDING = {name.replace(".delta", ".done"): where for name, where in _GROWING.items()}
_ITEMS = frozenset({"response.output_item.added", "response.output_item.done", "response.function_call_arguments.done"})
_HEADS = frozenset({"response.created", "response.in_progress", "response.queued"})
_TERMINAL = {
    "response.completed": "completed",
    "response.done": "completed",  # gateways
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}

_read_event = msgspec.json.Decoder(Event).decode

# Why a response is incomplete (docs/api-reference/responses/object, "incomplete_details"); any other reason is a limit.
_INCOMPLETE: dict[str, StopReason] = {"content_filter": "filtered"}

# Codes of `response.error` that waiting does not help against (docs/api-reference/responses/object, "error").
_FAULTS: dict[str, type[ModelError]] = {
    "invalid_prompt": Rejected,
    "data_residency_mismatch": Rejected,
    "bio_policy": Filtered,
    "cyber_policy": Filtered,
    "misalignment_policy_violation": Filtered,
    "image_content_policy_violation": Filtered,
}
_IMAGE_FAULTS = (
    "empty_image", "failed_to_download_image", "image_", "invalid_base64_image", "invalid_image", "unsupported_image",
)  # fmt: skip


class ResponsesDecoder:
    """Decodes one reply: `feed` it the data of each event, then `finish`.

    `origin` is the `provider:model` that opaque data is marked with, so that it goes back only there. `done` and
    `terminal` say that a terminal event came: nothing that matters will follow.
    """

    __slots__ = (
        "_details", "_head", "_held", "_output", "_peer", "_read", "_status",
    )  # fmt: skip

    def __init__(self, provider: str = "openai", *, origin: str | None = None, request_id: str | None = None) -> None:
        self._peer = Peer(provider, request_id)
        self._read: Callable[[bytes], Event] = _read_event
        self._held: dict[tuple[str | None, int | None], str] = {}  # first halves of characters
        self._head: tuple[str | None, str | None] = (None, None)  # the reply's id, and the model that was served
        self._output = Output(origin, self._garbled)
        self._status: str | None = None  # what the terminal event says
        self._details: str | None = None

    @property
    def terminal(self) -> bool:
        """Whether a terminal event came."""
        return self._status is not None

    @property
    def done(self) -> bool:
        return self._status is not None

    def feed(self, payload: bytes, event: str = "message") -> list[Delta]:
        """What the data of one event adds. Raises the `ModelError` that the server reports, and `Garbled`."""
        try:
            try:
                parsed = self._read(payload)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                return self._feed_odd(payload, event)
            if parsed.type is None:
                return self._feed_odd(payload, event)
            return self._take(parsed, payload)
        except (RecursionError, UsageError) as error:
            raise self._peer.too_deep() from error

    def finish(self) -> list[Delta]:
        """The stream has ended: the last deltas. Raises `Dropped` if the reply is not whole."""
        status = self._status
        if status is None:
            raise self._peer.error(Dropped, "ended its reply without a terminal event; ask again")
        out: list[Delta] = []
        self._output.close(out, whole=status == "completed")
        label: StopReason = "tool_calls" if self._output.has_calls else "stop"
        if status == "incomplete":
            label = _INCOMPLETE.get(self._details or "", "length")
        elif self._output.refused and label == "stop":
            label = "refused"
        out.append(FinishChunk(label, self._details or status, *self._head))
        return out

    def _take(self, event: Event, payload: bytes) -> list[Delta]:
        out: list[Delta] = []
        kind = event.type or ""
        if self._status is not None:
            return out
        if (where := _GROWING.get(kind)) is not None:
            self._output.grow(where[0], _section(where[1], event), event, out)
        elif kind == "response.function_call_arguments.delta":
            self._output.arguments(event, out)
        elif (where := _ENDING.get(kind)) is not None:
            self._output.end_section(where[0], _section(where[1], event), event, out)
        elif kind in _ITEMS:
            self._take_item(kind, event, out)
        elif kind in _HEADS:
            self._note_head(event.response or Response())
        elif (status := _TERMINAL.get(kind)) is not None:
            self._end(event.response or Response(), status, out)
        else:
            self._take_odd(kind, event, payload, out)
        return out

    def _take_item(self, kind: str, event: Event, out: list[Delta]) -> None:
        if kind == "response.function_call_arguments.done":
            self._output.arguments_done(event, out)
        elif kind == "response.output_item.added":
            self._output.announce(event.item or {}, event.output_index, out)
        elif useless := self._output.done(event.item or {}, event.output_index, out):
            text = f"an output item that only its own client can use was left aside: {useless!r}"
            self._peer.warn("unknown_item", text, out, once=f"unknown_item:{useless}")

    def _take_odd(self, kind: str, event: Event, payload: bytes, out: list[Delta]) -> None:
        """An error, or what a message has no place for: parts, annotations, progress of hosted tools, and the unknown."""
        if kind == "error" or (event.error and not kind.startswith("response.")):
            raise self._fault(payload)
        if not kind.startswith("response.") and kind not in {"keepalive", "ping"}:
            self._peer.warn("unknown_event", f"an event of an unknown kind was left aside: {kind!r}", out)

    def _end(self, response: Response, status: str, out: list[Delta]) -> None:
        """A terminal event. The response's own status counts more than the event's name, which gateways mistake."""
        self._note_head(response)
        if response.usage:
            out.append(UsageChunk(usage_of(response.usage)))
        if response.status in {"completed", "incomplete", "failed", "cancelled"}:
            status = response.status
        if response.error or status in {"failed", "cancelled"}:
            raise self._failure(response, status)
        reason: Any = (response.incomplete_details or {}).get("reason")
        self._details = reason if isinstance(reason, str) else None
        self._output.settle(response.output or [], out)
        self._status = status

    def _note_head(self, response: Response) -> None:
        """Id and model are told again and again; the last word counts."""
        known = self._head
        self._head = (response.id or known[0], response.model or known[1])

    def _feed_odd(self, payload: bytes, event: str) -> list[Delta]:
        """What is no plain event: one whose type stands in its name, a whole reply, an error, or no JSON at all."""
        value = self._peer.read(payload, event)
        if value is None or value is DONE:  # the marker of another API; it ends a stream, and does not make it whole
            return []
        out: list[Delta] = []
        if (known := object_in(value)) is None:
            self._peer.warn("odd_event", f"an event that is no object was left aside: {value!r:.80}", out)
            return out
        parsed = lenient(known)
        if parsed.type is None:
            if parsed.object == "response" or isinstance(known.get("output"), list):
                self._take_whole(known, out)
                return out
            if known.get("error") or known.get("detail"):
                raise self._fault(payload)
            parsed.type = event
        self._mend(parsed)
        return out + self._take(parsed, payload)

    def _take_whole(self, response: dict[str, Any], out: list[Delta]) -> None:
        """A reply from a server that does not stream. One that is not ready yet is no end."""
        if self._status is None and text_in(response.get("status")) not in {"queued", "in_progress"}:
            self._end(lenient_response(response), "failed" if response.get("error") else "completed", out)

    def _mend(self, event: Event) -> None:
        """Whole characters: JSON may escape their halves apart, one in an event and one in the next.

        While a first half is held, every event takes this road.
        """
        if event.delta is not None:
            channel = (event.type, event.output_index)
            event.delta, half = cut_half(self._held.pop(channel, "") + event.delta)
            if half:
                self._held[channel] = half
        self._read = _refuse if self._held else _read_event

    def _garbled(self, text: str) -> ModelError:
        return self._peer.error(Garbled, f"{text}; ask again")

    def _failure(self, response: Response, status: str) -> ModelError:
        """Why there is no reply."""
        if not response.error:
            kind = Dropped if status == "cancelled" else Overloaded
            return self._peer.error(kind, f"gave up its reply ({status}) and does not say why; ask again")
        return self._fault(dumps({"error": clean(response.error)}))

    def _fault(self, body: bytes) -> ModelError:
        """The error that the server reports."""
        error = self._peer.reported(body)
        code = error.code or ""
        kind = _FAULTS.get(code) or (Rejected if code.startswith(_IMAGE_FAULTS) else None)
        if kind is None or not isinstance(error, Overloaded):
            return error
        text = str(error).rpartition("; ")[0]  # the rest advises to wait, which does not help here
        return kind(
            f"{text}; change the request, or take another model",
            code=code,
            provider=error.provider,
            request_id=error.request_id,
        )


def _section(kind: str, event: Event) -> Section:
    return (kind, (event.summary_index if kind == "summary" else event.content_index) or 0)


def _refuse(_: bytes) -> Event:
    raise msgspec.DecodeError
