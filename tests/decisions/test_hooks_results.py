"""Hooks after a call, and the tool's own hooks around it."""

from typing import Any

import pytest

from antiphon import (
    Agent,
    Hooks,
    Image,
    Stop,
    Text,
    ToolContext,
    ToolFinished,
    ToolHooks,
    ToolOptions,
    ToolResult,
    UseArguments,
    UseResult,
    tool,
)
from antiphon.testing import Scripted

from .scenes import CITY, Bodies, Spy, call, outcome, outcomes, results, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])


# After hooks


@MODES
@pytest.mark.parity("A10")
@pytest.mark.parity("C7")
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (UseResult("new"), ("new", {"d": 1}, False, "ok")),
        (UseResult(details={"d": 2}), ("old", {"d": 2}, False, "ok")),
        (UseResult(is_error=True), ("old", {"d": 1}, True, "error")),
        (UseResult("new", {"d": 3}, is_error=True), ("new", {"d": 3}, True, "error")),
        (UseResult(), ("old", {"d": 1}, False, "ok")),
    ],
    ids=["content", "details", "error flag", "all", "nothing"],
)
async def test_each_field_of_a_result_is_overridden_alone(execution: Any, change: Any, expected: Any) -> None:
    agent = Agent(
        Scripted([call("a")], "ok"),
        tools=[Bodies().tool("a", ToolResult("old", details={"d": 1}))],
        hooks=Hooks(after_tool_execute=lambda _: change),
        tool_options=ToolOptions(execution=execution),
    )
    result, recording = await outcome(agent)
    (told,) = results(result.messages)
    assert (told.text, told.details, told.is_error, told.outcome) == expected
    assert recording.one(ToolFinished).result == told


@pytest.mark.parity("A10")
async def test_a_failure_may_be_made_good_after_the_tool() -> None:
    hooks = Hooks(after_tool_execute=lambda context: UseResult("try later", is_error=False) if context.error else None)
    agent = Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a", OSError("down"))], hooks=hooks)
    result = await agent.run("go")
    assert texts(result.messages) == {"a-1": "try later"}
    assert outcomes(result.messages) == {"a-1": "ok"}


@pytest.mark.parity("A10")
async def test_content_given_after_a_tool_is_shaped_like_any_result() -> None:
    """Details that are no JSON would make the run's state impossible to store."""
    change = UseResult([Text("look"), Image("https://x/y.png")], details={"at": {1, 2}})
    hooks = Hooks(after_tool_execute=lambda _: change)
    result = await Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a")], hooks=hooks).run("go")
    (told,) = results(result.messages)
    assert told.parts == (Text("look"), Image("https://x/y.png"))
    assert told.details == {"at": [1, 2]}


@MODES
@pytest.mark.parity("A10")
@pytest.mark.parity("A13")
async def test_a_stop_after_a_tool_keeps_its_result_and_is_honoured(execution: Any) -> None:
    """I5: a "do not continue" that is ignored is worse than none."""
    model = Scripted([call("a")], "never")
    agent = Agent(
        model,
        tools=[Bodies().tool("a", "precious")],
        hooks=Hooks(after_tool_execute=lambda _: Stop("found it")),
        tool_options=ToolOptions(execution=execution),
    )
    result, recording = await outcome(agent)
    recording.check()
    assert (result.status, result.reason, len(model.requests)) == ("stopped", "found it", 1)
    assert texts(result.messages) == {"a-1": "precious"}


@pytest.mark.parity("A10")
async def test_every_after_hook_is_asked_although_an_inner_one_stops_the_run() -> None:
    """The outermost may be the one that takes secrets out, and the result is kept."""
    hooks = Hooks(after_tool_execute=lambda context: UseResult(context.result.text.replace("1234", "****")))
    agent = Agent(Scripted([call("a")]), tools=[Bodies().tool("a", "pin 1234")], hooks=hooks)
    result, _ = await outcome(agent, hooks=Hooks(after_tool_execute=lambda _: Stop("enough")))
    assert (result.status, result.reason) == ("stopped", "enough")
    assert texts(result.messages) == {"a-1": "pin ****"}


# The tool's own


@pytest.mark.parity("A11")
async def test_a_tools_own_hook_gives_arguments_that_are_filled_and_validated_again() -> None:
    bodies = Bodies()
    spy = Spy("tool", before_execute=UseArguments({"city": "Rome"}))
    weather = bodies.tool("weather", None, CITY, hooks=spy.tool_hooks())
    await Agent(Scripted([call("weather", city="Oslo")], "ok"), tools=[weather]).run("go")
    assert bodies.ran == [("weather", {"city": "Rome", "unit": "C", "days": [1]})]
    bad = Bodies()
    spy = Spy("tool", before_execute=UseArguments({"town": "Rome"}))
    weather = bad.tool("weather", None, CITY, hooks=spy.tool_hooks())
    result = await Agent(Scripted([call("weather", city="Oslo")], "ok"), tools=[weather]).run("go")
    assert (bad.ran, outcomes(result.messages)) == ([], {"weather-1": "error"})


@pytest.mark.parity("A11")
async def test_a_tools_own_hook_may_give_the_result_and_all_after_hooks_are_told() -> None:
    bodies = Bodies()
    tool_spy = Spy("tool", before_execute=UseResult("from the cache"))
    agent_spy = Spy("agent", tool_spy.seen)
    tools = [bodies.tool("a", hooks=tool_spy.tool_hooks())]
    agent = Agent(Scripted([call("a")], "ok"), tools=tools, hooks=agent_spy.hooks("after_tool_execute"))
    result = await agent.run("go")
    assert texts(result.messages) == {"a-1": "from the cache"}
    assert (bodies.ran, tool_spy.order) == (
        [],
        ["tool.before_execute", "tool.after_execute", "agent.after_tool_execute"],
    )
    assert tool_spy.at("after_execute")[0].short_circuited
    assert tool_spy.at("after_tool_execute")[0].short_circuited


@pytest.mark.parity("A11")
@pytest.mark.parametrize("point", ["before_execute", "after_execute"])
async def test_a_tools_own_hook_cannot_stop_the_run(point: str) -> None:
    """A tool is somebody else's code: it may fail its own call, and nothing more."""
    spy = Spy("tool", **{point: Stop("mine")})
    result, recording = await outcome(
        Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a", hooks=spy.tool_hooks())]),
    )
    recording.check()
    assert result.status == "done"
    assert outcomes(result.messages) == {"a-1": "error"}
    assert "answered Stop" in texts(result.messages)["a-1"]


@pytest.mark.parity("A11")
async def test_the_same_function_may_be_an_outer_and_an_inner_hook() -> None:
    """What it may answer follows from where it stands, not from what it is."""

    def both(_context: Any) -> Any:
        return Stop("outer")

    weather = Bodies().tool("a", hooks=ToolHooks(before_execute=both))
    result, _ = await outcome(Agent(Scripted([call("a")]), tools=[weather], hooks=Hooks(before_tool_execute=both)))
    assert (result.status, result.reason) == ("stopped", "outer")


@pytest.mark.parity("A11")
@pytest.mark.parity("A20")
async def test_a_functions_hooks_are_given_in_the_decorator() -> None:
    seen: list[Any] = []

    @tool(label="Weather", hooks=ToolHooks(before_execute=lambda context: seen.append(context.arguments)))
    async def weather(city: str, days: int = 1) -> str:
        return f"{city} {days}"

    result = await Agent(Scripted([call("weather", city="Oslo")], "ok"), tools=[weather]).run("go")
    assert seen == [{"city": "Oslo", "days": 1}]
    assert weather.label == "Weather"
    assert texts(result.messages) == {"weather-1": "Oslo 1"}


@pytest.mark.parity("A11")
async def test_hooks_around_a_typed_tool_see_json_and_the_body_gets_values() -> None:
    """`deps` and the context stay out of it."""
    seen: list[Any] = []

    def watch(context: Any) -> UseArguments:
        seen.append((context.arguments, context.deps))
        return UseArguments({"days": [2, 3]})

    @tool
    async def plan(days: set[int], context: ToolContext[str]) -> str:
        return f"{sorted(days)} {context.deps}"

    agent: Agent[str] = Agent(Scripted([call("plan", days=[1])], "ok"), tools=[plan])
    result = await agent.run("go", deps="mine", hooks=Hooks(before_tool_execute=watch))
    assert seen == [({"days": [1]}, "mine")]
    assert texts(result.messages) == {"plan-1": "[2, 3] mine"}
