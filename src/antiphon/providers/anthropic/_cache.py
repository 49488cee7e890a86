"""Cache marks: up to where a server should keep a prompt for the next request. Pure.

platform.claude.com/docs/en/build-with-claude/prompt-caching: a `cache_control` on a block keeps everything up to it (tools,
then system, then messages); at most four; a request looks for what is kept at its marks and at the twenty blocks before
each; `ttl` "5m", or "1h" at a price.

Marks are put into bytes that are made already, so that a message is the same bytes with and without, and in every request.
Four places: the last tool, the end of the system prompt, the end of the request, and the end of the request before this
one, where the mark of that request was: a turn of more than twenty blocks is found again too.
"""

from collections.abc import Sequence

from antiphon.providers.anthropic._messages import ASSISTANT, USER
from antiphon.types.request import ModelSettings

__all__ = ["mark_for", "marked_list", "marked_messages"]

_END = b"}]}"  # of a message: its last block, its content, itself


def mark_for(settings: ModelSettings) -> bytes:
    """The mark that the settings ask for: short unless they say otherwise, nothing for none."""
    if settings.cache == "none":
        return b""
    ttl = b',"ttl":"1h"' if settings.cache == "long" else b""
    return b',"cache_control":{"type":"ephemeral"' + ttl + b"}"


def marked_list(objects: bytes, mark: bytes) -> bytes:
    """A JSON array of objects with a mark on the last of them."""
    return objects[:-2] + mark + objects[-2:] if mark and objects[-2:] == b"}]" else objects


def marked_messages(pieces: Sequence[bytes], mark: bytes) -> Sequence[bytes | memoryview]:
    """Messages with marks at the end of this request and of the one before, which went as far as the last reply."""
    if not mark:
        return pieces
    joined = b"".join(pieces)
    places: list[int] = []
    reply = joined.rfind(ASSISTANT)
    for end in (reply - 1, len(joined)):  # before a reply stands a comma
        last = joined.rfind(b"\n", 0, max(end, 0))
        if last >= 0 and joined.startswith(USER, last) and joined.endswith(_END, last, end):
            places.append(end - len(_END))
    marked: list[bytes | memoryview] = []
    view, begin = memoryview(joined), 0
    for place in places:
        marked += (view[begin:place], mark)
        begin = place
    marked.append(view[begin:])
    return marked
