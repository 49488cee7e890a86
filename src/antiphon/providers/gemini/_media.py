"""Pictures and documents as parts of a content. Pure.

Shapes: ai.google.dev/api/caching, "Part", "Blob", "FileData"; ai.google.dev/gemini-api/docs/file-input-methods.
"""

from typing import Any

from antiphon.providers.media import by_ending, sniffed, unpacked
from antiphon.types.content import File, Image

__all__ = ["inline_part", "media_part"]


def media_part(part: Image | File) -> dict[str, Any]:
    """The part: bytes inline; an address (of a file that was uploaded, or a public one) as it is."""
    inline = inline_part(part)
    if inline is not None:
        return inline
    media_type = part.media_type or by_ending(part.source)
    return {"fileData": {"fileUri": part.source, **({"mimeType": media_type} if media_type else {})}}


def inline_part(part: Image | File) -> dict[str, Any] | None:
    """The part with its bytes; `None` for an address."""
    if not part.source.startswith("data:") and "://" in part.source[:32]:
        return None
    declared, data = unpacked(part.source)
    return {"inlineData": {"mimeType": part.media_type or declared or _guessed(part, data), "data": data}}


def _guessed(part: Image | File, data: str) -> str:
    """The media type, which the API wants to know: by the first bytes, by the name, else the usual one."""
    by_name = by_ending(part.name or "") if isinstance(part, File) else None
    return sniffed(data) or by_name or ("image/png" if isinstance(part, Image) else "application/pdf")
