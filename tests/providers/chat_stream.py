"""Streams of Chat Completions to decode: what a server would send, and what comes out."""

import json
from collections.abc import Sequence
from typing import Any

from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.types.joiner import join
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import Delta

DONE = b"[DONE]"


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    return {"id": "r1", "model": "m1", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def text(content: str) -> dict[str, Any]:
    return chunk({"content": content})


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": list(fragments)})


def fragment(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A piece of a call; what is `None` is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": function}


def decode(*payloads: Any, end: bool = True) -> list[Delta]:
    """The deltas of a whole stream. An object is sent as JSON; without `end`, the caller sends the marker."""
    decoder = ChatDecoder()
    deltas: list[Delta] = []
    for payload in payloads:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        deltas += decoder.feed(data)
    if end:
        deltas += decoder.feed(DONE)
    return deltas + decoder.finish()


def message(*payloads: Any, end: bool = True) -> AssistantMessage:
    return join(decode(*payloads, end=end))


def made(*payloads: Any) -> list[tuple[str, str, str]]:
    """The calls of a stream: id, name, arguments."""
    return [(call.id, call.name, call.arguments) for call in message(*payloads).calls]


def only(kind: type[Any], deltas: Sequence[Delta]) -> list[Any]:
    return [delta for delta in deltas if isinstance(delta, kind)]
