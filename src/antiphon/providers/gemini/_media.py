"""Pictures and documents as parts of a content. Pure.

Shapes: ai.google.dev/api/caching, "Part", "Blob", "FileData"; ai.google.dev/gemini-api/docs/file-input-methods.
"""

import base64
import binascii
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from antiphon.types.content import File, Image

__all__ = ["inline_part", "media_part"]

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
    (b"ID3", "audio/mp3"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
# Not the system's table: the same transcript must give the same bytes on every machine.
_ENDINGS = {
    "csv": "text/csv",
    "gif": "image/gif",
    "heic": "image/heic",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mov": "video/quicktime",
    "mp3": "audio/mp3",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "png": "image/png",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webm": "video/webm",
    "webp": "image/webp",
}


def media_part(part: Image | File) -> dict[str, Any]:
    """The part: bytes inline; an address (of a file that was uploaded, or a public one) as it is."""
    inline = inline_part(part)
    if inline is not None:
        return inline
    media_type = part.media_type or _by_ending(_path(part.source))
    return {"fileData": {"fileUri": part.source, **({"mimeType": media_type} if media_type else {})}}


def inline_part(part: Image | File) -> dict[str, Any] | None:
    """The part with its bytes; `None` for an address."""
    source = part.source
    if source.startswith("data:"):
        head, _, data = source[5:].partition(",")
        named = part.media_type or head.partition(";")[0]
        if not head.endswith(";base64"):
            data = base64.b64encode(unquote_to_bytes(data)).decode()
    elif "://" in source[:32]:
        return None
    else:
        named, data = part.media_type, source
    return {"inlineData": {"mimeType": named or _guessed(part, data), "data": data}}


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _guessed(part: Image | File, data: str) -> str:
    """The media type, which the API wants to know: by the first bytes, by the name, else the usual one."""
    by_name = _by_ending(part.name or "") if isinstance(part, File) else None
    return _sniffed(data) or by_name or ("image/png" if isinstance(part, Image) else "application/pdf")


def _by_ending(name: str) -> str | None:
    return _ENDINGS.get(name.rpartition(".")[2].lower())


def _sniffed(data: str) -> str | None:
    """The media type of base64 text, from the signature that the data begins with."""
    start = "".join(data[:40].split())  # some encoders break lines
    try:
        head = base64.b64decode(start[: len(start) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return None
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    return next((media_type for magic, media_type in _MAGIC if head.startswith(magic)), None)
