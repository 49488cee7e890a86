"""Decision points: what an application may decide, where, and with what words."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeAlias

from msgspec import Struct

from antiphon.errors import UsageError
from antiphon.tools.hooks import Maybe, UseArguments, UseResult
from antiphon.tools.tool import Tool
from antiphon.types.cancel import CancelSignal
from antiphon.types.content import ToolCall
from antiphon.types.deps import DepsT
from antiphon.types.events import Status
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage
from antiphon.types.request import Model, ModelSettings

__all__ = [
    "Block",
    "Hooks",
    "ModelContext",
    "ReplyContext",
    "RoundContext",
    "RunContext",
    "RunEndContext",
    "RunStartContext",
    "Stop",
    "ToolCallContext",
    "ToolOutcomeContext",
    "ToolsContext",
    "UseArguments",
    "UseContext",
    "UseReply",
    "UseRequest",
    "UseResult",
    "UseTools",
]


# What a hook may return


class Stop(Struct, frozen=True):
    """End the run here, as `stopped`."""

    reason: str | None = None


class Block(Struct, frozen=True):
    """Refuse this call; the model reads the reason."""

    reason: str | None = None


class UseTools(Struct, frozen=True):
    """Go on with these tools."""

    tools: Sequence[Tool]


class UseContext(Struct, frozen=True, kw_only=True):
    """Replace the run's messages and/or model from here on, both or neither."""

    messages: Sequence[Message] | None = None
    model: Model | None = None


class UseRequest(Struct, frozen=True, kw_only=True):
    """Send this request only with other messages, tools (advertised and executed from), or settings."""

    messages: Sequence[Message] | None = None
    tools: Sequence[Tool] | None = None
    settings: ModelSettings | None = None


class UseReply(Struct, frozen=True, kw_only=True):
    """Take another message for the reply, or its message with other calls."""

    message: AssistantMessage | None = None
    calls: Sequence[ToolCall] | None = None


# What a hook is given


class RunContext(Struct, Generic[DepsT], frozen=True, kw_only=True):
    """What every hook is given: the run, its cancel signal, and the application's own object."""

    run_id: str
    cancel: CancelSignal
    deps: DepsT


class RunStartContext(RunContext[DepsT], frozen=True, kw_only=True):
    """Before tools are resolved."""

    messages: Sequence[Message]


class RunEndContext(RunContext[DepsT], frozen=True, kw_only=True):
    """After the terminal event, for every ending."""

    status: Status
    reason: str | None
    error: BaseException | None
    messages: Sequence[Message]


class ToolsContext(RunContext[DepsT], frozen=True, kw_only=True):
    """Around the listing of tools. `source` is absent when there is none; `tools` is the merge, after the listing."""

    why: Literal["initial", "refresh"]
    source: Any = None
    tools: tuple[Tool, ...] = ()


class ModelContext(RunContext[DepsT], frozen=True, kw_only=True):
    """Before a request. `step` counts turns from 1, `limit` is the limit of turns."""

    step: int
    limit: int | None
    messages: Sequence[Message]
    tools: tuple[Tool, ...]
    settings: ModelSettings


class ReplyContext(ModelContext[DepsT], frozen=True, kw_only=True):
    """After a complete reply."""

    message: AssistantMessage


class RoundContext(RunContext[DepsT], frozen=True, kw_only=True):
    """After a round, when another is allowed. `results` are those of the round."""

    step: int
    limit: int | None
    messages: Sequence[Message]
    results: tuple[ToolResultMessage, ...]


class ToolCallContext(RunContext[DepsT], frozen=True, kw_only=True):
    """Before a tool. `tool` is absent for an unknown name; `arguments` is this hook's own copy."""

    step: int
    message: AssistantMessage
    call: ToolCall
    tool: Tool | None
    arguments: dict[str, Any]


class ToolOutcomeContext(ToolCallContext[DepsT], frozen=True, kw_only=True):
    """After a tool, its failure, its short circuit or its refusal. `seconds` is the time of the body."""

    result: ToolResultMessage
    error: BaseException | None
    seconds: float
    short_circuited: bool


Hook: TypeAlias = Callable[..., Any]


class Hooks(Struct, Generic[DepsT], frozen=True, kw_only=True):
    """Callables at a run's decision points, sync or async. Returning nothing changes nothing."""

    on_run_start: Callable[[RunStartContext[DepsT]], Maybe[object]] | None = None
    on_run_end: Callable[[RunEndContext[DepsT]], Maybe[object]] | None = None
    before_tools_resolved: Callable[[ToolsContext[DepsT]], Maybe[object]] | None = None
    after_tools_resolved: Callable[[ToolsContext[DepsT]], Maybe[UseTools | Stop]] | None = None
    should_continue: Callable[[RoundContext[DepsT]], Maybe[bool]] | None = None
    prepare_context: Callable[[ModelContext[DepsT]], Maybe[UseContext]] | None = None
    before_model_request: Callable[[ModelContext[DepsT]], Maybe[UseRequest | Stop]] | None = None
    after_model_response: Callable[[ReplyContext[DepsT]], Maybe[UseReply | Stop]] | None = None
    before_tool_execute: Callable[[ToolCallContext[DepsT]], Maybe[UseArguments | UseResult | Block | Stop]] | None = (
        None
    )
    after_tool_execute: Callable[[ToolOutcomeContext[DepsT]], Maybe[UseResult | Stop]] | None = None
    on_append: Callable[[Message], Maybe[object]] | None = None
    on_payload: Callable[[dict[str, Any]], Maybe[dict[str, Any]]] | None = None
    on_warning: Callable[[str, str], Maybe[object]] | None = None


class HookChain(Struct, frozen=True):
    """The hooks of the agent and of the run, in order."""

    levels: tuple[Hooks[Any], ...] = ()

    def at(self, point: str, *, reverse: bool = False) -> list[Hook]:
        """The callables of one point: agent first, then run; the other way round when reversed."""
        levels = reversed(self.levels) if reverse else self.levels
        return [hook for level in levels if (hook := getattr(level, point)) is not None]


async def resolved(value: Any) -> Any:
    """What a sync or an async callable gave back."""
    return await value if inspect.isawaitable(value) else value


async def answer_of(hook: Hook, context: Any, point: str, *kinds: type[Any]) -> Any:
    """What a hook says at `point`: nothing, or one of `kinds`. Raises `UsageError` for what might be meant as a no."""
    answer = await resolved(hook(context))
    if answer is None or isinstance(answer, kinds):
        return answer
    names = ", ".join([kind.__name__ for kind in kinds])
    raise UsageError(f"{point} answered {answer!r}, which means nothing here; return None or {names}")
