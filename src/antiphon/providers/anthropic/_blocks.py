"""The blocks of a reply as they grow: which one a piece belongs to, and what it tells.

Shapes: platform.claude.com/docs/en/build-with-claude/streaming, "Content block delta types"; the blocks of a message in
api/messages/create. Blocks may grow in turns, so that each piece goes to the block of its index.
"""

from typing import Any, Literal

from antiphon.providers.anthropic._events import Change
from antiphon.providers.json_text import cut_half, dumps, whole_characters
from antiphon.providers.lenient import name_in, raw_text_in
from antiphon.types.request import CallChunk, Delta, TextChunk, ThinkingChunk

__all__ = ["Block", "Blocks"]

Kind = Literal["text", "thinking", "call", "unknown"]


class Block:
    """A block that is open. `half`: the first half of a character whose second half may come in the next piece."""

    __slots__ = ("given", "half", "key", "kind", "signature")

    def __init__(self, kind: Kind, key: int = -1) -> None:
        self.kind: Kind = kind
        self.key = key  # of a call: its place among the calls
        self.given = ""  # of a call: arguments that came with its beginning, unless pieces follow
        self.half = ""
        self.signature: list[str] = []


class Blocks:
    """Routes the pieces of one reply. A piece without an index goes to the block that began last."""

    __slots__ = ("_last", "_open", "calls")

    def __init__(self) -> None:
        self._open: dict[int, Block] = {}
        self._last = -1
        self.calls = 0

    def __bool__(self) -> bool:
        return self._last >= 0

    def find(self, index: int | None) -> Block | None:
        """The open block at this index."""
        return self._open.get(self._last if index is None else index)

    def start(self, index: int | None, content: dict[str, Any], out: list[Delta]) -> Block:
        """A block begins, perhaps with something in it already."""
        block = self._opened(content, out)
        place = self._last + 1 if index is None else index
        if place in self._open:
            self.stop(place, out)
        self._open[place] = block
        self._last = place
        return block

    def implied(self, index: int | None, change: Change) -> Block | None:
        """A block for text or a thought whose beginning was not told; a call without a name is none."""
        kind: Kind | None = "text" if change.text else "thinking" if change.thinking or change.signature else None
        if kind is None:
            return None
        self._last = max(self._last, 0) if index is None else index
        block = self._open[self._last] = Block(kind)
        return block

    def grow(self, block: Block, change: Change, out: list[Delta]) -> None:
        """A piece of a block. What an unknown block says is not told."""
        if block.kind == "unknown":
            return
        if change.text:
            _tell(block, "text", change.text, out)
        elif change.thinking:
            _tell(block, "thinking", change.thinking, out)
        elif change.partial_json and block.kind == "call":
            block.given = ""
            _tell(block, "call", change.partial_json, out)
        if change.signature:
            block.signature.append(change.signature)

    def stop(self, index: int | None, out: list[Delta]) -> None:
        """A block ends: what was kept back is told."""
        block = self._open.pop(self._last if index is None else index, None)
        if block is not None:
            _close(block, out)

    def close_all(self, out: list[Delta]) -> None:
        """The reply has ended: nothing is open any more."""
        for _, block in sorted(self._open.items()):
            _close(block, out)
        self._open.clear()

    def _opened(self, content: dict[str, Any], out: list[Delta]) -> Block:
        match content.get("type"):
            case "text":
                block = Block("text")
                _tell(block, "text", raw_text_in(content.get("text")) or "", out)
            case "thinking":
                block = Block("thinking")
                _tell(block, "thinking", raw_text_in(content.get("thinking")) or "", out)
                block.signature.append(raw_text_in(content.get("signature")) or "")
            case "redacted_thinking":
                block = Block("thinking")
                if data := name_in(content.get("data")):
                    out.append(ThinkingChunk("", data, redacted=True))
            case "tool_use":
                block = Block("call", self.calls)
                self.calls += 1
                block.given = _arguments(content.get("input"))
                out.append(CallChunk(block.key, name_in(content.get("id")) or "", name_in(content.get("name")) or ""))
            case _:
                block = Block("unknown")
        return block


def _tell(block: Block, kind: Kind, text: str, out: list[Delta]) -> None:
    """A piece of text, thought or arguments, in whole characters."""
    if block.half or not text.isascii():
        text, block.half = cut_half(block.half + text)
    if not text:
        return
    if kind == "text":
        out.append(TextChunk(text))
    else:
        out.append(ThinkingChunk(text) if kind == "thinking" else CallChunk(block.key, "", "", text))


def _close(block: Block, out: list[Delta]) -> None:
    if block.half:  # no other half will come
        block.half = ""
        _tell(block, block.kind, "\ufffd", out)
    if block.given:
        _tell(block, "call", block.given, out)
    if signature := "".join(block.signature):
        out.append(ThinkingChunk("", whole_characters(signature)))


def _arguments(given: Any) -> str:
    """The arguments that a call began with, as JSON text; none if there is nothing in them, as is usual."""
    if isinstance(given, str):
        return given
    return dumps(given).decode() if given else ""
