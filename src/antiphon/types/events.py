"""What a run tells: one closed union of frozen events, in order, without gaps.

Every event has the `run_id`, a `seq` that starts at 1 and has no gaps, and in a sub-agent the `parent_run_id`. Consumers
`match` over `Event` and end in `assert_never`. Exactly one `RunFinished` comes, always last; exactly one `ToolFinished`
for each `ToolRequested`.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from antiphon.types.content import ToolCall, Unknown
from antiphon.types.messages import AssistantMessage, Message, Outcome, ToolResultMessage
from antiphon.types.request import ModelInfo, ThinkingLevel
from antiphon.types.usage import Usage

__all__ = [
    "ApprovalDecided",
    "ApprovalRequested",
    "AttemptDiscarded",
    "ContextReplaced",
    "Event",
    "LimitReached",
    "MessageDelivered",
    "MessageFinished",
    "MessageQueued",
    "MessageReturned",
    "MessageStarted",
    "Role",
    "RunFinished",
    "RunStarted",
    "Status",
    "StoredEvent",
    "TextDelta",
    "ThinkingDelta",
    "ToolCallDelta",
    "ToolFinished",
    "ToolProgress",
    "ToolRequested",
    "ToolStarted",
    "TurnFinished",
    "TurnStarted",
    "Warned",
]

Role = Literal["system", "user", "assistant", "tool_result", "custom", "unknown"]
"""Whose message it is."""

Queue = Literal["steering", "follow_up"]

Status = Literal["done", "stopped", "aborted", "limit", "paused", "error"]
"""How a run ended: by itself, by a hook, by a stop from outside, at a limit, waiting for decisions, or by a failure."""


class Base(Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """What every event says."""

    run_id: str
    seq: int
    parent_run_id: str | None = None


class RunStarted(Base, frozen=True, kw_only=True, tag="run_started"):
    """The run begins: which model, and the thinking level that will really be used."""

    model: ModelInfo | None = None
    thinking: ThinkingLevel | None = None
    resumed_from: str | None = None


class TurnStarted(Base, frozen=True, kw_only=True, tag="turn_started"):
    """A model reply and its tools begin. `turn` counts from 1."""

    turn: int


class MessageStarted(Base, frozen=True, kw_only=True, tag="message_started"):
    """A message begins; `attempt` counts from 1 within its turn."""

    message_id: str
    role: Role
    turn: int = 0
    attempt: int = 1


class TextDelta(Base, frozen=True, kw_only=True, tag="text_delta", gc=False):
    """The reply's text goes on. `index` is the part's place in the message."""

    message_id: str
    text: str
    index: int = 0
    turn: int = 0
    attempt: int = 1


class ThinkingDelta(Base, frozen=True, kw_only=True, tag="thinking_delta", gc=False):
    """The reply's thinking goes on."""

    message_id: str
    text: str
    index: int = 0
    turn: int = 0
    attempt: int = 1


class ToolCallDelta(Base, frozen=True, kw_only=True, tag="tool_call_delta", gc=False):
    """A call's arguments go on: `text` is the next fragment of their JSON text. `index` is the call's place."""

    message_id: str
    text: str
    call_id: str = ""
    name: str = ""
    index: int = 0
    turn: int = 0
    attempt: int = 1


class MessageFinished(Base, frozen=True, kw_only=True, tag="message_finished"):
    """The whole message, with the turn's calls. What is announced is final."""

    message: Message
    turn: int = 0


class ToolRequested(Base, frozen=True, kw_only=True, tag="tool_requested"):
    """The model asks for this call, arguments as it wrote them."""

    call: ToolCall
    turn: int = 0


class ApprovalRequested(Base, frozen=True, kw_only=True, tag="approval_requested"):
    """A call waits for a decision. `arguments` is the JSON object that would be used; `question` is a tool's own."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    question: Any = None
    path: tuple[str, ...] = ()


class ApprovalDecided(Base, frozen=True, kw_only=True, tag="approval_decided"):
    """Somebody decided. `arguments` are the ones to be used, when they were edited."""

    call_id: str
    approved: bool
    arguments: dict[str, Any] | None = None
    reason: str | None = None


class ToolStarted(Base, frozen=True, kw_only=True, tag="tool_started"):
    """The tool's body is about to run with these arguments."""

    call_id: str
    name: str
    arguments: dict[str, Any]


class ToolProgress(Base, frozen=True, kw_only=True, tag="tool_progress"):
    """What a running tool has to show so far."""

    call_id: str
    name: str
    content: Any = None
    details: Any = None


class ToolFinished(Base, frozen=True, kw_only=True, tag="tool_finished"):
    """A tool call returned, failed, was refused, or never ran: exactly one for each `ToolRequested`.

    `arguments` are those used (`None` if there were none to use); `seconds` is the time of the body alone, without the
    time spent waiting for a person.
    """

    call_id: str
    name: str
    result: ToolResultMessage
    outcome: Outcome
    arguments: dict[str, Any] | None = None
    seconds: float = 0.0


class TurnFinished(Base, frozen=True, kw_only=True, tag="turn_finished"):
    """The reply (none, if the run was stopped before it said anything) and its results, in the order of the calls."""

    turn: int
    message: AssistantMessage | None = None
    results: tuple[ToolResultMessage, ...] = ()


class AttemptDiscarded(Base, frozen=True, kw_only=True, tag="attempt_discarded"):
    """A reply is thrown away and asked for again; viewers take `partial` back. `wait` is in seconds."""

    why: str
    attempt: int
    of: int
    message_id: str
    turn: int = 0
    wait: float = 0.0
    partial: AssistantMessage | None = None


class ContextReplaced(Base, frozen=True, kw_only=True, tag="context_replaced"):
    """The run goes on with other messages, or another model."""

    messages: tuple[Message, ...] | None = None
    model: ModelInfo | None = None
    why: str = ""


class LimitReached(Base, frozen=True, kw_only=True, tag="limit_reached"):
    """A limit was met: the run's, which ends it, or a tool's, which refuses one call."""

    scope: Literal["run", "tool"]
    which: str
    limit: float
    call_id: str | None = None
    name: str | None = None


class MessageQueued(Base, frozen=True, kw_only=True, tag="message_queued"):
    """A steering or follow-up message was taken; a receipt follows whatever happens to it."""

    message: Message
    queue: Queue


class MessageDelivered(Base, frozen=True, kw_only=True, tag="message_delivered"):
    """A queued message has joined the transcript."""

    message_id: str
    queue: Queue


class MessageReturned(Base, frozen=True, kw_only=True, tag="message_returned"):
    """A queued message was not delivered; it is handed back."""

    message: Message
    queue: Queue
    why: str = ""


class Warned(Base, frozen=True, kw_only=True, tag="warned"):
    """Something is odd and does not end the run."""

    code: str
    text: str


class RunFinished(Base, frozen=True, kw_only=True, tag="run_finished"):
    """The run is over. `error` is the sentence of a failure, `usage` the sum over all requests."""

    status: Status
    reason: str | None = None
    usage: Usage = Usage()
    error: str | None = None


Event: TypeAlias = (
    RunStarted
    | TurnStarted
    | MessageStarted
    | TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | MessageFinished
    | ToolRequested
    | ApprovalRequested
    | ApprovalDecided
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | TurnFinished
    | AttemptDiscarded
    | ContextReplaced
    | LimitReached
    | MessageQueued
    | MessageDelivered
    | MessageReturned
    | Warned
    | RunFinished
)
"""What a run tells."""

StoredEvent: TypeAlias = Event | Unknown
"""An event read back from storage, where a newer version may have written kinds that this one does not know."""
