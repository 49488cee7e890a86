"""The inbox of a conversation: messages for later, kept between runs, never lost without a receipt."""

import time
import uuid
from collections.abc import Sequence
from typing import Literal

from msgspec.structs import replace

from antiphon.types.content import Unknown
from antiphon.types.events import Queue
from antiphon.types.messages import Message

__all__ = ["Inbox", "Mode", "stamped"]

Mode = Literal["one", "all"]
"""Whether one message of a queue is delivered at a time, or all of them."""


class Inbox:
    """Two queues: steering, which comes before the next request, and follow-ups, when nothing else is left."""

    def __init__(self) -> None:
        self._queues: dict[Queue, tuple[Message, ...]] = {"steering": (), "follow_up": ()}
        self.modes: dict[Queue, Mode] = {"steering": "one", "follow_up": "one"}

    def __len__(self) -> int:
        return len(self._queues["steering"]) + len(self._queues["follow_up"])

    def add(self, message: Message, queue: Queue) -> str:
        """Keep a message for the next run. Its id."""
        message = stamped(message)
        self._queues[queue] = (*self._queues[queue], message)
        return getattr(message, "id", "")

    def peek(self, queue: Queue) -> tuple[Message, ...]:
        """What waits in a queue."""
        return self._queues[queue]

    def clear(self, queue: Queue) -> tuple[Message, ...]:
        """Empty a queue; what was in it is handed back."""
        taken, self._queues[queue] = self._queues[queue], ()
        return taken

    def put_back(self, messages: Sequence[Message], queue: Queue) -> None:
        """Messages that a run did not deliver come before those that arrived since."""
        self._queues[queue] = (*messages, *self._queues[queue])


def stamped(message: Message) -> Message:
    """The message with an id and a time: it has them from the moment it was said."""
    if isinstance(message, Unknown) or (message.id and message.created_at is not None):
        return message
    at = time.time() if message.created_at is None else message.created_at
    return replace(message, id=message.id or uuid.uuid4().hex, created_at=at)
