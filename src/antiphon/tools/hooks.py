"""A tool's own hooks and its own say on approval: what they are given, and what they may answer."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from antiphon.types.cancel import CancelSignal
from antiphon.types.content import ToolCall
from antiphon.types.messages import ToolResultMessage
from antiphon.types.unset import UNSET, Unset

__all__ = [
    "Approval",
    "ArgumentsT",
    "CallInfo",
    "Maybe",
    "NeedsApproval",
    "ToolHookCall",
    "ToolHookOutcome",
    "ToolHooks",
    "UseArguments",
    "UseResult",
]

T = TypeVar("T")
ArgumentsT = TypeVar("ArgumentsT")
GivenT_co = TypeVar("GivenT_co", covariant=True)

Approval: TypeAlias = Literal["run", "ask", "deny"]
"""Run the call, ask somebody first, or refuse it."""


class CallInfo(Struct, frozen=True):
    """The call that a tool judges before it runs. `arguments` is the JSON object that would be used."""

    id: str
    name: str
    arguments: dict[str, Any]


NeedsApproval: TypeAlias = bool | Callable[[CallInfo], bool | Approval]
"""Whether a call needs a person's yes: always, never, or call by call. Of a predicate, `True` asks and `False` runs."""


class UseArguments(Struct, frozen=True):
    """Run the call with these arguments; they are defaulted and validated again."""

    arguments: Mapping[str, Any]


class UseResult(Struct, frozen=True):
    """Before a tool: the result, word for word, without running it. After it: the fields given replace the result's."""

    content: Any = UNSET
    details: Any = UNSET
    is_error: bool | Unset = UNSET


class ToolHookCall(Protocol[GivenT_co]):
    """What a tool's own hook can count on before the body runs.

    `arguments` is a copy of the JSON object that would be used; a type of your own for it (a `TypedDict` with the
    schema's members, say) makes the hook typed: `ToolHookCall[SearchArguments]`.
    """

    @property
    def run_id(self) -> str:
        """The run."""
        ...

    @property
    def cancel(self) -> CancelSignal:
        """Whether the run is to end."""
        ...

    @property
    def deps(self) -> Any:
        """The application's own object."""
        ...

    @property
    def call(self) -> ToolCall:
        """The call as the model made it."""
        ...

    @property
    def arguments(self) -> GivenT_co:
        """The arguments, defaults included."""
        ...


class ToolHookOutcome(ToolHookCall[GivenT_co], Protocol[GivenT_co]):
    """What a tool's own hook can count on after the body."""

    @property
    def result(self) -> ToolResultMessage:
        """The result, or the text of the failure."""
        ...

    @property
    def error(self) -> BaseException | None:
        """What the body raised."""
        ...

    @property
    def seconds(self) -> float:
        """How long the body ran."""
        ...

    @property
    def short_circuited(self) -> bool:
        """Whether the result was given by a hook instead of the body."""
        ...


Maybe: TypeAlias = T | Awaitable[T | None] | None
"""What a hook may answer: nothing, or a `T`, now or later."""


class ToolHooks(Struct, Generic[ArgumentsT], frozen=True, kw_only=True):
    """Callables around one tool's body, sync or async. Returning nothing changes nothing; they cannot end a run.

    They stand closest to the body: after the agent's and the run's hooks before it, and first after it. They are not
    called for bad arguments, nor when an outer hook gave the result.
    """

    before_execute: Callable[[ToolHookCall[ArgumentsT]], Maybe[UseArguments | UseResult]] | None = None
    after_execute: Callable[[ToolHookOutcome[ArgumentsT]], Maybe[UseResult]] | None = None
