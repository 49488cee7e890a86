"""An agent that remembers: a transcript, two queues, one run at a time, settings that may change between runs."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, Self, TypeVar, Unpack, get_args

import anyio
from msgspec.structs import replace

from antiphon.agent.inbox import Inbox, Mode, stamped
from antiphon.agent.options import RunOptions
from antiphon.agent.prompt import Prompt, as_message
from antiphon.agent.run import CLEARED, Run
from antiphon.agent.view import View
from antiphon.errors import UsageError
from antiphon.loop.session import forbid_inside
from antiphon.loop.state import Decision
from antiphon.loop.storage import dump_state, load_state
from antiphon.loop.telling import Listener
from antiphon.types.content import ToolCall
from antiphon.types.events import Event, MessageReturned, Queue, Status
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message
from antiphon.types.result import RunResult
from antiphon.types.transcript import repair, validate

__all__ = ["Conversation"]


class Definition(Protocol):
    """What a conversation needs of an agent."""

    def run(self, input: Any = None, /, **options: Any) -> Run[Any]: ...  # noqa: A002 - the agent's word
    def but(self, **changes: Any) -> Self: ...


OWN = {
    "messages": "transcript",
    "resume": "transcript",
    "steering": "queues",
    "follow_ups": "queues",
    "steering_mode": "queues",
    "follow_up_mode": "queues",
}
"""What a conversation says to its runs itself."""

AgentT = TypeVar("AgentT", bound=Definition)


class Conversation(Generic[AgentT]):
    """A chat with an agent.

    Settings belong to the agent: `configure` puts another frozen agent in place, which the next run uses, as it does
    `deps` and `session_id`; a run that goes on keeps what it began with. Only the modes of the queues are read live. All
    of it may be called from listeners, hooks, tools and other tasks. While a run goes on, other threads may steer it,
    decide and abort as they like; for everything else they use `loop.call_soon_threadsafe`. `messages` are repaired if they are not fit to be sent.
    """

    def __init__(
        self,
        agent: AgentT,
        *,
        messages: Sequence[Message] = (),
        deps: Any = None,
        session_id: str | None = None,
    ) -> None:
        self._agent = agent
        self._messages = History.of(repair(messages)[0]) if len(messages) else History()
        self._inbox = Inbox()
        self._listeners: dict[object, Listener] = {}
        self._ends: dict[object, Callable[[], None]] = {}
        self._run: Run[Any] | None = None
        self._idle = anyio.Event()
        self._idle.set()
        self._paused: RunResult[Any] | None = None
        self._queues_taken = False
        self._view = View(self._messages)
        self.deps = deps
        self.session_id = session_id

    # What can be seen

    @property
    def agent(self) -> AgentT:
        """The definition that the next run uses."""
        return self._agent

    @property
    def messages(self) -> Sequence[Message]:
        """The transcript of this moment."""
        return self._run.messages if self._run is not None else self._messages

    @property
    def running(self) -> bool:
        """Whether a run goes on; false only when all of its clean-up is done."""
        return self._run is not None

    @property
    def paused(self) -> bool:
        """Whether calls wait for decisions: `resume(decisions=…)` goes on."""
        return self._paused is not None

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a decision."""
        if self._run is not None:
            return self._run.pending
        return self._paused.pending if self._paused is not None else ()

    @property
    def streaming(self) -> bool:
        """Whether a run goes on, as its events told so far."""
        return self._view.streaming

    @property
    def partial(self) -> AssistantMessage | None:
        """The reply so far, while one is streamed."""
        return self._view.partial

    @property
    def running_calls(self) -> frozenset[str]:
        """The ids of the calls whose bodies run."""
        return frozenset(self._view.running_calls)

    @property
    def status(self) -> Status | None:
        """How the last run ended."""
        return self._view.status

    @property
    def error(self) -> str | None:
        """The sentence of the last run's failure, until the next run begins."""
        return self._view.error

    def queued(self, queue: Queue) -> tuple[Message, ...]:
        """The messages that wait in a queue, for this run or the next."""
        run = self._accepting()
        return run.queued(queue) if run is not None else self._inbox.peek(queue)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event of every run from now on; a run waits for async listeners."""
        key = object()
        self._listeners[key] = listener
        if self._run is not None:
            self._ends[key] = self._run.subscribe(listener)

        def unsubscribe() -> None:
            self._listeners.pop(key, None)
            end = self._ends.pop(key, None)
            if end is not None:
                end()

        return unsubscribe

    # Talking

    async def prompt(self, prompt: Prompt, **options: Unpack[RunOptions[Any]]) -> RunResult[str]:
        """Say something and wait for the end of the run.

        Raises `RunError` when it fails; the transcript holds the failed reply then, and `resume` leaves it out. Raises
        `UsageError`, and changes nothing, while a run goes on or calls wait for decisions.
        """
        async with self._running(self._make(prompt, options)) as run:
            return await run

    async def resume(self, **options: Unpack[RunOptions[Any]]) -> RunResult[str]:
        """Go on: with `decisions=` while calls wait, else from the transcript, a failed last reply left out.

        The transcript must end in what a model answers, or something must be queued. Raises as `prompt` does.
        """
        async with self._running(self._make(None, options)) as run:
            return await run

    @asynccontextmanager
    async def live(self, prompt: Prompt | None = None, **options: Unpack[RunOptions[Any]]) -> AsyncGenerator[Run[str]]:
        """Say something (or go on) and watch: `async with chat.live("…") as run: async for event in run: …`.

        Leaving the block ends the run; the transcript then has what was said until then. Once the run is over by itself
        the conversation is free for the next, inside the block too.
        """
        async with self._running(self._make(prompt, options)) as run, run:
            yield run

    def steer(self, message: Prompt) -> str:
        """Say something before the next request, in this run or the next. Returns the message's id."""
        return self._queue(message, "steering")

    def follow_up(self, message: Prompt) -> str:
        """Say something when nothing else is left to do, in this run or the next. Returns the message's id."""
        return self._queue(message, "follow_up")

    def clear_queue(self, queue: Queue) -> tuple[Message, ...]:
        """Empty a queue; what waited in it is handed back, and told of while a run goes on."""
        run = self._accepting()
        return run.clear_queue(queue) if run is not None else self._inbox.clear(queue)

    def decide(self, decisions: Mapping[str, Decision]) -> None:
        """Decide on calls of the run that goes on; a paused one goes on with `resume(decisions=…)`."""
        if self._run is None:
            raise UsageError("no run goes on: give the decisions to resume(decisions=…)")
        self._run.decide(decisions)

    def abort(self, reason: str | None = None) -> None:
        """End the run that goes on; queued messages stay for the next."""
        if self._run is not None:
            self._run.stop(reason)

    async def wait_for_idle(self) -> None:
        """Wait until no run goes on and all of its clean-up is done."""
        self._forbid_inside("wait_for_idle")
        await self._idle.wait()

    # Changing

    def configure(self, **changes: Any) -> None:
        """Put another agent in place, the same but for these fields (see `Agent.but`). The next run uses it."""
        self._agent = self._agent.but(**changes)

    def use_agent(self, agent: AgentT) -> None:
        """Put a whole other agent in place. The next run uses it."""
        self._agent = agent

    @property
    def steering_mode(self) -> Mode:
        return self._inbox.modes["steering"]

    @steering_mode.setter
    def steering_mode(self, mode: Mode) -> None:
        self._set_mode("steering", mode)

    @property
    def follow_up_mode(self) -> Mode:
        return self._inbox.modes["follow_up"]

    @follow_up_mode.setter
    def follow_up_mode(self, mode: Mode) -> None:
        self._set_mode("follow_up", mode)

    def replace_messages(self, messages: Sequence[Message]) -> None:
        """Put another transcript in place, repaired if it is not valid. Raises `UsageError` while a run goes on."""
        self._must_rest("the transcript cannot be replaced")
        self._messages = History(repair(messages)[0])
        self._view = View(self._messages)

    def append_message(self, *messages: Message) -> None:
        """Add messages at the end, without asking the model; a reply with calls comes together with their results.

        Raises `UsageError` for what makes the transcript unfit to be sent, and while a run goes on.
        """
        self._must_rest("no message can be appended")
        appended = (*self._messages, *[stamped(message) for message in messages])
        problems = validate(appended)
        if problems:
            raise UsageError(
                f"message {problems[0].index - len(self._messages)} cannot be appended: {problems[0].text}"
            )
        self.replace_messages(appended)

    def clear_messages(self) -> None:
        """Forget the transcript. Raises `UsageError` while a run goes on."""
        self.replace_messages(())

    async def reset(self) -> tuple[Message, ...]:
        """Begin anew: end the run that goes on, then forget transcript, pause and error. Settings stay.

        Gives back what was still queued. Raises `UsageError` inside the run itself.
        """
        self._forbid_inside("reset")
        while self._run is not None:
            self.abort("reset")
            await self._idle.wait()
        self._paused = None
        self.clear_messages()
        return self.clear_queue("steering") + self.clear_queue("follow_up")

    # Inside

    def _make(self, prompt: Prompt | None, options: RunOptions[Any]) -> Run[Any]:
        """The next run. Raises `UsageError`, with the way out, when there can be none now."""
        if self._run is not None:
            raise UsageError("a run goes on: steer() or follow_up() adds to it, abort() and wait_for_idle() end it")
        given: dict[str, Any] = {"deps": self.deps, "session_id": self.session_id, **self._queues(), **options}
        for name in options:
            if name in OWN:
                raise UsageError(f"a conversation has its own {OWN[name]}: leave {name}= out, and use its methods")
        if self._paused is not None:
            if prompt is not None:
                waiting = ", ".join(repr(call.id) for call in self._paused.pending)
                raise UsageError(
                    f"calls wait for decisions ({waiting}): resume(decisions=…), with all denied if need be"
                )
            state = replace(load_state(self._paused.state), steering=(), follow_ups=())  # the inbox has them
            return self._agent.run(resume=dump_state(state), **given)
        if options.get("decisions"):
            raise UsageError("no call waits for a decision: resume() without decisions goes on")
        return self._agent.run(prompt, messages=self._messages, **given)

    def _queues(self) -> dict[str, Any]:
        modes = self._inbox.modes
        return {
            "steering": self._inbox.peek("steering"),
            "follow_ups": self._inbox.peek("follow_up"),
            "steering_mode": modes["steering"],
            "follow_up_mode": modes["follow_up"],
        }

    @asynccontextmanager
    async def _running(self, run: Run[Any]) -> AsyncGenerator[Run[Any]]:
        """The run as the one that goes on, from its start to the end of its clean-up."""
        self._run, self._idle, self._queues_taken = run, anyio.Event(), False
        self._inbox.clear("steering")
        self._inbox.clear("follow_up")
        run.subscribe(self._view.apply)
        run.subscribe(self._take_back)
        self._ends = {key: run.subscribe(listener) for key, listener in self._listeners.items()}
        run.when_over(lambda: self._take_over(run))
        try:
            yield run
        finally:
            self._take_over(run)

    def _take_back(self, event: Event) -> None:
        """What the run hands back waits for the next one."""
        if isinstance(event, MessageReturned) and event.why != CLEARED and self._is_own(event):
            self._inbox.add(event.message, event.queue)

    def _is_own(self, event: Event) -> bool:
        """Sub-agents are heard here too."""
        return self._run is not None and event.run_id == self._run.run_id

    def _take_over(self, run: Run[Any]) -> None:
        """What the run leaves behind becomes the conversation's, once."""
        if self._run is not run:
            return
        self._take_queued()
        if run.ended:
            self._messages = History.of(run.result.messages)
            self._paused = run.result if run.result.status == "paused" else None
        self._run, self._ends = None, {}
        self._idle.set()

    def _take_queued(self) -> None:
        """What a paused run keeps for its resume is the conversation's to show, to clear and to hand over then."""
        if self._run is not None and not self._queues_taken:
            self._queues_taken = True
            self._inbox.put_back(self._run.queued("steering"), "steering")
            self._inbox.put_back(self._run.queued("follow_up"), "follow_up")

    def _accepting(self) -> Run[Any] | None:
        """The run that takes messages now; while it cleans up, and between runs, the inbox does."""
        if self._run is None or self._run.accepting:
            return self._run
        self._take_queued()
        return None

    def _queue(self, message: Prompt, queue: Queue) -> str:
        run = self._accepting()
        if run is not None:
            return run.steer(message) if queue == "steering" else run.follow_up(message)
        return self._inbox.add(as_message(message), queue)

    def _set_mode(self, queue: Queue, mode: Mode) -> None:
        if mode not in get_args(Mode):
            raise UsageError(f"a queue delivers 'one' message at a time or 'all', not {mode!r}")
        self._inbox.modes[queue] = mode
        if self._run is not None:
            self._run.set_mode(queue, mode)

    def _must_rest(self, what: str) -> None:
        if self._run is not None:
            raise UsageError(f"{what} while a run goes on: abort() and wait_for_idle() first")
        if self._paused is not None:
            raise UsageError(f"{what} while calls wait for decisions: resume(decisions=…) or reset() first")

    def _forbid_inside(self, what: str) -> None:
        if self._run is not None:
            forbid_inside(self._run.run_id, what)
