"""Context variables around hooks: what one hook of a pair sets, the other may take back."""

from collections.abc import AsyncGenerator
from contextvars import ContextVar, Token
from typing import Any

import pytest

from antiphon import Agent, Hooks, ModelRequest, Stop, TextDelta
from antiphon.testing import Scripted
from antiphon.types.request import FinishChunk, TextChunk

from .scenes import Bodies, Gate, call

pytestmark = pytest.mark.anyio

SPAN: ContextVar[str] = ContextVar("span", default="none")


class Tracing:
    """Opens a span in one hook of a pair and closes it in the other, as tracing libraries do, with a token."""

    def __init__(self) -> None:
        self.tokens: dict[str, Token[str]] = {}
        self.seen: list[str] = []
        self.hooks = Hooks[Any](
            on_run_start=lambda context: self.open("run"),
            on_run_end=lambda context: self.close("run"),
            before_tool_execute=lambda context: self.open(f"tool {context.call.id}"),
            after_tool_execute=lambda context: self.close(f"tool {context.call.id}"),
        )

    def open(self, name: str) -> None:
        self.tokens[name] = SPAN.set(name)

    def close(self, name: str) -> None:
        """Raises `ValueError` where the token was made in another context."""
        SPAN.reset(self.tokens.pop(name))
        self.seen.append(name)


@pytest.mark.parity("A8")
@pytest.mark.parametrize("how", ["awaited", "entered", "left", "stopped"])
async def test_f11_a_context_that_one_hook_sets_can_be_taken_back_by_its_partner(how: str) -> None:
    """F11: pairs run in one task and one context, also when the run is left early."""
    tracing = Tracing()
    gate = Gate()
    body = Bodies().tool("a", lambda _: gate.wait() if how == "left" else None)
    agent = Agent(Scripted([call("a")], "ok"), tools=[body], hooks=tracing.hooks)
    if how == "awaited":
        await agent.run("go")
    elif how == "stopped":
        await agent.run("go", hooks=Hooks(after_model_response=lambda _: Stop()))
    else:
        async with agent.run("go") as run:
            if how == "left":
                await gate.reached.wait()
            else:
                await run
        assert run.result.warnings == ()
    assert tracing.tokens == {}
    assert tracing.seen[-1] == "run"
    assert SPAN.get() == "none"


@pytest.mark.parity("A14")
async def test_f11_a_models_stream_is_closed_in_the_context_that_opened_it() -> None:
    """F11: a generator that is closed early by the garbage collector would do it somewhere else."""
    closed: list[str] = []

    async def model(_request: ModelRequest) -> AsyncGenerator[TextChunk | FinishChunk, None]:
        token = SPAN.set("request")
        try:
            yield TextChunk("a")
            yield TextChunk("b")
            yield FinishChunk()
        finally:
            SPAN.reset(token)
            closed.append("closed")

    async with Agent(model).run("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    assert closed == ["closed"]
