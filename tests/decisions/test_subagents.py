"""An agent as a tool of another: its own history, the caller's stop and limits, events and questions inside the caller's."""

import json
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    Answer,
    ApprovalDecided,
    ApprovalRequested,
    Approve,
    CancelToken,
    Deny,
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
    ToolOptions,
    Usage,
    UsageError,
    UserMessage,
    tool,
    validate,
)
from antiphon.testing import Recording, Scripted, record

from .scenes import CITY, Bodies, Gate, Spy, call, failing, finished, outcome, outcomes, said, texts

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


# Questions


def shop(bodies: Bodies, *script: Any) -> Tool:
    """A sub-agent with two tools that need a person's yes, and one that asks from inside."""

    @tool
    async def size(context: ToolContext[Any]) -> str:
        answer = await context.ask("which size?")
        bodies.ran.append(("size", {"answer": answer}))
        return f"size {answer}"

    tools = [bodies.tool("pay", needs_approval=True), bodies.tool("ship", needs_approval=True), size]
    return Agent(Scripted(*script), tools=tools).as_tool("helper", "Shops.")


async def test_g15_its_questions_carry_their_path_and_are_decided_live() -> None:
    """G15: the root has no such tool; the path says where the question belongs."""
    bodies = Bodies()
    sub = shop(bodies, [call("pay"), call("ship"), call("size")], "shopped")
    recording = Recording()
    async with Agent(asking(), tools=[sub]).run("go") as run:
        async for event in run:
            recording(event)
            if isinstance(event, ApprovalRequested) and event.name == "size":
                assert [(each.id, each.name) for each in run.pending] == [
                    ("helper-1/pay-1", "pay"),
                    ("helper-1/ship-1", "ship"),
                    ("helper-1/size-1", "size"),
                ]
                run.deny("helper-1/ship-1", "too slow")
                run.answer("helper-1/size-1", "XL")
                with pytest.raises(UsageError, match=r"under 'helper-1/ship-1'"):
                    run.approve("helper-1/ship-1")
                run.approve("helper-1/pay-1")
    recording.check()
    asked = recording.of(ApprovalRequested)
    assert [(event.call_id, event.path, event.question) for event in asked] == [
        ("helper-1/pay-1", ("helper-1",), None),
        ("helper-1/ship-1", ("helper-1",), None),
        ("helper-1/size-1", ("helper-1",), "which size?"),
    ]
    assert {event.call_id for event in recording.of(ApprovalDecided)} == {event.call_id for event in asked}
    assert sorted(bodies.names) == ["pay", "size"]
    assert texts(run.result.messages) == {"helper-1": "shopped"}


async def test_g15_a_paused_run_goes_on_inside_the_sub_agent() -> None:
    bodies = Bodies()
    script = [[call("pay"), call("ship"), call("size")], "shopped"]
    own = bodies.tool("own", needs_approval=True)
    paused, recording = await outcome(Agent(asking(call("own")), tools=[shop(bodies, *script), own]))
    recording.check()
    assert (paused.status, [each.id for each in paused.pending]) == (
        "paused",
        ["helper-1/pay-1", "helper-1/ship-1", "helper-1/size-1", "own-1"],
    )
    assert paused.questions == {"helper-1/size-1": "which size?"}
    assert bodies.ran == []

    def rebuilt() -> Agent[Any]:
        return Agent(Scripted("ok"), tools=[shop(bodies, "shopped"), own])

    decisions: dict[str, Any] = {"own-1": Approve(), "helper-1/ship-1": Deny("no"), "helper-1/size-1": Answer("S")}
    second, recording = await finished(rebuilt().run(resume=stored(paused), decisions=decisions))
    recording.check()
    assert (second.status, [each.id for each in second.pending]) == ("paused", ["helper-1/pay-1"])
    assert sorted(bodies.names) == ["own", "size"]
    assert len(recording.of(ApprovalDecided)) == 3
    with pytest.raises(UsageError, match=r"under 'helper-1/size-1'; pending are: 'helper-1/pay-1'"):
        rebuilt().run(resume=stored(second), decisions={"helper-1/size-1": Answer("M")})

    result, recording = await finished(rebuilt().run(resume=stored(second), decisions={"helper-1/pay-1": Approve()}))
    recording.check()
    assert (result.status, texts(result.messages)) == ("done", {"helper-1": "shopped", "own-1": "own"})
    assert sorted(bodies.names) == ["own", "pay", "size"], "each ran once in total"
    assert validate(result.messages) == []


async def test_a_listener_of_an_awaited_run_may_decide_inside_it() -> None:
    bodies = Bodies()
    run = Agent(asking(), tools=[shop(bodies, [call("pay")], "shopped")]).run("go")
    run.subscribe(lambda event: run.approve(event.call_id) if isinstance(event, ApprovalRequested) else None)
    result, recording = await finished(run)
    recording.check()
    assert (result.status, bodies.names) == ("done", ["pay"])


async def test_the_callers_approver_is_asked_for_it_too() -> None:
    bodies = Bodies()
    asked: list[str] = []
    agent = Agent(
        asking(),
        tools=[shop(bodies, [call("pay")], "shopped")],
        approver=lambda context: asked.append(context.call.name) or True,
    )
    result = await agent.run("go")
    assert (result.status, asked, bodies.names) == ("done", ["pay"], ["pay"])


async def test_a_stop_while_it_waits_closes_it() -> None:
    bodies = Bodies()
    async with Agent(asking(), tools=[shop(bodies, [call("pay")])]).run("go") as run:
        recording = record(run)
        async for event in run:
            if isinstance(event, ApprovalRequested):
                run.stop("enough")
    recording.check()
    assert (run.result.status, outcomes(run.result.messages)) == ("aborted", {"helper-1": "cancelled"})


def stored(result: Any) -> dict[str, Any]:
    return json.loads(json.dumps(result.state))


def office(bodies: Bodies, *, script: Any = None) -> Agent[Any]:
    """An agent whose helper has a helper, whose tool needs a yes."""
    leaf = Agent(
        Scripted(*(["leaf done"] if script else [[call("pay"), call("ship")], "leaf done"])),
        tools=[bodies.tool("pay", needs_approval=True), bodies.tool("ship", needs_approval=True)],
    )
    middle = Agent(
        Scripted(*(["middle done"] if script else [[call("leaf", prompt="p")], "middle done"])),
        tools=[leaf.as_tool("leaf")],
    )
    return Agent(
        Scripted(*(["done"] if script else [[call("middle", prompt="p")], "done"])), tools=[middle.as_tool("middle")]
    )


async def test_g15_questions_two_floors_down_are_decided_live() -> None:
    bodies = Bodies()
    recording = Recording()
    async with office(bodies).run("go") as run:
        async for event in run:
            recording(event)
            if isinstance(event, ApprovalRequested):
                assert event.path == ("middle-1", "leaf-1")
                if event.name == "ship":
                    assert [each.id for each in run.pending] == ["middle-1/leaf-1/pay-1", "middle-1/leaf-1/ship-1"]
                    run.decide({"middle-1/leaf-1/ship-1": Approve(), "middle-1/leaf-1/pay-1": Deny()})
    recording.check()
    assert (run.result.status, bodies.names) == ("done", ["ship"])
    assert texts(run.result.messages) == {"middle-1": "middle done"}
    ids = [event.run_id for event in recording.of(RunStarted)]
    parents = [event.parent_run_id for event in recording.of(RunStarted)]
    assert parents == [None, *ids[:2]]


async def test_g15_questions_two_floors_down_survive_a_pause() -> None:
    bodies = Bodies()
    first, _ = await outcome(office(bodies))
    assert [each.id for each in first.pending] == ["middle-1/leaf-1/pay-1", "middle-1/leaf-1/ship-1"]
    again = office(bodies, script="end")
    second, _ = await finished(again.run(resume=stored(first), decisions={"middle-1/leaf-1/ship-1": Approve()}))
    assert [each.id for each in second.pending] == ["middle-1/leaf-1/pay-1"]
    again = office(bodies, script="end")
    result, recording = await finished(again.run(resume=stored(second), decisions={"middle-1/leaf-1/pay-1": Approve()}))
    recording.check()
    assert (result.status, result.text, bodies.names) == ("done", "done", ["ship", "pay"])
    assert texts(result.messages) == {"middle-1": "middle done"}


async def test_usage_of_a_paused_one_is_counted_once_when_it_ends() -> None:
    bodies = Bodies()
    spent = Usage(input=10)
    pay = bodies.tool("pay", needs_approval=True)
    sub = Agent(Scripted([call("pay"), spent], ["shopped", spent]), tools=[pay])
    agent = Agent(Scripted([call("helper", prompt="p"), spent], ["ok", spent]), tools=[sub.as_tool("helper")])
    paused, _ = await outcome(agent)
    result, _ = await finished(agent.run(resume=stored(paused), decisions={"helper-1/pay-1": Approve()}))
    assert (result.status, result.usage.input, result.requests) == ("done", 40, 4)


@pytest.mark.parametrize("execution", ["parallel", "sequential"])
async def test_a_paused_one_leaves_its_siblings_alone(execution: Any) -> None:
    bodies = Bodies()
    options = ToolOptions(execution=execution)
    tools = [shop(bodies, [call("pay")], "shopped"), bodies.tool("b")]
    agent = Agent(asking(call("b")), tools=tools, tool_options=options)
    paused, _ = await outcome(agent)
    assert bodies.names == (["b"] if execution == "parallel" else [])
    result, recording = await finished(agent.run(resume=stored(paused), decisions={"helper-1/pay-1": Approve()}))
    recording.check()
    assert (result.status, sorted(bodies.names)) == ("done", ["b", "pay"])
