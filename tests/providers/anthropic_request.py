"""Requests to encode, and what is sent of them."""

import json
from typing import Any

from antiphon.providers.anthropic.encode import encode
from antiphon.types.content import Part, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from antiphon.types.request import ModelInfo, ModelRequest, ModelSettings, ToolSpec

MODEL = "claude-sonnet-4-5"
ORIGIN = f"anthropic:{MODEL}"
WEATHER = ToolSpec(name="weather", description="Says it.", parameters={"type": "object", "properties": {}})
SHORT = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}

HI = UserMessage.of("hi")


def said(*parts: Part | str, **more: Any) -> AssistantMessage:
    return AssistantMessage(parts=tuple(Text(part) if isinstance(part, str) else part for part in parts), **more)


def calling(call_id: str = "c1", name: str = "weather", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def result(call_id: str = "c1", *parts: Part, **more: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, tool_name="weather", parts=parts or (Text("rain"),), **more)


def signed(text: str = "Hm", origin: str | None = ORIGIN) -> Thinking:
    return Thinking(text=text, signature="sig", origin=origin)


def body(*messages: Message, model: str = MODEL, info: ModelInfo | None = None, **fields: Any) -> dict[str, Any]:
    return json.loads(encode(ModelRequest(messages=messages or (HI,), **fields), model, info))


def turns(*messages: Message, **fields: Any) -> list[dict[str, Any]]:
    """The messages that are sent, without cache marks."""
    return body(*messages, settings=ModelSettings(cache="none"), **fields)["messages"]


def blocks(*messages: Message) -> list[dict[str, Any]]:
    """The blocks of the first message that is sent."""
    return turns(*messages)[0]["content"]
