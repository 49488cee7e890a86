"""Streams of the Messages API to decode: what a server would send, as events and as bytes, and what comes out."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from antiphon.providers.anthropic.decode import AnthropicDecoder
from antiphon.types.joiner import join
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import Delta
from antiphon.wire.sse import SseParser

Event = dict[str, Any]

PING: Event = {"type": "ping"}
STOP: Event = {"type": "message_stop"}


def start(**usage: Any) -> Event:
    """The head of a reply, as the API sends it."""
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x-1", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage or {"input_tokens": 10, "output_tokens": 1},
    }  # fmt: skip
    return {"type": "message_start", "message": message}


def begin(index: int, kind: str, **more: Any) -> Event:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}}


def change(index: int | None, kind: str, **more: Any) -> Event:
    place = {} if index is None else {"index": index}
    return {"type": "content_block_delta", **place, "delta": {"type": kind, **more}}


def end(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


def last(reason: str | None = "end_turn", usage: dict[str, Any] | None = None, **more: Any) -> Event:
    delta = {"stop_reason": reason, "stop_sequence": None, **more}
    return {"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 7}}


def text(index: int, *pieces: str) -> list[Event]:
    """A whole text block."""
    changes = [change(index, "text_delta", text=piece) for piece in pieces]
    return [begin(index, "text", text=""), *changes, end(index)]


def thought(index: int, words: str, *signature: str) -> list[Event]:
    """A whole thought; without a signature it is as a reply that broke off leaves it."""
    changes = [change(index, "thinking_delta", thinking=words)] if words else []
    signs = [change(index, "signature_delta", signature=piece) for piece in signature]
    return [begin(index, "thinking", thinking="", signature=""), *changes, *signs, end(index)]


def call(index: int, name: str, *pieces: str, call_id: str = "toolu_1") -> list[Event]:
    """A whole call."""
    changes = [change(index, "input_json_delta", partial_json=piece) for piece in pieces]
    return [begin(index, "tool_use", id=call_id, name=name, input={}), *changes, end(index)]


def reply(*blocks: Iterable[Event], reason: str | None = "end_turn") -> list[Event]:
    """A whole reply of these blocks."""
    return [start(), PING, *(event for block in blocks for event in block), last(reason), STOP]


def in_bytes(events: Iterable[Event]) -> bytes:
    """The events as the API writes them."""
    return b"".join(b"event: %b\ndata: %b\n\n" % (each["type"].encode(), json.dumps(each).encode()) for each in events)


def decode(events: Iterable[Event | bytes]) -> list[Delta]:
    """The deltas of a whole stream."""
    decoder = AnthropicDecoder()
    deltas: list[Delta] = []
    for event in events:
        deltas += decoder.feed(event if isinstance(event, bytes) else json.dumps(event).encode())
    return deltas + decoder.finish()


def decode_bytes(pieces: Iterable[bytes]) -> list[Delta]:
    """The deltas of a stream that arrives in these pieces."""
    parser, decoder = SseParser(), AnthropicDecoder()
    deltas: list[Delta] = []
    for piece in pieces:
        for event in parser.feed(piece):
            deltas += decoder.feed(event.data, event.event)
    for event in parser.finish():
        deltas += decoder.feed(event.data, event.event)
    return deltas + decoder.finish()


def message(*blocks: Iterable[Event], reason: str | None = "end_turn") -> AssistantMessage:
    return join(decode(reply(*blocks, reason=reason)))


def only(kind: type[Any], deltas: Sequence[Delta]) -> list[Any]:
    return [delta for delta in deltas if isinstance(delta, kind)]


EVERYTHING = reply(
    thought(0, "Hm… 雨?", "sig", "ned"),
    [begin(1, "redacted_thinking", data="encrypted"), end(1)],
    text(2, "Grüße, ", "世界 😀"),
    call(3, "weather", "", '{"city": "Os', 'lo"}', call_id="toolu_a"),
    call(4, "now", call_id="toolu_b"),
    reason="tool_use",
)
