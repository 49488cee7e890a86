"""Parts of a message as the API's content blocks. Pure.

Shapes: platform.claude.com/docs/en/api/messages/create, "messages"; build-with-claude/vision ("Base64-encoded image",
"URL-based image": jpeg, png, gif and webp); build-with-claude/pdf-support; build-with-claude/citations ("Plain text
documents"). Empty text is refused ("text content blocks must be non-empty", "must contain non-whitespace text").
"""

import base64
import binascii
from typing import Any

from antiphon.providers.media import by_ending, is_url, named, sniffed, unpacked
from antiphon.types.content import File, Image, Part, Text

__all__ = ["blocks_of", "text_block"]

_PICTURES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"
_MAX_TITLE = 500


def blocks_of(parts: tuple[Part, ...]) -> list[dict[str, Any]]:
    """The parts that say something to a model; a note stands for what the API does not take."""
    blocks = [_block(part) for part in parts]
    return [block for block in blocks if block is not None]


def text_block(text: str) -> dict[str, Any] | None:
    """A text block, `None` for text without anything in it."""
    return {"type": "text", "text": text} if text and not text.isspace() else None


def _block(part: Part) -> dict[str, Any] | None:
    match part:
        case Text(text=text):
            return text_block(text)
        case Image(source=source) if is_url(source):
            return {"type": "image", "source": {"type": "url", "url": source}}
        case File(source=source) if is_url(source):
            return _linked(part, source)
        case Image() | File():
            return _carried(part)
        case _:  # thinking and calls are a model's; what this version does not know is not for models
            return None


def _linked(file: File, url: str) -> dict[str, Any] | None:
    """A file that the server fetches: a picture or a PDF, nothing else."""
    if file.media_type in _PICTURES:
        return {"type": "image", "source": {"type": "url", "url": url}}
    if file.media_type == _PDF or (not file.media_type and by_ending(url) == _PDF):
        return _document(file, {"type": "url", "url": url})
    return text_block(f"[{named(file)} at {url}: not shown, only PDF is fetched]")


def _carried(part: Image | File) -> dict[str, Any] | None:
    """A picture or a document whose bytes are in the request."""
    declared, data = unpacked(part.source)
    # What the bytes say of themselves beats what they were called: the API refuses a picture under a wrong type.
    kind = sniffed(data) or part.media_type or declared
    kind = "image/jpeg" if kind == "image/jpg" else kind
    if isinstance(part, Image):
        kind = kind or "image/png"
    if kind in _PICTURES:
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    if kind == _PDF:
        return _document(part, {"type": "base64", "media_type": _PDF, "data": data})
    text = _readable(data) if isinstance(part, File) else None
    if text is None:
        return text_block(f"[{named(part, kind)}: not shown, the model takes none of this kind]")
    return _document(part, {"type": "text", "media_type": "text/plain", "data": text})


def _document(part: Image | File, source: dict[str, Any]) -> dict[str, Any]:
    name = part.name if isinstance(part, File) else None
    document: dict[str, Any] = {"type": "document", "source": source}
    return {**document, "title": name[:_MAX_TITLE]} if name else document


def _readable(data: str) -> str | None:
    """Base64 text as the text that it stands for, `None` if it is none."""
    try:
        text = base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return text if "\0" not in text and not text.isspace() and text else None
