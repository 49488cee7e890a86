"""What each hook's failure does, what each stop does, and that the end hook sees every ending."""

import logging
from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    AssistantMessage,
    FatalToolError,
    Hooks,
    ListedTools,
    RunError,
    RunFinished,
    Stop,
    ToolOptions,
    UserMessage,
    Warned,
    validate,
)
from antiphon.loop import driver
from antiphon.testing import Scripted

from .scenes import Bodies, Gate, Spy, call, outcome, outcomes, results, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])
WAITS = pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])

ENDS_THE_RUN = (
    "on_run_start",
    "before_tools_resolved",
    "after_tools_resolved",
    "prepare_context",
    "before_model_request",
    "after_model_response",
    "should_continue",
)
STOPS = (
    "after_tools_resolved",
    "before_model_request",
    "after_model_response",
    "before_tool_execute",
    "after_tool_execute",
)
LEVELS = pytest.mark.parametrize("level", ["agent", "run"])


async def story(level: str, hooks: Hooks[Any], execution: Any = "parallel") -> Any:
    """A run with a source and a tool, and `hooks` at one level."""
    agent = Agent(
        Scripted(["hm", call("a"), call("b")], "ok"),
        tools=[Bodies().tool("a"), Bodies().tool("b")],
        sources=[ListedTools("shelf")],
        hooks=hooks if level == "agent" else None,
        tool_options=ToolOptions(execution=execution),
    )
    return await outcome(agent, hooks=hooks if level == "run" else None)


@LEVELS
@WAITS
@pytest.mark.parity("A12")
@pytest.mark.parametrize("point", ENDS_THE_RUN)
async def test_a_failing_hook_outside_the_tools_ends_the_run_in_error(level: str, wait: bool, point: str) -> None:
    failure = ValueError("boom")
    spy = Spy(**{point: failure})
    result, recording = await story(level, spy.hooks(wait=wait))
    recording.check()
    assert result.status == "error"
    assert result.reason == "ValueError: boom"
    (end,) = spy.at("on_run_end")
    assert (end.status, end.error) == ("error", failure)
    assert recording.one(RunFinished).error == "ValueError: boom"
    assert validate(result.messages) == []


@pytest.mark.parity("A12")
async def test_the_caller_gets_the_hooks_own_error_as_the_cause() -> None:
    failure = ValueError("boom")
    with pytest.raises(RunError, match="boom") as caught:
        await Agent(Scripted("hi"), hooks=Spy(before_model_request=failure).hooks()).run("go")
    assert caught.value.__cause__ is failure
    assert caught.value.result.status == "error"


@MODES
@LEVELS
@WAITS
@pytest.mark.parity("A12")
async def test_a_failing_hook_before_a_tool_is_an_error_result_and_nothing_runs(
    execution: Any, level: str, wait: bool
) -> None:
    spy = Spy(before_tool_execute=lambda context: 1 / 0 if context.call.name == "a" else None)
    result, recording = await story(level, spy.hooks(wait=wait), execution)
    recording.check()
    assert result.status == "done"
    assert outcomes(result.messages) == {"a-1": "error", "b-1": "ok"}
    assert "division by zero" in texts(result.messages)["a-1"]


@MODES
@LEVELS
@WAITS
@pytest.mark.parity("A12")
async def test_a_failing_hook_after_a_tool_never_lets_the_unfiltered_result_through(
    execution: Any, level: str, wait: bool
) -> None:
    """I2: the same in every mode. What really happened is for the application, not for the model."""
    spy = Spy(after_tool_execute=lambda context: 1 / 0 if context.call.name == "a" else None)
    result, recording = await story(level, spy.hooks(wait=wait), execution)
    recording.check()
    assert result.status == "done"
    assert outcomes(result.messages) == {"a-1": "error", "b-1": "ok"}
    assert texts(result.messages)["a-1"] == (
        '<tool_error name="a">a hook after the tool failed: division by zero</tool_error>'
    )
    failed = next(message for message in results(result.messages) if message.call_id == "a-1")
    assert failed.details == {"hook_failed": "ZeroDivisionError('division by zero')", "result": "a", "details": None}


@pytest.mark.parity("A11")
@pytest.mark.parametrize("point", ["before_execute", "after_execute"])
async def test_a_failing_hook_of_a_tool_is_an_isolated_error_and_the_outer_hooks_still_run(point: str) -> None:
    tool_spy = Spy("tool", **{point: KeyError("inside")})
    agent_spy, run_spy = Spy("agent", tool_spy.seen), Spy("run", tool_spy.seen)
    tools = [Bodies().tool("a", hooks=tool_spy.tool_hooks()), Bodies().tool("b")]
    agent = Agent(Scripted([call("a"), call("b")], "ok"), tools=tools, hooks=agent_spy.hooks("after_tool_execute"))
    result, recording = await outcome(agent, hooks=run_spy.hooks("after_tool_execute"))
    recording.check()
    assert result.status == "done"
    assert outcomes(result.messages) == {"a-1": "error", "b-1": "ok"}
    seen = [(level, name) for level, name, context in tool_spy.seen if context.call.name == "a"]
    assert seen == [
        ("tool", "before_execute"),
        ("tool", "after_execute"),
        ("run", "after_tool_execute"),
        ("agent", "after_tool_execute"),
    ]
    assert isinstance(tool_spy.at("after_tool_execute")[0].error, KeyError)


@pytest.mark.parity("A12")
async def test_a_fatal_error_from_a_hook_around_a_tool_ends_the_run() -> None:
    """I10: whoever raises it says that the caller must know."""
    for point in ("before_tool_execute", "after_tool_execute"):
        result, recording = await story("agent", Spy(**{point: FatalToolError("licence expired")}).hooks())
        recording.check()
        assert (result.status, "licence expired" in str(result.error)) == ("error", True), point


@pytest.mark.parity("A12")
async def test_a_failing_end_hook_changes_nothing_and_the_next_one_runs(caplog: pytest.LogCaptureFixture) -> None:
    spy = Spy("run")
    agent = Agent(Scripted("hi"), hooks=Hooks(on_run_end=lambda _: 1 / 0))
    with caplog.at_level(logging.WARNING, "antiphon"):
        result, recording = await outcome(agent, hooks=spy.hooks("on_run_end"))
    recording.check()
    assert (result.status, result.text) == ("done", "hi")
    assert [context.status for context in spy.at("on_run_end")] == ["done"]
    assert "on_run_end" in caplog.text
    assert recording.of(Warned) == [], "nothing comes after the terminal event"
    assert [code for code, _ in result.warnings] == ["on_run_end_failed"]


@pytest.mark.parity("A12")
async def test_an_end_hook_that_hangs_is_left_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "END_SECONDS", 0.05)
    spy = Spy("run")
    agent = Agent(Scripted("hi"), hooks=Hooks(on_run_end=lambda _: anyio.sleep_forever()))
    with anyio.fail_after(5):
        result = await agent.run("go", hooks=spy.hooks("on_run_end"))
    assert result.status == "done"
    assert len(spy.at("on_run_end")) == 1


@pytest.mark.parity("A6")
@pytest.mark.parametrize(
    ("point", "answer"),
    [
        ("before_tools_resolved", None),
        ("after_tools_resolved", ["a"]),
        ("prepare_context", [UserMessage.of("hi")]),
        ("before_model_request", "no"),
        ("after_model_response", AssistantMessage(parts=())),
        ("should_continue", Stop("no")),
    ],
)
async def test_an_answer_that_a_hook_cannot_give_is_refused(point: str, answer: Any) -> None:
    """What was meant as a no must not pass for a yes."""
    result, _ = await story("agent", Spy(**{point: answer}).hooks())
    if answer is None:
        assert result.status == "done"
    else:
        assert result.status == "error"
        assert point in str(result.error)


@pytest.mark.parity("A9")
@pytest.mark.parametrize("answer", ["no", False, {"city": "Rome"}])
async def test_an_odd_answer_before_a_tool_keeps_it_from_running(answer: Any) -> None:
    bodies = Bodies()
    agent = Agent(
        Scripted([call("a")], "ok"), tools=[bodies.tool("a")], hooks=Hooks(before_tool_execute=lambda _: answer)
    )
    result, _ = await outcome(agent)
    assert bodies.ran == []
    assert outcomes(result.messages) == {"a-1": "error"}
    assert "before_tool_execute answered" in texts(result.messages)["a-1"]


# Stops


@MODES
@LEVELS
@WAITS
@pytest.mark.parity("A13")
@pytest.mark.parametrize("point", STOPS)
async def test_a_stop_ends_the_run_as_stopped_with_its_reason(
    execution: Any, level: str, wait: bool, point: str
) -> None:
    """I5."""
    spy = Spy(**{point: Stop("seen enough")})
    result, recording = await story(level, spy.hooks(wait=wait), execution)
    recording.check()
    assert (result.status, result.reason) == ("stopped", "seen enough")
    (end,) = spy.at("on_run_end")
    assert (end.status, end.reason, end.error) == ("stopped", "seen enough", None)
    if point != "after_tool_execute":  # that of a sibling still closes what the hook before it opened
        assert len(spy.at(point)) == 1, "it is not asked again"
    assert validate(result.messages) == []


@pytest.mark.parity("A13")
@pytest.mark.parametrize("point", STOPS)
async def test_a_stop_without_a_reason_says_which_hook_it_was(point: str) -> None:
    """I5: somebody who reads the log wants to know who ended the run."""
    result, _ = await story("agent", Spy(**{point: Stop()}).hooks())
    assert (result.status, result.reason) == ("stopped", f"stopped by {point}")


@MODES
@pytest.mark.parity("A13")
async def test_a_stop_from_one_call_ends_the_others_and_no_result_is_lost(execution: Any) -> None:
    gate = Gate()
    bodies = Bodies()
    tools = [bodies.tool("quick"), bodies.tool("slow", lambda _: gate.wait()), bodies.tool("late")]
    spy = Spy(after_tool_execute=lambda context: Stop("found") if context.call.name == "quick" else None)
    agent = Agent(
        Scripted([call("slow"), call("quick"), call("late")] if execution == "parallel" else [*map(call, ORDER)]),
        tools=tools,
        hooks=spy.hooks(),
        tool_options=ToolOptions(execution=execution, max_parallel=2),
    )
    result, recording = await outcome(agent)
    recording.check()
    assert (result.status, result.reason) == ("stopped", "found")
    expected = {"slow-1": "cancelled" if execution == "parallel" else "not_run", "quick-1": "ok", "late-1": "not_run"}
    assert outcomes(result.messages) == expected
    assert validate(result.messages) == []


ORDER = ("quick", "slow", "late")
