"""Ids and names of calls as the API takes them. Pure.

The API refuses ids and names with other characters than letters, digits, "_" and "-" ("String should match pattern"), and
a request with an id twice ("`tool_use` ids must be unique"), while a transcript only keeps ids apart within a reply.
Ids are kept to 64 characters, which all servers take. The names of tools may be longer on some, so that they are not cut
before 128.
"""

import hashlib
import re
import threading
from collections.abc import Sequence
from typing import Any

from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message

__all__ = ["first_uses", "wire_id", "wire_name"]

_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 128
_MEMO = "anthropic call ids"


def wire_id(call_id: str, repeat: int | None = None) -> str:
    """The id itself if it may be sent, else another one, always the same for the same id.

    `repeat` is the place of the reply if an earlier one has a call of this id.
    """
    if repeat is None and _LEGAL.fullmatch(call_id):
        return call_id
    said = call_id if repeat is None else f"{repeat}:{call_id}"
    digest = hashlib.sha256(said.encode(errors="replace")).hexdigest()[:16]
    return f"{_ILLEGAL.sub('_', call_id)[:40]}_{digest}"


def wire_name(name: str) -> str:
    """A called tool's name; one that no tool can have, made up by a model, becomes one that may be sent."""
    return _ILLEGAL.sub("_", name)[:_LONGEST_NAME] or "_"


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
