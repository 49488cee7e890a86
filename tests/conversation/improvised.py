"""A model that says what was planned, and tools that end in every way: the cast of the long talks."""

from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
from hypothesis import strategies as st

from antiphon import Dropped, ModelRequest, Overloaded, Rejected, Tool, ToolContext, ToolResult, tool, validate
from antiphon.types.request import CallChunk, Delta, FinishChunk, TextChunk, ThinkingChunk

TOOLS = ("quick", "slow", "broken", "asks", "questions", "speaks", "ends", "unknown")
CALLS = st.lists(st.sampled_from(TOOLS), min_size=1, max_size=3).map(tuple)
REPLIES = st.one_of(
    st.sampled_from(["text", "thought", "dropped", "overloaded", "rejected", "empty", "cut"]),
    CALLS,
    st.tuples(st.just("cut"), CALLS),
)


class Improvised:
    """A model that says what was planned, and plain text when nothing was."""

    info = None

    def __init__(self, plan: deque[Any]) -> None:
        self.plan = plan
        self.unfit: list[Any] = []
        self._calls = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.unfit += validate(request.messages)
        reply = self.plan.popleft() if self.plan else "text"
        cut = reply == "cut" or (isinstance(reply, tuple) and reply[0] == "cut")
        names = reply[1] if cut and isinstance(reply, tuple) else reply if isinstance(reply, tuple) else ()
        if reply == "rejected":
            raise Rejected("no")
        if reply == "thought":
            yield ThinkingChunk("hm")
        if reply != "empty":
            for piece in ("so", " it", " is"):
                yield TextChunk(piece)
                await anyio.lowlevel.checkpoint()
        if reply in ("dropped", "overloaded"):
            raise Dropped("cut") if reply == "dropped" else Overloaded("busy")
        for key, name in enumerate(names):
            self._calls += 1
            yield CallChunk(key, f"c{self._calls % 5}", name, "{}")
        yield FinishChunk("length" if cut else "tool_calls" if names else "stop")


def make_tools(say: Callable[[], object]) -> list[Tool]:
    """Every way in which a call can end; one of them speaks to the conversation."""

    @tool
    async def quick() -> str:
        """Return at once."""
        return "quick"

    @tool
    async def slow() -> str:
        """Take some turns of the loop."""
        for _ in range(7):
            await anyio.lowlevel.checkpoint()
        return "slow"

    @tool
    async def broken() -> str:
        """Fail."""
        raise ValueError("broken")

    @tool(needs_approval=True)
    async def asks() -> str:
        """Ask before."""
        return "asked"

    @tool
    async def questions(ctx: ToolContext[Any]) -> str:
        """Ask inside."""
        return f"told {await ctx.ask('what?')}"

    @tool
    async def speaks() -> str:
        """Say something to the conversation."""
        say()
        return "spoke"

    @tool
    async def ends() -> ToolResult:
        """End the turn."""
        return ToolResult("ended", end_turn=True)

    return [quick, slow, broken, asks, questions, speaks, ends]
