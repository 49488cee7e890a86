"""Messages as input items of the Responses API. Pure.

Shapes: platform.openai.com/docs/api-reference/responses/create, "input": messages, `function_call`,
`function_call_output`, `reasoning`.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from antiphon.providers.openai_responses._content import content_of, output_of
from antiphon.providers.openai_responses._json import dumps
from antiphon.providers.openai_responses._marks import item_in, mark_in
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage

__all__ = ["ItemEncoder"]

# What the server takes as a call's id: ids of other providers may be longer, or have other characters.
_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class ItemEncoder:
    """Encodes messages for one model. `thinks`: the model is not told to leave thinking off."""

    __slots__ = ("origin", "thinks")

    def __init__(self, origin: str, *, thinks: bool) -> None:
        self.origin = origin
        self.thinks = thinks

    def encode(self, messages: Sequence[Message]) -> bytes:
        """The items of the messages with commas between them."""
        return b",".join([dumps(item) for message in messages for item in self._items(message)])

    def _items(self, message: Message) -> list[dict[str, Any]]:
        """The items of one message; none for what no model may see, or what says nothing."""
        match message:
            case AssistantMessage():
                return self._reply(message)
            case ToolResultMessage():  # there is no field for errors, the text says so itself
                output = output_of(message.parts)
                return [{"type": "function_call_output", "call_id": _call_id(message.call_id), "output": output}]
            case UserMessage() | SystemMessage():
                role = "user" if isinstance(message, UserMessage) else "developer"
                content = content_of(message.parts)
                return [{"type": "message", "role": role, "content": content}] if content else []
            case _:
                return []

    def _reply(self, message: AssistantMessage) -> list[dict[str, Any]]:
        """A reply. Ids go along only if all of its reasoning does: the server looks for what an id was paired with."""
        thoughts = [self._thought(part) for part in message.parts if type(part) is Thinking]
        paired = bool(thoughts) and None not in thoughts
        ahead = iter(thoughts)
        items: list[dict[str, Any]] = []
        for part in message.parts:
            if type(part) is Thinking:
                item = next(ahead)
                if item is not None:
                    items.append(item)
            elif type(part) is Text and part.text:
                items.append(_said(part, mark_in(part.signature, self.origin), paired=paired))
            elif type(part) is ToolCall:
                items.append(self._call(part, message, paired=paired))
        while items and items[-1]["type"] == "reasoning":
            items.pop()  # a reasoning item without the item that it led to is refused
        return items

    def _thought(self, part: Thinking) -> dict[str, Any] | None:
        """The model's own item, given back to it alone."""
        return item_in(part.signature) if self.thinks and part.origin == self.origin else None

    def _call(self, call: ToolCall, message: AssistantMessage, *, paired: bool) -> dict[str, Any]:
        item: dict[str, Any] = {"type": "function_call"}
        opaque = call.opaque or {}
        if opaque.get("origin", f"{message.provider}:{message.model}") == self.origin:
            item |= {name: value for name, value in opaque.items() if name != "origin" and (paired or name != "id")}
        arguments = _sendable_arguments(call)
        return item | {"call_id": _call_id(call.id), "name": call.name, "arguments": arguments}


def _said(part: Text, mark: dict[str, Any], *, paired: bool) -> dict[str, Any]:
    """A reply's text: as an output item if its id goes along, else in the short form, which needs none."""
    item: dict[str, Any] = {"type": "message", "role": "assistant"}
    if "phase" in mark:
        item["phase"] = mark["phase"]
    if paired and "id" in mark:
        content: dict[str, Any] = {"type": "output_text", "text": part.text, "annotations": []}
        return item | {"id": mark["id"], "status": "completed", "content": [content]}
    return item | {"content": part.text}


def _call_id(call_id: str) -> str:
    if _CALL_ID.match(call_id):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode(errors="replace")).hexdigest()[:24]


def _sendable_arguments(call: ToolCall) -> str:
    """The arguments as the model wrote them; an empty object for what is not a JSON object."""
    try:
        call.parse()
    except (ValueError, RecursionError):
        return "{}"
    return call.arguments if call.arguments.strip() else "{}"
