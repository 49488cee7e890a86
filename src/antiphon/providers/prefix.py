"""The bytes of messages, made once: what a request says of a transcript is a prefix of what the next one says.

A turn then costs what it adds, and a server that keeps a prompt's prefix finds it again byte for byte.
"""

import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence

from antiphon.types.history import History
from antiphon.types.messages import Message, ToolResultMessage

__all__ = ["EncodeNew", "encoded_prefix"]

EncodeNew = Callable[[Sequence[Message]], bytes]
"""Encodes a run of messages to the inside of a JSON array: elements with commas between them, empty for none.

It must not depend on what came before the run, as long as the run does not begin in the middle of an exchange.
"""


class _Memo:
    """What is encoded of one growing history under one key: pieces, and how many messages are covered after each."""

    __slots__ = ("covered", "lock", "pieces")

    def __init__(self) -> None:
        self.lock = threading.Lock()  # runs in several threads may share a history
        self.covered: list[int] = []
        self.pieces: list[bytes] = []


def encoded_prefix(messages: Sequence[Message], key: Hashable, encode_new: EncodeNew) -> list[bytes]:
    """The messages' bytes in pieces; joined, they are the inside of a JSON array, the same as a fresh encoding gives.

    `key` names all that the bytes depend on beside the messages. For a `History` the pieces are kept in its `memo`, so
    that a longer history of the same growth only encodes what is new; a shorter one is served from the pieces that it
    covers. Other sequences are encoded afresh.
    """
    if not isinstance(messages, History):
        return [encode_new(messages)]
    memo = messages.memo.get(key) or messages.memo.setdefault(key, _Memo())
    with memo.lock:
        return _from_memo(memo, messages, encode_new)


def _from_memo(memo: _Memo, messages: History, encode_new: EncodeNew) -> list[bytes]:
    length = len(messages)
    kept = bisect_right(memo.covered, length)
    while kept and _cuts_exchange(messages, memo.covered[kept - 1]):
        kept -= 1
    pieces = memo.pieces[:kept]
    begin = memo.covered[kept - 1] if kept else 0
    if begin == length:
        return pieces
    piece = encode_new(messages[begin:] if begin else messages)
    if piece and any(pieces):
        piece = b"," + piece
    pieces.append(piece)
    if kept == len(memo.covered):  # the longest so far; what lies beside it is not worth keeping
        memo.covered.append(length)
        memo.pieces.append(piece)
    return pieces


def _cuts_exchange(messages: History, at: int) -> bool:
    """Whether a reply is on one side of the cut and some of its results on the other."""
    return at < len(messages) and isinstance(messages[at], ToolResultMessage)
