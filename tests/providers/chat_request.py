"""Messages and requests to encode, and what a request says, read back."""

import json
from typing import Any

from antiphon.providers.openai_chat.encode import encode
from antiphon.providers.openai_chat.profiles import PROFILES, Profile
from antiphon.types.content import Part, Text, ToolCall
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from antiphon.types.request import ModelRequest, ModelSettings

GENERIC = PROFILES["generic"]
OPENAI = PROFILES["openai"]
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def body(*messages: Message, profile: Profile = GENERIC, model: str = "m", **fields: Any) -> dict[str, Any]:
    """The encoded request, read back."""
    return json.loads(encode(ModelRequest(messages=messages, **fields), model, profile))


def sent(*messages: Message, profile: Profile = GENERIC, **fields: Any) -> list[dict[str, Any]]:
    return body(*messages, profile=profile, **fields)["messages"]


def with_settings(profile: Profile = GENERIC, **given: Any) -> dict[str, Any]:
    return body(UserMessage.of("hi"), profile=profile, settings=ModelSettings(**given))


def reply(*parts: Part, **fields: Any) -> AssistantMessage:
    return AssistantMessage(parts=parts, **fields)


def result(text: str, *more: Part, call_id: str = "c1", name: str = "look") -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, tool_name=name, parts=(Text(text), *more))


def call(arguments: str = "{}", call_id: str = "c1", **fields: Any) -> ToolCall:
    return ToolCall(id=call_id, name="look", arguments=arguments, **fields)
