"""Parts of a message as the Responses API wants them. Pure.

Shapes: platform.openai.com/docs/api-reference/responses/create, "input": `input_text`, `input_image`, `input_file`; the
same in the output of a function (docs/guides/function-calling, "Formatting results").
"""

from typing import Any

from antiphon.providers.media import data_url, is_url
from antiphon.types.content import File, Image, Part, Text

__all__ = ["content_of", "output_of"]


def content_of(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    """The parts that say something; thinking and calls are a model's, and what this version does not know is for none."""
    shown = [_shown(part) for part in parts]
    return [item for item in shown if item is not None]


def output_of(parts: tuple[Part, ...]) -> str | list[dict[str, Any]]:
    """What a tool gave: plain text where there is nothing else, its texts apart by a line end."""
    shown = content_of(parts)
    if all(item["type"] == "input_text" for item in shown):
        return "\n".join([item["text"] for item in shown])
    return shown


def _shown(part: Part) -> dict[str, Any] | None:
    match part:
        case Text():
            return {"type": "input_text", "text": part.text} if part.text else None
        case Image():
            url = data_url(part.source, part.media_type, "image/png")
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case File() if is_url(part.source):
            return {"type": "input_file", "file_url": part.source}  # a name beside it is refused
        case File():
            data = data_url(part.source, part.media_type, "application/pdf")
            return {"type": "input_file", "filename": part.name or "file", "file_data": data}
        case _:
            return None
