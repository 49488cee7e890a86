"""Messages as contents of the Gemini API. Pure.

Shapes: ai.google.dev/api/caching, "Content", "Part", "FunctionCall", "FunctionResponse". Roles are `user` and `model`; they
need not alternate, but all results of a reply's calls must stand in one content, right after it
(docs/function-calling, "Parallel function calling").
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from antiphon.providers.call_ids import NameRule
from antiphon.providers.gemini._marks import SKIPPED, mark_in, opaque_part_in
from antiphon.providers.gemini._media import inline_part, media_part
from antiphon.providers.history import ForeignThinking, HistoryRules, Visible
from antiphon.providers.json_text import dumps
from antiphon.types.content import File, Image, Part, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, ToolResultMessage
from antiphon.types.request import ModelInfo

__all__ = ["ContentWriter", "history_rules"]

# What a function's response may hold beside JSON (docs/function-calling, "Multimodal function responses").
_IN_RESPONSES = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})


def history_rules(info: ModelInfo, foreign: ForeignThinking) -> HistoryRules:
    """What the API takes of a transcript (ai.google.dev/api/caching, "FunctionDeclaration", "name")."""
    return HistoryRules(
        origin=info.origin, foreign=foreign, names=NameRule(more=".:", longest=128), modalities=info.modalities
    )


class ContentWriter:
    """Writes messages.

    `signs`: calls must be signed, be it by the word that says why they are not. `media_results`: a function's response
    may hold pictures; else they follow in a content of their own.
    """

    __slots__ = ("media_results", "signs")

    def __init__(self, *, signs: bool, media_results: bool) -> None:
        self.signs = signs
        self.media_results = media_results

    def write(self, messages: Sequence[Visible]) -> bytes:
        """The contents with commas between them."""
        contents: list[dict[str, Any]] = []
        calls: dict[str, ToolCall] = {}
        responses: list[dict[str, Any]] = []
        shown: list[dict[str, Any]] = []
        for message in messages:
            if isinstance(message, ToolResultMessage):
                responses.append(self._response(message, calls.get(message.call_id), shown))
                continue
            _add_responses(contents, responses, shown)
            responses, shown = [], []
            if isinstance(message, AssistantMessage):
                calls = {call.id: call for call in message.calls}
                _add(contents, "model", self._reply(message))
            else:  # there is no role for instructions in between
                _add(contents, "user", _said(message.parts))
        _add_responses(contents, responses, shown)
        return b",".join([dumps(content) for content in contents])

    def _reply(self, message: AssistantMessage) -> list[dict[str, Any]]:
        """A reply's parts."""
        parts: list[dict[str, Any]] = []
        called = False
        for part in message.parts:
            match part:
                case Text():
                    parts += _text(part)
                case Thinking():
                    parts += _thought(part)
                case ToolCall():
                    parts.append(self._call(part, first=not called))
                    called = True
                case _:
                    pass
        return parts

    def _call(self, call: ToolCall, *, first: bool) -> dict[str, Any]:
        """A call. Only the first of several is signed (docs/thought-signatures, "Signatures in function call parts")."""
        own = call.opaque or {}
        fields = {"name": call.name, "args": msgspec.Raw(call.arguments.encode())}
        part: dict[str, Any] = {"functionCall": _with_id(call, fields)}
        if signature := own.get("thoughtSignature"):
            part["thoughtSignature"] = signature
        elif first and self.signs:
            part["thoughtSignature"] = SKIPPED
        return part

    def _response(
        self, message: ToolResultMessage, call: ToolCall | None, shown: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """A tool's answer: under `output`, or under `error` if it failed. What it cannot hold goes to `shown`."""
        text = "\n".join([part.text for part in message.parts if type(part) is Text and part.text])
        response: dict[str, Any] = {"name": call.name if call else message.tool_name}
        response["response"] = {"error" if message.is_error else "output": text}
        if call:
            response = _with_id(call, response)
        held: list[dict[str, Any]] = []
        apart: list[dict[str, Any]] = []
        for part in message.parts:
            if isinstance(part, Image | File):
                inline = inline_part(part) if self.media_results else None
                if inline is not None and inline["inlineData"]["mimeType"] in _IN_RESPONSES:
                    held.append(inline)
                else:
                    apart.append(media_part(part))
        if held:
            response["parts"] = held
        if apart:
            shown.append({"text": f"[what the tool {message.tool_name!r} returned beside text:]"})
            shown.extend(apart)
        return {"functionResponse": response}


def _text(part: Text) -> list[dict[str, Any]]:
    mark = mark_in(part.signature)
    if mark is None:
        return [{"text": part.text}] if part.text else []
    start = max(len(part.text) - mark.length, 0)
    ahead: list[dict[str, Any]] = [{"text": part.text[:start]}] if start else []
    return [*ahead, {"text": part.text[start:], "thoughtSignature": mark.signature}]


def _thought(part: Thinking) -> list[dict[str, Any]]:
    """A thought goes back only as far as it is signed."""
    opaque = opaque_part_in(part.signature)
    if opaque is not None:
        return [opaque]
    mark = mark_in(part.signature)
    if mark is None:
        return []
    text = part.text[max(len(part.text) - mark.length, 0) :]
    return [{"text": text, "thought": True, "thoughtSignature": mark.signature}]


def _said(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for part in parts:
        if isinstance(part, Text) and part.text:
            said.append({"text": part.text})
        elif isinstance(part, Image | File):
            said.append(media_part(part))
    return said


def _with_id(call: ToolCall, fields: dict[str, Any]) -> dict[str, Any]:
    """Ids go back where the server gave one; without them, calls and responses are matched by their order."""
    return {"id": call.id, **fields} if (call.opaque or {}).get("id") else fields


def _add_responses(
    contents: list[dict[str, Any]], responses: list[dict[str, Any]], shown: list[dict[str, Any]]
) -> None:
    _add(contents, "user", responses)
    _add(contents, "user", shown)


def _add(contents: list[dict[str, Any]], role: str, parts: list[dict[str, Any]]) -> None:
    """A content without parts is refused."""
    if parts:
        contents.append({"role": role, "parts": parts})
