"""Parts of a message as the Responses API wants them. Pure.

Shapes: platform.openai.com/docs/api-reference/responses/create, "input": `input_text`, `input_image`, `input_file`; the
same in the output of a function (docs/guides/function-calling, "Formatting results").
"""

import base64
import binascii
from typing import Any

from antiphon.types.content import File, Image, Part, Text

__all__ = ["content_of", "output_of"]

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"%PDF", "application/pdf"),
)
_URLS = ("http://", "https://")


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
            url = _data_url(part.source, part.media_type, "image/png")
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case File() if part.source.startswith(_URLS):
            return {"type": "input_file", "file_url": part.source}  # a name beside it is refused
        case File():
            data = _data_url(part.source, part.media_type, "application/pdf")
            return {"type": "input_file", "filename": part.name or "file", "file_data": data}
        case _:
            return None


def _data_url(source: str, media_type: str | None, otherwise: str) -> str:
    """A URL or a data URL as it is; base64 text as a data URL, its media type read off the first bytes if not given."""
    if source.startswith((*_URLS, "data:")):
        return source
    return f"data:{media_type or _sniffed(source) or otherwise};base64,{source}"


def _sniffed(source: str) -> str | None:
    """The media type of base64 text, from the signature that the data begins with."""
    start = "".join(source[:40].split())  # some encoders break lines
    try:
        head = base64.b64decode(start[: len(start) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return None
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for magic, media_type in _MAGIC if head.startswith(magic)), None)
