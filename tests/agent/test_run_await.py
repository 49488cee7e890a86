"""Awaiting a run: driven in the caller's own task, with one result for every ending."""

import asyncio
import contextvars
from typing import Any

import anyio
import pytest
from tests.loop.scenarios import Gate, Heard, call, faults, hopping, left_tasks, outcomes, tool

from antiphon.agent.agent import Agent
from antiphon.errors import Rejected, UsageError
from antiphon.loop.hooks import Hooks, ModelContext, Stop
from antiphon.loop.limits import Limits
from antiphon.loop.spec import Recovery
from antiphon.providers.scripted import Scripted
from antiphon.tools.registry import ToolRegistry
from antiphon.types.content import Text
from antiphon.types.messages import AssistantMessage, Message, UserMessage
from antiphon.types.request import ModelRequest
from antiphon.types.result import RunError, RunResult
from antiphon.types.transcript import validate
from antiphon.types.usage import Usage

pytestmark = pytest.mark.anyio


async def test_nothing_starts_before_a_run_is_awaited() -> None:
    """`agent.run(…)` is a value: making one costs nothing and asks nobody."""
    model, started = Scripted("hello"), list[str]()
    run = Agent(model, hooks=Hooks(on_run_start=lambda start: started.append(start.run_id))).run("hi")
    for _ in range(5):
        await asyncio.sleep(0)
    assert (model.requests, started, list(run.messages)) == ([], [], [])
    await run
    assert (len(model.requests), started) == (1, [run.run_id])


async def test_a_run_is_driven_in_the_callers_own_task() -> None:
    """No extra task exists that could outlive its caller, and context variables are the caller's own."""
    before, seen, mine = left_tasks(), list[Any](), contextvars.ContextVar("mine", default="unset")
    mine.set("caller")

    async def answer(request: ModelRequest) -> str:
        seen.append((asyncio.current_task(), left_tasks() - before, mine.get()))
        mine.set("model")
        await asyncio.sleep(0)
        return "hello"

    await Agent(answer).run("hi")
    assert seen == [(asyncio.current_task(), set(), "caller")]
    assert mine.get() == "model"


async def test_a_done_run_gives_everything_it_left_behind() -> None:
    first, second = Usage(input=10, output=5), Usage(input=20, output=7, cache_read=10)
    model = Scripted([call("look"), first], ["It rains.", second])
    history = [UserMessage.of("earlier", id="u0"), AssistantMessage(parts=(Text("yes"),), id="a0")]
    run = Agent(model, tools=[tool("look")]).run("weather?", messages=history)
    result = await run
    assert (result.status, result.reason, result.error) == ("done", None, None)
    assert (result.run_id, result.text, result.output) == (run.run_id, "It rains.", "It rains.")
    assert list(result.messages[:2]) == history
    assert [type(message).__name__ for message in result.new_messages] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
        "AssistantMessage",
    ]
    assert list(result.messages[2:]) == list(result.new_messages)
    assert (result.usage.input, result.usage.output, result.usage.cache_read) == (30, 12, 10)
    assert (result.last_usage, result.turns, result.requests) == (second, 2, 2)
    assert (result.pending, result.undelivered, result.warnings) == ((), (), ())
    assert all(message.id and message.created_at for message in result.new_messages if isinstance(message, UserMessage))


@pytest.mark.parity("A4")
async def test_the_callers_messages_are_never_changed() -> None:
    """An application keeps its own list, and may give it to several runs at once."""
    history: list[Message] = [UserMessage.of("one", id="u1"), AssistantMessage(parts=(Text("two"),), id="a1")]
    copy = list(history)
    agent = Agent(Scripted("x", "y"))
    results = [await agent.run("three", messages=history) for _ in range(2)]
    assert history == copy
    assert [len(result.messages) for result in results] == [4, 4]


@pytest.mark.parity("A1")
async def test_any_number_of_runs_of_one_agent_go_on_at_once() -> None:
    """An agent holds no state: what one run does must not be seen in another."""
    begun = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        await begun.wait()
        last = request.messages[-1]
        assert isinstance(last, UserMessage)
        return f"to {last.text}"

    agent = Agent(answer)
    found: dict[int, RunResult[str]] = {}

    async def ask(number: int) -> None:
        found[number] = await agent.run(f"{number}")

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(ask, number)
        begun.set()
    assert [found[number].text for number in range(20)] == [f"to {number}" for number in range(20)]
    assert len({result.run_id for result in found.values()}) == 20


@pytest.mark.parity("A3")
async def test_a_tool_registered_later_is_seen_by_later_runs() -> None:
    registry, model = ToolRegistry([tool("one")]), Scripted("a", "b")
    agent = Agent(model, tools=registry)
    await agent.run("hi")
    registry.register(tool("two"))
    await agent.run("hi")
    assert [[spec.name for spec in request.tools] for request in model.requests] == [["one"], ["one", "two"]]


async def test_a_hooks_stop_gives_a_stopped_result() -> None:
    def veto(context: ModelContext[Any]) -> Stop | None:
        return Stop("too dear") if context.step == 2 else None

    agent = Agent(Scripted([call("look")], "no"), tools=[tool("look")], hooks=Hooks(before_model_request=veto))
    result = await agent.run("hi")
    assert (result.status, result.reason, outcomes(result)) == ("stopped", "too dear", {"look-1": "ok"})


async def test_a_stop_gives_an_aborted_result() -> None:
    gate = Gate()
    run = Agent(Scripted(["Half", gate])).run("hi")
    task = asyncio.create_task(hopping(run))
    await gate.reached.wait()
    run.stop("enough")
    result = await task
    assert (result.status, result.reason, result.text) == ("aborted", "enough", "Half")


async def test_a_limit_gives_a_limit_result_that_can_be_resumed() -> None:
    model = Scripted([call("look")], "It rains.")
    agent = Agent(model, tools=[tool("look")], limits=Limits(turns=1))
    result = await agent.run("hi")
    assert (result.status, outcomes(result)) == ("limit", {"look-1": "ok"})
    assert "1 turns" in (result.reason or "")
    again = await agent.run(resume=result.state, limits=Limits(turns=2))
    assert (again.status, again.text) == ("done", "It rains.")


async def test_a_call_that_nobody_can_decide_gives_a_paused_result() -> None:
    """Awaited, nobody watches: the run pauses with what it needs, in a state for another day."""
    agent = Agent(Scripted([call("look")], "done"), tools=[tool("look", needs_approval=True)])
    result = await agent.run("hi")
    assert (result.status, [asked.id for asked in result.pending]) == ("paused", ["look-1"])


async def test_a_failure_raises_a_run_error_with_the_result_and_the_cause() -> None:
    """The one ending that is nobody's wish; the transcript is there all the same."""
    failure = Rejected("no such model")
    run = Agent(Scripted(["So far", failure])).run("hi")
    heard = Heard(run)
    with pytest.raises(RunError, match="no such model") as caught:
        await run
    result = caught.value.result
    assert caught.value.__cause__ is failure
    assert (result.status, result.error, result.reason) == ("error", "no such model", "no such model")
    assert result is run.result
    assert faults(heard.events, result) == []
    last = result.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.text, last.error, last.partial, last.stop_reason) == ("So far", "no such model", True, "error")


async def test_a_hook_that_raises_is_the_cause_of_the_run_error() -> None:
    """A hook's failure ends the run, and is found under its own type."""

    def broken(context: object) -> None:
        raise ZeroDivisionError("1/0")

    run = Agent(Scripted("x"), hooks=Hooks(before_model_request=broken)).run("hi")
    heard = Heard(run)
    with pytest.raises(RunError) as caught:
        await run
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert faults(heard.events, caught.value.result) == []


async def test_awaiting_twice_gives_the_same() -> None:
    run = Agent(Scripted("hello")).run("hi")
    assert (await run) is (await run)
    broken = Agent(Scripted(Rejected("no"))).run("hi")
    raised: list[RunError] = []
    for _ in range(2):
        try:
            await broken
        except RunError as error:
            raised.append(error)
    assert len(raised) == 2
    assert raised[0] is raised[1]


async def test_a_second_awaiter_gets_the_same_while_the_first_drives() -> None:
    gate = Gate()
    model = Scripted([gate, "hello"])
    run = Agent(model).run("hi")
    first, second = asyncio.create_task(hopping(run)), asyncio.create_task(hopping(run))
    await gate.reached.wait()
    gate.open()
    assert (await first) is (await second)
    assert len(model.requests) == 1


async def test_the_second_awaiter_can_leave_without_ending_the_run() -> None:
    """Only the task that drives it is the run's own."""
    gate = Gate()
    run = Agent(Scripted([gate, "hello"])).run("hi")
    first, second = asyncio.create_task(hopping(run)), asyncio.create_task(hopping(run))
    await gate.reached.wait()
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.open()
    assert (await first).status == "done"


async def test_cancelling_the_awaiting_task_stays_a_cancellation_and_keeps_the_result() -> None:
    """F3: what the person saw so far must not be lost because their request timed out."""
    gate = Gate()
    run = Agent(Scripted(["Half", gate])).run("hi")
    heard = Heard(run)
    first, second = asyncio.create_task(hopping(run)), asyncio.create_task(hopping(run))
    await gate.reached.wait()
    first.cancel("outside")
    with pytest.raises(asyncio.CancelledError):
        await first
    assert run.result.status == "aborted"
    assert run.result.text == "Half"
    assert (await second) is run.result
    assert faults(heard.events, run.result) == []
    assert validate(run.result.messages) == []


async def test_cancelled_before_its_first_step_a_run_has_not_started() -> None:
    model = Scripted("hello")
    run = Agent(model).run("hi")
    task = asyncio.create_task(hopping(run))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(UsageError, match="no result yet"):
        _ = run.result
    assert (await run).status == "done"


async def test_a_cancellation_that_a_hook_made_up_is_an_error_of_the_run() -> None:
    """F7: nobody cancelled the caller's task; a `CancelledError` in it would end far more than this run."""

    async def lost(context: object) -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    run = Agent(Scripted("x"), hooks=Hooks(on_run_start=lost)).run("hi")
    with pytest.raises(RunError, match="cancellation of its own"):
        await run


async def test_a_cancellation_that_a_model_made_up_is_a_dropped_stream() -> None:
    """A transport that cancels its own reading lost the connection; the attempt is repeated like any other."""

    def lost(request: ModelRequest) -> str:
        raise asyncio.CancelledError

    result = await Agent(Scripted(lost, "again"), recovery=Recovery(delay=0)).run("hi")
    assert (result.text, result.requests) == ("again", 2)


async def test_a_run_takes_parts_a_message_or_several() -> None:
    """What a person says has more than one shape."""
    model = Scripted("a", "b", "c")
    agent = Agent(model)
    await agent.run(Text("one"))
    await agent.run(UserMessage.of("two"))
    await agent.run([UserMessage.of("three"), UserMessage.of("four")])
    texts = [
        [message.text for message in request.messages if isinstance(message, UserMessage)] for request in model.requests
    ]
    assert texts == [["one"], ["two"], ["three", "four"]]
