"""Hooks around one call: other arguments, given results, refusals, and the tool's own hooks."""

from typing import Any

import pytest

from antiphon import (
    Agent,
    Block,
    Hooks,
    Text,
    ToolCall,
    ToolFinished,
    ToolHooks,
    ToolOptions,
    ToolResult,
    ToolStarted,
    UseArguments,
    UseResult,
)
from antiphon.testing import Scripted

from .scenes import CITY, Bodies, Spy, call, outcome, outcomes, replies, results, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])


# What they are given


@MODES
@pytest.mark.parity("A6")
async def test_tool_hooks_are_given_call_tool_and_arguments_and_then_the_result(execution: Any) -> None:
    spy = Spy()
    bodies = Bodies()
    weather = bodies.tool("weather", {"sky": "grey"}, CITY)
    asked = call("weather", city="Oslo")
    agent = Agent(
        Scripted(["hm", asked], "ok"),
        tools=[weather],
        hooks=spy.hooks(),
        tool_options=ToolOptions(execution=execution),
    )
    await agent.run("go", deps=42)
    (before,), (after,) = spy.at("before_tool_execute"), spy.at("after_tool_execute")
    for context in (before, after):
        assert (context.step, context.call, context.tool, context.deps) == (1, asked, weather, 42)
        assert context.arguments == {"city": "Oslo", "unit": "C", "days": [1]}
        assert context.message.text == "hm"
    assert (after.result.text, after.error, after.short_circuited) == ('{"sky":"grey"}', None, False)
    assert after.seconds >= 0


@pytest.mark.parity("A10")
async def test_after_a_failure_the_hook_is_given_the_error_itself() -> None:
    spy = Spy()
    failure = ValueError("no wind")
    agent = Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a", failure)], hooks=spy.hooks())
    await agent.run("go")
    (after,) = spy.at("after_tool_execute")
    assert after.error is failure
    assert (after.result.outcome, after.result.is_error) == ("error", True)


@pytest.mark.parity("A6")
async def test_edits_in_place_stay_in_the_context() -> None:
    """A frozen record whose dicts are shared would let one hook change what the next sees, without anybody saying so."""
    bodies = Bodies()

    def scribble(context: Any) -> None:
        assert context.arguments == {"city": "Oslo", "unit": "C", "days": [1]}
        context.arguments["city"] = "Rome"
        context.arguments["days"].append(9)
        if hasattr(context, "result"):
            assert context.result.details == {"list": [1]}
            context.result.details["list"].append(2)

    hooks = Hooks(before_tool_execute=scribble, after_tool_execute=scribble)
    weather = bodies.tool(
        "weather",
        ToolResult("grey", details={"list": [1]}),
        CITY,
        hooks=ToolHooks(before_execute=scribble, after_execute=scribble),
        needs_approval=lambda info: scribble(info) or False,
    )
    agent = Agent(Scripted([call("weather", city="Oslo")], "ok"), tools=[weather], hooks=hooks, policy=scribble)
    result, recording = await outcome(agent, hooks=hooks)
    assert bodies.ran == [("weather", {"city": "Oslo", "unit": "C", "days": [1]})]
    assert recording.one(ToolFinished).arguments == {"city": "Oslo", "unit": "C", "days": [1]}
    assert results(result.messages)[0].details == {"list": [1]}
    assert results(result.messages)[0].used_arguments == '{"city":"Oslo","unit":"C","days":[1]}'


@pytest.mark.parity("A6")
async def test_settings_in_a_context_are_the_hooks_own() -> None:
    """They belong to the agent, and so to every other run of it."""
    from antiphon import ModelSettings

    def scribble(context: Any) -> None:
        context.settings.extra_body["nested"]["x"] = 1

    model = Scripted("ok", "ok")
    settings = ModelSettings(extra_body={"nested": {}})
    hooks = Hooks(prepare_context=scribble, before_model_request=scribble, after_model_response=scribble)
    agent = Agent(model, settings=settings, hooks=hooks)
    await agent.run("go")
    await agent.run("go")
    assert settings.extra_body == {"nested": {}}
    assert [request.settings.extra_body for request in model.requests] == [{"nested": {}}] * 2


# Other arguments


@MODES
@pytest.mark.parity("A9")
async def test_given_arguments_are_filled_and_validated_again(execution: Any) -> None:
    bodies = Bodies()
    hooks = Hooks(before_tool_execute=lambda _: UseArguments({"city": "Rome"}))
    agent = Agent(
        Scripted([call("weather", city="Oslo", unit="F")], "ok"),
        tools=[bodies.tool("weather", None, CITY)],
        hooks=hooks,
        tool_options=ToolOptions(execution=execution),
    )
    result, recording = await outcome(agent)
    used = {"city": "Rome", "unit": "C", "days": [1]}
    assert bodies.ran == [("weather", used)], "they replace the others, nothing is merged"
    assert recording.one(ToolStarted).arguments == recording.one(ToolFinished).arguments == used
    (told,) = results(result.messages)
    assert told.used_arguments == '{"city":"Rome","unit":"C","days":[1]}'
    assert replies(result.messages)[0].calls[0].arguments == '{"city": "Oslo", "unit": "F"}', (
        "what the model said stays"
    )


@MODES
@pytest.mark.parity("A9")
async def test_given_arguments_that_do_not_fit_are_an_error_result(execution: Any) -> None:
    bodies = Bodies()
    agent = Agent(
        Scripted([call("weather", city="Oslo")], "ok"),
        tools=[bodies.tool("weather", None, CITY)],
        hooks=Hooks(before_tool_execute=lambda _: UseArguments({"city": 7})),
        tool_options=ToolOptions(execution=execution),
    )
    result, _ = await outcome(agent)
    assert (result.status, bodies.ran) == ("done", [])
    assert outcomes(result.messages) == {"weather-1": "error"}
    assert "city: " in texts(result.messages)["weather-1"]


# Given results


@MODES
@pytest.mark.parity("A9")
async def test_a_given_result_is_used_word_for_word_and_nothing_inside_is_asked(execution: Any) -> None:
    """Neither escaped nor marked as an error: the hook speaks in the tool's place."""
    bodies = Bodies()
    run_spy = Spy("run")
    agent_spy = Spy("agent", run_spy.seen, before_tool_execute=UseResult("<b>closed & quiet</b>"))
    tool_spy = Spy("tool", run_spy.seen)
    agent = Agent(
        Scripted([call("a")], "ok"),
        tools=[bodies.tool("a", hooks=tool_spy.tool_hooks())],
        hooks=agent_spy.hooks("before_tool_execute", "after_tool_execute"),
        tool_options=ToolOptions(execution=execution),
    )
    result, recording = await outcome(agent, hooks=run_spy.hooks("before_tool_execute", "after_tool_execute"))
    recording.check()
    assert bodies.ran == []
    assert texts(result.messages) == {"a-1": "<b>closed & quiet</b>"}
    assert outcomes(result.messages) == {"a-1": "ok"}
    assert run_spy.order == ["agent.before_tool_execute", "run.after_tool_execute", "agent.after_tool_execute"]
    assert [context.short_circuited for context in run_spy.at("after_tool_execute")] == [True, True]
    assert recording.of(ToolStarted) == []


@pytest.mark.parity("A9")
@pytest.mark.parametrize(
    ("content", "text"),
    [("", ""), ({"a": [1.5]}, '{"a":[1.5]}'), (None, "null"), (7, "7"), (True, "true"), ([Text("t")], "t")],
)
async def test_a_given_result_may_be_anything_a_tool_may_return(content: Any, text: str) -> None:
    hooks = Hooks(before_tool_execute=lambda _: UseResult(content))
    result = await Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a")], hooks=hooks).run("go")
    assert texts(result.messages) == {"a-1": text}


@pytest.mark.parity("A9")
async def test_a_given_result_may_be_an_error_with_details() -> None:
    answer = UseResult("quota used up", details={"left": 0}, is_error=True)
    hooks = Hooks(before_tool_execute=lambda _: answer)
    result = await Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a")], hooks=hooks).run("go")
    (told,) = results(result.messages)
    assert (told.text, told.details, told.is_error, told.outcome) == ("quota used up", {"left": 0}, True, "error")


@pytest.mark.parity("A9")
async def test_a_given_result_may_end_the_turn() -> None:
    model = Scripted([call("a")], "never")
    hooks = Hooks(before_tool_execute=lambda _: UseResult(ToolResult("bye", end_turn=True)))
    result = await Agent(model, tools=[Bodies().tool("a")], hooks=hooks).run("go")
    assert (result.status, len(model.requests)) == ("done", 1)


# Unknown tools


@MODES
@pytest.mark.parity("A9")
@pytest.mark.parity("A11")
async def test_an_unknown_tool_reaches_the_agents_and_the_runs_hooks_with_no_tool(execution: Any) -> None:
    agent_spy = Spy("agent")
    run_spy = Spy("run", agent_spy.seen)
    points = ("before_tool_execute", "after_tool_execute")
    options = ToolOptions(execution=execution)
    agent = Agent(Scripted([call("serch", q="x")], "ok"), hooks=agent_spy.hooks(*points), tool_options=options)
    result, _ = await outcome(agent, hooks=run_spy.hooks(*points))
    assert agent_spy.order == [
        "agent.before_tool_execute",
        "run.before_tool_execute",
        "run.after_tool_execute",
        "agent.after_tool_execute",
    ]
    assert [(context.tool, context.arguments) for _, _, context in agent_spy.seen] == [(None, {"q": "x"})] * 4
    assert outcomes(result.messages) == {"serch-1": "error"}


@pytest.mark.parity("A9")
async def test_a_hook_may_answer_for_a_tool_that_does_not_exist() -> None:
    def answer(context: Any) -> Any:
        return UseResult(f"routed {context.arguments}") if context.tool is None else None

    result = await Agent(Scripted([call("ghost", q=1)], "ok"), hooks=Hooks(before_tool_execute=answer)).run("go")
    assert texts(result.messages) == {"ghost-1": "routed {'q': 1}"}
    assert outcomes(result.messages) == {"ghost-1": "ok"}


@pytest.mark.parity("A12")
async def test_an_unknown_tool_is_told_with_the_known_ones() -> None:
    """I7: an invented name is a mistake that the model can mend, if it is told which names there are."""
    agent = Agent(Scripted([call("serch")], "ok"), tools=[Bodies().tool("search"), Bodies().tool("fetch")])
    result = await agent.run("go")
    assert result.status == "done"
    assert (
        "no tool named 'serch'; did you mean 'search'? the tools are: search, fetch"
        in (texts(result.messages)["serch-1"])
    )


# Bad arguments


@MODES
@pytest.mark.parity("A10")
@pytest.mark.parametrize(
    ("arguments", "readable"),
    [
        ('{"city": 7}', {"city": 7}),
        ('{"city"', {}),
        ("[1]", {}),
        ('{"city": "Oslo", "extra": 1}', {"city": "Oslo", "extra": 1}),
    ],
)
async def test_bad_arguments_skip_the_before_hooks_and_the_tools_own_and_reach_the_after_hooks(
    execution: Any, arguments: str, readable: dict[str, Any]
) -> None:
    """The hooks after it see what was asked for, as far as it can be read: a log of refusals wants to name it."""
    bodies = Bodies()
    spy = Spy()
    agent = Agent(
        Scripted([ToolCall(id="w", name="weather", arguments=arguments)], "ok"),
        tools=[bodies.tool("weather", None, CITY, hooks=Spy("tool", spy.seen).tool_hooks())],
        hooks=spy.hooks("before_tool_execute", "after_tool_execute"),
        tool_options=ToolOptions(execution=execution),
    )
    result, _ = await outcome(agent)
    assert spy.order == ["agent.after_tool_execute"]
    (after,) = spy.at("after_tool_execute")
    assert (after.arguments, after.short_circuited, after.result.outcome) == (readable, False, "error")
    assert after.error is not None
    assert (result.status, bodies.ran) == ("done", [])


@pytest.mark.parity("A10")
async def test_an_after_hook_may_mend_what_the_model_reads_of_bad_arguments() -> None:
    hooks = Hooks(after_tool_execute=lambda context: UseResult(f"hint. {context.result.text}"))
    model = Scripted([call("weather", town="Oslo")], "ok")
    result = await Agent(model, tools=[Bodies().tool("weather", None, CITY)], hooks=hooks).run("go")
    assert texts(result.messages)["weather-1"].startswith("hint. <tool_error")
    assert outcomes(result.messages) == {"weather-1": "error"}


# Refusals


@MODES
@pytest.mark.parity("C7")
async def test_a_blocked_call_does_not_run_and_the_model_reads_why(execution: Any) -> None:
    bodies = Bodies()
    spy = Spy()
    hooks = Hooks(
        before_tool_execute=lambda context: Block("not on Sundays") if context.call.name == "a" else None,
        after_tool_execute=spy.hooks().after_tool_execute,
    )
    agent = Agent(
        Scripted([call("a"), call("b")], "ok"),
        tools=[bodies.tool("a"), bodies.tool("b")],
        hooks=hooks,
        tool_options=ToolOptions(execution=execution),
    )
    result, _ = await outcome(agent)
    assert outcomes(result.messages) == {"a-1": "denied", "b-1": "ok"}
    assert "not on Sundays" in texts(result.messages)["a-1"]
    assert bodies.names == ["b"]
    assert {context.call.name: context.result.outcome for context in spy.at("after_tool_execute")} == {
        "a": "denied",
        "b": "ok",
    }


@pytest.mark.parity("C7")
async def test_a_block_without_a_reason_still_says_that_the_call_was_refused() -> None:
    hooks = Hooks(before_tool_execute=lambda _: Block())
    result = await Agent(Scripted([call("a")], "ok"), tools=[Bodies().tool("a")], hooks=hooks).run("go")
    assert "refused" in texts(result.messages)["a-1"]
