"""From antiphon's words to those of the aparte loop, and back: events, messages, requests, usage.

| aparte | antiphon |
| --- | --- |
| `run-start` | `RunStarted` |
| `turn-start` (the reply's stream is open) | the first `MessageStarted` of a reply in its turn |
| `text-delta`, `thinking-delta` | `TextDelta`, `ThinkingDelta` |
| `text-flush` | `MessageFinished` of a reply that did not fail |
| `tool-start` (the loop turns to a call) | the first event of a call behind its `ToolRequested` |
| `tool-awaiting-approval`, `tool-approved` | `ApprovalRequested`, `ApprovalDecided` with a yes |
| `tool-resolved`, `-rejected`, `-failed`, `-aborted` | `ToolFinished`, by its outcome |
| `turn-limit-exceeded` | `LimitReached` |
| `run-aborted`, `run-done`; nothing, but a raise | `RunFinished`, by its status |
| a history notice of a turn with calls | `on_append` of a reply with calls, or of a result |

A notice of an answer without calls has no word there; the projection keeps it apart.
"""

import html
import json
import re
from collections.abc import Callable
from typing import Any

from antiphon import (
    ApprovalDecided,
    ApprovalRequested,
    AssistantMessage,
    Event,
    Image,
    LimitReached,
    Message,
    MessageFinished,
    MessageStarted,
    RunFinished,
    RunStarted,
    SystemMessage,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolFinished,
    ToolRequested,
    ToolResultMessage,
    ToolStarted,
    TurnFinished,
    Usage,
    UserMessage,
)
from antiphon.types.request import ModelRequest

Json = dict[str, Any]

UNRESOLVED = "<no result>"
"""Stands for the text of a result that tells the model why there is none: wording, not behaviour."""

USAGE = {"inputTokens": "input", "outputTokens": "output", "totalTokens": "total", "cacheReadTokens": "cache_read"}
SETTINGS = {"temperature": "temperature", "topP": "top_p", "maxTokens": "max_output_tokens", "seed": "seed"}
KNOWN = ("modelId", "messages", "tools", "toolChoice", "_meta", *SETTINGS)


class Projection:
    """A listener that tells a sink what the aparte loop would have told. `turn_ended` hears of the end of each turn."""

    def __init__(self, sink: Callable[[Json], None], turn_ended: Callable[[int], None]) -> None:
        self.sink = sink
        self.turn_ended = turn_ended
        self.calls: dict[str, ToolCall] = {}
        self.begun: set[str] = set()
        self.started: set[str] = set()
        self.usage: Usage | None = None
        self.turn = 0

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self.sink({"type": "run-start"})
            case MessageStarted(role="assistant", turn=turn) if turn > self.turn:
                self.turn = turn
                self.sink({"type": "turn-start"})
            case TextDelta(text=text):
                self.sink({"type": "text-delta", "delta": text})
            case ThinkingDelta(text=text):
                self.sink({"type": "thinking-delta", "delta": text})
            case MessageFinished(message=AssistantMessage() as reply, turn=turn) if turn:
                self.usage = reply.usage or self.usage
                if reply.error is None:
                    self.sink({"type": "text-flush"})
            case LimitReached(scope="run", limit=limit):
                self.sink({"type": "turn-limit-exceeded", "scope": "global", "limit": limit})
            case TurnFinished(turn=turn):
                self.turn_ended(turn)
            case RunFinished(status=status):
                self._over(status)
            case _:
                self._call(event)

    def _call(self, event: Event) -> None:
        match event:
            case ToolRequested(call=call):
                self.calls[call.id] = call
                self.begun.discard(call.id)
                self.started.discard(call.id)
            case ApprovalRequested(call_id=call_id, name=name, arguments=arguments):
                self._begin(call_id)
                asked = {"toolCallId": call_id, "name": name, "input": arguments}
                self.sink({"type": "tool-awaiting-approval", **asked})
            case ApprovalDecided(call_id=call_id, approved=True):
                self.sink({"type": "tool-approved", "toolCallId": call_id})
            case ToolStarted(call_id=call_id):
                self.started.add(call_id)
                self._begin(call_id)
            case LimitReached(scope="tool", limit=limit, call_id=str(call_id)):
                self._begin(call_id)
                self.sink({"type": "turn-limit-exceeded", "scope": "tool", "limit": limit, "toolCallId": call_id})
            case ToolFinished(call_id=call_id):
                self._begin(call_id)
                self._end(call_id, event.result)
            case _:
                pass

    def _begin(self, call_id: str) -> None:
        """The engine turns to a call."""
        if call_id not in self.begun:
            self.begun.add(call_id)
            call = self.calls[call_id]
            self.sink({"type": "tool-start", "toolCallId": call_id, "name": call.name, "input": arguments_of(call)})

    def _end(self, call_id: str, result: ToolResultMessage) -> None:
        said: Json = {"toolCallId": call_id}
        if result.outcome == "ok":
            structured = {} if result.details is None else {"structuredResult": result.details}
            self.sink({"type": "tool-resolved", **said, "result": result.text, **structured})
        elif result.outcome == "denied":
            self.sink({"type": "tool-rejected", **said, "reason": sentence(result)})
        elif result.outcome == "error" and call_id in self.started:
            self.sink({"type": "tool-failed", **said, "error": sentence(result)})
        else:
            self.sink({"type": "tool-aborted", **said})

    def _over(self, status: str) -> None:
        if status == "error":
            return
        if status == "aborted":
            self.sink({"type": "run-aborted"})
        usage = {} if self.usage is None else {"usage": usage_out(self.usage)}
        self.sink({"type": "run-done", **usage})


def sentence(result: ToolResultMessage) -> str:
    """What an error result tells, without its frame."""
    return html.unescape(re.sub(r"^<tool_error[^>]*>|</tool_error>$", "", result.text))


def arguments_of(call: ToolCall) -> Any:
    return json.loads(call.arguments) if call.arguments else {}


# Usage


def usage_in(given: Json) -> Usage:
    fields = {USAGE[key]: value for key, value in given.items() if key in USAGE}
    duration = given["durationMs"] / 1000 if "durationMs" in given else None
    extra = {key: value for key, value in given.items() if key not in USAGE and key != "durationMs"}
    return Usage(**fields, duration=duration, extra=extra or None)


def usage_out(usage: Usage) -> Json:
    said = {key: value for key, name in USAGE.items() if (value := getattr(usage, name)) is not None}
    if usage.duration is not None:
        said["durationMs"] = round(usage.duration * 1000, 6)
    return said | (usage.extra or {})


# Messages


def parts_in(content: Any) -> tuple[Any, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(
        [
            Text(part["text"]) if part["type"] == "text" else Image(part["image"], part.get("mimeType"))
            for part in content
        ]
    )


def content_out(message: Any, *, listed: bool) -> Any:
    if not listed:
        return message.text
    parts: list[Json] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append({"type": "text", "text": part.text})
        elif isinstance(part, Image):
            media = {} if part.media_type is None else {"mimeType": part.media_type}
            parts.append({"type": "image", "image": part.source, **media})
    return parts


def message_in(given: Json, id_: str, encode: Callable[[Any], str]) -> Message:
    """A message of the application's request. `id_` tells it apart later."""
    content = given.get("content", "")
    match given["role"]:
        case "system":
            return SystemMessage(parts=parts_in(content), id=id_)
        case "user":
            return UserMessage(parts=parts_in(content), id=id_)
        case "tool":
            named = {"call_id": given["toolCallId"], "tool_name": given["toolName"]}
            return ToolResultMessage(parts=parts_in(content), id=id_, **named)
        case _:
            calls = [
                ToolCall(id=call["id"], name=call["name"], arguments=encode(call["input"]))
                for call in given.get("toolCalls", ())
            ]
            return AssistantMessage(parts=(*(parts_in(content) if content else ()), *calls), id=id_)


def message_out(message: Message, *, listed: bool = False) -> Json:
    """A message as the aparte loop writes it. `listed` content is a list of parts."""
    match message:
        case AssistantMessage(calls=calls):
            told = [{"id": call.id, "name": call.name, "input": arguments_of(call)} for call in calls]
            said = {"role": "assistant", "content": content_out(message, listed=listed)}
            return said | ({"toolCalls": told} if told else {})
        case ToolResultMessage(call_id=call_id, tool_name=name):
            content = content_out(message, listed=listed)
            if message.outcome != "ok":
                content = sentence(message) if message.outcome == "denied" else UNRESOLVED
            return {"role": "tool", "content": content, "toolCallId": call_id, "toolName": name}
        case SystemMessage():
            return {"role": "system", "content": content_out(message, listed=listed)}
        case _:
            return {"role": "user", "content": content_out(message, listed=listed)}


# Requests


def request_out(request: ModelRequest, model_id: str, base: Json, declared: dict[str, Json], lists: set[str]) -> Json:
    """A request as the aparte loop would have made it of `base`.

    `declared` says of each tool what a request of ours does not repeat (its limit, its need of approval); `lists` are
    the ids of the messages whose content is a list of parts. No tools on offer is the choice `none`.
    """
    settings = request.settings
    said: Json = {"modelId": model_id}
    said["messages"] = [
        message_out(message, listed=getattr(message, "id", "") in lists) for message in request.messages
    ]
    said |= {key: value for key, name in SETTINGS.items() if (value := getattr(settings, name)) is not None}
    said |= settings.extra_body or {}
    if request.meta is not None:
        said["_meta"] = request.meta
    if request.tools:
        said["tools"] = [tool_out(spec, declared) for spec in request.tools]
    if "toolChoice" in base:
        choice = request.tool_choice if request.tools or base["toolChoice"] == "auto" else "none"
        said["toolChoice"] = choice if choice in ("auto", "none") else {"name": choice}
    return said


def tool_out(spec: Any, declared: dict[str, Json]) -> Json:
    own = {"systemPrompt": spec.instructions} if spec.instructions else {}
    said = {"name": spec.name, "description": spec.description, "inputSchema": spec.parameters}
    return said | own | declared[spec.name]
