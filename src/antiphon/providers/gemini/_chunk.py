"""A chunk of the stream, typed: only what is used, everything optional.

Shape: ai.google.dev/api/generate-content, "GenerateContentResponse". Decoding straight into these structs is the fast
road; `lenient` makes the same structs from whatever JSON a server really sent.
"""

from typing import Any, cast

import msgspec
from msgspec import Struct

from antiphon.providers.gemini._json import clean, dumps, whole_characters

__all__ = ["Call", "Candidate", "Chunk", "Content", "Part", "lenient"]


class Call(Struct, gc=False):
    """A function call. `args` is the JSON as it came, empty if there is none."""

    name: str | None = None
    args: msgspec.Raw = msgspec.Raw()
    id: str | None = None


class Part(Struct, gc=False, rename="camel"):
    """A part: text, thought, or call; or of a tool that the server runs itself; or data."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: Call | None = None
    executable_code: dict[str, Any] | None = None
    code_execution_result: dict[str, Any] | None = None
    tool_call: dict[str, Any] | None = None
    tool_response: dict[str, Any] | None = None
    inline_data: dict[str, Any] | None = None
    file_data: dict[str, Any] | None = None


class Content(Struct, gc=False):
    parts: list[Part] | None = None


class Candidate(Struct, gc=False, rename="camel"):
    """One candidate reply."""

    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = None


class Chunk(Struct, gc=False, rename="camel"):
    """One chunk."""

    candidates: list[Candidate] | None = None
    usage_metadata: dict[str, Any] | None = None
    prompt_feedback: dict[str, Any] | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: Any = None


def lenient(chunk: dict[str, Any]) -> Chunk:
    """The chunk that this object was meant to be: fields of the wrong type are put right or left out."""
    known = cast("dict[str, Any]", clean(chunk))
    return Chunk(
        candidates=[_candidate(item) for item in _objects(known.get("candidates"))],
        usage_metadata=_object(known.get("usageMetadata")),
        prompt_feedback=_object(known.get("promptFeedback")),
        model_version=_text(known.get("modelVersion")),
        response_id=_text(known.get("responseId")),
        error=known.get("error"),
    )


def _candidate(candidate: dict[str, Any]) -> Candidate:
    content = _object(candidate.get("content"))
    index = candidate.get("index")
    return Candidate(
        content=Content(parts=[_part(item) for item in _objects(content.get("parts"))]) if content else None,
        finish_reason=_text(candidate.get("finishReason")),
        finish_message=_text(candidate.get("finishMessage")),
        index=index if isinstance(index, int) else None,
    )


def _part(part: dict[str, Any]) -> Part:
    call = _object(part.get("functionCall"))
    return Part(
        text=_text(part.get("text")),
        thought=part.get("thought") is True,
        thought_signature=_text(part.get("thoughtSignature")),
        function_call=_call(call) if call is not None else None,
        executable_code=_object(part.get("executableCode")),
        code_execution_result=_object(part.get("codeExecutionResult")),
        tool_call=_object(part.get("toolCall")),
        tool_response=_object(part.get("toolResponse")),
        inline_data=_object(part.get("inlineData")),
        file_data=_object(part.get("fileData")),
    )


def _call(call: dict[str, Any]) -> Call:
    """A call whose arguments are text has them as they are: it may be JSON, and the one who runs it finds out."""
    args = call.get("args")
    return Call(
        name=_text(call.get("name")),
        args=msgspec.Raw(args.encode() if isinstance(args, str) else dumps(args) if args is not None else b""),
        id=_text(call.get("id")),
    )


def _text(value: Any) -> str | None:
    return whole_characters(value) if isinstance(value, str) else None


def _object(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
