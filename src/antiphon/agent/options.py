"""What one run may override, and how the agent's and the run's words become one settled definition."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeAlias, TypedDict

from antiphon.agent.output import TextOutput, TypedOutput
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
from antiphon.tools.source import ToolSource
from antiphon.tools.tool import Tool
from antiphon.types.cancel import CancelSignal
from antiphon.types.deps import DepsT
from antiphon.types.messages import Message
from antiphon.types.request import Model, ModelFunction, ModelSettings

__all__ = ["AnyModel", "RunOptions", "Tools", "check_options", "resolve", "settled"]

Tools: TypeAlias = Iterable[Tool] | ToolRegistry
AnyModel: TypeAlias = str | Model | ModelFunction

CHOICES = ("auto", "none", "required")


class RunOptions(TypedDict, Generic[DepsT], total=False):
    """What a run may say besides its input; see `Agent.run` for the legal combinations.

    Where a run goes on from: `messages`, `rerun_open`, `resume`, `decisions`. What is queued from the start: `steering`,
    `follow_ups`, and how much of it is delivered at a time: `steering_mode`, `follow_up_mode`. What only a run has: `deps` (the
    application's own object), `cancel`, `tool_choice` (`auto`, `none`, `required`, a tool's name for the first request,
    or a `ForcedCall`), `session_id` (for provider caches), `meta` (carried to the model's request), `run_id`,
    `parent_run_id`. Everything else overrides the agent's own.
    """

    messages: Sequence[Message]
    rerun_open: bool
    resume: Mapping[str, Any] | None
    decisions: Mapping[str, Decision] | None
    steering: Sequence[Message]
    follow_ups: Sequence[Message]
    steering_mode: Literal["one", "all"]
    follow_up_mode: Literal["one", "all"]
    deps: DepsT
    cancel: CancelSignal | None
    tool_choice: str | ForcedCall
    session_id: str | None
    meta: Any
    run_id: str | None
    parent_run_id: str | None
    model: AnyModel
    fallbacks: Sequence[AnyModel]
    instructions: Instructions
    tools: Tools
    sources: Sequence[ToolSource]
    hooks: Hooks[DepsT] | None
    policy: ApprovalPolicy | None
    approver: Approver | None
    limits: Limits
    settings: ModelSettings | None
    recovery: Recovery
    tool_options: ToolOptions
    to_model: ToModel | None
    id_generator: IdGenerator | None


QUEUES = ("steering", "follow_ups", "steering_mode", "follow_up_mode")
START = ("messages", "rerun_open", "resume", "decisions", "run_id", *QUEUES)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise `UsageError` for an option that no run has."""
    for name in options:
        if name not in RunOptions.__annotations__:
            close = difflib.get_close_matches(name, RunOptions.__annotations__, 1)
            guess = (
                f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(RunOptions.__annotations__)}"
            )
            raise UsageError(f"a run has no option {name!r}{guess}")


def settled(agent: Mapping[str, Any], options: Mapping[str, Any], output: TypedOutput | None) -> RunSpec:
    """One definition of the agent's fields and the run's options."""
    fields = {name: value for name, value in agent.items() if name not in ("name", "hooks", "settings")}
    fields |= {name: value for name, value in options.items() if name not in (*START, "hooks", "settings")}
    fields["model"] = resolve(fields["model"])
    fields["fallbacks"] = tuple([resolve(model) for model in fields["fallbacks"]])
    fields["sources"] = tuple(fields["sources"])
    fields["settings"] = agent["settings"].merged(options.get("settings"))
    fields["hooks"] = tuple([hooks for hooks in (agent["hooks"], options.get("hooks")) if hooks is not None])
    named = by_name(fields["tools"], "the run's tools")
    reader: TypedOutput | TextOutput | None = output
    if output is not None and answers_in_text(fields, named):
        reader = output.in_text()
        fields["settings"] = fields["settings"].merged(ModelSettings(response_schema=reader.schema))
    elif output is not None:
        named = by_name([*named.values(), output.tool], "the run's tools and its typed answer")
    fields["tools"] = tuple(named.values())
    fields["tool_choice"] = settled_choice(fields, named, reader if isinstance(reader, TypedOutput) else None)
    check_limits(fields["limits"], getattr(fields["model"], "info", None))
    return RunSpec(**fields, output=reader)


def answers_in_text(fields: Mapping[str, Any], named: Mapping[str, Tool]) -> bool:
    """Whether a typed answer can be the reply's text: all models keep to a schema, and no tool has to be weighed with it."""
    if named or fields["sources"] or fields["settings"].response_schema is not None:
        return False
    if fields.get("tool_choice", "auto") not in ("auto", "none"):
        return False
    return all(getattr(model, "schema_mode", False) for model in (fields["model"], *fields["fallbacks"]))


def settled_choice(fields: Mapping[str, Any], named: Mapping[str, Tool], output: TypedOutput | None) -> str:
    """The tool choice of the requests. After a forced call the model only answers."""
    choice: str | ForcedCall = fields.get("tool_choice", "auto")
    name = choice.name if isinstance(choice, ForcedCall) else choice
    if name not in CHOICES and name not in named and not fields["sources"]:
        raise UsageError(f"tool_choice={choice!r} names no tool; the tools are: {', '.join(named) or 'none'}")
    if output is not None and (isinstance(choice, ForcedCall) or choice == "none"):
        raise UsageError("a typed answer comes through a tool call: leave output_type= out, or the tool choice")
    if isinstance(choice, ForcedCall):
        return "none"
    if choice == "auto" and output is not None and len(named) == 1:
        return output.tool.name
    return choice


def resolve(model: AnyModel) -> Model:
    """A model from its name, or from whatever answers like one."""
    return get_model(model) if isinstance(model, str) else as_model(model)
