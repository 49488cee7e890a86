"""A stop at every event: from there on nothing more is asked and nothing more is started, and all that began has its end."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.errors import RateLimited
from antiphon.loop.hooks import Hooks
from antiphon.loop.spec import ToolOptions
from antiphon.providers.scripted import Scripted
from antiphon.tools.source import ListedTools
from antiphon.types.cancel import CancelToken
from antiphon.types.content import Text
from antiphon.types.events import (
    AttemptDiscarded,
    Event,
    RunFinished,
    TextDelta,
    ToolFinished,
    ToolRequested,
    ToolStarted,
)
from antiphon.types.messages import AssistantMessage

from .scenarios import (
    TOOLS,
    Gate,
    Heard,
    accepted,
    call,
    faults,
    left_tasks,
    outcomes,
    results_of,
    three_turns,
    tool,
)

pytestmark = [pytest.mark.anyio, pytest.mark.parity("A5"), pytest.mark.parity("B13")]

EVENTS = 51
"""How many events the undisturbed run has."""


class Bench:
    """A three-turn run whose tools note that they ran."""

    def __init__(self, **options: Any) -> None:
        self.model = Scripted(*three_turns(), piece=2)
        self.ran: list[str] = []
        self.token = CancelToken()
        tools = [self.noted(name) for name in ("brief", "longer", "threaded")]
        self.run = Agent(self.model, tools=tools, sources=[ListedTools("none")], **options).run("hi", cancel=self.token)
        self.heard = Heard(self.run)

    def noted(self, name: str) -> Any:
        async def body() -> str:
            self.ran.append(name)
            await asyncio.sleep(0)
            return name

        return tool(name, body)


async def test_the_undisturbed_run_is_sound() -> None:
    """What the other tests of this file compare with."""
    bench = Bench()
    result = await bench.run
    assert faults(bench.heard.events, result) == []
    assert (result.status, result.text) == ("done", "That is all.")
    assert bench.ran == ["brief", "longer", "threaded", "longer", "brief"]
    assert len(bench.heard.events) > EVENTS


def stop_now(bench: Bench) -> None:
    bench.run.stop("enough")


def cancel_token(bench: Bench) -> None:
    bench.token.cancel("enough")


@pytest.mark.parametrize("stop", [stop_now, cancel_token])
@pytest.mark.parametrize("waits", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("at", range(1, EVENTS))
async def test_a_stop_at_any_event_ends_the_run_there(at: int, stop: Callable[[Bench], None], waits: bool) -> None:
    """A stop that lets one more request or tool through costs money, or worse."""
    bench, requests, before = Bench(), list[int](), left_tasks()

    def listen(event: Event) -> None:
        if event.seq == at:
            requests.append(len(bench.model.requests))
            stop(bench)

    async def listen_and_wait(event: Event) -> None:
        listen(event)
        await asyncio.sleep(0)

    bench.run.subscribe(listen_and_wait if waits else listen)
    result = await bench.run
    assert (result.status, result.reason) == ("aborted", "enough")
    assert faults(bench.heard.events, result) == []
    assert requests == [len(bench.model.requests)]
    started = [event.seq for event in bench.heard.of(ToolStarted)]
    assert all(seq <= at for seq in started)
    assert len(bench.ran) <= len([seq for seq in started if seq < at])
    assert left_tasks() - before == set()
    assert await accepted(result.messages) == []


@pytest.mark.parametrize(
    "point", [name for name in Hooks.__struct_fields__ if name not in ("on_payload", "on_warning")]
)
async def test_a_stop_from_any_hook_ends_the_run_there(point: str) -> None:
    """A hook that reaches for the run's own stop is heard like everybody else."""
    asked = list[tuple[int, int]]()

    def hook(*_given: object) -> None:
        if not asked:
            asked.append((len(bench.model.requests), len(bench.ran)))
        bench.run.stop("enough")

    bench = Bench(hooks=Hooks(**{point: hook}))
    result = await bench.run
    assert asked == [(len(bench.model.requests), len(bench.ran))]
    assert faults(bench.heard.events, result) == []
    assert result.status == ("done" if point == "on_run_end" else "aborted")


async def test_a_stop_keeps_what_was_said_so_far() -> None:
    """The person read it: it must be in the transcript, marked as what it is."""
    gate = Gate()
    run = Agent(Scripted([Text("Half of "), Text("it"), gate, Text(" and the rest")])).run("hi")
    heard = Heard(run)
    asyncio.get_running_loop().call_soon(asyncio.ensure_future, stopping(run, gate))
    result = await run
    reply = result.messages[-1]
    assert isinstance(reply, AssistantMessage)
    assert (reply.text, reply.partial, reply.stop_reason) == ("Half of it", True, "aborted")
    assert result.text == "Half of it"
    assert faults(heard.events, result) == []


async def stopping(run: Run[Any], gate: Gate) -> None:
    await gate.reached.wait()
    run.stop()


async def test_no_further_delta_comes_after_a_stop() -> None:
    """Deltas that came in one packet are not told to somebody who has had enough."""
    run = Agent(Scripted("abcdefghij", piece=1)).run("hi")
    heard = Heard(run)
    run.subscribe(lambda event: run.stop() if isinstance(event, TextDelta) and event.text == "c" else None)
    result = await run
    assert "".join(event.text for event in heard.of(TextDelta)) == result.text == "abc"


async def test_a_stop_while_tools_run_cancels_them_and_runs_no_other() -> None:
    """Finished calls keep their results, running ones are cancelled, those not begun are not begun."""
    gate = Gate()
    calls = [call("quick"), call("slow"), call("later")]
    tools = [tool("quick"), tool("slow", gate.wait), tool("later")]
    run = Agent(Scripted(calls, "no"), tools=tools, tool_options=ToolOptions(execution="sequential")).run("hi")
    heard = Heard(run)
    asyncio.get_running_loop().call_soon(asyncio.ensure_future, stopping(run, gate))
    result = await run
    assert outcomes(result) == {"quick-1": "ok", "slow-1": "cancelled", "later-1": "not_run"}
    assert faults(heard.events, result) == []
    assert "cancelled while it ran" in results_of(result.messages)["slow-1"].text
    assert await accepted(result.messages) == []


async def test_a_tool_that_returns_all_the_same_keeps_its_result() -> None:
    """It had its effect: to call it cancelled would make the model do it again."""
    gate = Gate()

    async def stubborn() -> str:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            return "sent anyway"
        return "sent"

    run = Agent(Scripted([call("stubborn")]), tools=[tool("stubborn", stubborn)]).run("hi")
    asyncio.get_running_loop().call_soon(asyncio.ensure_future, stopping(run, gate))
    result = await run
    assert result.status == "aborted"
    assert outcomes(result) == {"stubborn-1": "ok"}
    assert results_of(result.messages)["stubborn-1"].text == "sent anyway"


async def test_a_result_is_not_lost_when_the_stop_comes_during_the_hook_after_it() -> None:
    """The tool had its effect, and only the log of it was interrupted: the hook is asked again while the run closes."""
    asked: list[str] = []
    gate = Gate()

    async def log(context: Any) -> None:
        asked.append(context.result.text)
        if len(asked) == 1:
            await gate.wait()

    run = Agent(Scripted([call("send")]), tools=[tool("send")], hooks=Hooks(after_tool_execute=log)).run("hi")
    heard = Heard(run)
    asyncio.get_running_loop().call_soon(asyncio.ensure_future, stopping(run, gate))
    result = await run
    assert asked == ["send", "send"]
    assert outcomes(result) == {"send-1": "ok"}
    assert faults(heard.events, result) == []


async def test_a_stop_before_the_start_leaves_only_the_end() -> None:
    """Nothing was asked, so nothing is told but that it is over."""
    ended: list[str] = []
    agent = Agent(Scripted("no"), hooks=Hooks(on_run_start=print, on_run_end=lambda end: ended.append(end.status)))
    run = agent.run("hi")
    run.stop("never mind")
    run.stop("again")
    heard = Heard(run)
    result = await run
    assert heard.kinds == ["RunFinished"]
    assert (result.status, result.reason, ended) == ("aborted", "never mind", ["aborted"])
    assert agent.model.requests == []  # type: ignore[attr-defined]


async def test_a_stop_after_the_end_changes_nothing() -> None:
    run = Agent(Scripted("done")).run("hi")
    result = await run
    run.stop("too late")
    assert (await run) is result
    assert result.status == "done"


async def test_a_stop_at_the_last_event_changes_nothing() -> None:
    run = Agent(Scripted("done")).run("hi")
    run.subscribe(lambda event: run.stop() if isinstance(event, RunFinished) else None)
    assert (await run).status == "done"


async def test_the_first_reason_counts() -> None:
    token = CancelToken()
    run = Agent(Scripted("abc", piece=1)).run("hi", cancel=token)

    def twice(event: Event) -> None:
        if isinstance(event, TextDelta):
            run.stop("first")
            token.cancel("second")
            run.stop("third")

    run.subscribe(twice)
    assert (await run).reason == "first"


async def test_a_stop_ends_the_wait_before_a_repeated_attempt_at_once() -> None:
    """Nobody waits a minute for a run that is stopped."""

    run = Agent(Scripted(RateLimited("slow down", retry_after=59), "no")).run("hi")
    run.subscribe(
        lambda event: asyncio.get_running_loop().call_soon(run.stop) if isinstance(event, AttemptDiscarded) else None
    )
    async with asyncio.timeout(5):
        assert (await run).status == "aborted"


async def test_calls_that_nobody_heard_of_are_told_of_with_their_end() -> None:
    """The reply is announced with its calls; whoever counts them finds an end for each."""
    run = Agent(Scripted([call("brief"), call("longer")]), tools=TOOLS).run("hi")
    heard = Heard(run)
    run.subscribe(lambda event: run.stop() if getattr(getattr(event, "message", None), "calls", ()) else None)
    result = await run
    assert [event.call.id for event in heard.of(ToolRequested)] == ["brief-1", "longer-1"]
    assert [event.outcome for event in heard.of(ToolFinished)] == ["not_run", "not_run"]
    assert outcomes(result) == {"brief-1": "not_run", "longer-1": "not_run"}


async def test_a_request_that_was_not_sent_is_not_counted() -> None:
    """A limit on requests would else be used up by stops."""
    runs: list[Run[str]] = []

    def stop(_context: object) -> None:
        runs[0].stop("enough")

    run = Agent(Scripted("never said"), hooks=Hooks(before_model_request=stop)).run("go")
    runs.append(run)
    result = await run
    assert (result.status, result.requests, result.turns) == ("aborted", 0, 0)
