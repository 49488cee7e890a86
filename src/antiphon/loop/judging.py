"""Judging a call before it runs: find it, check its arguments, ask the hooks, and reach a verdict. Nobody is waited for."""

import json
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from antiphon.loop.approval import verdict_on
from antiphon.loop.hooks import Block, Stop, ToolCallContext, answer_of
from antiphon.loop.results import NOT_RUN, CallEnd, copied, error_end, last_reply, value_end
from antiphon.loop.session import HaltRun, Session, stopped
from antiphon.loop.spec import Ask
from antiphon.loop.state import Deny
from antiphon.loop.toolset import unknown_tool
from antiphon.tools.arguments import ArgumentError, Prepared
from antiphon.tools.hooks import UseArguments, UseResult
from antiphon.tools.result import ToolResult
from antiphon.tools.tool import Tool
from antiphon.types.content import ToolCall
from antiphon.types.events import LimitReached
from antiphon.types.unset import UNSET

__all__ = ["Judgement", "denied", "judge"]


class Judgement(Struct, frozen=True, kw_only=True):
    """What judging came to: an end already (perhaps of the run too), or arguments that run, or wait for a person."""

    tool: Tool | None
    prepared: Prepared | None = None
    end: CallEnd | None = None
    stop: HaltRun | None = None
    asks: bool = False


async def judge(session: Session, call: ToolCall) -> Judgement:
    """Everything before a body may run."""
    if session.choice == "none":
        text = "tools are switched off for this run: answer in text"
        return Judgement(tool=None, end=error_end(session, call, text, "not_run"))
    tool = await session.find_tool(call.name)
    if tool is not None:
        over = over_limit(session, call, tool)
        if over is not None:
            return Judgement(tool=tool, end=over)
    try:
        prepared = tool.prepare(call.arguments) if tool is not None else bare_arguments(call)
    except ArgumentError as error:
        refused = bare_arguments(call).object
        end = error_end(session, call, str(error), "error", error=error, invalid=True, refused=refused)
        return Judgement(tool=tool, end=end)
    return await ask_hooks(session, call, tool, prepared)


def bare_arguments(call: ToolCall) -> Prepared:
    """The arguments of a call to an unknown tool, as far as they can be read."""
    try:
        parsed = call.parse()
    except ValueError:
        parsed = {}
    return bare(parsed)


def bare(arguments: dict[str, Any]) -> Prepared:
    """Arguments that no schema speaks of."""
    return Prepared(arguments, json.dumps(arguments, ensure_ascii=False, separators=(",", ":")), None)


def over_limit(session: Session, call: ToolCall, tool: Tool) -> CallEnd | None:
    """A tool's own limit refuses the call; the run goes on."""
    counters = session.state.counters
    uses = {
        "turns": (tool.max_turns, max(0, counters.turns_by_tool.get(tool.name, 0) - 1)),
        "calls": (tool.max_calls, counters.calls_by_tool.get(tool.name, 0) + session.started_now(tool.name)),
    }
    for which, (limit, used) in uses.items():
        if limit is not None and used >= limit:
            session.teller.tell(LimitReached, scope="tool", which=which, limit=limit, call_id=call.id, name=tool.name)
            text = f"the limit of {limit} {which} for this tool was reached: go on without it"
            return error_end(session, call, text, "not_run")
    return None


async def ask_hooks(session: Session, call: ToolCall, tool: Tool | None, prepared: Prepared) -> Judgement:
    """The agent's hooks, the run's, the tool's own; each sees what the former made of the arguments."""
    hooks = session.hooks.at("before_tool_execute")
    inner = tool.hooks.before_execute if tool is not None and tool.hooks is not None else None
    reached_inner = False
    refused: dict[str, Any] | None = None
    try:
        for place, hook in enumerate([*hooks, inner] if inner is not None else hooks):
            reached_inner = place == len(hooks)
            point, more = ("before_execute", ()) if reached_inner else ("before_tool_execute", (Block, Stop))
            context = call_context(session, call, tool, prepared)
            change = await answer_of(hook, context, point, UseArguments, UseResult, *more)
            if isinstance(change, Stop):
                end = error_end(session, call, NOT_RUN, "not_run", prepared)
                return Judgement(tool=tool, end=end, stop=stopped(change, "before_tool_execute"))
            if session.halting is not None:  # stopped from within the hook: nobody else is asked
                end = error_end(session, call, NOT_RUN, "not_run", prepared)
                return Judgement(tool=tool, end=end, stop=session.halting)
            if isinstance(change, Block):
                return Judgement(tool=tool, end=denied(session, call, change.reason, prepared, inner=False))
            if isinstance(change, UseArguments):
                refused = dict(change.arguments)
                prepared = changed_arguments(tool, change)
                refused = None
            if isinstance(change, UseResult):
                end = value_end(
                    session, call, given_result(change), prepared, short_circuited=True, inner=reached_inner
                )
                return Judgement(tool=tool, end=end)
        if tool is not None:
            return await reach_verdict(session, call, tool, prepared)
    except Exception as error:  # noqa: BLE001 - a failure around a tool is an error for the model, and nothing runs
        text = str(error) or type(error).__name__
        used = prepared if refused is None else None
        end = error_end(session, call, text, "error", used, error=error, inner=reached_inner, refused=refused)
        return Judgement(tool=tool, end=end)
    text = unknown_tool(call.name, session.turn_tools)
    end = error_end(session, call, text, "error", invalid=True)
    return Judgement(tool=None, end=replace(end, prepared=prepared))


def call_context(session: Session, call: ToolCall, tool: Tool | None, prepared: Prepared) -> ToolCallContext[Any]:
    return ToolCallContext(
        **session.common(),
        step=session.state.counters.turns,
        message=last_reply(session),
        call=call,
        tool=tool,
        arguments=copied(prepared),
    )


def changed_arguments(tool: Tool | None, change: UseArguments) -> Prepared:
    """A hook's arguments, defaulted and validated again."""
    given = dict(change.arguments)
    return tool.prepare_object(given) if tool is not None else bare(given)


def given_result(change: UseResult) -> Any:
    """A result from a hook, used word for word."""
    content = None if change.content is UNSET else change.content
    if change.details is UNSET and change.is_error is UNSET:
        return content
    details = None if change.details is UNSET else change.details
    return ToolResult(content, details=details, is_error=change.is_error is True)


async def reach_verdict(session: Session, call: ToolCall, tool: Tool, prepared: Prepared) -> Judgement:
    output = session.spec.output
    if output is not None and tool is output.tool:  # an answer is no act: there is nothing to allow
        return Judgement(tool=tool, prepared=prepared)
    verdict = await verdict_on(session, call, tool, prepared)
    if isinstance(verdict, Deny):
        return Judgement(
            tool=tool, end=denied(session, call, verdict.reason or verdict.instruction, prepared, inner=True)
        )
    return Judgement(tool=tool, prepared=prepared, asks=isinstance(verdict, Ask))


def denied(session: Session, call: ToolCall, reason: str | None, prepared: Prepared | None, *, inner: bool) -> CallEnd:
    """A refusal; its sentence is for the model."""
    text = reason or "the call was refused: go on without it"
    return error_end(session, call, text, "denied", prepared, inner=inner)
