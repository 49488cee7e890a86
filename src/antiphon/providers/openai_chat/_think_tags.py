"""Thoughts that a server leaves in the text between tags: told as thoughts, wherever the pieces are cut.

Off unless a profile says so: servers that tell thoughts apart (vLLM's reasoning parsers, llama.cpp's `reasoning_format`)
do it by tokens, and better. Limits of doing it by text: only a block at the very beginning of a reply is a thought, so
that tags that are written about later stay text; the first closing tag ends it, also one that the thought only quotes;
white space around the block is dropped; a block that never closes is all thought.
"""

from antiphon.providers.openai_chat.profiles import ThinkTags
from antiphon.types.request import Delta, ThinkingChunk

__all__ = ["TagSplitter"]

_BEFORE, _INSIDE, _BEHIND, _PLAIN = range(4)


class TagSplitter:
    """Splits the text of one reply. `feed` gives the text that is none of a thought; thoughts go to `out`."""

    __slots__ = ("_held", "_place", "_tags", "_trims")

    def __init__(self, tags: ThinkTags) -> None:
        self._tags = tags
        self._place = _INSIDE if tags.opened else _BEFORE
        self._held = ""  # the beginning of what may become a tag
        self._trims = tags.opened  # white space is dropped until something else comes

    def feed(self, text: str, out: list[Delta]) -> str:
        """Take the next piece."""
        text, self._held = self._held + text, ""
        if self._place == _BEFORE:
            text = self._look_for_opening(text)
        if self._place == _INSIDE:
            text = self._think(text, out)
        if self._place == _BEHIND:
            text = text.lstrip()
            if text:
                self._place = _PLAIN
        return text if self._place == _PLAIN else ""

    def finish(self, out: list[Delta]) -> str:
        """The reply has ended: what was held back was no tag."""
        held, self._held = self._held, ""
        if self._place == _INSIDE:
            if held and not (self._trims and held.isspace()):
                out.append(ThinkingChunk(held))
            return ""
        return held

    def _look_for_opening(self, text: str) -> str:
        opening, lead = self._tags.opening, text.lstrip()
        if lead.startswith(opening):
            self._place, self._trims = _INSIDE, True
            return lead[len(opening) :]
        if opening.startswith(lead):
            self._held = text
            return ""
        self._place = _PLAIN
        return text

    def _think(self, text: str, out: list[Delta]) -> str:
        """What stands behind the thought, if it ends in this piece."""
        thought, closing, rest = text.partition(self._tags.closing)
        if closing:
            self._place = _BEHIND
        else:
            kept = _overlap(text, self._tags.closing)
            thought, self._held, rest = text[: len(text) - kept], text[len(text) - kept :], ""
        if self._trims:
            thought = thought.lstrip()
            self._trims = not thought
        if thought:
            out.append(ThinkingChunk(thought))
        return rest


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
