"""An agent as a tool of another: its own history, the caller's stop and limits, events and questions inside the caller's."""

from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    CancelToken,
    Hooks,
    Limits,
    Rejected,
    RunFinished,
    RunStarted,
    Stop,
    TextDelta,
    Tool,
    ToolContext,
    ToolFinished,
    Usage,
    UsageError,
    UserMessage,
    tool,
    validate,
)
from antiphon.testing import Recording, Scripted, record

from .scenes import CITY, Bodies, Gate, Spy, call, failing, outcome, outcomes, said, texts

pytestmark = [pytest.mark.anyio, pytest.mark.parity("A22")]


def helper(*script: Any, **fields: Any) -> Tool:
    """A sub-agent as a tool."""
    return Agent(Scripted(*script), **fields).as_tool("helper", "Helps.")


def asking(*more: Any) -> Scripted:
    """The caller's script: it asks the helper, and ends."""
    return Scripted([call("helper", prompt="help me"), *more], "ok")


# What it is given and gives


async def test_its_history_is_its_own() -> None:
    """Nothing of the caller's transcript, instructions or tools is inherited; the caller sees the answer alone."""
    inner = Scripted([call("a")], "the answer")
    sub = Agent(inner, instructions="You help.", tools=[Bodies().tool("a")])
    agent = Agent(asking(), instructions="You ask.", tools=[sub.as_tool("helper", "Helps."), Bodies().tool("own")])
    result = await agent.run("secret", messages=[UserMessage.of("older secret")])
    assert said(inner.requests[0].messages) == ["help me"]
    assert inner.requests[0].instructions == "You help."
    assert [spec.name for spec in inner.requests[0].tools] == ["a"]
    assert texts(result.messages) == {"helper-1": "the answer"}
    assert said(result.messages) == ["older secret", "secret", "", "the answer", "ok"]


async def test_the_model_gives_a_prompt_unless_the_application_says_otherwise() -> None:
    inner = Scripted("sunny")
    tool = Agent(inner).as_tool(
        "weather",
        "Knows the weather.",
        parameters=CITY,
        prompt=lambda given: f"Weather in {given['city']}, {given['unit']}?",
    )
    result = await Agent(Scripted([call("weather", city="Oslo")], "ok"), tools=[tool]).run("go")
    assert said(inner.requests[0].messages) == ["Weather in Oslo, C?"]
    assert texts(result.messages) == {"weather-1": "sunny"}
    assert helper().parameters["required"] == ["prompt"]
    with pytest.raises(UsageError, match="takes parameters= and prompt= together"):
        Agent(inner).as_tool("x", parameters=CITY)
    with pytest.raises(UsageError, match="needs a name"):
        Agent(inner).as_tool()
    assert Agent(inner, name="named").as_tool().name == "named"


async def test_deps_and_context_variables_reach_it() -> None:
    """F16: a request id that is set around the run is seen in the sub-agent's tools and hooks too."""
    where: ContextVar[str] = ContextVar("where", default="nowhere")
    seen: list[Any] = []

    @tool
    async def look(context: ToolContext[Any]) -> str:
        seen.append((context.deps, where.get()))
        return "looked"

    sub = Agent(Scripted([call("look")], "done"), tools=[look], hooks=Hooks(on_run_start=lambda c: seen.append(c.deps)))
    where.set("here")
    await Agent(asking(), tools=[sub.as_tool("helper")]).run("go", deps="mine")
    assert seen == ["mine", ("mine", "here")]


async def test_a_traits_of_a_tool_may_be_given() -> None:
    approved: list[Any] = []
    sub = Agent(Scripted("answer")).as_tool("helper", needs_approval=True, exclusive=True)
    agent = Agent(asking(), tools=[sub], approver=lambda context: approved.append(context.call.name) or True)
    result = await agent.run("go")
    assert (approved, texts(result.messages), sub.exclusive) == (["helper"], {"helper-1": "answer"}, True)


async def test_outside_a_run_the_tool_still_works() -> None:
    """A tool can be called by hand, in a test."""
    sub = helper("answer")
    given = sub.invoke(sub.prepare('{"prompt": "hi"}'), ToolContext())
    assert await given == "answer"


# Endings


@pytest.mark.parametrize(
    ("script", "fields", "sentence"),
    [
        ([Rejected("no such model")], {}, "the agent failed: no such model"),
        ([["so far", call("a")]], {"limits": Limits(turns=1)}, "the agent ended without an answer: limit"),
        (
            ["so far"],
            {"hooks": Hooks(after_model_response=lambda _: Stop("why"))},
            "stopped (why); so far it said: so far",
        ),
        ([["hm"]], {"hooks": Hooks(on_run_start=failing(KeyError("x")))}, "the agent failed: KeyError"),
    ],
    ids=["error", "limit", "stopped", "hook"],
)
async def test_every_ending_without_an_answer_is_an_error_of_the_tool(script: Any, fields: Any, sentence: str) -> None:
    """The caller's model reads what happened, and the caller's run goes on."""
    sub = helper(*script, tools=[Bodies().tool("a")], **fields)
    result, recording = await outcome(Agent(asking(), tools=[sub]))
    recording.check()
    assert result.status == "done"
    assert outcomes(result.messages) == {"helper-1": "error"}
    assert sentence in texts(result.messages)["helper-1"]


@pytest.mark.parametrize("live", [False, True])
async def test_the_callers_stop_ends_it_and_no_request_follows(live: bool) -> None:
    gate = Gate()
    inner, outer = Scripted(["half", gate, "never"]), asking()
    sub = Agent(inner, hooks=Hooks(on_run_end=lambda context: ends.append(context.status)))
    ends: list[str] = []
    agent = Agent(outer, tools=[sub.as_tool("helper")])
    token = CancelToken()
    run = agent.run("go", cancel=token)
    recording = record(run)
    async with anyio.create_task_group() as group:

        async def stop() -> None:
            await gate.reached.wait()
            token.cancel("enough")

        group.start_soon(stop)
        if live:
            async with run:
                await run
        else:
            await run
    result = run.result
    recording.check()
    assert (result.status, result.reason, ends) == ("aborted", "enough", ["aborted"])
    assert outcomes(result.messages) == {"helper-1": "cancelled"}
    assert (len(inner.requests), len(outer.requests)) == (1, 1)
    assert validate(result.messages) == []


# Accounting


async def test_what_it_consumes_is_added_to_its_callers() -> None:
    inner = Scripted([call("a"), Usage(input=10, output=1)], ["answer", Usage(input=20, output=2)])
    sub = Agent(inner, tools=[Bodies().tool("a")])
    outer = Scripted([call("helper", prompt="p"), Usage(input=1, output=1)], ["ok", Usage(input=2, output=1)])
    result, recording = await outcome(Agent(outer, tools=[sub.as_tool("helper")]))
    assert (result.usage.input, result.usage.output) == (33, 5)
    assert (result.turns, result.requests) == (2, 4)
    assert result.last_usage == Usage(input=2, output=1), "the last request's is the caller's own"
    assert [event.usage.input for event in recording.of(RunFinished)] == [30, 33]


async def test_what_a_failed_one_consumed_counts_too() -> None:
    inner = Scripted(["half", Usage(input=10), Rejected("no")])
    result, _ = await outcome(Agent(asking(), tools=[Agent(inner).as_tool("helper")]))
    assert result.usage.input == 10


async def test_what_a_stopped_one_consumed_counts_too() -> None:
    gate = Gate()
    inner = Scripted(["half", Usage(input=10), gate])
    async with Agent(asking(), tools=[Agent(inner).as_tool("helper")]).run("go") as run:
        await gate.reached.wait()
        run.stop()
    assert run.result.usage.input == 10


@pytest.mark.parametrize(
    ("limits", "which"),
    [(Limits(tokens=30), "tokens"), (Limits(requests=3), "requests")],
)
async def test_it_may_use_what_its_caller_has_left(limits: Limits, which: str) -> None:
    """A budget that a sub-agent could pass is none."""
    spent = Usage(input=10)
    inner = Scripted(*[[call("a", f"c{n}"), spent] for n in range(9)])
    sub = Agent(inner, tools=[Bodies().tool("a")])
    outer = Scripted([call("helper", prompt="p"), spent], "never")
    result, recording = await outcome(Agent(outer, tools=[sub.as_tool("helper")], limits=limits))
    recording.check()
    assert result.status == "limit"
    assert (len(inner.requests), len(outer.requests)) == (2, 1)
    assert f"the limit of {20 if which == 'tokens' else 2} {which} was reached" in texts(result.messages)["helper-1"]
    assert (result.usage.input, result.requests) == (30, 3)


async def test_its_own_limits_hold_where_they_are_lower() -> None:
    inner = Scripted(*[[call("a", f"c{n}")] for n in range(9)])
    sub = Agent(inner, tools=[Bodies().tool("a")], limits=Limits(turns=2, requests=7))
    result, _ = await outcome(Agent(asking(), tools=[sub.as_tool("helper")], limits=Limits(requests=50)))
    assert (len(inner.requests), result.status) == (2, "done")


# Events


async def test_i4_its_events_are_told_inside_the_callers_with_its_parents_id() -> None:
    """I4: hooks and viewers are not silent for agents used as tools."""
    spy = Spy("sub")
    sub = Agent(Scripted([call("a")], "inner"), tools=[Bodies().tool("a")], hooks=spy.hooks())
    agent = Agent(asking(), tools=[sub.as_tool("helper")])
    recording = Recording()
    async with agent.run("go") as run:
        async for event in run:
            recording(event)
    recording.check()
    outer, inner = recording.of(RunStarted)
    assert (outer.run_id, outer.parent_run_id) == (run.run_id, None)
    assert inner.parent_run_id == run.run_id
    assert {event.parent_run_id for event in recording.run(inner.run_id)} == {run.run_id}
    assert [event.text for event in recording.run(inner.run_id).of(TextDelta)] == ["inner"]
    assert [event.status for event in recording.run(inner.run_id).of(RunFinished)] == ["done"]
    assert [event.name for event in recording.of(ToolFinished)] == ["a", "helper"]
    assert len(spy.at("on_run_end")) == len(spy.at("after_tool_execute")) == 1
    assert recording.events[-1].run_id == run.run_id, "the caller has the last word"


async def test_two_of_them_run_side_by_side() -> None:
    gates = [Gate(), Gate()]

    def answer(request: Any) -> Any:
        text = said(request.messages)[0]
        other = gates[1 - int(text)]
        return [gates[int(text)], f"answer {text}"] if not other.reached.is_set() else [opener(gates), f"answer {text}"]

    sub = Agent(Scripted(answer, answer)).as_tool("helper")
    outer = Scripted([call("helper", "h0", prompt="0"), call("helper", "h1", prompt="1")], "ok")
    result, recording = await outcome(Agent(outer, tools=[sub]))
    recording.check()
    assert texts(result.messages) == {"h0": "answer 0", "h1": "answer 1"}


def opener(gates: list[Gate]) -> Any:
    """A step of a script that opens all gates."""

    class Opens:
        async def wait(self) -> None:
            for gate in gates:
                gate.open()

    return Opens()
