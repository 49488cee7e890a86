"""The inbox of a conversation: messages for later, kept between runs, never lost without a receipt."""

from collections.abc import Sequence
from typing import Literal

from antiphon.types.events import Queue
from antiphon.types.messages import Message

__all__ = ["Inbox", "Mode"]

Mode = Literal["one", "all"]
"""Whether one message of a queue is delivered at a time, or all of them."""


class Inbox:
    """Two queues: steering, which comes before the next request, and follow-ups, when nothing else is left."""

    def __init__(self) -> None:
        self._queues: dict[Queue, tuple[Message, ...]] = {"steering": (), "follow_up": ()}
        self.modes: dict[Queue, Mode] = {"steering": "one", "follow_up": "one"}

    def __len__(self) -> int:
        return len(self._queues["steering"]) + len(self._queues["follow_up"])

    def add(self, message: Message, queue: Queue) -> None:
        """Keep a message for the next run."""
        self._queues[queue] = (*self._queues[queue], message)

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
