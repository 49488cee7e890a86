"""Disorder: runs of every kind of tool, disturbed in every way at random moments; what must hold of a run holds of each."""

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.errors import Dropped, FatalToolError, ToolError, UsageError
from antiphon.loop.hooks import Hooks, Stop
from antiphon.loop.limits import Limits
from antiphon.loop.spec import Recovery, ToolOptions
from antiphon.loop.state import Answer, Approve, Decision, Deny
from antiphon.providers.scripted import Scripted
from antiphon.tools.context import ToolContext
from antiphon.tools.result import ToolResult
from antiphon.tools.tool import Tool
from antiphon.types.content import Text, ToolCall
from antiphon.types.request import FinishChunk
from antiphon.types.result import RunError, RunResult
from antiphon.types.transcript import validate

from .scenarios import EMPTY, HOP, Heard, accepted, faults, left_tasks, tool

pytestmark = pytest.mark.anyio


class Dice(random.Random):
    """A seeded source of disorder."""

    def chance(self, share: float) -> bool:
        return self.random() < share

    async def hops(self, most: int) -> None:
        for _ in range(self.randrange(most)):
            await asyncio.sleep(0)


def toolbox(dice: Dice) -> list[Tool]:
    """One tool of each kind."""

    async def slow() -> str:
        await dice.hops(6)
        return "slow"

    async def raising() -> str:
        await dice.hops(3)
        raise dice.choice([ToolError("no"), ValueError("broken"), asyncio.CancelledError()])

    async def stubborn() -> str:
        try:
            await dice.hops(8)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "all the same"

    async def asking(context: ToolContext[Any]) -> str:
        context.progress("thinking")
        await dice.hops(2)
        answer = await context.ask("sure?")
        return f"{answer} and {await context.ask('really?')}"

    async def last() -> ToolResult:
        return ToolResult("last", details={"n": 1}, end_turn=dice.chance(0.3))

    async def fatal() -> str:
        raise FatalToolError("fatal")

    return [
        tool("slow", slow),
        tool("alone", slow, exclusive=True),
        tool("raising", raising),
        tool("stubborn", stubborn),
        tool("threaded", lambda: "threaded"),
        tool("asking", asking),
        tool("gated", slow, needs_approval=True),
        tool("last", last),
        *([tool("fatal", fatal)] if dice.chance(0.1) else []),
        tool("strict", parameters={"type": "object", "properties": {}, "additionalProperties": False}),
        Tool.from_schema("elsewhere", "Runs elsewhere.", EMPTY),
    ]


def script(dice: Dice, tools: list[Tool]) -> list[Any]:
    """Replies with any calls, in any state of repair."""

    def asked(number: int) -> ToolCall:
        name = dice.choice([*[each.name for each in tools], "nobody"])
        arguments = '{"odd": 1}' if name == "strict" and dice.chance(0.5) else dice.choice(["{}", "", "{broken"])
        return ToolCall(id=dice.choice(["", "same", f"c{number}"]), name=name, arguments=arguments)

    def reply() -> list[Any]:
        steps: list[Any] = [Text("So."), *[asked(number) for number in range(dice.randrange(4))]]
        for _ in range(dice.randrange(4)):
            steps.insert(dice.randrange(len(steps) + 1), HOP)
        ends = [[], [], [], [], [Dropped("lost")], [FinishChunk("length")]]
        return steps + dice.choice(ends)

    return [reply() for _ in range(12)]


def hooks(dice: Dice) -> Hooks[Any]:
    """Hooks that wait, and now and then stop or fail."""

    async def wait(*_given: object) -> Any:
        await dice.hops(3)
        if dice.chance(0.01):
            raise ValueError("a hook failed")
        return Stop("a hook stopped") if dice.chance(0.01) else None

    async def only_wait(*_given: object) -> None:
        await dice.hops(3)
        if dice.chance(0.005):
            raise ValueError("a hook failed")

    points: dict[str, Any] = {}
    for point in Hooks.__struct_fields__:
        if dice.chance(0.4) and point not in ("on_payload", "on_warning"):
            points[point] = only_wait if point in ("on_append", "should_continue", "prepare_context") else wait
    return Hooks(**points)


def decision(dice: Dice, run: Run[Any], call_id: str) -> Decision:
    """What somebody says to a pending call, without knowing what it asks."""
    return dice.choice([Approve(), Deny("no"), Answer("yes"), Deny(), Approve({})])


async def disturb(dice: Dice, run: Run[Any], task: "asyncio.Task[Any]") -> None:
    """Somebody who does something at random moments until the run is over, and ends it if it takes too long."""
    for _ in range(60):
        await dice.hops(6)
        with suppress(UsageError):
            match dice.randrange(14):
                case 0:
                    run.steer("steered")
                case 1:
                    run.follow_up("followed")
                case 2 if dice.chance(0.15):
                    run.stop("enough")
                case 3 if dice.chance(0.15):
                    task.cancel()
                    if dice.chance(0.3):
                        await dice.hops(4)
                        task.cancel()
                case 4 | 5 | 6 | 7 | 8:
                    for waiting in run.pending:
                        run.decide({waiting.id: decision(dice, run, waiting.id)})
                case _:
                    pass
        if task.done():
            return
    run.stop("it took too long")


async def disordered(dice: Dice, prompt: str | None = "hi", **options: Any) -> tuple[Run[Any], list[str]]:
    """One run, disturbed; what is wrong with it."""
    tools = toolbox(dice)
    settled = ToolOptions(
        execution=dice.choice(["parallel", "parallel", "sequential"]),
        max_parallel=dice.choice([1, 2, 16]),
        on_error=dice.choice(["tell", "tell", "tell", "raise"]),
        grace=5,
    )
    limits = Limits(turns=dice.choice([2, 6, None]), tool_calls=dice.choice([None, None, 5]))
    agent = Agent(
        Scripted(*script(dice, tools)),
        tools=tools,
        hooks=hooks(dice),
        tool_options=settled,
        limits=limits,
        recovery=Recovery(delay=0),
    )
    run = agent.run(prompt, **options)
    heard = Heard(run)
    if dice.chance(0.5):

        async def wait(_event: object) -> None:
            await dice.hops(2)
            if dice.chance(0.01):
                raise ValueError("a listener failed")

        run.subscribe(wait)

    async def live() -> None:
        async with run:
            with suppress(RunError):
                await run

    async def alone() -> None:
        with suppress(RunError):
            await run

    before = left_tasks()
    task = asyncio.create_task(live() if dice.chance(0.6) else alone())
    await disturb(dice, run, task)
    await asyncio.wait([task])
    if not heard.events:
        return run, []
    left = [f"left behind: {other!r}" for other in left_tasks() - before - {task}]
    return run, left + faults(heard.events, run.result) + await sent_again(run.result)


async def sent_again(result: RunResult[Any]) -> list[str]:
    return [] if result.status == "paused" else await accepted(result.messages)


@pytest.mark.parametrize("part", range(4))
async def test_disturbed_runs_are_sound(part: int) -> None:
    """Each of them has a seed: a failure here is played again with `Dice(seed)`."""
    wrong: dict[str, list[str]] = {}
    for number in range(100):
        seed = f"{part}/{number}"
        run, found = await disordered(Dice(seed))
        if found:
            wrong[seed] = [run.result.status, *found]
    assert wrong == {}


async def test_disturbed_runs_go_on_from_their_state() -> None:
    """Wherever one ended, it can be resumed, and is as sound as before."""
    wrong: dict[str, list[str]] = {}
    for number in range(100):
        seed = f"resumed {number}"
        dice = Dice(seed)
        run, found = await disordered(dice)
        for _ in range(3):
            if found or not run._teller.seq or run.result.status == "done":
                break
            waiting = run.result.pending
            decisions = {asked.id: Deny("no") for asked in waiting if dice.chance(0.7)}
            prompt = None if waiting else "go on"
            run, found = await disordered(dice, prompt, resume=run.result.state, decisions=decisions)
        if found:
            wrong[seed] = [run.result.status, *found]
        elif run._teller.seq and run.result.status != "paused":
            assert validate(run.result.messages) == []
    assert wrong == {}
