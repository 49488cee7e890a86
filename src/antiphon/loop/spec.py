"""What a run is made of: everything the agent and the call said, settled before anything starts."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from antiphon.loop.hooks import Hooks, RunContext
from antiphon.loop.limits import Limits
from antiphon.loop.state import Approve, Deny
from antiphon.tools.tool import Tool
from antiphon.types.cancel import CancelSignal
from antiphon.types.content import ToolCall
from antiphon.types.messages import AssistantMessage, Message
from antiphon.types.request import Model, ModelSettings

__all__ = [
    "Allow",
    "ApprovalContext",
    "ApprovalPolicy",
    "Approver",
    "Ask",
    "ForcedCall",
    "IdGenerator",
    "Instructions",
    "OutputReader",
    "Recovery",
    "RunSpec",
    "ToModel",
    "ToolOptions",
    "Verdict",
]


class Allow(Struct, frozen=True):
    """The policy lets the call run."""


class Ask(Struct, frozen=True):
    """The policy wants a person to decide."""


Verdict: TypeAlias = Allow | Ask | Deny
"""What a policy says of a call. `Deny(reason)` asks nobody; the model reads the reason."""


class ApprovalContext(RunContext[Any], frozen=True, kw_only=True):
    """The call that a policy or an approver judges. `arguments` is the JSON object that would be used."""

    call: ToolCall
    tool: Tool | None
    arguments: dict[str, Any]


ApprovalPolicy: TypeAlias = Callable[[ApprovalContext], Verdict | Awaitable[Verdict | None] | None]
"""Judges a call; `None` leaves it to the tool's own `needs_approval`."""

Approver: TypeAlias = Callable[[ApprovalContext], Approve | Deny | bool | Awaitable[Approve | Deny | bool]]
"""Decides in a person's place, or asks one; the run goes on with other calls meanwhile."""

IdGenerator: TypeAlias = Callable[[str], str]
"""Makes an id from a prefix."""

Instructions: TypeAlias = str | Callable[[RunContext[Any]], str | Awaitable[str]]
"""The system prompt, or what makes it, sync or async; it is asked once a run."""

ToModel: TypeAlias = Callable[[Sequence[Message], CancelSignal], Sequence[Message] | Awaitable[Sequence[Message]]]
"""Turns the application's messages into what a model understands, custom messages into none, one or several."""


class ForcedCall(Struct, frozen=True):
    """A call that the application makes in the model's place, before the first request, through the same checks."""

    name: str
    arguments: Mapping[str, Any] = {}


class Recovery(Struct, frozen=True, kw_only=True):
    """How often and how patiently a failed attempt is repeated. 0 or `None` turns a rule off.

    `retries` counts drops, overload, rate limits and other passing failures of one reply, `delay` is the first wait in
    seconds and doubles; a server's own hint is the minimum, and a hint above `max_wait` seconds fails the run at once.
    `length_retries` and `empty_retries` have budgets of their own; `on_length` and `on_empty` say what follows.
    `first_token`, `idle` and `request` are limits in seconds on waiting for the model.
    """

    retries: int = 3
    delay: float = 1.0
    jitter: float = 0.1
    max_wait: float | None = 60.0
    length_retries: int = 2
    on_length: Literal["error", "keep"] = "error"
    empty_retries: int = 1
    on_empty: Literal["error", "keep"] = "error"
    first_token: float | None = 120.0
    idle: float | None = 60.0
    request: float | None = 600.0


class ToolOptions(Struct, frozen=True, kw_only=True):
    """How tools are run. Times are in seconds, `result_limit` in bytes of text."""

    execution: Literal["parallel", "sequential"] = "parallel"
    max_parallel: int = 16
    timeout: float | None = 300.0
    grace: float = 5.0
    result_limit: int | None = 256 * 1024
    on_error: Literal["tell", "raise"] = "tell"
    on_ask: Literal["wait", "pause"] | None = None


class OutputReader(Protocol):
    """What makes a typed answer of a run: a final tool, or the text of a reply; a reminder for replies that are none, and
    how to read it back.
    """

    @property
    def tool(self) -> Tool | None: ...
    @property
    def reminders(self) -> int: ...

    def accepts(self, message: AssistantMessage, /) -> bool: ...
    def reminder(self, message: AssistantMessage, /) -> Message: ...
    def read(self, messages: Sequence[Message], /) -> Any: ...


class RunSpec(Struct, frozen=True, kw_only=True):
    """The settled definition of one run."""

    model: Model
    fallbacks: tuple[Model, ...] = ()
    instructions: Instructions = ""
    tools: tuple[Tool, ...] = ()
    sources: tuple[Any, ...] = ()
    hooks: tuple[Hooks[Any], ...] = ()
    policy: ApprovalPolicy | None = None
    approver: Approver | None = None
    limits: Limits = Limits()
    settings: ModelSettings = ModelSettings()
    recovery: Recovery = Recovery()
    tool_options: ToolOptions = ToolOptions()
    tool_choice: str = "auto"
    to_model: ToModel | None = None
    deps: Any = None
    session_id: str | None = None
    meta: Any = None
    id_generator: IdGenerator | None = None
    cancel: CancelSignal | None = None
    parent_run_id: str | None = None
    output: OutputReader | None = None
