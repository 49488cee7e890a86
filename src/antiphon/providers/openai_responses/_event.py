"""An event of the stream, typed: only what is used, everything optional.

Shape: platform.openai.com/docs/api-reference/responses-streaming. Decoding straight into these structs is the fast road;
`lenient` makes the same structs from whatever JSON a server really sent.
"""

from typing import Any

from msgspec import Struct

from antiphon.providers.json_text import clean
from antiphon.providers.lenient import arguments_in, index_in, object_in, objects_in, raw_text_in, text_in

__all__ = ["Event", "Response", "lenient", "lenient_response"]


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
    response = object_in(event.get("response"))
    return Event(
        type=text_in(event.get("type")),
        delta=raw_text_in(event.get("delta")),
        output_index=index_in(event.get("output_index")),
        item_id=text_in(event.get("item_id")),
        content_index=index_in(event.get("content_index")),
        summary_index=index_in(event.get("summary_index")),
        text=text_in(event.get("text")),
        refusal=text_in(event.get("refusal")),
        arguments=arguments_in(event.get("arguments")),
        item=object_in(clean(event.get("item"))),
        part=object_in(clean(event.get("part"))),
        response=lenient_response(response) if response is not None else None,
        object=text_in(event.get("object")),
        error=event.get("error"),
    )


def lenient_response(response: dict[str, Any]) -> Response:
    """As `lenient`, for a response."""
    return Response(
        id=text_in(response.get("id")),
        model=text_in(response.get("model")),
        status=text_in(response.get("status")),
        error=response.get("error"),
        incomplete_details=object_in(response.get("incomplete_details")),
        output=objects_in(clean(response.get("output"))),
        usage=object_in(clean(response.get("usage"))),
    )
