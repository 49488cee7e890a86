"""The agent: a frozen definition. It holds no state; any number of runs may use it at once."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Self, TypeAlias, cast

from antiphon.agent.prompt import Prompt
from antiphon.agent.run import Run, Start
from antiphon.errors import UsageError
from antiphon.loop.hooks import Hooks
from antiphon.loop.limits import Limits, check_limits
from antiphon.loop.spec import (
    ApprovalPolicy,
    Approver,
    ForcedCall,
    IdGenerator,
    Instructions,
    Recovery,
    RunSpec,
    ToModel,
    ToolOptions,
)
from antiphon.loop.state import Decision
from antiphon.loop.toolset import by_name
from antiphon.providers.function import as_model
from antiphon.providers.resolve import get_model
from antiphon.tools.registry import ToolRegistry
from antiphon.tools.tool import Tool
from antiphon.types.cancel import CancelSignal
from antiphon.types.deps import DepsT
from antiphon.types.messages import Message
from antiphon.types.request import Model, ModelFunction, ModelSettings

__all__ = ["Agent", "Tools"]

Tools: TypeAlias = Iterable[Tool] | ToolRegistry
AnyModel: TypeAlias = str | Model | ModelFunction

RESERVED = ("auto", "none", "required")


class Agent(Generic[DepsT]):
    """A model, what it is told, what it may call, and the rules.

    `model` is `"provider:name"`, a `Model`, or a plain function; `instructions` is text or a callable that is asked once
    a run. `tools` may be a `ToolRegistry`: later runs see what was registered meanwhile. Everything can be overridden
    for one run. An agent is never changed: `but()` makes another.
    """

    __slots__ = ("_fields",)
    _fields: dict[str, Any]

    def __init__(
        self,
        model: AnyModel,
        *,
        instructions: Instructions = "",
        tools: Tools = (),
        sources: Sequence[Any] = (),
        hooks: Hooks[DepsT] | None = None,
        policy: ApprovalPolicy | None = None,
        approver: Approver | None = None,
        limits: Limits | None = None,
        settings: ModelSettings | None = None,
        recovery: Recovery | None = None,
        tool_options: ToolOptions | None = None,
        to_model: ToModel | None = None,
        fallbacks: Sequence[AnyModel] = (),
        id_generator: IdGenerator | None = None,
        name: str | None = None,
    ) -> None:
        fields: dict[str, Any] = {
            "model": resolve(model),
            "instructions": instructions,
            "tools": tools if isinstance(tools, ToolRegistry) else tuple(tools),
            "sources": tuple(sources),
            "hooks": hooks,
            "policy": policy,
            "approver": approver,
            "limits": limits or Limits(),
            "settings": settings or ModelSettings(),
            "recovery": recovery or Recovery(),
            "tool_options": tool_options or ToolOptions(),
            "to_model": to_model,
            "fallbacks": tuple([resolve(other) for other in fallbacks]),
            "id_generator": id_generator,
            "name": name,
        }
        by_name(fields["tools"], "the agent's tools")
        object.__setattr__(self, "_fields", fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise UsageError(f"an agent is never changed: make another with agent.but({name}=…)")

    def __repr__(self) -> str:
        info = getattr(self.model, "info", None)
        model = info.origin if info is not None else type(self.model).__name__
        return f"Agent({model}, tools={[tool.name for tool in self.tools]})"

    @property
    def model(self) -> Model:
        return self._fields["model"]

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of this moment."""
        return tuple(self._fields["tools"])

    @property
    def name(self) -> str | None:
        return self._fields["name"]

    @property
    def instructions(self) -> Instructions:
        return self._fields["instructions"]

    @property
    def settings(self) -> ModelSettings:
        return self._fields["settings"]

    @property
    def limits(self) -> Limits:
        return self._fields["limits"]

    def but(self, **changes: Any) -> Self:
        """The same agent with other fields, those of the constructor."""
        unknown = sorted(set(changes) - set(self._fields))
        if unknown:
            raise UsageError(f"an agent has no {', '.join(map(repr, unknown))}; it has {', '.join(self._fields)}")
        return type(self)(**(self._fields | changes))

    def run(
        self,
        input: Prompt | None = None,  # noqa: A002 - the word that the field uses
        *,
        messages: Sequence[Message] = (),
        resume: Mapping[str, Any] | None = None,
        decisions: Mapping[str, Decision] | None = None,
        rerun_open: bool = False,
        model: AnyModel | None = None,
        instructions: Instructions | None = None,
        tools: Tools | None = None,
        hooks: Hooks[DepsT] | None = None,
        limits: Limits | None = None,
        settings: ModelSettings | None = None,
        tool_choice: str | ForcedCall = "auto",
        deps: DepsT = cast("Any", None),  # noqa: B008 - a cast is no call
        cancel: CancelSignal | None = None,
        approver: Approver | None = None,
        policy: ApprovalPolicy | None = None,
        tool_options: ToolOptions | None = None,
        recovery: Recovery | None = None,
        session_id: str | None = None,
        meta: Any = None,
        run_id: str | None = None,
    ) -> Run[str]:
        """One run. Nothing starts before it is awaited or entered.

        Legal are: `input`, with or without `messages` before it; `messages` alone, ending in a user message or tool
        results, to go on from them (`rerun_open` lets their open calls run instead of closing them as unknown);
        `resume`, the state of an earlier result, with `decisions` for the calls that wait, or with `input` when nothing
        waits. `settings` replace the agent's field by field, `hooks` come after the agent's, everything else replaces
        the agent's own. Raises `UsageError` for other combinations.
        """
        start = Start(
            input=input,
            messages=messages,
            resume=resume,
            decisions=dict(decisions or {}),
            rerun_open=rerun_open,
            forced=tool_choice if isinstance(tool_choice, ForcedCall) else None,
            run_id=run_id,
        )
        changes: dict[str, Any] = {
            "model": None if model is None else resolve(model),
            "instructions": instructions,
            "limits": limits,
            "approver": approver,
            "policy": policy,
            "tool_options": tool_options,
            "recovery": recovery,
        }
        spec = self._spec(
            {name: value for name, value in changes.items() if value is not None},
            tools=self._fields["tools"] if tools is None else tools,
            hooks=hooks,
            settings=settings,
            tool_choice="none" if isinstance(tool_choice, ForcedCall) else tool_choice,
            deps=deps,
            cancel=cancel,
            session_id=session_id,
            meta=meta,
        )
        return Run(spec, start)

    def _spec(
        self,
        changes: dict[str, Any],
        *,
        tools: Tools,
        hooks: Hooks[Any] | None,
        settings: ModelSettings | None,
        tool_choice: str,
        **more: Any,
    ) -> RunSpec:
        """The settled definition: the agent's fields, then the run's."""
        fields = {
            name: value for name, value in self._fields.items() if name not in ("name", "tools", "hooks")
        } | changes
        named = by_name(tools, "the run's tools")
        if tool_choice not in RESERVED and tool_choice not in named and not fields["sources"]:
            raise UsageError(f"tool_choice={tool_choice!r} names no tool; the tools are: {', '.join(named) or 'none'}")
        check_limits(fields["limits"], getattr(fields["model"], "info", None))
        fields["settings"] = fields["settings"].merged(settings)
        levels = tuple([level for level in (self._fields["hooks"], hooks) if level is not None])
        return RunSpec(**fields, **more, tools=tuple(named.values()), hooks=levels, tool_choice=tool_choice)


def resolve(model: AnyModel) -> Model:
    """A model from its name, or from whatever answers like one."""
    return get_model(model) if isinstance(model, str) else as_model(model)
