"""Messages of the table about another model's history, with everything a provider attached."""

import re
from typing import Any

from msgspec.structs import replace

from antiphon import AssistantMessage, Message, Thinking, ToolCall, ToolResultMessage
from antiphon.types.content import Part

from .words import Json, message_in, part_in, parts_out

__all__ = ["message_in_table", "message_out_table"]

MARKER = re.compile(r"<(/?)(?:reformatted-pre-switch-reasoning|earlier_reasoning)>")
MADE_UP = re.compile(r"No result provided|It is not known whether")


def message_in_table(given: Json) -> Message:
    """A message whose thoughts and calls say whose they are."""
    message = message_in(given)
    if not isinstance(message, AssistantMessage):
        return message
    origin = f"{given.get('provider')}:{given.get('model')}"
    return replace(message, parts=tuple([marked(block, origin) for block in given["content"]]))


def marked(block: Json, origin: str) -> Part:
    part = part_in(block)
    if isinstance(part, Thinking):
        return replace(part, origin=origin)
    if isinstance(part, ToolCall) and "thoughtSignature" in block:
        return replace(part, opaque={"origin": origin, "thoughtSignature": block["thoughtSignature"]})
    return part


def message_out_table(message: Any, ids: dict[str, int]) -> Json:
    """What of a message matters to the next model. An id is told by its place among the ids; a made-up result is one."""
    told: Json = {"role": type(message).__name__, "content": contents(message.parts, ids)}
    if isinstance(message, ToolResultMessage):
        told |= {"call": ids.setdefault(message.call_id, len(ids)), "is_error": message.is_error}
        if MADE_UP.match(message.text):
            told["content"] = "made up"
    return told


def contents(parts: tuple[Part, ...], ids: dict[str, int]) -> list[Json]:
    found: list[Json] = []
    for part, block in zip(parts, parts_out(parts), strict=True):
        if isinstance(part, ToolCall):
            block["id"] = ids.setdefault(part.id, len(ids))
            block["signed"] = bool(part.opaque)
        if "text" in block:
            block["text"] = MARKER.sub(r"<\1thought>", block["text"])
        found.append(block)
    return found
