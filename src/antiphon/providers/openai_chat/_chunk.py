"""A chunk of the stream, typed: only what is used, everything optional.

Shape: platform.openai.com/docs/api-reference/chat-streaming, "The chat completion chunk object". Decoding straight into
these structs is the fast road; `lenient` makes the same structs from whatever JSON a server really sent.
"""

from typing import Any, cast

from msgspec import Struct

from antiphon.providers.json_text import clean
from antiphon.providers.lenient import arguments_in, index_in, name_in, object_in, objects_in, raw_text_in
from antiphon.providers.openai_chat._details import said_in

__all__ = ["Choice", "Chunk", "Delta", "FirstChunk", "Fragment", "Function", "lenient", "whole_message"]


class Function(Struct, gc=False):
    """Name and arguments of a call, as far as this fragment has them. `None` is "not said", which "" is not."""

    name: str | None = None
    arguments: str | None = None


class Fragment(Struct, gc=False):
    """A piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    extra_content: Any = None


class Delta(Struct, gc=False):
    """What one chunk adds to the reply."""

    content: str | None = None
    tool_calls: list[Fragment] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_text: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    function_call: Function | None = None
    extra_content: dict[str, Any] | None = None


class Choice(Struct, gc=False):
    """One candidate reply. `message` is a whole reply, from servers that do not stream."""

    delta: Delta | None = None
    finish_reason: str | None = None
    index: int | None = None
    message: dict[str, Any] | None = None
    content_filter_results: Any = None
    error: Any = None


class Chunk(Struct, gc=False):
    """One chunk. Without `choices` it is looked at again, by `lenient`."""

    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    timings: dict[str, Any] | None = None
    x_groq: dict[str, Any] | None = None
    prompt_filter_results: Any = None


class FirstChunk(Chunk, gc=False):
    """A chunk with what is the same in all of them, read until it is known."""

    id: str | None = None
    model: str | None = None


def lenient(chunk: dict[str, Any]) -> FirstChunk:
    """The chunk that this object was meant to be: fields of the wrong type are put right or left out.

    Half characters are left in what grows (text, thought, arguments), as the other half may come in the next chunk.
    """
    return FirstChunk(
        choices=[_choice(item) for item in objects_in(chunk.get("choices"))],
        usage=object_in(clean(chunk.get("usage"))),
        error=_error(chunk),
        timings=object_in(clean(chunk.get("timings"))),
        x_groq=object_in(clean(chunk.get("x_groq"))),
        prompt_filter_results=clean(chunk.get("prompt_filter_results")),
        id=name_in(chunk.get("id")),
        model=name_in(chunk.get("model")),
    )


def whole_message(message: dict[str, Any]) -> Delta:
    """A whole reply as one delta. Its calls stand at their own places, whatever index they name."""
    delta = _delta(message)
    for place, fragment in enumerate(delta.tool_calls or ()):
        fragment.index = place
    return delta


def _error(chunk: dict[str, Any]) -> Any:
    """What a server says went wrong, in the shapes that are seen within streams; `None` if nothing is said.

    `{"error": ..}` (OpenAI, OpenRouter, Ollama), `{"object": "error", "message": ..}` (SGLang, Mistral, older vLLM),
    `{"detail": ..}` (FastAPI).
    """
    if chunk.get("error"):
        return chunk["error"]
    if not chunk.get("choices") and (str(chunk.get("object")).lower() == "error" or chunk.get("type") == "error"):
        return chunk
    return chunk.get("detail") if "choices" not in chunk and "usage" not in chunk else None


def _choice(choice: dict[str, Any]) -> Choice:
    delta = object_in(choice.get("delta"))
    if delta is None and isinstance(choice.get("text"), str):
        delta = {"content": choice["text"]}  # the shape of the older completions API
    return Choice(
        delta=_delta(delta) if delta is not None else None,
        finish_reason=name_in(choice.get("finish_reason")),
        index=index_in(choice.get("index")),
        message=object_in(choice.get("message")),
        content_filter_results=clean(choice.get("content_filter_results")),
        error=choice.get("error"),
    )


def _delta(delta: dict[str, Any]) -> Delta:
    content, thought = _content(delta.get("content"))
    calls: Any = delta.get("tool_calls")
    legacy = object_in(delta.get("function_call"))
    details = objects_in(clean(delta.get("reasoning_details")))
    return Delta(
        content=content,
        tool_calls=[_fragment(item) for item in objects_in([calls] if isinstance(calls, dict) else calls)] or None,
        reasoning_content=thought or raw_text_in(delta.get("reasoning_content")),
        reasoning=raw_text_in(delta.get("reasoning")),
        reasoning_text=raw_text_in(delta.get("reasoning_text")),
        reasoning_details=details or None,
        refusal=raw_text_in(delta.get("refusal")),
        function_call=_function(legacy) if legacy is not None else None,
        extra_content=object_in(clean(delta.get("extra_content"))),
    )


def _content(content: Any) -> tuple[str | None, str | None]:
    """Text and thought. A list of parts is Mistral's way to tell them apart (docs.mistral.ai, "Reasoning")."""
    if not isinstance(content, list):
        return raw_text_in(content), None
    texts: list[str] = []
    thoughts: list[str] = []
    for part in cast("list[Any]", content):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            piece = cast("dict[str, Any]", part)
            thought = piece.get("thinking")
            if isinstance(thought, list):
                thought = said_in(objects_in(cast("list[Any]", thought)))
            if isinstance(thought, str):
                thoughts.append(thought)
            elif isinstance(piece.get("text"), str):
                texts.append(piece["text"])
    return "".join(texts), "".join(thoughts)


def _fragment(call: dict[str, Any]) -> Fragment:
    function = object_in(call.get("function"))
    return Fragment(
        index=index_in(call.get("index")),
        id=name_in(call.get("id")),
        function=_function(function if function is not None else call),
        extra_content=clean(call.get("extra_content")),
    )


def _function(function: dict[str, Any]) -> Function:
    return Function(name_in(function.get("name")), arguments_in(function.get("arguments")))
