"""A failure, a stop or a cancel wherever the application is asked, and at every wait: what is left is always whole."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    ApprovalRequested,
    Ask,
    Hooks,
    RunError,
    Tool,
    ToolContext,
    ToolFinished,
    ToolHooks,
    ToolOptions,
    ToolRequested,
    validate,
)
from antiphon.testing import Recording, Scripted, record

from .scenes import EMPTY, call, results

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])
HOOKS = (
    "on_run_start",
    "on_run_end",
    "before_tools_resolved",
    "after_tools_resolved",
    "should_continue",
    "prepare_context",
    "before_model_request",
    "after_model_response",
    "before_tool_execute",
    "after_tool_execute",
    "on_append",
)


class Story:
    """A run with everything in it, whose every question to the application passes `tick`.

    `produced` are the results that bodies really gave, by call id; `visited` the names of the points, in order.
    """

    def __init__(self, execution: Any, *, wait: bool) -> None:
        self.wait = wait
        self.visited: list[str] = []
        self.produced: dict[str, str] = {}
        self.at = 0
        self.action: Callable[[], object] = lambda: None
        levels = [Hooks(**{point: self.point(f"{level}.{point}") for point in HOOKS}) for level in ("agent", "run")]
        self.shelf = Shelf(self)
        model = Scripted(
            self.point("model", ["first", call("a"), call("gated"), call("asks"), call("ghost")]),
            self.point("model", [call("a", "a2"), call("fails"), call("found")]),
            self.point("model", "done"),
        )
        agent = Agent(
            model,
            instructions=self.point("instructions", "Be brief."),
            tools=[self.tool("a"), self.tool("gated"), self.asking(), self.tool("fails", OSError("down"))],
            sources=[self.shelf],
            hooks=levels[0],
            policy=self.point("policy", lambda context: Ask() if context.call.name == "gated" else None),
            approver=self.point("approver", True),
            tool_options=ToolOptions(execution=execution, grace=0.5),
            to_model=lambda messages, _cancel: self.point("to_model", messages)(messages),
        )
        self.run = agent.run("go", hooks=levels[1], run_id="r")
        self.run.subscribe(self.answer)
        self.recording: Recording = record(self.run)

    def tick(self, name: str) -> None:
        self.visited.append(name)
        if len(self.visited) == self.at:
            self.action()

    def point(self, name: str, answer: Any = None) -> Callable[..., Any]:
        """A callable that ticks and gives an answer, async when the story waits."""

        async def later(*given: Any) -> Any:
            await anyio.lowlevel.checkpoint()
            return now(*given)

        def now(*given: Any) -> Any:
            self.tick(name)
            return answer(*given) if callable(answer) else answer

        return later if self.wait else now

    def tool(self, name: str, failure: Exception | None = None) -> Tool:
        async def body(_arguments: Any, context: ToolContext[Any]) -> str:
            await anyio.lowlevel.checkpoint()
            self.tick(f"{name}.body")
            await anyio.lowlevel.checkpoint()
            if failure is not None:
                raise failure
            self.produced[context.call_id] = f"result of {context.call_id}"
            return self.produced[context.call_id]

        hooks = ToolHooks(
            before_execute=self.point(f"{name}.before_execute"), after_execute=self.point(f"{name}.after_execute")
        )
        return Tool.from_schema(name, "", EMPTY, body, hooks=hooks)

    def asking(self) -> Tool:
        async def body(_arguments: Any, context: ToolContext[Any]) -> str:
            answer = await context.ask("which?")
            self.tick("asks.body")
            await anyio.lowlevel.checkpoint()
            self.produced[context.call_id] = f"answered {answer}"
            return self.produced[context.call_id]

        return Tool.from_schema("asks", "", EMPTY, body)

    def answer(self, event: Any) -> None:
        """Somebody listens, and answers what a tool asks."""
        if isinstance(event, ApprovalRequested) and event.question:
            self.run.answer(event.call_id, "blue")

    async def drive(self) -> None:
        """Run to the end, whatever end that is."""
        with suppress(RunError, asyncio.CancelledError):
            await self.run

    def lost(self) -> list[str]:
        """The calls whose result was really produced and is nowhere in the transcript."""
        kept = {
            message.call_id: message.text + str((message.details or {}).get("result"))
            for message in results(self.run.result.messages)
        }
        return [call_id for call_id, text in self.produced.items() if text not in kept.get(call_id, "")]

    def unanswered(self) -> list[str]:
        """The calls that were requested and do not have exactly one finish and one result each."""
        requested = [event.call.id for event in self.recording.of(ToolRequested)]
        finished = [event.call_id for event in self.recording.of(ToolFinished)]
        told = [message.call_id for message in results(self.run.result.messages)]
        return [each for each in requested if finished.count(each) != 1 or told.count(each) != 1]


class Shelf:
    """A source that is listed, finds a tool and is closed, each with a tick."""

    name = "shelf"

    def __init__(self, story: Story) -> None:
        self.story = story

    async def list(self, _cancel: Any) -> list[Tool]:
        await self._wait()
        self.story.tick("shelf.list")
        return [self.story.tool("listed")]

    async def find(self, name: str) -> Tool | None:
        await self._wait()
        self.story.tick("shelf.find")
        return self.story.tool("found") if name == "found" else None

    async def close(self) -> None:
        await self._wait()
        self.story.tick("shelf.close")

    async def _wait(self) -> None:
        if self.story.wait:
            await anyio.lowlevel.checkpoint()


class Interrupted:
    """An awaitable whose task meets `action` in its `at`-th wait. `waits` counts them."""

    def __init__(self, awaitable: Awaitable[Any], at: int, action: Callable[[], object]) -> None:
        self._awaitable = awaitable
        self._at = at
        self._action = action
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        steps: Any = self._awaitable.__await__()
        send, value = steps.send, None
        while True:
            try:
                waiting = send(value)
            except StopIteration as end:
                return end.value
            self.waits += 1
            if self.waits == self._at:
                self._action()
            try:
                value, send = (yield waiting), steps.send
            except BaseException as error:  # noqa: BLE001 - handed on to the one who waits
                value, send = error, steps.throw


def cancel_me() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


def fail() -> None:
    raise ValueError("injected")


async def visits(execution: Any, *, wait: bool) -> list[str]:
    """The points of an undisturbed story."""
    story = Story(execution, wait=wait)
    await story.drive()
    return story.visited


@MODES
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_the_undisturbed_story_passes_every_point(execution: Any, wait: bool) -> None:
    """Else the tests below would prove less than they say."""
    story = Story(execution, wait=wait)
    await story.drive()
    story.recording.check()
    assert story.run.result.status == "done"
    expected = {f"{level}.{point}" for level in ("agent", "run") for point in HOOKS}
    expected |= {"model", "instructions", "policy", "approver", "to_model", "a.body", "asks.body", "gated.body"}
    expected |= {"shelf.list", "shelf.find", "shelf.close", "a.before_execute", "a.after_execute", "fails.body"}
    assert set(story.visited) == expected | {
        f"{name}.{point}" for name in ("gated", "fails", "found") for point in BOTH
    } | {"found.body"}


BOTH = ("before_execute", "after_execute")


@MODES
@pytest.mark.parity("A12")
@pytest.mark.parity("A13")
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("what", ["fail", "stop", "cancel"])
async def test_a_fault_where_the_application_is_asked_leaves_everything_whole(
    execution: Any, wait: bool, what: str
) -> None:
    """One terminal event, one finish and one result for each call, no task left, no result lost."""
    points = await visits(execution, wait=wait)
    before = asyncio.all_tasks()
    for at, name in enumerate(points, 1):
        story = Story(execution, wait=wait)
        story.at = at
        actions = {"fail": fail, "stop": lambda run=story.run: run.stop("injected"), "cancel": cancel_me}
        story.action = actions[what]
        with anyio.fail_after(10):
            await story.drive()
        where = f"{what} at point {at}: {name}"
        assert story.run.ended, where
        assert asyncio.all_tasks() == before, where
        story.recording.check()
        messages = story.run.result.messages
        assert validate(messages) == [], where
        assert story.unanswered() == [], where
        assert story.lost() == [], where
        json.dumps(story.run.result.state)
        ends = [name for name in story.visited if name.endswith(".on_run_end")]
        assert ends == ["agent.on_run_end", "run.on_run_end"], where
        if what == "stop" and not name.endswith((".on_run_end", "shelf.close")):
            assert story.run.result.status == "aborted", where
        after = story.visited[at:]
        if what == "stop":
            assert "model" not in after, f"{where}: a request after the stop"


@MODES
@pytest.mark.parity("B13")
@pytest.mark.parametrize("what", ["stop", "cancel"])
async def test_a_fault_at_every_wait_leaves_everything_whole(execution: Any, what: str) -> None:
    """The same, wherever the run happens to be waiting."""
    story = Story(execution, wait=True)
    probe = Interrupted(story.drive(), 0, fail)
    await probe
    assert probe.waits > 50
    before = asyncio.all_tasks()
    for at in range(1, probe.waits + 1):
        story = Story(execution, wait=True)
        actions = {"stop": lambda run=story.run: run.stop("injected"), "cancel": cancel_me}
        with anyio.fail_after(10):
            await asyncio.create_task(waited(Interrupted(story.drive(), at, actions[what])))
        where = f"{what} at wait {at}"
        assert story.run.ended, where
        assert asyncio.all_tasks() == before, where
        story.recording.check()
        assert validate(story.run.result.messages) == [], where
        assert story.unanswered() == [], where
        assert story.lost() == [], where


async def waited(awaitable: Awaitable[Any]) -> None:
    with suppress(asyncio.CancelledError):
        await awaitable


@MODES
@pytest.mark.parity("A5")
@pytest.mark.parity("B13")
@pytest.mark.parametrize("what", ["stop", "leave"])
async def test_a_fault_at_every_event_of_a_live_run_leaves_everything_whole(execution: Any, what: str) -> None:
    """F1, F2: leaving the block is an ending like any other, and the state is right the moment it is left."""
    story = Story(execution, wait=True)
    await story.drive()
    total = len(story.recording)
    before = asyncio.all_tasks()
    for at in range(1, total + 1):
        story = Story(execution, wait=True)
        with anyio.fail_after(10):
            async with story.run as run:
                count = 0
                async for _event in run:
                    count += 1
                    if count == at and what == "stop":
                        run.stop("injected")
                    elif count == at:
                        break
        where = f"{what} at event {at}"
        assert asyncio.all_tasks() == before, where
        story.recording.check()
        assert validate(story.run.result.messages) == [], where
        assert story.unanswered() == [], where
        assert story.lost() == [], where
        assert json.dumps(story.run.result.state)
