"""What a stop means for hooks: who is asked after it, and what their cancel signal says."""

from collections.abc import Callable
from typing import Any

import pytest

from antiphon import Agent, Event, Hooks, TurnStarted, UseReply, UserMessage
from antiphon.agent.run import Run
from antiphon.testing import Scripted

from .scenes import Bodies, Spy, call, outcome

pytestmark = pytest.mark.anyio

POINTS = (
    "on_run_start",
    "after_tools_resolved",
    "before_model_request",
    "after_model_response",
    "before_tool_execute",
    "should_continue",
)


class Stopper:
    """Stops its run when asked to, and hears its events."""

    def __init__(self) -> None:
        self.run: Run[str] | None = None
        self.events: list[Event] = []

    def __call__(self, _context: Any) -> None:
        assert self.run is not None
        self.run.stop()

    async def play(self, agent: Agent[Any], hooks: Hooks[Any] | None = None) -> str:
        self.run = agent.run("go", hooks=hooks)
        self.run.subscribe(self.events.append)
        return (await self.run).status


def agent_with(hooks: Hooks[Any]) -> Agent[Any]:
    return Agent(Scripted(call("a"), "ok"), tools=[Bodies().tool("a")], hooks=hooks)


@pytest.mark.parity("A13")
@pytest.mark.parametrize("point", POINTS)
async def test_no_hook_of_a_point_is_asked_after_one_that_stopped_the_run(point: str) -> None:
    """The agent's policy ended the run: a hook of the run would judge what is not going to happen."""
    stopper, spy = Stopper(), Spy("run")
    declared: dict[str, Any] = {point: stopper}
    status = await stopper.play(agent_with(Hooks(**declared)), spy.hooks(point))
    assert (status, spy.at(point)) == ("aborted", [])


@pytest.mark.parity("A13")
async def test_no_turn_is_told_of_that_a_stop_took_away() -> None:
    stopper = Stopper()
    await stopper.play(agent_with(Hooks(should_continue=stopper)))
    assert [event.turn for event in stopper.events if isinstance(event, TurnStarted)] == [1]


@pytest.mark.parity("A6")
@pytest.mark.parametrize(
    ("ending", "cancelled"),
    [(lambda _: None, False), (lambda _: 1 / 0, False), (Stopper(), True)],
    ids=["done", "error", "stopped"],
)
async def test_the_last_hook_sees_whether_the_run_was_stopped(ending: Callable[[Any], None], cancelled: bool) -> None:
    """A hook that cleans up asks the signal whether somebody is in a hurry; a run that is done was not cancelled."""
    seen: list[bool] = []
    hooks = Hooks[Any](before_model_request=ending, on_run_end=lambda context: seen.append(context.cancel.cancelled))
    if isinstance(ending, Stopper):
        await ending.play(agent_with(hooks))
    else:
        await outcome(agent_with(hooks))
    assert seen == [cancelled]


@pytest.mark.parity("A8")
async def test_only_a_reply_can_take_a_replys_place() -> None:
    wrong: Any = UseReply(message=UserMessage.of("me"))  # pyright: ignore[reportArgumentType] - what is tested
    result, _ = await outcome(agent_with(Hooks(after_model_response=lambda _: wrong)))
    assert result.status == "error"
    assert "give an AssistantMessage" in (result.reason or "")
