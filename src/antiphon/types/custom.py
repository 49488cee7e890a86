"""An application's own message types: statically typed here, plain data in the transcript."""

from typing import Any, Generic, TypeVar

import msgspec

from antiphon.errors import UsageError
from antiphon.types.messages import CustomMessage, Message

__all__ = ["CustomKind"]

T = TypeVar("T")


class CustomKind(Generic[T]):
    """A kind of custom message with a static type: a struct, a dataclass, a typed dict.

    `message(value)` makes one for a transcript, `read(message)` gives the value back, after storage too.
    """

    __slots__ = ("kind", "shape")

    def __init__(self, kind: str, shape: type[T]) -> None:
        self.kind = kind
        self.shape = shape

    def message(self, value: T, *, id: str = "", created_at: float | None = None) -> CustomMessage:  # noqa: A002
        """A message that carries a copy of `value`. Raises `UsageError` when it has no JSON form."""
        try:
            data: Any = msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(value, str_keys=True)))
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"a {self.kind!r} message must be JSON: {error}") from error
        return CustomMessage(kind=self.kind, data=data, id=id, created_at=created_at)

    def read(self, message: Message) -> T | None:
        """The value of a message of this kind, `None` for other messages.

        Raises `UsageError` when the stored data does not fit the type any more.
        """
        if not isinstance(message, CustomMessage) or message.kind != self.kind:
            return None
        try:
            return msgspec.convert(message.data, self.shape, str_keys=True)
        except msgspec.ValidationError as error:
            name = getattr(self.shape, "__name__", repr(self.shape))
            raise UsageError(f"a stored {self.kind!r} message does not fit {name}: {error}") from error
