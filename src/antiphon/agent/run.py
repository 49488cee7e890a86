"""One execution: awaited in the caller's own task, or entered and watched while it lives."""

import uuid
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from typing import Any, Generic, Literal

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct
from msgspec.structs import replace

from antiphon.agent.prompt import Prompt, as_message, as_messages
from antiphon.errors import UsageError
from antiphon.loop.approval import check_decisions, pending_calls, questions
from antiphon.loop.driver import Driver
from antiphon.loop.session import Session, forbid_inside
from antiphon.loop.spec import ForcedCall, RunSpec
from antiphon.loop.state import (
    Answer,
    Approve,
    Decision,
    Deny,
    Input,
    Phase,
    Prompted,
    Queued,
    Resumed,
    RunState,
    Unqueued,
)
from antiphon.loop.storage import dump_state, load_state, resumed
from antiphon.loop.telling import Listener, Teller
from antiphon.types.content import ToolCall
from antiphon.types.events import Event, MessageQueued, MessageReturned, Queue
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message
from antiphon.types.partial_json import parse_partial
from antiphon.types.result import OutputT, RunError, RunResult

__all__ = ["Run", "Start"]

BLOCK = "async with agent.run(…) as run:\n    async for event in run: …"


class Start(Struct, frozen=True, kw_only=True):
    """How a run begins, as the caller said it."""

    input: Prompt | None = None
    messages: Sequence[Message] = ()
    resume: Mapping[str, Any] | None = None
    decisions: dict[str, Decision] = {}
    rerun_open: bool = False
    forced: ForcedCall | None = None
    run_id: str | None = None
    steering: tuple[Message, ...] = ()
    follow_ups: tuple[Message, ...] = ()
    steering_mode: Literal["one", "all"] = "one"
    follow_up_mode: Literal["one", "all"] = "one"

    @classmethod
    def of(cls, prompt: Prompt | None, options: Mapping[str, Any]) -> "Start":
        """The beginning that these options of a run say."""
        choice = options.get("tool_choice")
        return cls(
            input=prompt,
            messages=options.get("messages", ()),
            resume=options.get("resume"),
            decisions=dict(options.get("decisions") or {}),
            rerun_open=options.get("rerun_open", False),
            forced=choice if isinstance(choice, ForcedCall) else None,
            run_id=options.get("run_id"),
            steering=tuple(options.get("steering", ())),
            follow_ups=tuple(options.get("follow_ups", ())),
            steering_mode=options.get("steering_mode", "one"),
            follow_up_mode=options.get("follow_up_mode", "one"),
        )

    def queued_in(self, state: RunState) -> RunState:
        """The state with what is queued from the start behind what it has queued already."""
        return replace(
            state,
            steering=state.steering + self.steering,
            follow_ups=state.follow_ups + self.follow_ups,
            steering_mode=self.steering_mode,
            follow_up_mode=self.follow_up_mode,
        )


class Run(Generic[OutputT]):
    """A run that has not started. Await it for its result, or enter it to watch and to steer.

    Awaiting gives a `RunResult` for every ending but `error`, which raises `RunError`; awaiting again gives the same.
    Inside `async with`, events are iterated once, from the first; leaving the block ends the run.
    """

    def __init__(self, spec: RunSpec, start: Start) -> None:
        state, first = begin(start, spec)
        self._state = start.queued_in(state)
        self._spec = spec
        self._preloaded: tuple[tuple[Message, Queue], ...] = (
            *[(message, "steering") for message in self._state.steering],
            *[(message, "follow_up") for message in self._state.follow_ups],
        )
        self._first = first
        self._teller = Teller(state.run_id, spec.parent_run_id)
        self._driver: Driver | None = None
        self._group: TaskGroup | None = None
        self._over = anyio.Event()
        self._when_over: list[Callable[[], object]] = []
        self._result: RunResult[OutputT] | None = None
        self._error: RunError | None = None
        self._stopped: tuple[str | None] | None = None
        self._iterated = False

    @property
    def run_id(self) -> str:
        return self._state.run_id

    # Waiting and watching

    def __await__(self) -> Generator[Any, None, RunResult[OutputT]]:
        return self._wait().__await__()

    async def _wait(self) -> RunResult[OutputT]:
        if not self._over.is_set():
            forbid_inside(self.run_id, "awaiting this run")
        if self._driver is None:
            await self._drive(self._make_driver())
        else:
            await self._over.wait()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    async def __aenter__(self) -> "Run[OutputT]":
        if self._driver is not None:
            raise UsageError("this run has started already: make another with agent.run(…)")
        driver = self._make_driver()
        driver.session.live = True
        self._teller.keep()
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        self._group.start_soon(self._drive, driver)
        return self

    async def __aexit__(self, *_exc: object) -> None:
        assert self._group is not None
        assert self._driver is not None
        self._driver.halt("aborted", "the block was left")
        await self._group.__aexit__(None, None, None)

    def __aiter__(self) -> AsyncIterator[Event]:
        if self._group is None:
            raise UsageError(f"a run is iterated inside its block:\n{BLOCK}")
        if self._iterated:
            raise UsageError("the events of a run are iterated once; for a second viewer use run.subscribe(listener)")
        self._iterated = True
        return self._teller.events()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on; returns what ends that. The run waits for async listeners."""
        return self._teller.subscribe(listener)

    def when_over(self, callback: Callable[[], object]) -> None:
        """Call `callback` once when the run is over, clean-up included, before anybody who waits for it goes on."""
        self._when_over.append(callback)

    @property
    def ended(self) -> bool:
        """Whether the run is over, clean-up included, and has a result."""
        return self._result is not None

    @property
    def result(self) -> RunResult[OutputT]:
        """The result, after any ending. Raises `UsageError` before it."""
        if self._result is None:
            raise UsageError("the run has no result yet: it is there when the run is over")
        return self._result

    # Looking in

    @property
    def partial(self) -> str:
        """The text of the reply so far, right at every delta; empty between replies."""
        joiner = self._driver.session.joiner if self._driver is not None else None
        return joiner.partial_text() if joiner is not None else ""

    def partial_arguments(self, call_id: str) -> Any:
        """The arguments of a call so far, as far as they can be read. For viewers, never to run a tool."""
        joiner = self._driver.session.joiner if self._driver is not None else None
        text = joiner.partial_arguments(call_id) if joiner is not None else None
        return parse_partial(text) if text is not None else None

    @property
    def messages(self) -> Sequence[Message]:
        """The transcript of this moment."""
        return self._now.messages

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a decision now."""
        return tuple([call for call, _ in pending_calls(self._now).values()])

    @property
    def state(self) -> dict[str, Any]:
        """The run of this moment as JSON data, for `agent.run(resume=…)`."""
        if self._driver is None or self._result is not None:
            return dump_state(self._state)
        return dump_state(self._driver.session.snapshot())

    @property
    def _now(self) -> RunState:
        return self._driver.session.state if self._driver is not None else self._state

    # Steering: sync, never waiting. From another thread use `loop.call_soon_threadsafe`, or a `CancelToken` to stop.

    def stop(self, reason: str | None = None) -> None:
        """End the run as `aborted`. What was said so far is kept; after the end this does nothing."""
        if self._driver is None:
            self._stopped = self._stopped or (reason,)
        else:
            self._driver.halt("aborted", reason)

    def steer(self, message: Prompt) -> str:
        """Say something before the next request, after the tools that run now. Returns the message's id."""
        return self._queue(message, "steering")

    def follow_up(self, message: Prompt) -> str:
        """Say something when nothing else is left to do. Returns the message's id."""
        return self._queue(message, "follow_up")

    def _queue(self, message: Prompt, queue: Queue) -> str:
        if self._driver is None:
            raise UsageError("the run has not started: put the message into its input")
        if self._driver.finished:
            raise UsageError("the run is over and cannot take the message: start another run with it")
        session = self._driver.session
        stamped = session.stamp(as_message(message))
        session.feed(Queued(message=stamped, queue=queue))
        session.teller.tell(MessageQueued, message=stamped, queue=queue)
        session.wake()
        return getattr(stamped, "id", "")

    @property
    def accepting(self) -> bool:
        """Whether the run takes messages: it has started, and is not over."""
        return self._driver is not None and not self._driver.finished

    def queued(self, queue: Queue) -> tuple[Message, ...]:
        """The messages that wait in a queue."""
        return self._now.steering if queue == "steering" else self._now.follow_ups

    def clear_queue(self, queue: Queue) -> tuple[Message, ...]:
        """Empty a queue; what waited in it is handed back, and told of."""
        taken = self.queued(queue)
        if self._driver is None or self._driver.finished:
            return ()
        session = self._driver.session
        session.feed(Unqueued(queue=queue))
        for message in taken:
            session.teller.tell(MessageReturned, message=message, queue=queue, why="cleared")
        session.wake()
        return taken

    def set_mode(self, queue: Queue, mode: Literal["one", "all"]) -> None:
        """Deliver one message of a queue at a time, or all of them, from the next delivery on."""
        if self._driver is not None and not self._driver.finished:
            self._driver.session.set_mode(queue, mode)

    def approve(self, call_id: str, arguments: dict[str, Any] | None = None) -> None:
        """Let a pending call run, with other arguments if given."""
        self.decide({call_id: Approve(arguments)})

    def deny(self, call_id: str, reason: str | None = None, *, instruction: str | None = None) -> None:
        """Refuse a pending call; the model reads the reason."""
        self.decide({call_id: Deny(reason, instruction)})

    def answer(self, call_id: str, value: Any) -> None:
        """Answer a tool's question, or give the result of a tool that runs elsewhere."""
        self.decide({call_id: Answer(value)})

    def decide(self, decisions: Mapping[str, Decision]) -> None:
        """Decide on pending calls. Raises `UsageError` for ids that wait for nothing, naming those that do."""
        if self._driver is None or self._driver.finished:
            raise UsageError("no call waits for a decision: the run is not running")
        self._driver.work.decide(dict(decisions))
        self._driver.session.wake()

    # Driving

    def _make_driver(self) -> Driver:
        session = Session(self._spec, self._state, self._teller)
        self._driver = Driver(session, stamped_input(session, self._first), self._preloaded)
        if self._stopped is not None:
            self._driver.halt("aborted", self._stopped[0])
        return self._driver

    async def _drive(self, driver: Driver) -> None:
        unsubscribe = driver.follow(self._spec.cancel)
        try:
            await driver.drive()
        finally:
            unsubscribe()
            self._conclude(driver.session)
            for callback in self._when_over:
                callback()
            self._over.set()

    def _conclude(self, session: Session) -> None:
        if session.outcome is None:
            return
        status, reason, cause = session.outcome
        state = self._state = session.snapshot()
        self._result = RunResult(
            status=status,
            run_id=state.run_id,
            output=session.output(),
            messages=state.messages,
            new_messages=tuple(session.new),
            usage=state.counters.usage,
            last_usage=state.counters.last_usage,
            turns=state.counters.turns,
            requests=state.counters.requests,
            reason=reason,
            error=reason if status == "error" else None,
            pending=tuple([call for call, _ in pending_calls(state).values()]),
            questions=questions(state),
            undelivered=tuple(session.undelivered),
            warnings=tuple(self._teller.warnings),
            snapshot=lambda: dump_state(state),
        )
        if status == "error":
            self._error = RunError(reason or "the run failed", self._result)
            self._error.__cause__ = cause


def begin(start: Start, spec: RunSpec) -> tuple[RunState, Input]:
    """The first state and input. Raises `UsageError` for combinations that mean nothing."""
    run_id = start.run_id or uuid.uuid4().hex
    sequential = spec.tool_options.execution == "sequential"
    if start.resume is not None:
        if len(start.messages):
            raise UsageError("resume= has its own transcript: leave messages= out")
        state = replace(resumed(load_state(start.resume), run_id), sequential=sequential)
        return state, resuming(start, state)
    if start.decisions:
        raise UsageError("decisions= belong to a paused run: give its state with resume=")
    history = History.of(start.messages)
    state = RunState(run_id=run_id, messages=history, announced=len(history), sequential=sequential)
    if start.input is None and start.forced is None:
        if not len(history):
            raise UsageError("nothing to do: give input=, messages= that end in a user message, or resume=")
        last = history[-1]
        queued = start.steering or start.follow_ups
        if isinstance(last, AssistantMessage) and not (last.calls or last.partial or last.error or queued):
            raise UsageError(
                "messages= end in an assistant message, so it is not the model's turn: give input=, or take it away",
            )
        return state, Resumed(rerun_open=start.rerun_open)
    prompts = as_messages(start.input) if start.input is not None else ()
    return state, Prompted(messages=prompts, forced=forced_reply(start.forced))


def resuming(start: Start, state: RunState) -> Input:
    """The input for a stored state: decisions where calls wait, a prompt where nothing does."""
    decisions = check_decisions(state, start.decisions)
    open_batch = state.phase in (Phase.HELD, Phase.CALLING) and state.batch
    if start.input is None:
        return Resumed(decisions=decisions, rerun_open=start.rerun_open)
    if open_batch:
        waiting = ", ".join(map(repr, pending_calls(state)))
        raise UsageError(f"calls wait for decisions ({waiting}): decide first, or resume with all of them denied")
    return Prompted(messages=as_messages(start.input))


def forced_reply(forced: ForcedCall | None) -> AssistantMessage | None:
    """The reply that the application makes in the model's place; its ids come with the session."""
    if forced is None:
        return None
    text = msgspec.json.encode(dict(forced.arguments)).decode()
    return AssistantMessage(parts=(ToolCall(id="", name=forced.name, arguments=text),), stop_reason="tool_calls")


def stamped_input(session: Session, first: Input) -> Input:
    """Ids and times come in with the input: the machine makes none."""
    now = session.now()
    if isinstance(first, Resumed):
        repeatable = frozenset(
            [id_ for id_, slot in session.state.batch.items() if session.is_repeatable(slot.call.name)],
        )
        return replace(first, at=now, repeatable=repeatable)
    assert isinstance(first, Prompted)
    forced = first.forced
    if forced is not None:
        call = replace(forced.calls[0], id=session.mint("forced"))
        forced = replace(forced, parts=(call,), id=session.mint_message_id(), created_at=now)
    messages = tuple([session.stamp(message) for message in first.messages])
    return Prompted(messages=messages, forced=forced, at=now)
