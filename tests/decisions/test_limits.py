"""Limits: one accounting, exact edges, an ending that can be resumed under a higher limit."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from antiphon import (
    DEFAULT_MAX_TURNS,
    Agent,
    Approve,
    AttemptDiscarded,
    Dropped,
    Hooks,
    LimitReached,
    Limits,
    ModelInfo,
    Overloaded,
    Prices,
    Recovery,
    RunFinished,
    ToolFinished,
    ToolOptions,
    Usage,
    UsageError,
    UseResult,
    validate,
)
from antiphon.loop import session as session_file
from antiphon.testing import Recording, Scripted

from .scenes import CITY, Bodies, Spy, call, finished, outcome, outcomes, results, texts

pytestmark = pytest.mark.anyio

PRICED = ModelInfo(provider="p", id="m", prices=Prices(input=1.0, output=10.0, cache_read=0.1, cache_write=2.0))


def rounds(number: int, *, usage: Usage | None = None) -> list[Any]:
    """That many replies that call a tool, and one that ends."""
    calling = [[call("a", f"c{place}"), *([usage] if usage else [])] for place in range(number)]
    return [*calling, ["done", *([usage] if usage else [])]]


def reached(recording: Recording) -> list[tuple[str, str, float]]:
    return [(event.scope, event.which, event.limit) for event in recording.of(LimitReached)]


@pytest.mark.parity("A2")
def test_the_default_limit_of_turns_is_a_constant_of_the_library() -> None:
    """The references say 6, 10 and unlimited; ours is told."""
    assert Limits().turns == DEFAULT_MAX_TURNS == 50


@pytest.mark.parity("A2")
@pytest.mark.parity("B14")
async def test_the_calls_of_the_last_allowed_reply_run_and_are_kept() -> None:
    """Their results are there when the run is resumed: nothing that was done has to be done again."""
    bodies = Bodies()
    model = Scripted(*rounds(3))
    result, recording = await outcome(Agent(model, tools=[bodies.tool("a")], limits=Limits(turns=2)))
    recording.check()
    assert (result.status, result.reason) == ("limit", "the limit of 2 turns was reached")
    assert (len(model.requests), len(bodies.ran), result.turns) == (2, 2, 2)
    assert outcomes(result.messages) == {"c0": "ok", "c1": "ok"}
    assert reached(recording) == [("run", "turns", 2)]
    assert recording.one(RunFinished).status == "limit"
    assert validate(result.messages) == []


@pytest.mark.parity("B14")
@pytest.mark.parametrize("turns", [1, 2, 3, 4, None])
async def test_a_limit_of_turns_is_exact(turns: int | None) -> None:
    """J8: a run that needs three replies ends by itself with three, and at the limit with fewer."""
    model = Scripted(*rounds(2))
    result, _ = await outcome(Agent(model, tools=[Bodies().tool("a")], limits=Limits(turns=turns)))
    assert (result.status, len(model.requests)) == (("limit", turns) if turns in (1, 2) else ("done", 3))


@pytest.mark.parity("B14")
async def test_a_limit_of_no_turns_asks_no_model() -> None:
    model = Scripted("never")
    result, recording = await outcome(Agent(model, limits=Limits(turns=0)))
    recording.check()
    assert (result.status, model.requests, reached(recording)) == ("limit", [], [("run", "turns", 0)])


@pytest.mark.parity("B14")
@pytest.mark.parametrize("limits", [Limits(turns=1), Limits(requests=1), Limits(tool_calls=1), Limits(tokens=10)])
async def test_every_limit_can_be_resumed_under_a_higher_one(limits: Limits) -> None:
    """Its counters go on where they were."""
    bodies = Bodies()
    usage = Usage(input=6, output=4)
    agent = Agent(Scripted(*rounds(2, usage=usage)), tools=[bodies.tool("a")], limits=limits)
    first, _ = await outcome(agent)
    assert first.status == "limit"
    state = json.loads(json.dumps(first.state))
    again, _ = await finished(agent.run(resume=state))
    assert (again.status, len(bodies.ran)) == ("limit", 1), "the same limit still holds"
    result, recording = await finished(agent.run(resume=state, limits=Limits()))
    recording.check()
    assert (result.status, result.text, len(bodies.ran)) == ("done", "done", 2)
    assert (result.turns, result.requests, result.usage.input) == (3, 3, 18)


@pytest.mark.parity("B14")
async def test_repeated_attempts_count_as_requests_and_not_as_turns() -> None:
    """J8: features of recovery must not change how many turns a run may take."""
    model = Scripted([Dropped("lost")], [Overloaded("busy")], *rounds(1))
    agent = Agent(model, tools=[Bodies().tool("a")], recovery=Recovery(delay=0, jitter=0), limits=Limits(turns=2))
    result, recording = await outcome(agent)
    assert len(recording.of(AttemptDiscarded)) == 2
    assert (result.status, result.turns, result.requests) == ("done", 2, 4)


@pytest.mark.parity("B14")
@pytest.mark.parametrize(("requests", "status"), [(2, "limit"), (3, "done")])
async def test_a_limit_of_requests_holds_between_attempts_too(requests: int, status: str) -> None:
    model = Scripted([Dropped("lost")], [Dropped("lost")], "hi")
    agent = Agent(model, recovery=Recovery(delay=0, jitter=0), limits=Limits(requests=requests))
    result, recording = await outcome(agent)
    recording.check()
    assert (result.status, len(model.requests)) == (status, requests)
    assert reached(recording) == ([("run", "requests", 2)] if status == "limit" else [])


@pytest.mark.parity("B14")
@pytest.mark.parametrize(("most", "status"), [(1, "limit"), (2, "limit"), (3, "done")])
async def test_a_limit_of_tool_calls_counts_bodies_that_were_started(most: int, status: str) -> None:
    """Refused and invalid calls cost nothing. The calls of one reply are not torn apart."""
    bodies = Bodies()
    tools = [bodies.tool("a"), bodies.tool("b", needs_approval=lambda _: "deny"), bodies.tool("w", None, CITY)]
    script = [[call("a", "c1"), call("a", "c2"), call("b"), call("w", town=1)], "done"]
    result, _ = await outcome(Agent(Scripted(*script), tools=tools, limits=Limits(tool_calls=most)))
    assert (result.status, bodies.names) == (status, ["a", "a"])


@pytest.mark.parity("B14")
@pytest.mark.parametrize(("tokens", "status"), [(29, "limit"), (30, "limit"), (31, "done")])
async def test_a_limit_of_tokens_counts_input_and_output_of_all_requests(tokens: int, status: str) -> None:
    """Discarded attempts too: they were paid for."""
    spent = Usage(input=6, output=4)
    model = Scripted(["half", spent, Dropped("lost")], *rounds(2, usage=spent))
    agent = Agent(model, tools=[Bodies().tool("a")], recovery=Recovery(delay=0, jitter=0), limits=Limits(tokens=tokens))
    result, _ = await outcome(agent)
    assert (result.status, result.usage.input) == (status, 18 if status == "limit" else 24)


@pytest.mark.parity("B14")
@pytest.mark.parity("C20")
async def test_a_cost_follows_from_prices_and_usage() -> None:
    """Cached tokens have prices of their own. What the provider itself reports is taken as it is."""
    usage = Usage(input=1_000_000, output=100_000, cache_read=400_000, cache_write=100_000)
    result, _ = await outcome(Agent(Scripted(["hi", usage], info=PRICED)))
    assert result.usage.cost == pytest.approx(0.5 + 1.0 + 0.04 + 0.2)
    result, _ = await outcome(Agent(Scripted(["hi", Usage(input=5, cost=7.0)], info=PRICED)))
    assert result.usage.cost == 7.0
    result, _ = await outcome(Agent(Scripted(["hi", Usage(input=5)])))
    assert result.usage.cost is None, "not known is not nothing"


@pytest.mark.parity("B14")
@pytest.mark.parametrize(("cost", "status"), [(2.2, "limit"), (2.21, "done")])
async def test_a_limit_of_cost_is_in_dollars(cost: float, status: str) -> None:
    usage = Usage(input=100_000, output=100_000)
    model = Scripted(*rounds(2, usage=usage), info=PRICED)
    result, recording = await outcome(Agent(model, tools=[Bodies().tool("a")], limits=Limits(cost=cost)))
    assert (result.status, reached(recording)) == (status, [("run", "cost", cost)] if status == "limit" else [])


@pytest.mark.parity("B14")
@pytest.mark.parametrize("prices", [None, Prices(input=1.0)])
async def test_a_limit_of_cost_without_prices_is_refused_at_the_start(prices: Prices | None) -> None:
    """A limit that would never be met is worse than none."""
    agent = Agent(Scripted("hi", info=ModelInfo(provider="p", id="m", prices=prices)))
    with pytest.raises(UsageError, match="a cost limit needs prices, and those of p:m are not known"):
        agent.run("go", limits=Limits(cost=1.0))
    plain = Agent(lambda _: "hi")
    with pytest.raises(UsageError, match="needs prices"):
        plain.run("go", limits=Limits(cost=1.0))


@pytest.mark.parity("B14")
async def test_a_limit_of_seconds_counts_the_time_a_run_has_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed run carries it on; the time between is not counted."""
    now = [100.0]
    monkeypatch.setattr(session_file, "time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: now[0]))
    bodies = Bodies()

    def work(_arguments: Any) -> None:
        now[0] += 10

    agent = Agent(Scripted(*rounds(5)), tools=[bodies.tool("a", work)], limits=Limits(seconds=25))
    first, recording = await outcome(agent)
    assert (first.status, len(bodies.ran), reached(recording)) == ("limit", 3, [("run", "seconds", 25)])
    now[0] += 1000
    second, _ = await finished(agent.run(resume=json.loads(json.dumps(first.state)), limits=Limits(seconds=45)))
    assert (second.status, len(bodies.ran)) == ("limit", 5)


# Calls that name no tool


@pytest.mark.parity("A12")
@pytest.mark.parametrize("most", [1, 2, 5])
async def test_a_model_that_invents_calls_for_ever_is_ended(most: int) -> None:
    """I8: counted over all names and both kinds of mistakes, one after the other."""
    invented = [[call("ghost", f"c{n}")] if n % 2 else [call("w", f"c{n}", town=n)] for n in range(9)]
    model = Scripted(*invented)
    agent = Agent(model, tools=[Bodies().tool("w", None, CITY)], limits=Limits(invalid_calls=most))
    result, recording = await outcome(agent)
    recording.check()
    assert (result.status, len(model.requests)) == ("limit", most)
    assert reached(recording) == [("run", "invalid_calls", most)]
    assert Limits().invalid_calls == 5


@pytest.mark.parity("A12")
async def test_a_good_call_forgives_the_bad_ones_before_it() -> None:
    script = [[call("ghost", "g1")], [call("a")], [call("ghost", "g2")], "done"]
    result, _ = await outcome(Agent(Scripted(*script), tools=[Bodies().tool("a")], limits=Limits(invalid_calls=2)))
    assert result.status == "done"


@pytest.mark.parity("A12")
async def test_a_call_that_a_hook_answers_for_is_no_mistake() -> None:
    script = [[call("ghost", f"g{n}")] for n in range(3)]
    agent = Agent(
        Scripted(*script, "done"),
        hooks=Hooks(before_tool_execute=lambda _: UseResult("fine")),
        limits=Limits(invalid_calls=1),
    )
    result, _ = await outcome(agent)
    assert result.status == "done"


# A tool's own


@pytest.mark.parity("B14")
@pytest.mark.parity("B2")
@pytest.mark.parametrize("execution", ["parallel", "sequential"])
async def test_a_tools_own_limit_of_calls_refuses_the_call_and_the_run_goes_on(execution: Any) -> None:
    bodies = Bodies()
    script = [[call("a", "c1"), call("a", "c2"), call("a", "c3"), call("b")], [call("a", "c4")], "done"]
    agent = Agent(
        Scripted(*script),
        tools=[bodies.tool("a", max_calls=2), bodies.tool("b")],
        tool_options=ToolOptions(execution=execution),
    )
    result, recording = await outcome(agent)
    recording.check()
    assert result.status == "done"
    assert outcomes(result.messages) == {"c1": "ok", "c2": "ok", "c3": "not_run", "b-1": "ok", "c4": "not_run"}
    assert "the limit of 2 calls for this tool was reached" in texts(result.messages)["c3"]
    events = recording.of(LimitReached)
    assert [(event.scope, event.which, event.limit, event.call_id, event.name) for event in events] == [
        ("tool", "calls", 2, "c3", "a"),
        ("tool", "calls", 2, "c4", "a"),
    ]
    assert {event.call_id for event in recording.of(ToolFinished)} == {"c1", "c2", "c3", "b-1", "c4"}


@pytest.mark.parity("B14")
async def test_a_tools_own_limit_of_turns_counts_the_turns_that_call_it() -> None:
    """Any number of calls within a turn is one use, and a first use late in the run is the first."""
    bodies = Bodies()
    script = [
        [call("b")],
        [call("a", "c1"), call("a", "c2")],
        [call("a", "c3")],
        [call("a", "c4"), call("b", "b2")],
        "done",
    ]
    agent = Agent(Scripted(*script), tools=[bodies.tool("a", max_turns=2), bodies.tool("b")])
    result, _ = await outcome(agent)
    assert outcomes(result.messages) == {
        "b-1": "ok",
        "c1": "ok",
        "c2": "ok",
        "c3": "ok",
        "c4": "not_run",
        "b2": "ok",
    }


@pytest.mark.parity("B14")
async def test_a_tools_own_limit_is_looked_at_before_anybody_is_asked() -> None:
    """Nobody should approve a call that will be refused; the hooks after it are told."""
    spy = Spy()
    bodies = Bodies()
    agent = Agent(
        Scripted([call("a", "c1")], "done"),
        tools=[bodies.tool("a", max_calls=0, needs_approval=True)],
        hooks=spy.hooks(),
        approver=lambda _: True,
    )
    result, _ = await outcome(agent)
    assert [message.outcome for message in results(result.messages)] == ["not_run"]
    assert spy.at("before_tool_execute") == []
    assert len(spy.at("after_tool_execute")) == 1


@pytest.mark.parity("B14")
async def test_a_tools_own_limit_is_carried_over_a_pause() -> None:
    bodies = Bodies()
    tools = [bodies.tool("a", max_calls=1), bodies.tool("b", needs_approval=True)]
    agent = Agent(Scripted([call("a", "c1"), call("b")], [call("a", "c2")], "done"), tools=tools)
    paused, _ = await outcome(agent)
    state = json.loads(json.dumps(paused.state))
    result, _ = await finished(agent.run(resume=state, decisions={"b-1": Approve()}))
    assert outcomes(result.messages) == {"c1": "ok", "b-1": "ok", "c2": "not_run"}


@pytest.mark.parity("B14")
async def test_a_call_that_was_refused_does_not_use_up_a_tools_limit() -> None:
    bodies = Bodies()
    answers = iter([False, True])
    agent = Agent(
        Scripted([call("a", "c1")], [call("a", "c2")], "done"),
        tools=[bodies.tool("a", max_calls=1, needs_approval=True)],
        approver=lambda _: next(answers),
    )
    result, _ = await outcome(agent)
    assert outcomes(result.messages) == {"c1": "denied", "c2": "ok"}


@pytest.mark.parametrize("bad", [{"turns": -1}, {"seconds": float("nan")}, {"tokens": -5}])
@pytest.mark.parity("A2")
def test_limits_that_mean_nothing_are_refused(bad: dict[str, Any]) -> None:
    """Not-a-number compares false with everything, and would never be reached."""
    with pytest.raises(UsageError, match="is not a number from 0 up"):
        Agent(Scripted("hi")).run("go", limits=Limits(**bad))


@pytest.mark.parity("C9")
async def test_messages_that_a_limit_keeps_back_are_handed_back() -> None:
    bodies = Bodies()
    agent = Agent(Scripted(*rounds(1)), tools=[bodies.tool("a", lambda _: run.steer("wait"))], limits=Limits(turns=1))
    run = agent.run("go")
    result, recording = await finished(run)
    recording.check()
    assert [getattr(message, "text", "") for message in result.undelivered] == ["wait"]
