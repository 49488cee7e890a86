"""A transcript that grows without being copied."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from antiphon.types.messages import Message

__all__ = ["History"]


class History(Sequence[Message]):
    """An immutable list of messages whose `extended` shares what is already there.

    Histories that grow out of one another share one growing store, each seeing only its own length, so that a turn costs
    what it adds. Growing from an older length copies. `memo` belongs to the store: what a provider derived from the
    messages so far (their encoded bytes, say), under a key of its own, together with the number of messages it covers.
    """

    __slots__ = ("_length", "_store", "memo")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._store: list[Message] = list(messages)
        self._length = len(self._store)
        self.memo: dict[Any, Any] = {}

    @classmethod
    def of(cls, messages: Iterable[Message]) -> "History":
        """`messages` itself if it is a history already, else a new one."""
        return messages if isinstance(messages, History) else cls(messages)

    def extended(self, *messages: Message) -> "History":
        """This history with `messages` behind it."""
        if not messages:
            return self
        if len(self._store) != self._length:
            return History((*self, *messages))
        self._store.extend(messages)
        return self._view()

    def grew_from(self, other: "History") -> bool:
        """This history is `other` with messages behind it (or equal to it), sharing one store."""
        return self._store is other._store and self._length >= other._length  # noqa: SLF001 - its own kind

    def _view(self) -> "History":
        """The whole store as it is now."""
        view = History.__new__(History)
        view._store, view._length, view.memo = self._store, len(self._store), self.memo  # noqa: SLF001 - its own kind
        return view

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int, /) -> Message: ...
    @overload
    def __getitem__(self, index: slice, /) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice, /) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self._store[i] for i in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(f"message {index} of {self._length}")
        return self._store[index if index >= 0 else self._length + index]

    def __iter__(self) -> Iterator[Message]:
        store = self._store
        for index in range(self._length):
            yield store[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, History | tuple | list):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - elements only compared
        return NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as a list: equal by content, not hashable

    def __repr__(self) -> str:
        return f"History({list(self)!r})"
