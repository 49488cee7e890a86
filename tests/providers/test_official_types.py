"""What we send, and what we recorded, held against the types of the vendors' own libraries.

The pages of the dialects are ours: a field that we misspell is misspelt in the page as well. The vendors write the types
of their libraries from the same description as their servers, so that these are a second witness. OpenRouter publishes
none; its page is not asked here.
"""

import copy
import json
from functools import cache
from types import GenericAlias
from typing import Any

import pytest
from pydantic import ConfigDict, TypeAdapter, create_model
from pydantic_core import SchemaValidator, ValidationError

from .dialect_pages import page

NAMES = ("openai_chat", "openai_responses", "anthropic", "gemini")
BODIES = [(name, title) for name in NAMES for title in page(name)["requests"]]

# `extra_body` goes out as the caller wrote it. Google's API has no such field; the conversation sends the same to all.
OF_THE_CALLER = {("gemini", "settings"): {"metadata: extra_forbidden"}}


def types_of(name: str) -> tuple[Any, Any]:
    """The types of a body and of one event of the reply. Imported here: the libraries take a second that only this file pays."""
    match name:
        case "openai_chat":
            from openai.types.chat import ChatCompletionChunk
            from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming

            return CompletionCreateParamsStreaming, ChatCompletionChunk
        case "openai_responses":
            from openai.types.responses import ResponseStreamEvent
            from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

            return ResponseCreateParamsStreaming, ResponseStreamEvent
        case "anthropic":
            from anthropic.types import RawMessageStreamEvent
            from anthropic.types.message_create_params import MessageCreateParamsStreaming

            return MessageCreateParamsStreaming, RawMessageStreamEvent
        case _:
            return google_types()


def google_types() -> tuple[Any, Any]:
    """Google's library flattens the body into arguments; its parts are types of their own, put together as REST has them."""
    from google.genai import types

    body = create_model(
        "Body",
        __config__=ConfigDict(extra="forbid"),
        contents=(list[types.Content], ...),
        systemInstruction=(types.Content, None),
        tools=(list[types.Tool], None),
        toolConfig=(types.ToolConfig, None),
        generationConfig=(types.GenerationConfig, None),
    )
    return body, types.GenerateContentResponse


def closed(schema: Any) -> Any:
    """A core schema that takes no unknown field, and that reads what is typed `Iterable` at once rather than when asked."""
    if isinstance(schema, list | tuple):
        return type(schema)(closed(each) for each in schema)
    if not isinstance(schema, dict):
        return schema
    kept = {key: closed(value) for key, value in schema.items()}
    if kept.get("type") == "generator":
        kept["type"] = "list"
    if kept.get("type") in ("typed-dict", "model-fields"):
        kept.pop("extras_schema", None)
        kept["extra_behavior"] = "forbid"
    return kept


@cache
def validators(name: str) -> tuple[SchemaValidator, SchemaValidator]:
    body, event = types_of(name)
    return validator(body), validator(event)


def validator(kind: Any) -> SchemaValidator:
    # In a list, for alone the libraries' models put off building their schema.
    several: Any = GenericAlias(list, (kind,))
    return SchemaValidator(closed(TypeAdapter(several).core_schema))


def complaints(asked: SchemaValidator, value: Any, *, strict: bool) -> set[str]:
    """Each complaint as "path: kind". Of a union of tagged types, only those of the type that the tag names."""
    try:
        asked.validate_json(json.dumps([value]), strict=strict)
    except ValidationError as error:
        found = [(each["loc"], each["type"]) for each in error.errors()]
    else:
        return set()
    others = {place[:-1] for place, kind in found if kind == "literal_error" and place[-1] in ("type", "role")}
    meant = [
        (place, kind) for place, kind in found if not any(place[:end] in others for end in range(1, len(place) + 1))
    ]
    return {f"{'.'.join(map(str, place[1:]))}: {kind}" for place, kind in meant or found}


def of_body(name: str, body: dict[str, Any]) -> set[str]:
    # Google's models look at the parsed dict first, after which strictness would refuse an enum's text. Of an enum's
    # unknown value they only warn, which is an error in these tests.
    return complaints(validators(name)[0], body, strict=name != "gemini")


@pytest.mark.parametrize(("name", "title"), BODIES)
def test_the_vendors_types_accept_each_body(name: str, title: str) -> None:
    """Every field is known, every required one is there, every value is of its type."""
    assert of_body(name, page(name)["requests"][title]) == OF_THE_CALLER.get((name, title), set())


@pytest.mark.parametrize("name", NAMES)
def test_the_vendors_types_accept_the_recorded_reply(name: str) -> None:
    """A decoder that reads a reply that no server would send has proven nothing."""
    found: dict[str, set[str]] = {}
    for event in page(name)["reply"]:
        if said := complaints(validators(name)[1], event, strict=name != "gemini"):
            found.setdefault(event.get("type", ""), set()).update(said)
    assert found == {}


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_field_is_found_at_any_depth(name: str) -> None:
    """The libraries' types let unknown fields pass by themselves; the tests above would then find no misspelt one."""
    good = page(name)["requests"]["calls"]
    turns = next(key for key in ("messages", "input", "contents") if key in good)
    for path in ((), (turns, 0), ("tools", 0)):
        body = copy.deepcopy(good)
        inner: Any = body
        for step in path:
            inner = inner[step]
        inner["nowhere"] = 1
        assert any("nowhere: extra_forbidden" in each for each in of_body(name, body)), path
