"""Pictures and documents as parts carry them: addresses, data URLs (RFC 2397), base64 text. Pure."""

import base64
import binascii
from urllib.parse import unquote_to_bytes, urlsplit

from antiphon.types.content import File, Image

__all__ = ["by_ending", "data_url", "is_url", "named", "sniffed", "unpacked"]

_WEB = ("http://", "https://")
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
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


def is_url(source: str) -> bool:
    """Whether the source is an address on the web."""
    return source.startswith(_WEB)


def data_url(source: str, media_type: str | None, otherwise: str) -> str:
    """A URL or a data URL as it is; base64 text as a data URL, its media type read off the first bytes if not given."""
    if source.startswith((*_WEB, "data:")):
        return source
    return f"data:{media_type or sniffed(source) or otherwise};base64,{source}"


def unpacked(source: str) -> tuple[str | None, str]:
    """Media type and base64 text of a data URL or of plain base64 text."""
    if not source.startswith("data:"):
        return None, "".join(source.split())
    head, _, data = source[5:].partition(",")
    kind, *options = head.split(";")
    if "base64" in options:
        return kind or None, "".join(data.split())
    return kind or None, base64.b64encode(unquote_to_bytes(data)).decode()


def sniffed(data: str) -> str | None:
    """The media type of base64 text, from the signature that the data begins with."""
    start = "".join(data[:40].split())  # some encoders break lines
    try:
        head = base64.b64decode(start[: len(start) // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return None
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)


def by_ending(name: str) -> str | None:
    """The media type that the name of a file, or the path of an address, ends in."""
    if "://" in name[:32]:
        try:
            name = urlsplit(name).path
        except ValueError:
            return None
    return _ENDINGS.get(name.rpartition(".")[2].lower())


def named(part: Image | File, kind: str | None = None) -> str:
    """What a note calls the part: what it is, its name, its media type."""
    name = part.name if isinstance(part, File) else None
    return " ".join(filter(None, ("image" if isinstance(part, Image) else "file", name, kind or part.media_type)))
