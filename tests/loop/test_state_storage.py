"""The state of a run as JSON: whole at every moment, the same when it comes back, and refused when it is something else."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon.agent.agent import Agent
from antiphon.errors import UsageError
from antiphon.loop.state import Answer, Approve, Phase, RunState, Slot
from antiphon.loop.storage import dump_state, load_state
from antiphon.providers.scripted import Scripted
from antiphon.tools.context import ToolContext
from antiphon.types.content import Image, Text, Thinking, Unknown
from antiphon.types.events import ApprovalRequested, Event, ToolFinished
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, CustomMessage, UserMessage
from antiphon.types.transcript import validate
from antiphon.types.usage import Usage

from .scenarios import TOOLS, Heard, call, faults, outcomes, results_of, three_turns, tool

pytestmark = pytest.mark.anyio


async def states_of(agent: Agent[Any], **options: Any) -> list[tuple[str, str]]:
    """The state at every event of a run, as JSON text, with the event's name; each comes back as it was."""
    run = agent.run("hi", **options)
    states: list[tuple[str, str]] = []

    def store(event: Event) -> None:
        stored = json.dumps(run.state, allow_nan=False)
        again = load_state(json.loads(stored))
        now = run._now
        assert replace(again, counters=replace(again.counters, seconds=0.0)) == now
        assert json.dumps(dump_state(again)) == stored
        states.append((type(event).__name__, stored))

    run.subscribe(store)
    result = await run
    assert result.warnings == ()
    return states


async def test_at_every_step_of_a_run_the_state_is_json_and_comes_back_equal() -> None:
    """A process may die between any two events; what was stored last must be enough."""
    states = await states_of(Agent(Scripted(*three_turns()), tools=TOOLS, instructions="Be brief."))
    assert len(states) > 40


async def test_from_the_state_of_every_step_the_run_can_be_taken_up_in_another_process() -> None:
    """No call is run twice whose end is known, none is lost, and the person's words are there from the first event on."""
    states = await states_of(Agent(Scripted(*three_turns()), tools=TOOLS))
    for name, stored in states:
        state = json.loads(stored)
        if load_state(state).phase in (Phase.DONE, Phase.STOPPED):
            continue
        known = load_state(state)
        script = three_turns()[known.counters.turns :]
        run = Agent(Scripted(*script), tools=TOOLS).run(resume=state)
        heard = Heard(run)
        result = await run
        assert (name, result.status, validate(result.messages)) == (name, "done", [])
        assert isinstance(result.messages[0], UserMessage)
        finished = {slot.call.id for slot in known.batch.values() if slot.stage == "finished"}
        assert finished.isdisjoint(event.call_id for event in heard.of(ToolFinished))
        assert left_unknown(known) <= {call_id for call_id, how in outcomes(result).items() if how == "unknown"}
        assert heard.events[0].seq == 1
        assert [event.seq for event in heard.events] == list(range(1, len(heard.events) + 1))


def left_unknown(state: RunState) -> set[str]:
    """The calls that were running."""
    return {slot.call.id for slot in state.batch.values() if slot.stage == "started"}


async def test_a_tool_that_says_so_runs_again_after_a_crash() -> None:
    """A repeatable one only reads; everything else is told to the model as unknown."""
    ran: list[str] = []

    def body() -> str:
        ran.append("ran")
        return "again"

    tools = [tool("read", body, repeatable=True)]
    run = Agent(Scripted([call("read")], "x"), tools=tools).run("hi")
    stored: list[Any] = []
    run.subscribe(lambda event: stored.append(run.state) if type(event).__name__ == "ToolStarted" else None)
    await run
    result = await Agent(Scripted("x"), tools=tools).run(resume=stored[0])
    assert (len(ran), outcomes(result)) == (2, {"read-1": "ok"})


async def test_a_paused_run_goes_on_from_json_alone() -> None:
    async def buy(context: ToolContext[Any]) -> str:
        return f"bought {await context.ask('how many?')}"

    tools = [tool("buy", buy), tool("pay", needs_approval=True), tool("look")]
    paused = await Agent(Scripted([call("buy"), call("pay"), call("look")]), tools=tools).run("hi")
    assert (paused.status, [asked.id for asked in paused.pending]) == ("paused", ["buy-1", "pay-1"])
    state = json.loads(json.dumps(paused.state))
    agent = Agent(Scripted("done"), tools=tools)
    half = await agent.run(resume=state, decisions={"pay-1": Approve()})
    assert (half.status, [asked.id for asked in half.pending]) == ("paused", ["buy-1"])
    run = agent.run(resume=json.loads(json.dumps(half.state)), decisions={"buy-1": Answer(3)})
    heard = Heard(run)
    result = await run
    texts = {call_id: message.text for call_id, message in results_of(result.messages).items()}
    assert texts == {"buy-1": "bought 3", "pay-1": "pay", "look-1": "look"}
    assert faults(heard.events, result) == []
    assert heard.of(ApprovalRequested) == []


async def test_a_resumed_run_is_a_new_run_that_says_where_it_came_from() -> None:
    paused = await Agent(Scripted([call("pay")]), tools=[tool("pay", needs_approval=True)]).run("hi")
    run = Agent(Scripted("done"), tools=[tool("pay", needs_approval=True)]).run(
        resume=paused.state, decisions={"pay-1": Approve()}
    )
    heard = Heard(run)
    result = await run
    assert run.run_id != paused.run_id
    assert heard.events[0].resumed_from == paused.run_id  # type: ignore[union-attr]
    assert (heard.events[0].seq, result.turns, result.requests) == (1, 2, 2)


def everything() -> RunState:
    """A state that holds one of each."""
    messages = History(
        [
            UserMessage(parts=(Text("hi"), Image.from_bytes(b"\x00\xff", "image/png")), id="u1", created_at=1.25),
            CustomMessage(kind="note", data={"a": [1, None, "ø"]}, id="n1"),
            Unknown({"type": "from_the_future", "value": 1}),
            AssistantMessage(
                parts=(Thinking(text="hm", signature="s", origin="p:m"), Text("yes"), Unknown({"type": "hologram"})),
                usage=Usage(input=1, output=2, cost=0.25, extra={"tier": "x"}),
                id="a1",
            ),
        ]
    )
    return RunState(run_id="r1", messages=messages, phase=Phase.DONE, status="done", steering=(UserMessage.of("more"),))


def test_what_this_version_does_not_know_survives() -> None:
    """A state may pass through an older process on its way."""
    state = everything()
    stored = json.dumps(dump_state(state))
    assert load_state(json.loads(stored)) == state
    assert "hologram" in stored
    assert "from_the_future" in stored


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (None, "what result.state gave"),
        ("{}", "what result.state gave"),
        ([], "what result.state gave"),
        ({}, "what result.state gave"),
        ({"version": 2}, "version 2, and this library reads 1"),
        ({"version": "1"}, "version '1'"),
        ({"version": None}, "version None"),
        ({"version": 1}, "does not fit"),
    ],
)
def test_what_is_no_state_is_refused_with_what_was_expected(raw: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_state(raw)


def set_to(**fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda state: state.update(fields)


@pytest.mark.parametrize(
    "forge",
    [
        set_to(run_id=5),
        set_to(phase="dreaming"),
        set_to(status="excellent"),
        set_to(messages="none"),
        set_to(messages=[5]),
        set_to(batch=[]),
        set_to(batch={"c1": {"stage": "allowed"}}),
        set_to(batch={"c1": {"call": {"id": "c1", "name": "x", "arguments": {}}, "stage": "allowed"}}),
        set_to(batch={"c1": {"call": {"id": "c1", "name": "x"}, "stage": "free for all"}}),
        set_to(counters={"turns": "many"}),
        set_to(announced=None),
        set_to(steering={"text": "x"}),
    ],
)
def test_a_state_of_another_shape_is_refused(forge: Callable[[dict[str, Any]], None]) -> None:
    """Whoever edits a stored state by hand hears where it is wrong, before anything runs."""
    raw = dump_state(everything())
    forge(raw)
    with pytest.raises(UsageError, match="stored data does not fit"):
        load_state(raw)


def paused_state(*names: str) -> dict[str, Any]:
    """A state in which these calls wait."""
    calls = [call(name) for name in names]
    reply = AssistantMessage(parts=tuple(calls), id="a1")
    batch = {asked.id: Slot(call=asked, stage="pending", arguments="{}") for asked in calls}
    messages = History([UserMessage.of("hi", id="u1"), reply])
    return dump_state(RunState(run_id="r1", messages=messages, phase=Phase.HELD, status="paused", batch=batch))


async def test_a_store_that_loses_the_order_of_keys_loses_nothing() -> None:
    """A binary JSON column sorts them; results must come back in the order of the calls all the same."""
    raw = paused_state("zeta", "b", "alpha")
    raw["batch"] = dict(sorted(raw["batch"].items()))
    decisions = {f"{name}-1": Approve() for name in ("alpha", "b", "zeta")}
    result = await Agent(Scripted("done"), tools=[tool("zeta"), tool("b"), tool("alpha")]).run(
        resume=raw, decisions=decisions
    )
    assert list(results_of(result.messages)) == ["zeta-1", "b-1", "alpha-1"]
    assert validate(result.messages) == []


@pytest.mark.parametrize(
    "forge",
    [
        set_to(messages=[]),
        set_to(phase="done"),
        set_to(batch={}),
        lambda state: state["batch"].pop("look-1"),
        lambda state: state["batch"]["look-1"]["call"].update(name="delete"),
        lambda state: state["batch"]["look-1"]["call"].update(arguments='{"all": true}'),
        lambda state: state["batch"].update(other=state["batch"]["look-1"]),
        lambda state: state["messages"].append({"type": "user", "parts": [], "id": "u2"}),
    ],
)
def test_a_state_that_contradicts_itself_is_refused(forge: Callable[[dict[str, Any]], object]) -> None:
    """No call that the model did not make is ever run."""
    raw = paused_state("look", "see")
    assert load_state(raw).batch
    forge(raw)
    with pytest.raises(UsageError, match="contradicts itself"):
        Agent(Scripted("x"), tools=[tool("look")]).run(resume=raw)
