"""The agent: a frozen definition. It holds no state; any number of runs may use it at once."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, Unpack, cast, overload

from antiphon.agent.conversation import Conversation
from antiphon.agent.options import AnyModel, RunOptions, Tools, check_options, resolve, settled
from antiphon.agent.output import TypedOutput
from antiphon.agent.prompt import Prompt
from antiphon.agent.run import Run
from antiphon.agent.start import Start
from antiphon.agent.subagent import agent_tool
from antiphon.errors import UsageError
from antiphon.loop.hooks import Hooks
from antiphon.loop.limits import Limits
from antiphon.loop.spec import ApprovalPolicy, Approver, IdGenerator, Instructions, Recovery, ToModel, ToolOptions
from antiphon.loop.toolset import by_name
from antiphon.tools.registry import ToolRegistry
from antiphon.tools.source import ToolSource
from antiphon.tools.tool import Tool, ToolTraits
from antiphon.types.deps import DepsT
from antiphon.types.messages import Message
from antiphon.types.request import Model, ModelInfo, ModelSettings
from antiphon.types.result import OutputT

__all__ = ["Agent"]


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
        sources: Sequence[ToolSource] = (),
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
        info: ModelInfo | None = getattr(self.model, "info", None)
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

    @overload
    def run(
        self, input: Prompt | None = None, *, output_type: type[OutputT], **options: Unpack[RunOptions[DepsT]]
    ) -> Run[OutputT]: ...
    @overload
    def run(
        self, input: Prompt | None = None, *, output_type: None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> Run[str]: ...
    @overload
    def run(
        self, input: Prompt | None = None, *, output_type: Any, **options: Unpack[RunOptions[DepsT]]
    ) -> Run[Any]: ...
    def run(
        self,
        input: Prompt | None = None,  # noqa: A002 - the word that the field uses
        *,
        output_type: Any = None,
        **options: Unpack[RunOptions[DepsT]],
    ) -> Run[Any]:
        """One run. Nothing starts before it is awaited or entered.

        Legal are: `input`, with or without `messages` before it; `messages` alone, ending in a user message or tool
        results, to go on from them (`rerun_open` lets their open calls run instead of closing them as unknown);
        `resume`, the state of an earlier result, with `decisions` for the calls that wait, or with `input` when nothing
        waits. `settings` replace the agent's field by field, `hooks` come after the agent's, every other option (see
        `RunOptions`) replaces the agent's own. With `output_type` the result's `output` is a validated value of that
        type, else the text of the last reply. Raises `UsageError` for other combinations.
        """
        check_options(options)
        start = Start.of(input, options)
        output = TypedOutput(output_type) if output_type is not None else None
        return Run(settled(self._fields, options, output), start)

    def conversation(
        self,
        *,
        messages: Sequence[Message] = (),
        deps: DepsT = cast("Any", None),  # noqa: B008 - a cast is no call
        session_id: str | None = None,
    ) -> Conversation[Self]:
        """This agent with a memory."""
        return Conversation(self, messages=messages, deps=deps, session_id=session_id)

    def as_tool(
        self,
        name: str | None = None,
        description: str = "",
        *,
        parameters: dict[str, Any] | None = None,
        prompt: Callable[[dict[str, Any]], Prompt] | None = None,
        **traits: Unpack[ToolTraits],
    ) -> Tool:
        """This agent as a tool of another: its own history, the caller's stop and limits, its events in the caller's.

        The model gives one `prompt` text, unless `parameters` (a JSON Schema) and `prompt` (what makes a prompt of such
        arguments) say otherwise. What it answers is the tool's result; an ending without an answer is a tool error.
        Its calls that wait for a decision wait in the caller's run, under `outer/inner`.
        """
        named = name or self.name
        if named is None:
            raise UsageError("as_tool needs a name: give it, or name the agent")
        return agent_tool(self, named, description, parameters, prompt, **traits)
