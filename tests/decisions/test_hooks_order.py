"""The order of hooks and events, in both execution modes, sync and async."""

from typing import Any

import pytest

from antiphon import (
    Agent,
    Ask,
    Deny,
    Hooks,
    ListedTools,
    MessageFinished,
    RunFinished,
    RunStarted,
    Stop,
    ToolFinished,
    ToolOptions,
    ToolRequested,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UseArguments,
    UseResult,
)
from antiphon.testing import Scripted, record

from .scenes import CITY, Bodies, Gate, Spy, call, finished, outcome, outcomes, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])
WAITS = pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])

STOP = Stop("enough")
PAIRS = (
    ("on_run_start", "on_run_end"),
    ("before_tools_resolved", "after_tools_resolved"),
    ("before_tool_execute", "after_tool_execute"),
    ("before_execute", "after_execute"),
)
ROUND = [
    "agent.prepare_context",
    "run.prepare_context",
    "agent.before_model_request",
    "run.before_model_request",
    "agent.after_model_response",
    "run.after_model_response",
]
TOOL = [
    "agent.before_tool_execute",
    "run.before_tool_execute",
    "tool.before_execute",
    "tool.after_execute",
    "run.after_tool_execute",
    "agent.after_tool_execute",
]


@WAITS
@MODES
@pytest.mark.parity("A6")
async def test_hooks_run_agent_run_tool_and_the_after_hooks_of_a_tool_in_reverse(execution: Any, wait: bool) -> None:
    """What goes in first comes out last, so that a pair of hooks can wrap what is inside it."""
    agent_spy = Spy("agent")
    run_spy, tool_spy = Spy("run", agent_spy.seen), Spy("tool", agent_spy.seen)
    tool = Bodies().tool("weather", hooks=tool_spy.tool_hooks(wait=wait))
    agent = Agent(
        Scripted([call("weather")], "rain"),
        tools=[tool],
        hooks=agent_spy.hooks(wait=wait),
        tool_options=ToolOptions(execution=execution),
    )
    await agent.run("go", hooks=run_spy.hooks(wait=wait))
    assert agent_spy.order == [
        *["agent.on_run_start", "run.on_run_start"],
        *["agent.after_tools_resolved", "run.after_tools_resolved"],
        *ROUND,
        *TOOL,
        *["agent.should_continue", "run.should_continue"],
        *ROUND,
        *["agent.on_run_end", "run.on_run_end"],
    ]


@pytest.mark.parity("A6")
@pytest.mark.parity("A21")
async def test_each_listing_of_a_source_is_wrapped_and_precedes_the_request() -> None:
    spy = Spy()
    source = ListedTools("shelf", [Bodies().tool("a")])
    agent = Agent(Scripted("hi"), sources=[source, ListedTools("box")], hooks=spy.hooks())
    await agent.run("go")
    assert spy.order[:6] == [
        "agent.on_run_start",
        "agent.before_tools_resolved",
        "agent.after_tools_resolved",
        "agent.before_tools_resolved",
        "agent.after_tools_resolved",
        "agent.prepare_context",
    ]


@pytest.mark.parity("C5")
@pytest.mark.parity("A21")
async def test_before_a_later_request_sources_come_first_then_should_continue_then_the_context() -> None:
    """Somebody who stops a run after a round still sees the tools of that moment."""
    spy = Spy()
    source = ListedTools("shelf", [Bodies().tool("other")])
    tool = Bodies().tool("grow", lambda _: source.set([]))
    agent = Agent(Scripted([call("grow")], "ok"), tools=[tool], sources=[source], hooks=spy.hooks())
    run = agent.run("go")
    run.subscribe(lambda event: spy.seen.append(("event", type(event).__name__, event)))
    await run
    after_tool = spy.order[spy.order.index("agent.after_tool_execute") :]
    points = [name for name in after_tool if not name.startswith("event.") or name == "event.TurnStarted"]
    assert points[:7] == [
        "agent.after_tool_execute",
        "agent.before_tools_resolved",
        "agent.after_tools_resolved",
        "agent.should_continue",
        "agent.prepare_context",
        "event.TurnStarted",
        "agent.before_model_request",
    ]


@pytest.mark.parity("A8")
@pytest.mark.parity("C8")
async def test_a_reply_is_changed_then_appended_then_announced_then_its_calls_run() -> None:
    """What is announced is final: a host that writes a log never takes a line back."""
    spy = Spy()
    hooks = Hooks(
        after_model_response=spy.hooks().after_model_response,
        before_tool_execute=spy.hooks().before_tool_execute,
        on_append=lambda message: spy.seen.append(("log", type(message).__name__, message)),
    )
    agent = Agent(Scripted(["hm", call("weather")], "rain"), tools=[Bodies().tool("weather")], hooks=hooks)
    run = agent.run("go")
    shown = (MessageFinished, ToolRequested, ToolStarted, ToolFinished)
    run.subscribe(
        lambda event: spy.seen.append(("event", type(event).__name__, event)) if isinstance(event, shown) else None
    )
    await run
    assert spy.order[2:9] == [
        "agent.after_model_response",
        "log.AssistantMessage",
        "event.MessageFinished",
        "event.ToolRequested",
        "agent.before_tool_execute",
        "event.ToolStarted",
        "event.ToolFinished",
    ]


@pytest.mark.parity("A17")
@pytest.mark.parity("A6")
async def test_the_run_hooks_stand_around_everything_that_is_told() -> None:
    """`on_run_end` comes after the terminal event, so that it may look at the whole."""
    spy = Spy()
    run = Agent(Scripted("hi"), hooks=spy.hooks("on_run_start", "on_run_end")).run("go")
    run.subscribe(lambda event: spy.seen.append(("event", type(event).__name__, event)))
    await run
    assert spy.order[:2] == ["event.RunStarted", "agent.on_run_start"]
    assert spy.order[-2:] == ["event.RunFinished", "agent.on_run_end"]


@MODES
@WAITS
@pytest.mark.parity("A6")
async def test_a_hook_that_only_looks_changes_nothing(execution: Any, wait: bool) -> None:
    """I1: a purely observing hook that makes a call disappear, or a result, is found out by nobody."""
    options = ToolOptions(execution=execution)

    async def story(hooks: Hooks[Any] | None, tool_hooks: Any) -> tuple[Any, ...]:
        bodies = Bodies()
        tools = [
            bodies.tool("weather", {"sky": "grey"}, CITY, hooks=tool_hooks),
            bodies.tool("fails", ValueError("no")),
        ]
        reply = ["hm", call("weather", city="Oslo"), call("fails"), call("nobody"), call("weather", "w2", town=1)]
        model = Scripted(reply, "done")
        agent = Agent(model, tools=tools, sources=[ListedTools("shelf")], tool_options=options)
        result, recording = await finished(agent.run("go", hooks=hooks, run_id="r1"))
        kinds = recording.kinds()
        return result.status, texts(result.messages), sorted(kinds), len(model.requests), bodies.ran, result.usage

    spy = Spy()
    watched = await story(spy.hooks(wait=wait), Spy("tool", spy.seen).tool_hooks(wait=wait))
    assert watched == await story(None, None)
    assert {point for _, point, _ in spy.seen} >= {"before_execute", "after_tool_execute", "after_model_response"}


@MODES
@pytest.mark.parity("A6")
@pytest.mark.parity("A9")
async def test_each_level_sees_what_the_former_made_of_the_arguments(execution: Any) -> None:
    bodies = Bodies()

    def add(letter: str) -> Any:
        return lambda context: UseArguments({**context.arguments, "city": context.arguments["city"] + letter})

    agent_spy, run_spy = Spy("agent", before_tool_execute=add("a")), Spy("run", before_tool_execute=add("r"))
    tool_spy = Spy("tool", before_execute=add("t"))
    tool = bodies.tool("weather", None, CITY, hooks=tool_spy.tool_hooks())
    agent = Agent(
        Scripted([call("weather", city="-")], "ok"),
        tools=[tool],
        hooks=agent_spy.hooks(),
        tool_options=ToolOptions(execution=execution),
    )
    await agent.run("go", hooks=run_spy.hooks())
    assert bodies.ran == [("weather", {"city": "-art", "unit": "C", "days": [1]})]


@MODES
@pytest.mark.parity("A6")
@pytest.mark.parity("A10")
async def test_each_level_sees_what_the_former_made_of_the_result(execution: Any) -> None:
    def add(letter: str) -> Any:
        return lambda context: UseResult(context.result.text + letter)

    agent_spy, run_spy = Spy("agent", after_tool_execute=add("a")), Spy("run", after_tool_execute=add("r"))
    tool_spy = Spy("tool", after_execute=add("t"))
    tool = Bodies().tool("weather", "-", hooks=tool_spy.tool_hooks())
    agent = Agent(
        Scripted([call("weather")], "ok"),
        tools=[tool],
        hooks=agent_spy.hooks(),
        tool_options=ToolOptions(execution=execution),
    )
    result = await agent.run("go", hooks=run_spy.hooks())
    assert texts(result.messages) == {"weather-1": "-tra"}


@pytest.mark.parity("A17")
@pytest.mark.parity("C4")
async def test_the_events_of_a_turn_with_a_tool() -> None:
    agent = Agent(Scripted(["look", call("weather")], "rain"), tools=[Bodies().tool("weather")])
    run = agent.run("go")
    recording = record(run)
    await run
    recording.check()
    assert recording.kinds() == [
        *["run_started", "message_started", "message_finished"],
        *["turn_started", "message_started", "text_delta", "tool_call_delta", "message_finished"],
        *["tool_requested", "tool_started", "tool_finished", "message_started", "message_finished", "turn_finished"],
        *["turn_started", "message_started", "text_delta", "message_finished", "turn_finished", "run_finished"],
    ]


@pytest.mark.parity("C7")
async def test_before_a_tool_it_was_requested_and_not_started() -> None:
    """`ToolStarted` says that the body is about to run; a blocked call never has one."""
    told: list[str] = []
    spy = Spy(before_tool_execute=lambda _: told.append("hook"))
    agent = Agent(Scripted([call("weather")], "ok"), tools=[Bodies().tool("weather")], hooks=spy.hooks())
    run = agent.run("go")
    run.subscribe(
        lambda event: (
            told.append(type(event).__name__) if isinstance(event, ToolRequested | ToolStarted | ToolFinished) else None
        )
    )
    await run
    assert told == ["ToolRequested", "hook", "ToolStarted", "ToolFinished"]


@pytest.mark.parity("A8")
@pytest.mark.parity("A17")
@pytest.mark.parametrize("ending", ["done", "stopped", "error"])
async def test_pairs_always_close(ending: str) -> None:
    """I3: whatever opened is closed, so that a span or a transaction can hang on a pair of hooks."""
    answers = {"stopped": {"after_tool_execute": lambda _: STOP}, "error": {"should_continue": RuntimeError("no")}}
    spy = Spy(**answers.get(ending, {}))
    tool_spy = Spy("tool", spy.seen)
    tool = Bodies().tool("weather", hooks=tool_spy.tool_hooks())
    agent = Agent(Scripted([call("weather")], "ok"), tools=[tool], sources=[ListedTools("s")], hooks=spy.hooks())
    result, recording = await outcome(agent)
    assert result.status == ending
    for before, after in PAIRS:
        assert len(spy.at(before)) == len(spy.at(after)) > 0, before
    assert len(recording.of(RunStarted)) == len(recording.of(RunFinished)) == 1
    assert len(recording.of(TurnStarted)) == len(recording.of(TurnFinished))


@pytest.mark.parity("A8")
async def test_a_pair_around_a_tool_closes_when_a_later_before_hook_stops_the_run() -> None:
    """The first hook has opened something for this call; nobody else would ever close it."""
    agent_spy, run_spy = Spy("agent"), Spy("run", before_tool_execute=lambda _: STOP)
    bodies = Bodies()
    agent = Agent(Scripted([call("weather")]), tools=[bodies.tool("weather")], hooks=agent_spy.hooks())
    result, _ = await outcome(agent, hooks=run_spy.hooks())
    assert (result.status, bodies.ran) == ("stopped", [])
    assert [context.result.outcome for context in agent_spy.at("after_tool_execute")] == ["not_run"]


@pytest.mark.parity("A8")
async def test_a_pair_around_a_tool_closes_when_another_call_stops_the_run() -> None:
    """The call that was judged and never started got its before hooks; it gets its after hooks too."""
    spy = Spy(before_tool_execute=lambda context: STOP if context.call.id == "c" else None)
    tool_spy = Spy("tool", spy.seen)
    gate = Gate()
    tools = [
        Bodies().tool("first", lambda _: gate.wait(), exclusive=True),
        Bodies().tool("second", hooks=tool_spy.tool_hooks()),
    ]
    model = Scripted([call("first", "a"), call("second", "b"), call("second", "c")])
    result, recording = await outcome(Agent(model, tools=tools, hooks=spy.hooks()))
    recording.check()
    assert outcomes(result.messages) == {"a": "cancelled", "b": "not_run", "c": "not_run"}
    assert [context.call.id for context in spy.at("before_tool_execute")] == ["a", "b", "c"]
    assert sorted(context.call.id for context in spy.at("after_tool_execute")) == ["a", "b", "c"]
    assert [context.call.id for context in spy.at("before_execute")] == ["b"]
    assert [context.call.id for context in spy.at("after_execute")] == ["b"]


@pytest.mark.parity("A8")
@pytest.mark.parametrize("refuse", [Deny("no"), Ask()], ids=["policy", "person"])
async def test_a_pair_around_a_tool_closes_when_the_call_is_refused(refuse: Any) -> None:
    """Hooks come before the verdict, so a refusal meets what they opened."""
    spy = Spy()
    tool = Bodies().tool("weather", hooks=Spy("tool", spy.seen).tool_hooks())
    model = Scripted([call("weather")], "ok")
    agent = Agent(model, tools=[tool], hooks=spy.hooks(), policy=lambda _: refuse, approver=lambda _: False)
    result = await agent.run("go")
    assert outcomes(result.messages) == {"weather-1": "denied"}
    assert spy.order[spy.order.index("agent.before_tool_execute") :][:4] == [
        "agent.before_tool_execute",
        "tool.before_execute",
        "tool.after_execute",
        "agent.after_tool_execute",
    ]
