"""Parts of a message as Chat Completions wants them. Pure.

Shapes: platform.openai.com/docs/api-reference/chat/create, "messages": `text`, `image_url`, `input_audio`, `file`.
"""

import base64
import binascii
from typing import Any

from antiphon.providers.openai_chat.profiles import Profile
from antiphon.types.content import File, Image, Part, Text

__all__ = ["content_of", "data_url", "joined_text", "note", "shown_parts"]

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"%PDF", "application/pdf"),
)
_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def content_of(parts: tuple[Part, ...], profile: Profile) -> str | list[dict[str, Any]]:
    """The content of a user message: plain text where there is nothing else, since every server takes that."""
    shown = shown_parts(parts, profile)
    if all(item["type"] == "text" for item in shown):
        return "\n".join([item["text"] for item in shown])
    return shown


def shown_parts(parts: tuple[Part, ...], profile: Profile) -> list[dict[str, Any]]:
    """The parts that say something, as content parts; a note stands for what the server does not take."""
    shown = [_shown(part, profile) for part in parts]
    return [item for item in shown if item is not None]


def joined_text(parts: tuple[Part, ...]) -> str:
    """All text of a message that may have text alone; texts that were given apart stay apart by a line end."""
    return "\n".join([part.text for part in parts if type(part) is Text and part.text])


def data_url(source: str, media_type: str | None, otherwise: str) -> str:
    """A URL or a data URL as it is; base64 text as a data URL, its media type read off the first bytes if not given."""
    if source.startswith(("http://", "https://", "data:")):
        return source
    return f"data:{media_type or _sniffed(source) or otherwise};base64,{source}"


def note(part: Part, profile: Profile) -> str:
    """A place holder: the model is told that there is something it does not see, rather than nothing."""
    name, kind = getattr(part, "name", None), getattr(part, "media_type", None)
    what = " ".join(filter(None, ("image" if type(part) is Image else "file", name, kind)))
    return f"[{what}: not shown, {profile.name} takes none here]"


def _shown(part: Part, profile: Profile) -> dict[str, Any] | None:
    match part:
        case Text():
            return {"type": "text", "text": part.text} if part.text else None
        case Image() if profile.images:
            return {"type": "image_url", "image_url": {"url": data_url(part.source, part.media_type, "image/png")}}
        case File() if profile.files:
            return _file(part)
        case Image() | File():
            return {"type": "text", "text": note(part, profile)}
        case _:  # thinking and calls are a model's; what this version does not know is not for models
            return None


def _file(file: File) -> dict[str, Any]:
    sound = _SOUNDS.get(file.media_type or "")
    if sound and not file.source.startswith(("http://", "https://")):
        data = file.source.partition(",")[2] if file.source.startswith("data:") else file.source
        return {"type": "input_audio", "input_audio": {"data": data, "format": sound}}
    url = data_url(file.source, file.media_type, "application/pdf")
    return {"type": "file", "file": {"filename": file.name or "file", "file_data": url}}


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
