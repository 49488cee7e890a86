"""How a body ended, as the end of its call."""

from typing import Any

from antiphon.errors import ToolError
from antiphon.loop.bodies import Body
from antiphon.loop.results import CallEnd, error_end, value_end
from antiphon.loop.session import ChildPaused, Session
from antiphon.loop.telling import told
from antiphon.tools.arguments import Prepared
from antiphon.tools.tool import Tool
from antiphon.types.content import ToolCall

__all__ = ["end_of_body", "paused_child"]


def end_of_body(session: Session, call: ToolCall, tool: Tool, prepared: Prepared, body: Body) -> CallEnd:
    """What the body gave back, or why it gave nothing."""
    more: dict[str, Any] = {"seconds": body.seconds, "inner": True}
    task = body.task
    if task.done() and not task.cancelled() and task.exception() is None:
        return value_end(session, call, task.result(), prepared, **more)
    if body.abandoned:
        grace = session.spec.tool_options.grace
        text = f"tool {tool.name!r} did not end within {grace:g} s after it was cancelled, and was left behind"
        session.warn("left_behind", text)
        return error_end(
            session,
            call,
            "the call did not end when it was cancelled: whether it had an effect is not known",
            "unknown",
            prepared,
            **more,
        )
    if body.timed_out:
        return timed_out(session, call, tool, prepared, **more)
    if task.cancelled() and body.cancelled:
        return cancelled(session, call, tool, prepared, **more)
    if task.cancelled():
        return error_end(session, call, "the tool cancelled itself", "error", prepared, **more)
    error = task.exception()
    assert error is not None
    text = str(error) if isinstance(error, ToolError) else told(error)
    return error_end(session, call, text, "error", prepared, error=error, **more)


def timed_out(session: Session, call: ToolCall, tool: Tool, prepared: Prepared, **more: Any) -> CallEnd:
    limit = tool.timeout if tool.timeout is not None else session.spec.tool_options.timeout
    if not tool.is_async:
        session.warn("still_running", f"tool {tool.name!r} ran out of time and is left to its thread")
    text = f"the call took longer than {limit:g} s and was ended"
    return error_end(session, call, text, "timeout", prepared, **more)


def cancelled(session: Session, call: ToolCall, tool: Tool, prepared: Prepared, **more: Any) -> CallEnd:
    """Nothing can end a thread: what is left to it may still have its effect."""
    if tool.is_async:
        text = "the call was cancelled while it ran"
        return error_end(session, call, text, "cancelled", prepared, **more)
    session.warn("still_running", f"tool {tool.name!r} was cancelled and is left to its thread")
    text = "the call was left while it ran: whether it had an effect is not known"
    return error_end(session, call, text, "unknown", prepared, **more)


def paused_child(body: Body) -> dict[str, Any] | None:
    """The state of the sub-agent that was this body, if it paused."""
    task = body.task
    error = task.exception() if task.done() and not task.cancelled() else None
    return error.state if isinstance(error, ChildPaused) else None
