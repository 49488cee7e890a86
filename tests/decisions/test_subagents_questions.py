"""What a sub-agent asks is decided in its caller's run, live or after a pause, on any floor."""

import json
from typing import Any

import pytest

from antiphon import (
    Agent,
    Answer,
    ApprovalDecided,
    ApprovalRequested,
    Approve,
    Deny,
    RunStarted,
    Tool,
    ToolContext,
    ToolOptions,
    Usage,
    UsageError,
    tool,
    validate,
)
from antiphon.testing import Recording, Scripted, record

from .scenes import Bodies, call, finished, outcome, outcomes, texts

pytestmark = [pytest.mark.anyio, pytest.mark.parity("A22")]


def asking(*more: Any) -> Scripted:
    """The caller's script: it asks the helper, and ends."""
    return Scripted([call("helper", prompt="help me"), *more], "ok")


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
