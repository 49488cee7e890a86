"""Where a run's tools come from: its own, then those of its sources, with the hooks around each listing."""

from typing import Literal

from antiphon.loop.hooks import Stop, ToolsContext, UseTools, resolved
from antiphon.loop.session import HaltRun, Session
from antiphon.loop.toolset import by_name

__all__ = ["resolve_tools"]


async def resolve_tools(session: Session, why: Literal["initial", "refresh"]) -> None:
    """Settle the tools of the run. Without a source the after hook is asked once, with the run's own tools."""
    for hook in session.hooks.at("after_tools_resolved"):
        context = ToolsContext(**session.common(), why=why, tools=tuple(session.tools.values()))
        change = await resolved(hook(context))
        if isinstance(change, Stop):
            raise HaltRun("stopped", change.reason)
        if isinstance(change, UseTools):
            session.tools = by_name(change.tools, "after_tools_resolved")
    session.turn_tools = session.tools
