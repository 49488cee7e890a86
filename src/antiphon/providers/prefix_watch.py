"""Whether requests keep the beginning that a server has read already, and which message broke it.

A transcript that only grows keeps its bytes. What an application changes in it (a hook that replaces messages, say), and a
rule that writes older messages otherwise, makes the server read everything behind the change again: slowly, and for money.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from msgspec import Struct

from antiphon.types.cancel import CancelSignal
from antiphon.types.messages import Message, ToolResultMessage
from antiphon.types.request import ModelRequest

__all__ = ["EncodePart", "PrefixReport", "PrefixWatch"]

EncodePart = Callable[[int, int], bytes]
"""The bytes of the messages from one place up to another."""

_MOST_TRAILS = 64
_BLOCK = 2**16
_MOST_BYTES = 2**24  # of former requests that are kept alive for the comparison


class PrefixReport(Struct, frozen=True, kw_only=True):
    """How often a request did not begin with the message bytes of the request before it in its session.

    The other fields tell of the last time. `message` is the index, among that request's messages, of the first one that
    reads otherwise; the number of messages if they only became fewer. `kept` and `lost` are bytes of the former request:
    those before that place, and the others. `why`: the `messages` were changed, or the settings brought other `rules`.
    """

    requests: int = 0
    breaks: int = 0
    message: int | None = None
    kept: int = 0
    lost: int = 0
    why: Literal["messages", "rules"] | None = None


class _Trail:
    """The last request of a session. `owner` keeps the one alive whose address stands for the session."""

    __slots__ = ("key", "owner", "pieces", "size")

    def __init__(self, key: Hashable, pieces: Sequence[bytes], size: int, owner: object) -> None:
        self.key = key
        self.pieces = pieces
        self.size = size
        self.owner = owner


class PrefixWatch:
    """Compares each request with the one before it. A session is what `session_id` says, else one run.

    A request that goes on with the same growing transcript costs a look: its pieces are those of the former and more.
    """

    __slots__ = ("_lock", "_size", "_trails", "report")

    def __init__(self) -> None:
        self.report = PrefixReport()
        self._lock = threading.Lock()  # runs in several threads may share a model
        self._trails: dict[Hashable, _Trail] = {}
        self._size = 0

    def see(self, request: ModelRequest, key: Hashable, pieces: Sequence[bytes], encode_part: EncodePart) -> None:
        """Take note of a request. `pieces` are its messages' bytes, `key` the rules by which they were made."""
        session = _session_of(request)
        if session is None:
            self.report = _counted(self.report)
            return
        with self._lock:
            former = self._trails.pop(session, None)
            if former is None:
                self._keep(session, _Trail(key, pieces, sum(map(len, pieces)), request.cancel), 0)
                self.report = _counted(self.report)
                return
            begun = len(former.pieces)
            if _goes_on(former.pieces, pieces):
                size = former.size + sum(map(len, pieces[begun:]))
                self.report = _counted(self.report)
            else:
                size = sum(map(len, pieces))
                self.report = self._compared(former, key, pieces, request.messages, encode_part)
            self._keep(session, _Trail(key, pieces, size, request.cancel), former.size)

    def _keep(self, session: Hashable, trail: _Trail, former: int) -> None:
        self._trails[session] = trail
        self._size += trail.size - former
        while len(self._trails) > _MOST_TRAILS or (self._size > _MOST_BYTES and len(self._trails) > 1):
            oldest = next(iter(self._trails))
            self._size -= self._trails.pop(oldest).size

    def _compared(
        self,
        former: _Trail,
        key: Hashable,
        pieces: Sequence[bytes],
        messages: Sequence[Message],
        encode_part: EncodePart,
    ) -> PrefixReport:
        old, new = b"".join(former.pieces), b"".join(pieces)
        counted = _counted(self.report)
        if new.startswith(old):
            return counted
        kept = _common(old, new)
        return PrefixReport(
            requests=counted.requests,
            breaks=counted.breaks + 1,
            message=_place_of(kept, messages, encode_part),
            kept=kept,
            lost=len(old) - kept,
            why="messages" if key == former.key else "rules",
        )


def _session_of(request: ModelRequest) -> Hashable:
    """What the requests of a session, or of one run, have in common; `None` for a request that stands alone.

    A run's requests share its cancel token. A plain signal, which nobody can set, is that of a single request.
    """
    if request.session_id:
        return request.session_id
    return None if type(request.cancel) is CancelSignal else id(request.cancel)


def _counted(report: PrefixReport) -> PrefixReport:
    return PrefixReport(
        requests=report.requests + 1,
        breaks=report.breaks,
        message=report.message,
        kept=report.kept,
        lost=report.lost,
        why=report.why,
    )


def _goes_on(old: Sequence[bytes], new: Sequence[bytes]) -> bool:
    """Whether these are the former pieces and more: the very same objects, of which the last stands for all before it.

    Pieces of one growing transcript are only ever added to. An empty piece is the same object everywhere, and tells nothing.
    """
    count = len(old)
    if len(new) < count:
        return False
    if count and len(old[-1]) > 1:
        return new[count - 1] is old[-1]
    return all(one is other for one, other in zip(old, new, strict=False))


def _common(old: bytes, new: bytes) -> int:
    """How many bytes both begin with."""
    most = min(len(old), len(new))
    for begin in range(0, most, _BLOCK):
        one, other = old[begin : begin + _BLOCK], new[begin : begin + _BLOCK]
        if one != other:
            longest = min(len(one), len(other))
            return begin + bisect_left(range(1, longest + 1), True, key=lambda size: one[:size] != other[:size])
    return most


def _place_of(offset: int, messages: Sequence[Message], encode_part: EncodePart) -> int:
    """The message that the byte at `offset` belongs to. Bytes add up from exchange to exchange."""
    covered = 0
    begin = 0
    while begin < len(messages):
        end = begin + 1
        while end < len(messages) and isinstance(messages[end], ToolResultMessage):
            end += 1
        size = len(encode_part(begin, end))
        if size:
            covered += size + (covered > 0)
            if covered > offset:
                return begin + _place_within(offset - covered + size, begin, end, encode_part)
        begin = end
    return len(messages)


def _place_within(offset: int, begin: int, end: int, encode_part: EncodePart) -> int:
    """The message of one exchange that the byte belongs to; what its results show together belongs to the last of them."""
    for count in range(1, end - begin):
        if len(encode_part(begin, begin + count)) > offset:
            return count - 1
    return end - begin - 1
