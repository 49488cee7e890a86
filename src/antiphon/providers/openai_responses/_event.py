"""An event of the stream, typed: only what is used, everything optional.

Shape: platform.openai.com/docs/api-reference/responses-streaming. Decoding straight into these structs is the fast road;
`lenient` makes the same structs from whatever JSON a server really sent.
"""

from typing import Any, cast

from msgspec import Struct

from antiphon.providers.openai_responses._json import clean, dumps, whole_characters

__all__ = ["Event", "Response", "lenient", "lenient_response", "objects", "text_in"]


class Response(Struct, gc=False):
    """The response as far as an event tells it. The terminal events tell it whole."""

    id: str | None = None
    model: str | None = None
    status: str | None = None
    error: Any = None
    incomplete_details: dict[str, Any] | None = None
    output: list[dict[str, Any]] | None = None
    usage: dict[str, Any] | None = None


class Event(Struct, gc=False):
    """One event. Which fields it has depends on its type; `object` is "response" for a whole reply, not streamed."""

    type: str | None = None
    delta: str | None = None
    output_index: int | None = None
    item_id: str | None = None
    content_index: int | None = None
    summary_index: int | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    item: dict[str, Any] | None = None
    part: dict[str, Any] | None = None
    response: Response | None = None
    object: str | None = None
    error: Any = None


def lenient(event: dict[str, Any]) -> Event:
    """The event that this object was meant to be: fields of the wrong type are put right or left out.

    Half characters are left in `delta`, as the other half may come in the next event.
    """
    response = event.get("response")
    return Event(
        type=_text(event.get("type")),
        delta=text_in(event.get("delta")),
        output_index=_index(event.get("output_index")),
        item_id=_text(event.get("item_id")),
        content_index=_index(event.get("content_index")),
        summary_index=_index(event.get("summary_index")),
        text=_text(event.get("text")),
        refusal=_text(event.get("refusal")),
        arguments=arguments_text(event.get("arguments")),
        item=_object(clean(event.get("item"))),
        part=_object(clean(event.get("part"))),
        response=lenient_response(cast("dict[str, Any]", response)) if isinstance(response, dict) else None,
        object=_text(event.get("object")),
        error=event.get("error"),
    )


def lenient_response(response: dict[str, Any]) -> Response:
    """As `lenient`, for a response."""
    return Response(
        id=_text(response.get("id")),
        model=_text(response.get("model")),
        status=_text(response.get("status")),
        error=response.get("error"),
        incomplete_details=_object(response.get("incomplete_details")),
        output=objects(clean(response.get("output"))),
        usage=_object(clean(response.get("usage"))),
    )


def arguments_text(value: Any) -> str | None:
    """The JSON text of a call's arguments; an object where text belongs is encoded once."""
    if value is None or isinstance(value, str):
        return _text(value)
    return dumps(value).decode()


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in what should be a list of them."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def text_in(value: Any) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def _text(value: Any) -> str | None:
    return whole_characters(value) if isinstance(value, str) else None


def _index(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31:
        return value
    return None


def _object(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
