"""Messages, models and settings of the recordings as ours, and ours in the words of the recordings."""

import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from antiphon import (
    AssistantMessage,
    CustomMessage,
    Image,
    Message,
    ModelInfo,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from antiphon.providers.catalogue import model_info
from antiphon.types.messages import StopReason
from antiphon.types.partial_json import parse_partial
from antiphon.types.request import ModelSettings, ThinkingLevel

__all__ = [
    "Json",
    "arguments_of",
    "level_of",
    "message_in",
    "message_out",
    "messages_in",
    "messages_out",
    "model_in",
    "part_in",
    "partial_out",
    "parts_out",
    "reason_in",
    "role_of",
    "roles_of",
    "settings_in",
    "usage_in",
]

Json = dict[str, Any]

STAND_IN: Json = {
    "provider": "openai",
    "id": "mock",
    "api": "openai-responses",
    "reasoning": False,
    "input": ["text", "image"],
    "contextWindow": 8192,
    "maxTokens": 2048,
}

LEVELS: tuple[ThinkingLevel, ...] = ("off", "minimal", "low", "medium", "high")
"""What a model thinks of which only that is known."""

REASONS: dict[str, StopReason] = {"toolUse": "tool_calls"}
THEIR_REASONS: dict[str, str] = {ours: theirs for theirs, ours in REASONS.items()}

ROLES: dict[type[Any], str] = {UserMessage: "user", AssistantMessage: "assistant", ToolResultMessage: "toolResult"}

ERROR = re.compile(r'<tool_error name="[^"]*">(.*)</tool_error>', re.DOTALL)
"""Ours puts a failure into a tag of its own; what it says is inside."""


# Models and settings


def model_in(changes: Json | None = None) -> ModelInfo:
    """The stand-in model with these changes. A reasoning model has the levels that its name is known for."""
    model = STAND_IN | (changes or {})
    levels: tuple[ThinkingLevel, ...] = ()
    if model["reasoning"]:
        known = model_info(model["provider"], model["id"])
        more = known.thinking_levels if known is not None else None
        levels = (*LEVELS, *[level for level in more or () if level not in LEVELS])
    return ModelInfo(
        provider=model["provider"],
        id=model["id"],
        context_window=model["contextWindow"],
        output_limit=model["maxTokens"],
        thinking_levels=levels,
        modalities=tuple(model["input"]),
    )


def settings_in(options: Json, level: str | None = None) -> ModelSettings:
    """What they say of a request."""
    return ModelSettings(
        temperature=options.get("temperature"),
        max_output_tokens=options.get("maxTokens"),
        thinking=cast("ThinkingLevel | None", options.get("reasoning", level)),
        thinking_budgets=options.get("thinkingBudgets"),
        thinking_display=options.get("thinkingDisplay"),
        cache=options.get("cacheRetention"),
        extra_headers=options.get("headers"),
    )


def level_of(level: str | None) -> str:
    return level or "off"


def reason_in(reason: str) -> StopReason:
    return REASONS.get(reason, cast("StopReason", reason))


def usage_in(given: Json) -> Usage:
    """Theirs counts cached tokens apart from the input."""
    read, write = given.get("cacheRead", 0), given.get("cacheWrite", 0)
    return Usage(
        input=given.get("input", 0) + read + write,
        output=given.get("output", 0),
        total=given.get("totalTokens"),
        cache_read=read or None,
        cache_write=write or None,
        cost=(given.get("cost") or {}).get("total"),
    )


def usage_out(usage: Usage | None) -> Json | None:
    """Ours in their fields; nothing, if it says nothing."""
    if usage is None:
        return None
    read, write = usage.cache_read or 0, usage.cache_write or 0
    told: Json = {
        "input": usage.input - read - write,
        "output": usage.output,
        "cacheRead": read,
        "cacheWrite": write,
        "totalTokens": usage.total or 0,
        "cost": usage.cost or 0,
    }
    return told if any(told.values()) else None


# Messages in


def messages_in(given: Iterable[Json]) -> list[Message]:
    return [message_in(message) for message in given]


def message_in(given: Json) -> Message:
    """A message of theirs. A role that is not one of the three is an application's own kind."""
    match given.get("role"):
        case "user":
            return UserMessage(parts=parts_in(given["content"]))
        case "assistant":
            return AssistantMessage(
                parts=parts_in(given["content"]),
                stop_reason=reason_in(given.get("stopReason", "stop")),
                provider=given.get("provider"),
                model=given.get("model"),
                error=given.get("errorMessage"),
                usage=usage_in(given["usage"]) if "usage" in given else None,
            )
        case "toolResult":
            failed = given.get("isError", False)
            return ToolResultMessage(
                call_id=given["toolCallId"],
                tool_name=given.get("toolName", "?"),
                parts=parts_in(given["content"]),
                details=given.get("details"),
                is_error=failed,
                outcome="error" if failed else "ok",
            )
        case role:
            return CustomMessage(kind=str(role), data={key: value for key, value in given.items() if key != "role"})


def parts_in(content: str | Sequence[Json]) -> tuple[Any, ...]:
    return (Text(content),) if isinstance(content, str) else tuple([part_in(block) for block in content])


def part_in(block: Json) -> Any:
    """A block of theirs."""
    match block["type"]:
        case "text":
            return Text(block["text"], block.get("textSignature"))
        case "thinking":
            redacted = block.get("redacted", False)
            return Thinking(text=block["thinking"], signature=block.get("thinkingSignature"), redacted=redacted)
        case "image":
            return Image(block["data"], block.get("mimeType"))
        case _:
            arguments = block.get("arguments", {})
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            return ToolCall(id=block["id"], name=block["name"], arguments=text)


# Messages out


def role_of(message: Message) -> str:
    return message.kind if isinstance(message, CustomMessage) else ROLES[type(message)]


def roles_of(messages: Iterable[Message]) -> str:
    return ",".join([role_of(message) for message in messages])


def messages_out(messages: Iterable[Message], model: ModelInfo) -> list[Json]:
    return [message_out(message, model) for message in messages]


def message_out(message: Message, model: ModelInfo) -> Json:
    """A message of ours; `model` is the stand-in, which is not named."""
    role = role_of(message)
    match message:
        case CustomMessage(data=data):
            return {"role": role, **data}
        case ToolResultMessage():
            return {
                "role": role,
                "toolCallId": message.call_id,
                "toolName": message.tool_name,
                "content": parts_out(message.parts),
                "details": message.details,
                "isError": message.is_error,
            }
        case AssistantMessage():
            return assistant_out(message, model)
        case _:
            return {"role": role, "content": parts_out(cast("Any", message).parts)}


def assistant_out(message: AssistantMessage, model: ModelInfo) -> Json:
    told: Json = {"role": "assistant", "content": parts_out(message.parts)}
    for name, ours, theirs in (("provider", message.provider, model.provider), ("model", message.model, model.id)):
        if ours is not None and ours != theirs:
            told[name] = ours
    if (usage := usage_out(message.usage)) is not None:
        told["usage"] = usage
    told["stopReason"] = THEIR_REASONS.get(message.stop_reason, message.stop_reason)
    if message.error is not None:
        told["errorMessage"] = message.error
    return told


def partial_out(message: AssistantMessage) -> list[Json]:
    """The content of a reply on its way: arguments as far as they can be read."""
    return parts_out(message.parts, partial=True)


def parts_out(parts: Iterable[Any], *, partial: bool = False) -> list[Json]:
    return [part_out(part, partial=partial) for part in parts]


def part_out(part: Any, *, partial: bool) -> Json:
    match part:
        case Text(text=text, signature=signature):
            told = {"type": "text", "text": unwrapped(text)}
            return told | {"textSignature": signature} if signature else told
        case Thinking(text=text, signature=signature, redacted=redacted):
            told = {"type": "thinking", "thinking": text}
            told |= {"thinkingSignature": signature} if signature else {}
            return told | {"redacted": True} if redacted else told
        case Image(source=source, media_type=media_type):
            return {"type": "image", "data": source, "mimeType": media_type}
        case ToolCall(id=call_id, name=name):
            arguments = (parse_partial(part.arguments) or {}) if partial else arguments_of(part)
            return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}
        case _:
            raise TypeError(f"no part of a recording: {part!r}")


def arguments_of(call: ToolCall) -> Json:
    """The raw arguments as an object; what is none is told as nothing."""
    try:
        return call.parse()
    except ValueError:
        return {}


def unwrapped(text: str) -> str:
    found = ERROR.fullmatch(text)
    return html.unescape(found[1]) if found is not None else text
