"""Runs to disturb: a three-turn script with parallel tools, what is heard of a run, and what must hold of one that is over."""

import asyncio
import inspect
import json
import threading
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any

from antiphon.agent.agent import Agent
from antiphon.agent.run import Run
from antiphon.loop.storage import dump_state, load_state
from antiphon.providers.scripted import ScriptedReply
from antiphon.tools.tool import Tool
from antiphon.types.content import Text, ToolCall, Unknown
from antiphon.types.events import (
    Event,
    MessageDelivered,
    MessageFinished,
    MessageQueued,
    MessageReturned,
    MessageStarted,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage
from antiphon.types.request import ModelRequest
from antiphon.types.result import RunResult
from antiphon.types.transcript import validate

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


class Hop:
    """A step of a script that lets everything else go on once: as short a wait for a server as there is."""

    async def wait(self) -> None:
        await asyncio.sleep(0)


class Gate:
    """A step of a script, or of a tool, that waits until a test opens it. `reached` says that somebody waits."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self.reached = asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self._opened.wait()

    def open(self) -> None:
        self._opened.set()


HOP = Hop()


def call(name: str, call_id: str = "", /, **arguments: Any) -> ToolCall:
    """A call as a model makes it. Without an id it is the tool's name and `-1`."""
    return ToolCall(id=call_id or f"{name}-1", name=name, arguments=json.dumps(arguments))


def tool(name: str, body: Callable[..., Any] | None = None, **traits: Any) -> Tool:
    """A tool without arguments; its body may take the context. Without a body it returns its name."""
    parameters = traits.pop("parameters", EMPTY)

    async def named() -> str:
        return name

    return Tool.from_schema(name, f"Does {name}.", parameters, adapted(body) if body else named, **traits)


def adapted(body: Callable[..., Any]) -> Callable[..., Any]:
    """A body of the context, or of nothing, as a handler of arguments and context."""
    takes = len(inspect.signature(body).parameters)
    if inspect.iscoroutinefunction(body):

        async def handler(_arguments: dict[str, Any], context: Any) -> Any:
            return await (body(context) if takes else body())

        return handler

    def plain(_arguments: dict[str, Any], context: Any) -> Any:
        return body(context) if takes else body()

    return plain


async def brief() -> str:
    await asyncio.sleep(0)
    return "brief"


async def longer() -> str:
    for _ in range(3):
        await asyncio.sleep(0)
    return "longer"


def threaded() -> str:
    return threading.current_thread().name


TOOLS = (tool("brief", brief), tool("longer", longer), tool("threaded", threaded))


def three_turns() -> tuple[ScriptedReply, ...]:
    """Two turns with parallel calls, async and sync, and an answer; every delta comes after a hop."""
    return (
        [Text("I look."), HOP, HOP, call("brief", "a1"), HOP, call("longer", "a2"), HOP, call("threaded", "a3"), HOP],
        [HOP, Text("And "), HOP, Text("again."), HOP, call("longer", "b1"), HOP, call("brief", "b2"), HOP],
        [HOP, Text("That "), HOP, Text("is all."), HOP],
    )


class Heard:
    """The events of a run, as a listener hears them."""

    def __init__(self, run: Run[Any]) -> None:
        self.events: list[Event] = []
        run.subscribe(self.events.append)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if type(event) is kind]

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


# What must hold of a run that is over: each function gives sentences about what does not.


def faults(events: Sequence[Event], result: RunResult[Any]) -> list[str]:
    """Everything that is wrong with a run that is over, as sentences; empty when it is sound."""
    batch = load_state(result.state).batch
    waiting = {call_id for call_id, slot in batch.items() if slot.stage != "finished"}
    return [
        *faults_of_numbering(events),
        *faults_of_calls(events, waiting),
        *faults_of_messages(events, result),
        *faults_of_receipts(events, result),
        *([] if waiting else faults_of_transcript(result.messages)),
        *faults_of_state(result),
    ]


def faults_of_numbering(events: Sequence[Event]) -> list[str]:
    found: list[str] = []
    if [event.seq for event in events] != list(range(1, len(events) + 1)):
        found.append(f"seq has gaps: {[event.seq for event in events]}")
    ends = [index for index, event in enumerate(events) if type(event) is RunFinished]
    if ends != [len(events) - 1]:
        found.append(f"RunFinished is not exactly the last of {len(events)} events: {ends}")
    started = [event.turn for event in events if type(event) is TurnStarted]
    finished = [event.turn for event in events if type(event) is TurnFinished]
    if started != finished:
        found.append(f"turns started {started} and finished {finished}")
    return found


def faults_of_calls(events: Sequence[Event], waiting: set[str]) -> list[str]:
    """Requested, then maybe started, then finished, each once; nothing after the finish. Those `waiting` have no end."""
    found: list[str] = []
    stages: dict[str, list[str]] = {}
    for event in events:
        match event:
            case ToolRequested(call=asked):
                stages.setdefault(f"{event.turn}/{asked.id}", []).append("requested")
            case ToolStarted(call_id=call_id) | ToolProgress(call_id=call_id) | ToolFinished(call_id=call_id):
                key = next((key for key in reversed(stages) if key.endswith(f"/{call_id}")), f"?/{call_id}")
                stages.setdefault(key, []).append(type(event).__name__.removeprefix("Tool").lower())
            case _:
                pass
    for key, seen in stages.items():
        if key.partition("/")[2] in waiting:
            continue
        told = [stage for stage in seen if stage != "progress"]
        if told not in (["requested", "finished"], ["requested", "started", "finished"]) or seen[-1] != "finished":
            found.append(f"call {key} went through {seen}")
    return found


def faults_of_messages(events: Sequence[Event], result: RunResult[Any]) -> list[str]:
    """Every new message is told once, in order, started before it is finished."""
    found: list[str] = []
    told = [event.message for event in events if type(event) is MessageFinished]
    if told != list(result.new_messages):
        found.append(f"told messages {[id_of(m) for m in told]} are not the new ones")
    results = [event.result for event in events if type(event) is ToolFinished]
    if result.status != "paused" and [each for each in results if each not in told]:
        found.append("a result that was told with a call's end is not the one in the transcript")
    open_: Counter[str] = Counter()
    for event in events:
        if type(event) is MessageStarted:
            open_[event.message_id] += 1
        elif type(event) is MessageFinished:
            open_[id_of(event.message)] -= 1
            if open_[id_of(event.message)] < 0:
                found.append(f"message {id_of(event.message)!r} was finished and not started")
    found += [f"message {message!r} has no id" for message in result.new_messages if not id_of(message)]
    ids = [id_of(message) for message in result.messages]
    if len(set(ids)) != len(ids):
        found.append(f"message ids repeat: {ids}")
    return found


def faults_of_receipts(events: Sequence[Event], result: RunResult[Any]) -> list[str]:
    """Every queued message is delivered or returned, exactly one of them, unless the state keeps it."""
    queued = Counter(id_of(event.message) for event in events if type(event) is MessageQueued)
    settled = Counter(event.message_id for event in events if type(event) is MessageDelivered)
    returned = Counter(id_of(event.message) for event in events if type(event) is MessageReturned)
    found: list[str] = []
    began = any(
        type(event) is RunStarted for event in events
    )  # else what an earlier run had queued is only handed back
    if result.status != "paused" and began and queued != settled + returned:
        found.append(f"queued {dict(queued)}, delivered {dict(settled)}, returned {dict(returned)}")
    if returned != Counter(id_of(message) for message in result.undelivered):
        found.append(f"returned {dict(returned)}, undelivered {result.undelivered}")
    return found


def faults_of_transcript(messages: Sequence[Message]) -> list[str]:
    return [f"message {problem.index}: {problem.text}" for problem in validate(messages)]


def faults_of_state(result: RunResult[Any]) -> list[str]:
    """The state is JSON, and comes back from it as it was."""
    stored = json.dumps(result.state, allow_nan=False)
    again = json.dumps(dump_state(load_state(json.loads(stored))))
    return [] if stored == again else [f"the state {stored} came back as {again}"]


def id_of(message: Message) -> str:
    return "" if isinstance(message, Unknown) else message.id


def results_of(messages: Sequence[Message]) -> dict[str, ToolResultMessage]:
    """The tool results of a transcript by call id."""
    return {message.call_id: message for message in messages if isinstance(message, ToolResultMessage)}


def outcomes(result: RunResult[Any]) -> dict[str, str]:
    """How each call of a transcript ended."""
    return {call_id: message.outcome for call_id, message in results_of(result.messages).items()}


def left_open(result: RunResult[Any]) -> list[str]:
    """The calls of a transcript without a result."""
    answered = set(results_of(result.messages))
    replies = [message for message in result.messages if isinstance(message, AssistantMessage)]
    return [asked.id for reply in replies for asked in reply.calls if asked.id not in answered]


# Disturbing


def cancelling(awaitable: Any, at: int, counted: list[int], *, more: Sequence[int] = ()) -> Any:
    """`awaitable`, its task cancelled in its `at`-th wait (0: never) and in those of `more`.

    `counted` grows by one with each wait.
    """
    places = {at, *more}

    class Counted:
        def __await__(self) -> Generator[Any, Any, Any]:
            steps = awaitable.__await__()
            send, value = steps.send, None
            while True:
                try:
                    waiting = send(value)
                except StopIteration as end:
                    return end.value
                counted.append(1)
                if len(counted) in places:
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()
                try:
                    value, send = (yield waiting), steps.send
                except BaseException as error:  # noqa: BLE001 - handed on to the one who waits
                    value, send = error, steps.throw

    return Counted()


async def hopping(awaitable: Any) -> Any:
    """The awaitable as a coroutine, for a task."""
    return await awaitable


def left_tasks() -> set["asyncio.Task[Any]"]:
    """The tasks of this loop but the calling one."""
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


async def accepted(messages: Sequence[Message]) -> list[str]:
    """Send a transcript again, with a new prompt: what would make a provider refuse the request."""
    seen: list[ModelRequest] = []

    async def answer(request: ModelRequest) -> str:
        seen.append(request)
        return "fine"

    result = await Agent(answer).run("go on", messages=messages)
    sent = seen[0].messages
    wrong = faults_of_transcript(sent)
    if isinstance(sent[-1], AssistantMessage):
        wrong.append("the request ends in an assistant message")
    wrong += [f"{m.id} is partial" for m in sent if isinstance(m, AssistantMessage) and m.partial]
    return wrong if result.status == "done" else [*wrong, result.status]
