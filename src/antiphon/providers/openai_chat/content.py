"""Parts of a message as Chat Completions wants them. Pure.

Shapes: platform.openai.com/docs/api-reference/chat/create, "messages": `text`, `image_url`, `input_audio`, `file`.
"""

from typing import Any

from antiphon.providers.media import data_url, is_url, named, unpacked
from antiphon.providers.openai_chat.profiles import Profile
from antiphon.types.content import File, Image, Part, Text

__all__ = ["content_of", "joined_text", "note", "shown_parts"]

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


def note(part: Part, profile: Profile) -> str:
    """A place holder: the model is told that there is something it does not see, rather than nothing."""
    what = named(part) if isinstance(part, Image | File) else "part"
    return f"[{what}: not shown, {profile.name} takes none here]"


def _shown(part: Part, profile: Profile) -> dict[str, Any] | None:
    match part:
        case Text():
            return {"type": "text", "text": part.text} if part.text else None
        case Image() if profile.images:
            return {"type": "image_url", "image_url": {"url": data_url(part.source, part.media_type, "image/png")}}
        case File() if profile.files and (profile.file_urls or not is_url(part.source)):
            return _file(part)
        case Image() | File():
            return {"type": "text", "text": note(part, profile)}
        case _:  # thinking and calls are a model's; what this version does not know is not for models
            return None


def _file(file: File) -> dict[str, Any]:
    sound = _SOUNDS.get(file.media_type or "")
    if sound and not is_url(file.source):
        return {"type": "input_audio", "input_audio": {"data": unpacked(file.source)[1], "format": sound}}
    url = data_url(file.source, file.media_type, "application/pdf")
    return {"type": "file", "file": {"filename": file.name or "file", "file_data": url}}
