"""Characters that a server cut in two: JSON may escape the halves apart, one in a chunk and one in the next."""

from msgspec.structs import replace

from antiphon.providers.json_text import cut_half
from antiphon.types.request import CallChunk, Delta, TextChunk, ThinkingChunk

__all__ = ["Halves"]


class Halves:
    """Keeps the first half of a character until the second comes, for the text, the thought and each call apart."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[object, str] = {}

    def __bool__(self) -> bool:
        return bool(self._held)

    def mend(self, deltas: list[Delta]) -> list[Delta]:
        """The deltas with whole characters; a half that stands alone becomes U+FFFD."""
        mended: list[Delta] = []
        for delta in deltas:
            match delta:
                case TextChunk(text=text):
                    whole = self._whole(TextChunk, text)
                    if whole or delta.signature:
                        mended.append(delta if whole == text else replace(delta, text=whole))
                case ThinkingChunk(text=text):
                    whole = self._whole(ThinkingChunk, text)
                    if whole or delta.signature:
                        mended.append(delta if whole == text else replace(delta, text=whole))
                case CallChunk(arguments=text):
                    whole = self._whole(delta.key, text)
                    mended.append(delta if whole == text else replace(delta, arguments=whole))
                case _:
                    mended.append(delta)
        return mended

    def flush(self) -> list[Delta]:
        """No second half will come."""
        channels = list(self._held)
        self._held.clear()
        return [_alone(channel) for channel in channels]

    def _whole(self, channel: object, text: str) -> str:
        if not text:
            return text
        whole, half = cut_half(self._held.pop(channel, "") + text)
        if half:
            self._held[channel] = half
        return whole


def _alone(channel: object) -> Delta:
    if isinstance(channel, int):
        return CallChunk(channel, "", "", "\ufffd")
    return TextChunk("\ufffd") if channel is TextChunk else ThinkingChunk("\ufffd")
