"""Ids and names of calls as an API takes them: what it would refuse is rewritten, always alike. Pure."""

import hashlib
import re
import string
import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message

__all__ = ["CallIds", "IdRule", "NameRule", "first_uses"]

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_LEGAL = re.compile(r"[a-zA-Z0-9_-]+").fullmatch
_DIGEST = 16
_MEMO = "first uses of call ids"


class IdRule(Struct, frozen=True, kw_only=True):
    """What ids an API takes: letters, digits, "_" and "-", from one to `longest`; or `nine` letters and digits, no more or
    less. `unique`: none may stand in a request twice, while a transcript only keeps the ids of one reply apart.
    """

    longest: int = 64
    style: Literal["word", "nine"] = "word"
    unique: bool = False

    def taken(self, call_id: str, repeat: int | None = None) -> str:
        """The id itself if it may be sent, else another one, always the same for the same id.

        `repeat` is the place of the reply if an earlier one has a call of this id.
        """
        nine = self.style == "nine"
        if repeat is None and self._may_be_sent(call_id):
            return call_id
        said = call_id if repeat is None else f"{repeat}:{call_id}"
        digest = hashlib.sha256(said.encode(errors="replace"))
        if nine:
            number = int.from_bytes(digest.digest()[:8], "big")
            return "".join([_ALPHABET[number // 62**place % 62] for place in range(9)])
        readable = _ILLEGAL.sub("_", call_id)[: self.longest - _DIGEST - 1]
        return f"{readable}_{digest.hexdigest()[:_DIGEST]}"

    def _may_be_sent(self, call_id: str) -> bool:
        if self.style == "nine":
            return len(call_id) == 9 and call_id.isascii() and call_id.isalnum()
        return len(call_id) <= self.longest and _LEGAL(call_id) is not None


class NameRule(Struct, frozen=True, kw_only=True):
    """What names of tools an API takes in a call: letters, digits, "_", "-" and the `more` characters, up to `longest`.

    A tool that is offered has such a name; a call of one that a model made up may have any.
    """

    more: str = ""
    longest: int = 64

    def taken(self, name: str) -> str:
        """The name itself, or one that may be sent in its place."""
        if len(name) <= self.longest and name.isidentifier() and name.isascii():
            return name  # as nearly all are
        return _illegal(self.more).sub("_", name)[: self.longest] or "_"


@lru_cache(maxsize=16)
def _illegal(more: str) -> re.Pattern[str]:
    return re.compile(f"[^a-zA-Z0-9_{re.escape(more)}-]")


class CallIds:
    """The ids of one stretch of a transcript, reply by reply: a result has the id that its call has."""

    __slots__ = ("_first", "_own", "_rule")

    def __init__(self, rule: IdRule | None, first: Mapping[str, int] | None) -> None:
        self._rule = rule
        self._first = first if rule is not None and rule.unique else None
        self._own: dict[str, str] = {}  # ids of the last reply's calls, and what is sent for them

    def reply(self, message: AssistantMessage, place: int) -> None:
        """The next reply, which stands at `place` in the transcript."""
        rule, first = self._rule, self._first
        if rule is None:
            return
        self._own = own = {}
        for call in message.calls:
            repeated = first is not None and first[call.id] < place
            own[call.id] = rule.taken(call.id, place if repeated else None)

    def taken(self, call_id: str) -> str:
        """The id to be sent for a call of the last reply, or for its result."""
        if self._rule is None:
            return call_id
        return self._own.get(call_id) or self._rule.taken(call_id)


def first_uses(messages: Sequence[Message]) -> dict[str, int]:
    """Where each call id stands first. A history that grows is read once."""
    if not isinstance(messages, History):
        uses = _Uses()
        uses.read(messages)
        return uses.first
    memo: dict[Any, Any] = messages.memo
    known: _Uses = memo.get(_MEMO) or memo.setdefault(_MEMO, _Uses())
    with known.lock:
        known.read(messages)
    return known.first


class _Uses:
    """Where each call id stands first, in the `covered` messages that were read."""

    __slots__ = ("covered", "first", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()  # runs in several threads may share a history
        self.covered = 0
        self.first: dict[str, int] = {}

    def read(self, messages: Sequence[Message]) -> None:
        for index in range(self.covered, len(messages)):
            message = messages[index]
            if type(message) is AssistantMessage:
                for call in message.calls:
                    self.first.setdefault(call.id, index)
        self.covered = max(self.covered, len(messages))
