"""A chunk of the stream, typed: only what is used, everything optional.

Shape: ai.google.dev/api/generate-content, "GenerateContentResponse". Decoding straight into these structs is the fast
road; `lenient` makes the same structs from whatever JSON a server really sent.
"""

from typing import Any, cast

import msgspec
from msgspec import Struct

from antiphon.providers.json_text import clean
from antiphon.providers.lenient import arguments_in, object_in, objects_in, text_in

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
        candidates=[_candidate(item) for item in objects_in(known.get("candidates"))],
        usage_metadata=object_in(known.get("usageMetadata")),
        prompt_feedback=object_in(known.get("promptFeedback")),
        model_version=text_in(known.get("modelVersion")),
        response_id=text_in(known.get("responseId")),
        error=known.get("error"),
    )


def _candidate(candidate: dict[str, Any]) -> Candidate:
    content = object_in(candidate.get("content"))
    index = candidate.get("index")
    return Candidate(
        content=Content(parts=[_part(item) for item in objects_in(content.get("parts"))]) if content else None,
        finish_reason=text_in(candidate.get("finishReason")),
        finish_message=text_in(candidate.get("finishMessage")),
        index=index if isinstance(index, int) else None,
    )


def _part(part: dict[str, Any]) -> Part:
    call = object_in(part.get("functionCall"))
    return Part(
        text=text_in(part.get("text")),
        thought=part.get("thought") is True,
        thought_signature=text_in(part.get("thoughtSignature")),
        function_call=_call(call) if call is not None else None,
        executable_code=object_in(part.get("executableCode")),
        code_execution_result=object_in(part.get("codeExecutionResult")),
        tool_call=object_in(part.get("toolCall")),
        tool_response=object_in(part.get("toolResponse")),
        inline_data=object_in(part.get("inlineData")),
        file_data=object_in(part.get("fileData")),
    )


def _call(call: dict[str, Any]) -> Call:
    """A call whose arguments are text has them as they are: it may be JSON, and the one who runs it finds out."""
    return Call(
        name=text_in(call.get("name")),
        args=msgspec.Raw((arguments_in(call.get("args")) or "").encode()),
        id=text_in(call.get("id")),
    )
