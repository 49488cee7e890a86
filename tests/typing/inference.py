# pyright: strict, reportUnnecessaryTypeIgnoreComment=error
"""What a type checker knows of hooks, tools, `deps` and answers when the user annotates nothing. Read by pyright, not run."""

from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypedDict, assert_never, assert_type

from pydantic import BaseModel

from antiphon import (
    Agent,
    Allow,
    ApprovalContext,
    ApprovalDecided,
    ApprovalModes,
    ApprovalRequested,
    Approve,
    AttemptDiscarded,
    ContextReplaced,
    Deny,
    Emitter,
    Event,
    Hooks,
    LimitReached,
    MessageDelivered,
    MessageFinished,
    MessageQueued,
    MessageReturned,
    MessageStarted,
    ModelContext,
    ModelRequest,
    ReplyContext,
    RoundContext,
    Run,
    RunEndContext,
    RunFinished,
    RunResult,
    RunStartContext,
    RunStarted,
    Stop,
    TextDelta,
    ThinkingDelta,
    Tool,
    ToolCallContext,
    ToolCallDelta,
    ToolContext,
    ToolFinished,
    ToolHooks,
    ToolOutcomeContext,
    ToolProgress,
    ToolRequested,
    ToolsContext,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UseArguments,
    UseRequest,
    UseResult,
    Warned,
    run_sync,
    stream_sync,
    tool,
)
from antiphon.testing import Recording, Scripted, ScriptedApprover
from antiphon.tools.tool import FunctionTool


@dataclass
class Shop:
    """The application's own object."""

    name: str


class City(BaseModel):
    name: str


class Arguments(TypedDict):
    query: str
    limit: int


def nothing(*_checked: object) -> None:
    """Takes what was checked, so that a lambda can return nothing."""


async def text(_request: ModelRequest) -> str:
    return "hi"


# Hooks: the contexts and `deps` of every point follow from the agent's own type.

agent = Agent[Shop](
    text,
    hooks=Hooks(
        on_run_start=lambda context: nothing(assert_type(context, RunStartContext[Shop])),
        on_run_end=lambda context: nothing(assert_type(context, RunEndContext[Shop])),
        before_tools_resolved=lambda context: nothing(assert_type(context, ToolsContext[Shop])),
        after_tools_resolved=lambda context: nothing(assert_type(context, ToolsContext[Shop])),
        should_continue=lambda context: nothing(assert_type(context, RoundContext[Shop])),
        prepare_context=lambda context: nothing(assert_type(context, ModelContext[Shop])),
        before_model_request=lambda context: nothing(assert_type(context, ModelContext[Shop])),
        after_model_response=lambda context: nothing(assert_type(context, ReplyContext[Shop])),
        before_tool_execute=lambda context: nothing(assert_type(context, ToolCallContext[Shop])),
        after_tool_execute=lambda context: nothing(assert_type(context, ToolOutcomeContext[Shop])),
    ),
    policy=lambda context: nothing(assert_type(context, ApprovalContext)),
    approver=lambda context: assert_type(context, ApprovalContext).call.name == "a",
)
assert_type(agent, Agent[Shop])

deciding = Hooks[Shop](
    before_model_request=lambda context: UseRequest(messages=context.messages) if context.deps.name else Stop("no"),
    before_tool_execute=lambda context: UseArguments({**context.arguments, "shop": context.deps.name}),
    after_tool_execute=lambda context: UseResult(context.result.text.upper()),
    should_continue=lambda context: context.step < 3,
)


async def waits(context: ToolCallContext[Shop]) -> UseResult | None:
    """A hook may be async."""
    return UseResult(context.deps.name) if context.tool is None else None


waiting = Hooks(before_tool_execute=waits)
assert_type(waiting, Hooks[Shop])

wrong = Hooks[Shop](
    before_tool_execute=lambda context: "no",  # pyright: ignore[reportArgumentType] - a hook answers with records
    before_model_request=lambda context: Approve(),  # pyright: ignore[reportArgumentType] - an answer of another point
)

policies = Agent(text, policy=lambda context: Allow() if context.tool is None else Deny(context.call.name))
modes = Agent(text, policy=ApprovalModes("plan"), approver=ScriptedApprover(True))


# `deps`: a run takes what the agent is made for.

agent.run("hi", deps=Shop("x"))
agent.run("hi", deps="x")  # pyright: ignore[reportArgumentType] - not a Shop
agent.run("hi", colour="red")  # pyright: ignore[reportCallIssue] - no such option

free = Agent(text)
assert_type(free, Agent[Any])
free.run("hi", deps="whatever")


# Tools: what a function takes and gives stays known, the context knows its `deps`.


@tool
async def search(query: str, context: ToolContext[Shop], limit: int = 3) -> list[str]:
    """Searches."""
    assert_type(context.deps, Shop)
    return [query] * limit


@tool(timeout=3, kind="read")
def count(words: list[str]) -> int:
    """Counts."""
    return len(words)


assert_type(count(["a"]), int)
counting: FunctionTool[[list[str]], int] = count
found: Coroutine[Any, Any, list[str]] = search("a", ToolContext(deps=Shop("x")))
count("a")  # pyright: ignore[reportArgumentType] - the function's own parameters count

modelled = Tool.from_model(City, lambda city: assert_type(city, City).name, name="city", description="Names a city.")
assert_type(modelled, Tool)
raw = Tool.from_schema("raw", "Takes anything.", {"type": "object"}, lambda given: assert_type(given, dict[str, Any]))

hooked = ToolHooks[Arguments](
    before_execute=lambda call: nothing(assert_type(call.arguments, Arguments)),
    after_execute=lambda done: UseResult(done.result.text * done.arguments["limit"]),
)
mistaken = ToolHooks[Arguments](
    before_execute=lambda call: Stop(),  # pyright: ignore[reportArgumentType] - a tool cannot end a run
)


# Answers: the result's `output` has the type that was asked for, else it is text.


async def answers() -> None:
    assert_type(agent.run("hi", output_type=City), Run[City])
    assert_type((await agent.run("hi", output_type=City)).output, City)
    assert_type((await agent.run("hi")).output, str)
    assert_type((await agent.run("hi", output_type=int)).output, int)
    assert_type((await agent.run("hi", output_type=list[City])).output, list[City])
    assert_type((await agent.run("hi", output_type=Arguments)).output, Arguments)
    either: Run[City | Shop] = agent.run("hi", output_type=City | Shop)  # a union has no type of its own to infer from
    assert_type((await either).output, City | Shop)
    assert_type((await agent.run("hi", messages=(), deps=Shop("x"), output_type=Shop)).output, Shop)
    async with agent.run("hi", output_type=City) as run:
        async for event in run:
            assert_type(event, Event)
        assert_type(run.result, RunResult[City])
        assert_type(run.partial, str)
    result = await agent.run("hi")
    assert_type(result.text, str)
    again = await agent.run(resume=result.state, decisions={"a": Approve(), "b": Deny("no")})
    assert_type(again, RunResult[str])


assert_type(run_sync(agent.run("hi", output_type=City)), RunResult[City])
for told in stream_sync(agent.run("hi")):
    assert_type(told, Event)


# Events: one closed union. A kind that is forgotten here is an error of the checker.


def shown(event: Event) -> str:
    match event:
        case TextDelta(text=piece) | ThinkingDelta(text=piece) | ToolCallDelta(text=piece):
            return assert_type(piece, str)
        case RunStarted() | RunFinished() | TurnStarted() | TurnFinished():
            return event.run_id
        case MessageStarted() | MessageFinished() | AttemptDiscarded() | ContextReplaced():
            return event.run_id
        case MessageQueued() | MessageDelivered() | MessageReturned():
            return event.queue
        case ToolRequested() | ToolStarted() | ToolProgress() | ToolFinished():
            return event.run_id
        case ApprovalRequested() | ApprovalDecided():
            return event.call_id
        case LimitReached() | Warned():
            return event.run_id
        case _:
            assert_never(event)


# Testing: what was recorded keeps its kind.

recording = Recording()
assert_type(recording.of(ToolFinished), list[ToolFinished])
assert_type(recording.one(RunFinished).status in ("done", "error"), bool)
agent.run("hi", model=Scripted("hi")).subscribe(recording)

emitter = Emitter[int]()
emitter.subscribe(lambda value: nothing(assert_type(value, int)))
emitter.emit("a")  # pyright: ignore[reportArgumentType] - not an int
