"""What the machine knows, what it is told, and what it asks for: plain frozen data."""

from enum import Enum
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from antiphon.types.content import ToolCall
from antiphon.types.events import Queue, Status
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage
from antiphon.types.request import ModelInfo
from antiphon.types.usage import Usage

__all__ = [
    "Announced",
    "Answer",
    "Approve",
    "AskModel",
    "AwaitDecisions",
    "Configured",
    "Counters",
    "Cut",
    "Decided",
    "Decision",
    "Declined",
    "Deny",
    "Discarded",
    "Effect",
    "Failed",
    "Finish",
    "Halted",
    "Input",
    "Judged",
    "Nested",
    "Phase",
    "Prompted",
    "Queued",
    "Replaced",
    "Replied",
    "Requested",
    "Resumed",
    "Returned",
    "RunState",
    "RunTools",
    "Slot",
    "Spent",
    "Stage",
    "Started",
    "Taken",
    "Unqueued",
]


class Phase(Enum):
    """Where a run is."""

    IDLE = "idle"  # nothing was asked yet
    ASKING = "asking"  # a request is due, or with the model
    CALLING = "calling"  # tool calls are judged and run
    HELD = "held"  # nothing runs any more, and decisions are missing
    DONE = "done"  # the last reply asked for nothing
    STOPPED = "stopped"  # ended from outside, at a limit, or by a failure


Stage = Literal["waiting", "pending", "allowed", "denied", "started", "finished"]
"""How far a call of the open batch is: not judged, waits for a decision, may run, was refused, runs, has its result."""


class Approve(Struct, frozen=True, tag_field="type", tag="approve", omit_defaults=True):
    """Run the call, with other arguments if given; they are validated again and final."""

    arguments: dict[str, Any] | None = None


class Deny(Struct, frozen=True, tag_field="type", tag="deny", omit_defaults=True):
    """Refuse the call. The model reads `reason`; else a sentence that says a person refused, and `instruction`."""

    reason: str | None = None
    instruction: str | None = None


class Answer(Struct, frozen=True, tag_field="type", tag="answer", omit_defaults=True):
    """The answer to a tool's question, or the result of a tool that runs elsewhere."""

    value: Any = None


class Nested(Struct, frozen=True, tag_field="type", tag="nested", omit_defaults=True):
    """Decisions for the calls that wait inside a sub-agent, under their ids there."""

    decisions: dict[str, "Decision"]


Decision: TypeAlias = Approve | Deny | Answer | Nested
"""What may be decided on a pending call. `Nested` is made by the engine, out of decisions under `outer/inner`."""


Asks = Literal["approval", "answer", "nested"]
"""What a pending call waits for: a yes or no, a value (a tool's own question, or a tool that runs elsewhere), or
decisions inside a sub-agent."""


class Slot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of the open batch.

    `arguments` is the JSON text that is or would be used, `question` what a tool asks, `answers` what was answered so
    far, in the order of the questions. `nested` is the state of a paused sub-agent. A `repeatable` call may run again
    when it is not known how far it came.
    """

    call: ToolCall
    stage: Stage = "waiting"
    arguments: str | None = None
    question: Any = None
    nested: dict[str, Any] | None = None
    asks: Asks = "approval"
    decision: Decision | None = None
    answers: tuple[Any, ...] = ()
    result: ToolResultMessage | None = None
    end_turn: bool = False
    repeatable: bool = False


class Counters(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The one accounting, carried on when a run is resumed.

    `turns` are replies, retried attempts included once; `requests` are attempts; `cuts` are replies cut off by the
    output limit since the last good one; `invalid_calls` are calls in a row that named no tool or had bad arguments.
    """

    turns: int = 0
    requests: int = 0
    tool_calls: int = 0
    invalid_calls: int = 0
    cuts: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    last_usage: Usage | None = None
    calls_by_tool: dict[str, int] = {}
    turns_by_tool: dict[str, int] = {}


class RunState(Struct, frozen=True, kw_only=True):
    """Everything a run knows, as data."""

    run_id: str
    phase: Phase = Phase.IDLE
    status: Status | None = None
    reason: str | None = None
    instructions: str = ""
    messages: History
    announced: int = 0
    batch: dict[str, Slot] = {}
    steering: tuple[Message, ...] = ()
    follow_ups: tuple[Message, ...] = ()
    steering_mode: Literal["one", "all"] = "one"
    follow_up_mode: Literal["one", "all"] = "one"
    sequential: bool = False
    ending: Literal["no", "reply", "end_turn"] = "no"
    counters: Counters = Counters()
    resumed_from: str | None = None

    @property
    def pending(self) -> tuple[Slot, ...]:
        """The calls that wait for a decision, in order."""
        return tuple([slot for slot in self.batch.values() if slot.stage == "pending"])


# Inputs: what happened. Times and ids come in with them.


class Prompted(Struct, frozen=True, kw_only=True):
    """Somebody said something. `forced` is a reply that the application makes in the model's place."""

    messages: tuple[Message, ...] = ()
    forced: AssistantMessage | None = None
    at: float = 0.0


class Resumed(Struct, frozen=True, kw_only=True):
    """Go on from what is there; `rerun_open` lets the open calls of a bare transcript run."""

    decisions: dict[str, Decision] = {}
    rerun_open: bool = False
    at: float = 0.0


class Requested(Struct, frozen=True, kw_only=True):
    """An attempt at a reply begins."""


class Discarded(Struct, frozen=True, kw_only=True):
    """An attempt was thrown away; what it consumed counts. `cut`: because of the output limit."""

    usage: Usage | None = None
    cut: bool = False


class Taken(Struct, frozen=True, kw_only=True):
    """The messages due for delivery join the transcript."""

    steering: int = 0
    follow_ups: int = 0


class Declined(Struct, frozen=True, kw_only=True):
    """The application wants no further turn."""


class Replied(Struct, frozen=True, kw_only=True):
    """The model's reply is complete."""

    message: AssistantMessage


class Cut(Struct, frozen=True, kw_only=True):
    """The reply was cut off by the output limit; `again` says whether the model may be asked once more."""

    message: AssistantMessage
    again: bool
    at: float = 0.0


class Failed(Struct, frozen=True, kw_only=True):
    """No reply came about. `message` carries the error and what was received."""

    message: AssistantMessage
    reason: str | None = None


class Replaced(Struct, frozen=True, kw_only=True):
    """The application put other messages, or another model, in place."""

    messages: tuple[Message, ...] | None = None
    model: ModelInfo | None = None
    at: float = 0.0


class Judged(Struct, frozen=True, kw_only=True):
    """A call may run, may not, or waits for a person (or for a result from elsewhere)."""

    call_id: str
    verdict: Literal["allowed", "denied", "pending"]
    arguments: str | None = None
    asks: Asks = "approval"
    question: Any = None
    nested: dict[str, Any] | None = None


class Started(Struct, frozen=True, kw_only=True):
    """A call's body runs with these arguments; `repeatable` as its tool says."""

    call_id: str
    arguments: str | None = None
    repeatable: bool = False


class Returned(Struct, frozen=True, kw_only=True):
    """A call has its result; `invalid` when it named no tool or its arguments were bad."""

    call_id: str
    result: ToolResultMessage
    end_turn: bool = False
    invalid: bool = False


class Decided(Struct, frozen=True, kw_only=True):
    """Somebody decided on some of the pending calls."""

    decisions: dict[str, Decision]


class Spent(Struct, frozen=True, kw_only=True):
    """A sub-agent consumed this; it counts here too."""

    usage: Usage
    requests: int = 0


class Queued(Struct, frozen=True, kw_only=True):
    """A message for later."""

    message: Message
    queue: Queue


class Unqueued(Struct, frozen=True, kw_only=True):
    """The messages of a queue are taken back."""

    queue: Queue


class Configured(Struct, frozen=True, kw_only=True):
    """What was settled once the run had begun, or changed since; what is `None` stays."""

    instructions: str | None = None
    steering_mode: Literal["one", "all"] | None = None
    follow_up_mode: Literal["one", "all"] | None = None


class Announced(Struct, frozen=True, kw_only=True):
    """The application has seen the transcript up to this length."""

    count: int


class Halted(Struct, frozen=True, kw_only=True):
    """The run ends here. `outcomes` are results for calls that were running; every other open call did not run."""

    status: Status
    reason: str | None = None
    partial: AssistantMessage | None = None
    outcomes: dict[str, ToolResultMessage] = {}
    at: float = 0.0


Input: TypeAlias = (
    Prompted
    | Resumed
    | Requested
    | Discarded
    | Taken
    | Declined
    | Replied
    | Cut
    | Failed
    | Replaced
    | Judged
    | Started
    | Spent
    | Returned
    | Decided
    | Queued
    | Unqueued
    | Configured
    | Announced
    | Halted
)

# Effects: what to do now.


class AskModel(Struct, frozen=True):
    """Make a request, and say what came of it."""


class RunTools(Struct, frozen=True):
    """Judge and run these calls of the open batch."""

    call_ids: tuple[str, ...]


class AwaitDecisions(Struct, frozen=True):
    """Nothing can go on before somebody decides on these calls."""

    call_ids: tuple[str, ...]


class Finish(Struct, frozen=True):
    """The run is over."""

    status: Status
    reason: str | None = None


Effect: TypeAlias = AskModel | RunTools | AwaitDecisions | Finish
