"""Pausing and going on: the state is data, decisions are keyed by call id, and nothing that ran runs again."""

import json
from typing import Any

import pytest

from antiphon import (
    Agent,
    Answer,
    ApprovalRequested,
    Approve,
    AssistantMessage,
    Deny,
    ListedTools,
    MessageFinished,
    RunFinished,
    RunStarted,
    Tool,
    ToolContext,
    ToolFinished,
    ToolOptions,
    ToolRequested,
    ToolResultMessage,
    ToolStarted,
    UsageError,
    UserMessage,
    tool,
    validate,
)
from antiphon.testing import Scripted

from .scenes import CITY, EMPTY, Bodies, call, finished, outcome, outcomes, said, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])


def stored(state: dict[str, Any]) -> dict[str, Any]:
    """The state as another process would read it."""
    return json.loads(json.dumps(state))


def gated(bodies: Bodies, *names: str) -> list[Tool]:
    return [bodies.tool(name, needs_approval=True) for name in names]


def waiting(result: Any) -> list[str]:
    return [each.id for each in result.pending]


# Siblings


@MODES
@pytest.mark.parity("B9")
async def test_g1_a_pause_keeps_the_results_of_finished_siblings(execution: Any) -> None:
    """G1: only the paused call continues."""
    bodies = Bodies()
    tools = [bodies.tool("a", "first"), *gated(bodies, "b"), bodies.tool("c", "third")]
    options = ToolOptions(execution=execution)
    agent = Agent(Scripted([call("a"), call("b"), call("c")], "ok"), tools=tools, tool_options=options)
    paused, _ = await outcome(agent)
    assert (paused.status, waiting(paused)) == ("paused", ["b-1"])
    result, recording = await finished(agent.run(resume=stored(paused.state), decisions={"b-1": Approve()}))
    recording.check()
    assert result.status == "done"
    assert sorted(bodies.names) == ["a", "b", "c"], "each ran once in total"
    assert texts(result.messages) == {"a-1": "first", "b-1": "b", "c-1": "third"}
    assert [m.call_id for m in result.messages if isinstance(m, ToolResultMessage)] == ["a-1", "b-1", "c-1"]
    assert recording.one(RunStarted).resumed_from == paused.run_id
    assert result.run_id != paused.run_id
    assert validate(result.messages) == []


@MODES
@pytest.mark.parity("B9")
async def test_g2_a_question_from_inside_does_not_run_siblings_again(execution: Any) -> None:
    """G2: the body that asked is unwound and, after the answer, run again from its top; nobody else is."""
    bodies = Bodies()
    tops: list[str] = []

    @tool
    async def ask(context: ToolContext[Any]) -> str:
        tops.append("top")
        answer = await context.ask({"text": "may I?"})
        bodies.ran.append(("ask", {}))
        return f"they said {answer}"

    tools = [bodies.tool("a"), ask, bodies.tool("c")]
    options = ToolOptions(execution=execution)
    agent = Agent(Scripted([call("a"), call("ask"), call("c")], "ok"), tools=tools, tool_options=options)
    paused, _ = await outcome(agent)
    assert (paused.status, paused.questions) == ("paused", {"ask-1": {"text": "may I?"}})
    assert tops == ["top"]
    result, recording = await finished(agent.run(resume=stored(paused.state), decisions={"ask-1": Answer("yes")}))
    recording.check()
    assert texts(result.messages)["ask-1"] == "they said yes"
    assert sorted(bodies.names) == ["a", "ask", "c"]
    assert tops == ["top", "top"], "ask before you act"


@pytest.mark.parity("B9")
async def test_several_questions_are_answered_one_after_the_other_across_pauses() -> None:
    acted: list[Any] = []

    @tool
    async def book(context: ToolContext[Any]) -> str:
        who = await context.ask("who?")
        nights = await context.ask("how long?")
        acted.append((who, nights))
        return f"{who} {nights}"

    agent = Agent(Scripted([call("book")], "ok"), tools=[book])
    first, _ = await outcome(agent)
    second, _ = await finished(agent.run(resume=stored(first.state), decisions={"book-1": Answer("Ann")}))
    assert (second.status, second.questions) == ("paused", {"book-1": "how long?"})
    result, _ = await finished(agent.run(resume=stored(second.state), decisions={"book-1": Answer(3)}))
    assert (texts(result.messages), acted) == ({"book-1": "Ann 3"}, [("Ann", 3)])


@pytest.mark.parity("B9")
async def test_g3_decisions_are_keyed_by_call_id_and_their_order_does_not_matter() -> None:
    """G3: the answer to the second question never goes to the first tool."""
    bodies = Bodies()
    weather = bodies.tool("weather", lambda given: given["city"], CITY, needs_approval=True)
    calls = [call("weather", f"w{number}", city=city) for number, city in enumerate(["Oslo", "Rome", "Bonn"])]
    agent = Agent(Scripted(calls, "ok"), tools=[weather])
    paused, _ = await outcome(agent)
    decisions: dict[str, Any] = {"w2": Deny("no Bonn"), "w0": Approve(), "w1": Approve({"city": "Turin"})}
    result, _ = await finished(agent.run(resume=stored(paused.state), decisions=decisions))
    assert {key: text[:20] for key, text in texts(result.messages).items()} == {
        "w0": "Oslo",
        "w1": "Turin",
        "w2": '<tool_error name="we',
    }
    assert outcomes(result.messages) == {"w0": "ok", "w1": "ok", "w2": "denied"}


@pytest.mark.parity("B9")
async def test_g4_results_of_siblings_are_in_the_state_before_the_pause_is_announced() -> None:
    """G4: whoever stores the state when the pause is told of loses nothing."""
    bodies = Bodies()
    agent = Agent(Scripted([call("a"), call("b")], "ok"), tools=[bodies.tool("a", "kept"), *gated(bodies, "b")])
    run = agent.run("go")
    states: list[Any] = []
    run.subscribe(lambda event: states.append(stored(run.state)) if isinstance(event, RunFinished) else None)
    await run
    result, _ = await finished(agent.run(resume=states[0], decisions={"b-1": Approve()}))
    assert (texts(result.messages), bodies.names) == ({"a-1": "kept", "b-1": "b"}, ["a", "b"])


@pytest.mark.parity("B9")
async def test_g5_what_must_be_decided_is_exactly_what_is_pending() -> None:
    """G5: not what was answered already, and the error lists the ids."""
    bodies = Bodies()
    agent = Agent(Scripted([call("a"), call("b"), call("c")], "ok"), tools=[bodies.tool("a"), *gated(bodies, "b", "c")])
    paused, _ = await outcome(agent)
    assert waiting(paused) == ["b-1", "c-1"]
    with pytest.raises(UsageError, match=r"under 'a-1'; pending are: 'b-1', 'c-1'"):
        agent.run(resume=paused.state, decisions={"a-1": Approve(), "b-1": Approve()})
    with pytest.raises(UsageError, match=r"calls wait for decisions \('b-1', 'c-1'\)"):
        agent.run("something else", resume=paused.state)


@pytest.mark.parity("B9")
async def test_g6_approvals_and_results_from_elsewhere_survive_the_same_round_trip() -> None:
    """G6: neither is deferred a second time."""
    bodies = Bodies()
    tools = [*gated(bodies, "a"), Tool.from_schema("far", "Runs elsewhere.", EMPTY)]
    agent = Agent(Scripted([call("a"), call("far")], "ok"), tools=tools)
    paused, _ = await outcome(agent)
    decisions: dict[str, Any] = {"far-1": Answer([1, 2]), "a-1": Approve()}
    result, recording = await finished(agent.run(resume=stored(paused.state), decisions=decisions))
    recording.check()
    assert (result.status, texts(result.messages)) == ("done", {"a-1": "a", "far-1": "[1,2]"})
    assert recording.of(ApprovalRequested) == []


@pytest.mark.parity("B9")
async def test_g6_a_yes_and_a_result_for_a_tool_that_runs_elsewhere_come_in_two_steps() -> None:
    far = Tool.from_schema("far", "Runs elsewhere.", CITY, needs_approval=True)
    agent = Agent(Scripted([call("far", city="Oslo")], "ok"), tools=[far])
    first, _ = await outcome(agent)
    decisions = {"far-1": Approve({"city": "Rome"})}
    second, recording = await finished(agent.run(resume=stored(first.state), decisions=decisions))
    assert (second.status, recording.one(ApprovalRequested).arguments["city"]) == ("paused", "Rome")
    result, _ = await finished(agent.run(resume=stored(second.state), decisions={"far-1": Answer("sunny")}))
    assert (result.status, texts(result.messages)) == ("done", {"far-1": "sunny"})


@pytest.mark.parity("B9")
async def test_g8_everything_that_waits_is_in_the_state_and_the_agent_may_be_a_new_one() -> None:
    """G8: allowed siblings that had not started, edited arguments, queued messages, counters."""
    bodies = Bodies()

    def make(*script: Any) -> Agent[Any]:
        tools = [bodies.tool("a", needs_approval=True), bodies.tool("b", None, CITY, needs_approval=True)]
        return Agent(Scripted(*script), tools=tools, instructions="Be brief.")

    run = make(["hm", call("a"), call("b", city="Oslo")]).run("go")

    def add(event: Any) -> None:
        if isinstance(event, ToolRequested) and event.call.name == "a":
            run.steer("hurry")
            run.follow_up("and then?")

    run.subscribe(add)
    first = await run
    assert (first.status, first.undelivered) == ("paused", ())
    model = Scripted("still there", "bye")
    rebuilt = make().but(model=model, instructions="ignored: the run has its own")
    decisions = {"b-1": Approve({"city": "Rome"})}
    second, _ = await finished(rebuilt.run(resume=stored(first.state), decisions=decisions))
    assert (second.status, waiting(second)) == ("paused", ["a-1"])
    result, _ = await finished(rebuilt.run(resume=stored(second.state), decisions={"a-1": Approve()}))
    assert bodies.ran == [("b", {"city": "Rome", "unit": "C", "days": [1]}), ("a", {})]
    assert said(result.messages) == ["go", "hm", "a", "b", "hurry", "still there", "and then?", "bye"]
    assert model.requests[0].instructions == "Be brief."
    assert result.turns == 3


@pytest.mark.parity("B9")
async def test_g9_unknown_and_stale_ids_are_refused_and_partial_sets_pause_again() -> None:
    """G9: an id from an earlier request must not approve something of this one."""
    bodies = Bodies()
    agent = Agent(Scripted([call("a", "x1"), call("a", "x2")], [call("a", "x3")], "ok"), tools=gated(bodies, "a"))
    first, _ = await outcome(agent)
    second, recording = await finished(agent.run(resume=stored(first.state), decisions={"x2": Approve()}))
    recording.check()
    assert (second.status, waiting(second)) == ("paused", ["x1"])
    with pytest.raises(UsageError, match=r"under 'x2'; pending are: 'x1'"):
        agent.run(resume=second.state, decisions={"x2": Approve()})
    third, _ = await finished(agent.run(resume=stored(second.state), decisions={"x1": Approve()}))
    assert (third.status, waiting(third)) == ("paused", ["x3"])
    with pytest.raises(UsageError, match=r"under 'x1'; pending are: 'x3'"):
        agent.run(resume=third.state, decisions={"x1": Approve()})
    result, _ = await finished(agent.run(resume=stored(third.state), decisions={"x3": Approve()}))
    assert (result.status, len(bodies.ran)) == ("done", 3)
    with pytest.raises(UsageError, match=r"under 'x3'; pending are: none"):
        agent.run(resume=result.state, decisions={"x3": Approve()})


@pytest.mark.parity("B9")
async def test_g11_streamed_and_plain_runs_store_the_same() -> None:
    """G11: a run that was watched must not call a tool again in the next turn."""

    def agent() -> Agent[Any]:
        return Agent(Scripted(["hm", call("a")], "ok"), tools=[Bodies().tool("a")])

    plain = await agent().run("go", run_id="r")
    async with agent().run("go", run_id="r") as run:
        async for _ in run:
            pass

    def bare(state: dict[str, Any]) -> Any:
        return [{key: value for key, value in message.items() if key != "created_at"} for message in state["messages"]]

    assert bare(run.result.state) == bare(plain.state)


@pytest.mark.parity("B9")
@pytest.mark.parametrize("repeatable", [False, True])
async def test_g12_a_process_that_died_during_a_tool_goes_on_with_what_is_known(repeatable: bool) -> None:
    """G12: "started, end not known" is told to the model and to the application; it is not run again by itself."""
    bodies = Bodies()
    tools = [bodies.tool("a", repeatable=repeatable), bodies.tool("b")]
    agent = Agent(Scripted([call("a"), call("b")], "ok"), tools=tools)
    run = agent.run("go")
    states: list[Any] = []
    run.subscribe(
        lambda event: states.append(stored(run.state)) if isinstance(event, ToolStarted) and event.name == "a" else None
    )
    await run
    bodies.ran.clear()
    model = Scripted("I see")
    result, recording = await finished(agent.but(model=model).run(resume=states[0]))
    recording.check()
    assert result.status == "done"
    assert outcomes(result.messages) == {"a-1": "ok" if repeatable else "unknown", "b-1": "ok"}
    assert bodies.names == (["a", "b"] if repeatable else ["b"])
    told = [event.message for event in recording.of(MessageFinished)]
    assert outcomes(told) == outcomes(result.messages)
    if not repeatable:
        assert "whether it finished is not known" in texts(model.requests[0].messages)["a-1"]


@pytest.mark.parity("B9")
async def test_g12_a_tool_of_a_source_may_be_repeatable_too() -> None:
    """What the tool said when it was started is kept: the source has not been listed yet when the run goes on."""
    bodies = Bodies()
    agent = Agent(Scripted([call("a")], "ok"), sources=[ListedTools("shelf", [bodies.tool("a", repeatable=True)])])
    run = agent.run("go")
    states: list[Any] = []
    run.subscribe(lambda event: states.append(stored(run.state)) if isinstance(event, ToolStarted) else None)
    await run
    result, _ = await finished(agent.but(model=Scripted("ok")).run(resume=states[0]))
    assert (outcomes(result.messages), bodies.names) == ({"a-1": "ok"}, ["a", "a"])


@pytest.mark.parity("B9")
async def test_g12_a_bare_transcript_with_open_calls_is_closed_unless_they_may_run() -> None:
    bodies = Bodies()
    history = [UserMessage.of("go"), AssistantMessage(parts=(call("a"), call("b")), id="m1")]
    agent = Agent(Scripted("ok"), tools=[bodies.tool("a"), bodies.tool("b")])
    result, _ = await finished(agent.run(messages=history))
    assert (outcomes(result.messages), bodies.ran) == ({"a-1": "unknown", "b-1": "unknown"}, [])
    agent = agent.but(model=Scripted("ok"))
    result, recording = await finished(agent.run(messages=history, rerun_open=True))
    recording.check()
    assert (outcomes(result.messages), bodies.names) == ({"a-1": "ok", "b-1": "ok"}, ["a", "b"])


@pytest.mark.parity("B9")
async def test_g13_a_result_is_in_the_state_before_its_event_is_shown() -> None:
    """G13: a result that a person has seen must not be missing after a restart."""
    bodies = Bodies()
    agent = Agent(Scripted([call("a"), call("b")], "ok"), tools=[bodies.tool("a", "seen"), bodies.tool("b")])
    run = agent.run("go")
    states: list[Any] = []
    run.subscribe(
        lambda event: states.append(stored(run.state)) if isinstance(event, ToolFinished) else None,
    )
    await run
    bodies.ran.clear()
    result, _ = await finished(agent.but(model=Scripted("ok")).run(resume=states[0]))
    assert texts(result.messages)["a-1"] == "seen"
    assert "a" not in bodies.names
    result, _ = await finished(agent.but(model=Scripted("ok")).run(resume=states[1]))
    assert texts(result.messages) == {"a-1": "seen", "b-1": "b"}


@pytest.mark.parity("B9")
async def test_g14_an_answer_is_consumed_once() -> None:
    """G14: the interrupts of parallel tools that were answered do not fire again."""
    bodies = Bodies()
    asked: list[str] = []

    @tool
    async def ask(name: str, context: ToolContext[Any]) -> str:
        asked.append(name)
        return str(await context.ask(name))

    agent = Agent(
        Scripted([call("ask", "q1", name="one"), call("ask", "q2", name="two")], "ok"), tools=[ask, bodies.tool("a")]
    )
    first, _ = await outcome(agent)
    assert first.questions == {"q1": "one", "q2": "two"}
    second, recording = await finished(agent.run(resume=stored(first.state), decisions={"q1": Answer("A")}))
    assert (second.status, second.questions) == ("paused", {"q2": "two"})
    assert recording.of(ApprovalRequested) == []
    result, _ = await finished(agent.run(resume=stored(second.state), decisions={"q2": Answer("B")}))
    assert texts(result.messages) == {"q1": "A", "q2": "B"}
    assert asked == ["one", "two", "one", "two"], "each body: once up to its question, once after the answer"


async def test_a_resumed_run_puts_what_still_waits_to_its_approver() -> None:
    """Who resumes with an approver at hand has nobody else to ask."""
    bodies = Bodies()
    script = Scripted([call("pay", "c1", city="Oslo"), call("pay", "c2", city="Rome")], "done")
    agent = Agent(script, tools=gated(bodies, "pay"))
    paused = await agent.run("go")
    assert waiting(paused) == ["c1", "c2"]
    asked: list[str] = []

    async def approver(context: Any) -> bool:
        asked.append(context.call.id)
        return context.call.id == "c2"

    result = await agent.run(resume=stored(paused.state), approver=approver)
    assert (result.status, asked) == ("done", ["c1", "c2"])
    assert [message.outcome for message in result.messages if isinstance(message, ToolResultMessage)] == [
        "denied",
        "ok",
    ]
