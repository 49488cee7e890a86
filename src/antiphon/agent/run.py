"""One execution: awaited in the caller's own task, or entered and watched while it lives."""

from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

import anyio
from anyio.abc import TaskGroup

from antiphon.agent.home import Home
from antiphon.agent.prompt import Prompt, as_message
from antiphon.agent.start import Start, begin, stamped_input
from antiphon.errors import UsageError
from antiphon.loop.approval import pending_calls, questions
from antiphon.loop.driver import Driver
from antiphon.loop.session import Session, forbid_inside
from antiphon.loop.spec import RunSpec
from antiphon.loop.state import (
    Answer,
    Approve,
    Decision,
    Deny,
    Queued,
    RunState,
    Unqueued,
)
from antiphon.loop.storage import dump_state
from antiphon.loop.telling import Listener, Teller
from antiphon.types.content import ToolCall
from antiphon.types.events import Event, MessageQueued, MessageReturned, Queue
from antiphon.types.messages import Message
from antiphon.types.partial_json import parse_partial
from antiphon.types.result import OutputT, RunError, RunResult

__all__ = ["CLEARED", "Run"]

T = TypeVar("T")

BLOCK = "async with agent.run(…) as run:\n    async for event in run: …"


CLEARED = "cleared"
"""Why a message was handed back that somebody took out of its queue."""


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
        self._home: Home | None = None
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
        """The calls that wait for a decision now; those inside a sub-agent under `outer/inner`."""
        if self._driver is not None:
            return self._driver.work.deciding.waiting()
        return tuple([call for call, _ in pending_calls(self._state).values()])

    @property
    def state(self) -> dict[str, Any]:
        """The run of this moment as JSON data, for `agent.run(resume=…)`."""
        if self._driver is None or self._result is not None:
            return dump_state(self._state)
        return dump_state(self._driver.session.snapshot())

    @property
    def _now(self) -> RunState:
        return self._driver.session.state if self._driver is not None else self._state

    # Steering: sync, and never waiting, but for other threads (a sync tool's is one): the run's own does it for them.

    def stop(self, reason: str | None = None) -> None:
        """End the run as `aborted`. What was said so far is kept; after the end this does nothing."""
        if self._driver is None:
            self._stopped = self._stopped or (reason,)
        else:
            self._at_home(self._driver.halt, "aborted", reason)

    def steer(self, message: Prompt) -> str:
        """Say something before the next request, after the tools that run now. Returns the message's id."""
        return self._queue(message, "steering")

    def follow_up(self, message: Prompt) -> str:
        """Say something when nothing else is left to do. Returns the message's id."""
        return self._queue(message, "follow_up")

    def _queue(self, message: Prompt, queue: Queue) -> str:
        return self._at_home(self._take, message, queue)

    def _take(self, message: Prompt, queue: Queue) -> str:
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
        return self._at_home(self._clear_queue, queue)

    def _clear_queue(self, queue: Queue) -> tuple[Message, ...]:
        taken = self.queued(queue)
        if self._driver is None or self._driver.finished:
            return ()
        session = self._driver.session
        session.feed(Unqueued(queue=queue))
        for message in taken:
            session.teller.tell(MessageReturned, message=message, queue=queue, why=CLEARED)
        session.wake()
        return taken

    def set_mode(self, queue: Queue, mode: Literal["one", "all"]) -> None:
        """Deliver one message of a queue at a time, or all of them, from the next delivery on."""
        if self._driver is not None and not self._driver.finished:
            self._at_home(self._driver.session.set_mode, queue, mode)

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
        self._at_home(self._decide, decisions)

    def _decide(self, decisions: Mapping[str, Decision]) -> None:
        if self._driver is None or self._driver.finished:
            raise UsageError("no call waits for a decision: the run is not running")
        self._driver.work.deciding.decide(dict(decisions))
        self._driver.session.wake()

    def _at_home(self, act: Callable[..., T], *args: Any) -> T:
        return act(*args) if self._home is None else self._home.do(act, *args)

    # Driving

    def _make_driver(self) -> Driver:
        self._home = Home()
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
