"""The end hook sees every ending, and a stop from inside a hook goes no further."""

from typing import Any

import pytest

from antiphon import (
    Agent,
    CancelToken,
    FatalToolError,
    Hooks,
    Limits,
    ListedTools,
    Stop,
    ToolFinished,
    ToolHooks,
    ToolOptions,
    UseResult,
)
from antiphon.testing import Scripted, record

from .scenes import Bodies, Gate, Spy, call, failing, finished, outcome, outcomes, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])
WAITS = pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])


async def ending(status: str, spy: Spy) -> Any:
    """A run that ends in this way, watched by `spy`."""
    bodies = Bodies()
    token = CancelToken()
    tools = [bodies.tool("a"), bodies.tool("gated", needs_approval=True)]
    hooks = spy.hooks("on_run_end")
    options: dict[str, Any] = {}
    script: list[Any] = ["hm", call("a")]
    match status:
        case "stopped":
            options["hooks"] = Hooks(after_tool_execute=lambda _: Stop("why not"))
        case "aborted":
            tools[0] = bodies.tool("a", lambda _: token.cancel("the user left"))
            options["cancel"] = token
        case "limit":
            options["limits"] = Limits(turns=1)
        case "paused":
            script = [call("gated")]
        case "error":
            tools[0] = bodies.tool("a", FatalToolError("broken"))
        case _:
            pass
    return await finished(Agent(Scripted(script, "ok"), tools=tools, hooks=hooks).run("go", **options))


@WAITS
@pytest.mark.parity("A13")
@pytest.mark.parametrize("status", ["done", "stopped", "aborted", "limit", "paused", "error"])
async def test_the_end_hook_is_called_once_for_every_ending_with_all_there_is_to_know(status: str, wait: bool) -> None:
    """I6: also for a stop by the user."""
    spy = Spy()
    spy.hooks = lambda *points, make=spy.hooks: make(*points, wait=wait)  # type: ignore[method-assign]
    result, recording = await ending(status, spy)
    recording.check()
    assert result.status == status
    (end,) = spy.at("on_run_end")
    assert (end.status, end.reason) == (status, result.reason)
    assert list(end.messages) == list(result.messages), "the whole final transcript"
    assert (end.error is not None) == (status == "error")
    expected = {"stopped": "why not", "aborted": "the user left", "limit": "the limit of 1 turns was reached"}
    assert status not in expected or end.reason == expected[status]


@pytest.mark.parity("A4")
@pytest.mark.parity("A13")
async def test_a_token_cancelled_before_ends_the_run_before_anything_but_the_end_hook() -> None:
    token = CancelToken()
    token.cancel("never mind")
    spy = Spy()
    model = Scripted("never")
    result, recording = await outcome(
        Agent(model, hooks=spy.hooks(), sources=[ListedTools("s")], instructions=failing(ValueError())), cancel=token
    )
    assert recording.kinds() == ["run_finished"]
    assert (result.status, result.reason, spy.order) == ("aborted", "never mind", ["agent.on_run_end"])
    assert model.requests == []


@pytest.mark.parity("A13")
@pytest.mark.parametrize(
    "point",
    ["on_run_start", "before_tools_resolved", "prepare_context", "before_model_request", "after_model_response"],
)
@WAITS
async def test_a_run_stopped_from_inside_a_hook_goes_no_further(point: str, wait: bool) -> None:
    """`run.stop` is looked at right after each hook: no request, no tool comes after it."""
    model = Scripted(["hm", call("a")], "never")
    bodies = Bodies()
    seen: list[Any] = []
    spy = Spy(**{point: lambda _: seen[0].stop("enough")})
    agent = Agent(model, tools=[bodies.tool("a")], sources=[ListedTools("shelf")], hooks=spy.hooks(wait=wait))
    run = agent.run("go")
    seen.append(run)
    recording = record(run)
    result = await run
    recording.check()
    assert (result.status, result.reason, bodies.ran) == ("aborted", "enough", [])
    assert len(model.requests) == (1 if point == "after_model_response" else 0)
    assert len(spy.at("on_run_end")) == 1


@pytest.mark.parity("A13")
@MODES
async def test_a_result_survives_a_stop_that_comes_while_its_hooks_look_at_it(execution: Any) -> None:
    """The tool has really sent the mail; that the run was stopped a moment later does not unsend it."""
    gate = Gate()
    seen: list[Any] = []

    async def look(context: Any) -> UseResult:
        seen.append(context.result.text)
        if len(seen) == 1:
            await gate.wait()
        return UseResult(context.result.text.upper())

    agent = Agent(
        Scripted([call("a")]),
        tools=[Bodies().tool("a", "sent")],
        hooks=Hooks(after_tool_execute=look),
        tool_options=ToolOptions(execution=execution),
    )
    async with agent.run("go") as run:
        recording = record(run)
        await gate.reached.wait()
        run.stop("now")
    assert run.result.status == "aborted"
    assert texts(run.result.messages) == {"a-1": "SENT"}
    assert recording.one(ToolFinished).outcome == "ok"


@pytest.mark.parity("A11")
async def test_a_policy_that_fails_lets_nothing_run() -> None:
    """A guard that falls over is no open door."""
    bodies = Bodies()
    tool_hooks = ToolHooks(before_execute=lambda _: None)
    agent = Agent(
        Scripted([call("a"), call("b")], "ok"),
        tools=[bodies.tool("a", hooks=tool_hooks), bodies.tool("b", needs_approval=lambda _: 1 / 0)],
        policy=lambda context: failing(ValueError("asleep"))(context) if context.call.name == "a" else None,
    )
    result, recording = await outcome(agent)
    recording.check()
    assert (result.status, bodies.ran) == ("done", [])
    assert outcomes(result.messages) == {"a-1": "error", "b-1": "error"}


@pytest.mark.parity("A11")
async def test_a_policy_that_answers_something_odd_lets_nothing_run() -> None:
    bodies = Bodies()
    odd: Any = lambda _: "deny"  # noqa: E731 - a policy with the wrong answer
    agent = Agent(Scripted([call("a")], "ok"), tools=[bodies.tool("a")], policy=odd)
    result, _ = await outcome(agent)
    assert bodies.ran == []
    assert "the policy answered 'deny'" in texts(result.messages)["a-1"]
