"""Messages: what a transcript is made of.

Every message has an `id` and a `created_at` (seconds since the epoch). The caller may give them; else the driver stamps
them when the message enters a run. Neither is sent to a model.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from antiphon.types.content import Content, Part, ToolCall, Unknown, as_parts, text_of
from antiphon.types.usage import Usage

__all__ = [
    "AssistantMessage",
    "CustomMessage",
    "Message",
    "Outcome",
    "StopReason",
    "SystemMessage",
    "ToolResultMessage",
    "UserMessage",
]

StopReason = Literal["stop", "tool_calls", "length", "filtered", "refused", "paused", "error", "aborted"]
"""Why a reply ended. The presence of complete calls decides what follows, not this label."""

Outcome = Literal["ok", "error", "denied", "timeout", "cancelled", "not_run", "unknown"]
"""How a tool call ended. `unknown`: it was started, and whether it finished is not known."""


class SystemMessage(Struct, frozen=True, kw_only=True, tag_field="type", tag="system", omit_defaults=True):
    """Instructions inside a transcript. The agent's own instructions are not in it."""

    parts: tuple[Part, ...]
    id: str = ""
    created_at: float | None = None

    @classmethod
    def of(cls, *content: Content, id: str = "", created_at: float | None = None) -> "SystemMessage":  # noqa: A002
        """A message of strings and parts."""
        return cls(parts=as_parts(content), id=id, created_at=created_at)

    @property
    def text(self) -> str:
        return text_of(self.parts)


class UserMessage(Struct, frozen=True, kw_only=True, tag_field="type", tag="user", omit_defaults=True):
    """What a person, or the application in their place, said."""

    parts: tuple[Part, ...]
    id: str = ""
    created_at: float | None = None

    @classmethod
    def of(cls, *content: Content, id: str = "", created_at: float | None = None) -> "UserMessage":  # noqa: A002
        """A message of strings and parts."""
        return cls(parts=as_parts(content), id=id, created_at=created_at)

    @property
    def text(self) -> str:
        return text_of(self.parts)


class AssistantMessage(Struct, frozen=True, kw_only=True, tag_field="type", tag="assistant", omit_defaults=True):
    """A model's reply.

    `error` is the sentence of what went wrong (`stop_reason` is then `error`). `partial` says that the reply was not
    finished: it is kept for the reader and for the next request as the rules of endings say.
    """

    parts: tuple[Part, ...]
    stop_reason: StopReason = "stop"
    usage: Usage | None = None
    provider: str | None = None
    model: str | None = None
    response_id: str | None = None
    error: str | None = None
    partial: bool = False
    id: str = ""
    created_at: float | None = None

    @property
    def text(self) -> str:
        return text_of(self.parts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple([part for part in self.parts if type(part) is ToolCall])


class ToolResultMessage(Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_result", omit_defaults=True):
    """The answer to one call.

    `used_arguments` is the JSON text of the arguments the tool really got, when they differ from the call's. `details`
    is JSON for the application and never goes to a model.
    """

    call_id: str
    tool_name: str
    parts: tuple[Part, ...]
    used_arguments: str | None = None
    details: Any = None
    is_error: bool = False
    outcome: Outcome = "ok"
    id: str = ""
    created_at: float | None = None

    @property
    def text(self) -> str:
        return text_of(self.parts)


class CustomMessage(Struct, frozen=True, kw_only=True, tag_field="type", tag="custom", omit_defaults=True):
    """An application's own kind of message: kept in the transcript, left out of requests unless `to_model` maps it."""

    kind: str
    data: Any = None
    id: str = ""
    created_at: float | None = None


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage | CustomMessage | Unknown
"""What a transcript holds."""
