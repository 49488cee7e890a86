"""From what a tool gave back to the one result message of its call, through the hooks that come after it."""

from copy import deepcopy
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import FatalToolError
from antiphon.loop.hooks import Stop, ToolOutcomeContext, answer_of
from antiphon.loop.session import HaltRun, Session, stopped
from antiphon.loop.state import Returned
from antiphon.tools.arguments import Prepared
from antiphon.tools.hooks import UseResult
from antiphon.tools.result import Shaped, ToolResult, error_text, shape
from antiphon.tools.tool import Tool
from antiphon.types.content import Text, ToolCall
from antiphon.types.events import ToolFinished
from antiphon.types.messages import AssistantMessage, Outcome, ToolResultMessage
from antiphon.types.unset import UNSET

__all__ = ["NOT_RUN", "CallEnd", "after_hooks", "copied", "error_end", "finish_call", "last_reply", "value_end"]

NOT_RUN = "the call was not run because the run ended first"


class CallEnd(Struct, frozen=True, kw_only=True):
    """How a call ended, before the hooks see it.

    `prepared` are the arguments that were used, `refused` those that were not good enough to be. `inner` says that the
    tool's own hooks take part.
    """

    result: ToolResultMessage
    error: BaseException | None = None
    prepared: Prepared | None = None
    refused: dict[str, Any] | None = None
    seconds: float = 0.0
    short_circuited: bool = False
    inner: bool = False
    end_turn: bool = False
    invalid: bool = False


def base_result(session: Session, call: ToolCall, prepared: Prepared | None) -> dict[str, Any]:
    """What every result of this call has."""
    used = None
    if prepared is not None and not same_arguments(call, prepared):
        used = prepared.text
    return {
        "id": f"{last_reply(session).id}/{call.id}",
        "created_at": session.now(),
        "call_id": call.id,
        "tool_name": call.name,
        "used_arguments": used,
    }


def same_arguments(call: ToolCall, prepared: Prepared) -> bool:
    if call.arguments == prepared.text:
        return True
    try:
        return call.parse() == prepared.object
    except ValueError:
        return False


def last_reply(session: Session) -> AssistantMessage:
    """The reply whose calls are open."""
    messages = session.state.messages
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, AssistantMessage):
            return message
    raise AssertionError("a call follows a reply")


def value_end(session: Session, call: ToolCall, value: Any, prepared: Prepared | None, **more: Any) -> CallEnd:
    """A tool (or a hook, or a person in its place) gave this value back."""
    shaped = shaped_value(session, call, value)
    outcome: Outcome = "error" if shaped.is_error else "ok"
    result = ToolResultMessage(
        **base_result(session, call, prepared),
        parts=shaped.parts,
        details=shaped.details,
        is_error=shaped.is_error,
        outcome=outcome,
    )
    return CallEnd(result=result, prepared=prepared, end_turn=shaped.end_turn, **more)


def shaped_value(session: Session, call: ToolCall, value: Any) -> Shaped:
    """A value as parts and JSON, cut to the limit; what was odd about it is told."""
    shaped = shape(value, call.name).capped(session.spec.tool_options.result_limit)
    for code, text in shaped.warnings:
        session.warn(code, text)
    return shaped


def error_end(
    session: Session, call: ToolCall, text: str, outcome: Outcome, prepared: Prepared | None = None, **more: Any
) -> CallEnd:
    """The call failed, was refused or never ran; the model reads why."""
    shaped = shaped_value(session, call, text)
    result = ToolResultMessage(
        **base_result(session, call, prepared),
        parts=(Text(error_text(call.name, shaped.text)),),
        details=shaped.details,
        is_error=True,
        outcome=outcome,
    )
    return CallEnd(result=result, prepared=prepared, **more)


async def finish_call(
    session: Session, call: ToolCall, tool: Tool | None, end: CallEnd, stop: HaltRun | None = None
) -> None:
    """Ask the hooks after it, hand the result to the machine, and tell the end; then end the run if somebody wants it.

    The machine has the result before anybody hears of it: a state that is stored at that moment does not lose it.
    """
    end, stopping = await after_hooks(session, call, tool, end)
    session.feed(Returned(call_id=call.id, result=end.result, end_turn=end.end_turn, invalid=end.invalid))
    tell_end(session, call, end)
    await session.settle()
    raise_for(session, tool, end)
    for halt in (stop, stopping):
        if halt is not None:
            raise halt


def tell_end(session: Session, call: ToolCall, end: CallEnd) -> None:
    session.teller.tell(
        ToolFinished,
        call_id=call.id,
        name=call.name,
        result=end.result,
        outcome=end.result.outcome,
        arguments=copied(end.prepared) if end.prepared is not None else None,
        seconds=end.seconds,
    )


def raise_for(session: Session, tool: Tool | None, end: CallEnd) -> None:
    """End the run for an error that is for the caller, after the call's finish event."""
    error = end.error
    if error is None or end.short_circuited:
        return
    policy = (tool.on_error if tool is not None else None) or session.spec.tool_options.on_error
    if isinstance(error, FatalToolError) or (policy == "raise" and end.result.outcome == "error" and not end.invalid):
        raise HaltRun("error", f"tool {end.result.tool_name!r} failed: {error}", error)


async def after_hooks(
    session: Session, call: ToolCall, tool: Tool | None, end: CallEnd
) -> tuple[CallEnd, HaltRun | None]:
    """The tool's own hook first, then the run's, then the agent's: what goes in first comes out last.

    Each is asked, also when one before it failed or wants the run to end: it may be the one that closes what its
    partner opened, or that hides what nobody must see.
    """
    hooks = session.hooks.at("after_tool_execute", reverse=True)
    inner = tool.hooks.after_execute if end.inner and tool is not None and tool.hooks is not None else None
    what_happened, stop = end.result, None
    chain = [("after_tool_execute", hook) for hook in hooks]
    for point, hook in [("after_execute", inner), *chain] if inner is not None else chain:
        kinds = (UseResult, Stop) if point == "after_tool_execute" else (UseResult,)
        try:
            change = await answer_of(hook, outcome_context(session, call, tool, end), point, *kinds)
            if isinstance(change, UseResult):
                result = changed_result(session, call, end.result, change)
                end = replace(end, result=result, end_turn=end.end_turn and change.is_error is not True)
        except Exception as error:  # noqa: BLE001 - a failed filter must not let the unfiltered result through
            end = after_failure(session, call, end, what_happened, error)
            continue
        if isinstance(change, Stop):
            stop = stop or stopped(change, point)
    return end, stop


def outcome_context(session: Session, call: ToolCall, tool: Tool | None, end: CallEnd) -> ToolOutcomeContext[Any]:
    result = end.result
    return ToolOutcomeContext(
        **session.common(),
        step=session.state.counters.turns,
        message=last_reply(session),
        call=call,
        tool=tool,
        arguments=copied(end.prepared) if end.prepared is not None else deepcopy(end.refused or {}),
        result=result if result.details is None else replace(result, details=deepcopy(result.details)),
        error=end.error,
        seconds=end.seconds,
        short_circuited=end.short_circuited,
    )


def after_failure(
    session: Session, call: ToolCall, end: CallEnd, what_happened: ToolResultMessage, error: Exception
) -> CallEnd:
    """The end of a call whose after hook failed: the model reads that, what really happened is in the details."""
    text = f"a hook after the tool failed: {error or type(error).__name__}"
    failed = error_end(session, call, text, "error", end.prepared)
    details = {"hook_failed": repr(error), "result": what_happened.text, "details": what_happened.details}
    result = replace(failed.result, details=details)
    return replace(end, result=result, error=error, short_circuited=False, end_turn=False)


def changed_result(session: Session, call: ToolCall, result: ToolResultMessage, change: UseResult) -> ToolResultMessage:
    """The result with the given fields replaced, the rest kept."""
    is_error = change.is_error
    if change.content is not UNSET:
        shaped = shaped_value(session, call, ToolResult(change.content, result.details))
        result = replace(result, parts=shaped.parts, details=shaped.details)
        is_error = True if shaped.is_error and is_error is UNSET else is_error
    if change.details is not UNSET:
        result = replace(result, details=shaped_value(session, call, ToolResult("", change.details)).details)
    if is_error is not UNSET:
        outcome: Outcome = ("error" if result.outcome == "ok" else result.outcome) if is_error else "ok"
        result = replace(result, is_error=bool(is_error), outcome=outcome)
    return result


def copied(prepared: Prepared) -> dict[str, Any]:
    """The arguments as somebody else's own copy."""
    return msgspec.json.decode(prepared.text)
