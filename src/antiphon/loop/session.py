"""One run while it lives: its state, its events, its mailbox, and what every part of the driver shares."""

import logging
import time
from asyncio import Future, get_running_loop
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from itertools import takewhile
from typing import Any, Literal, Protocol

from msgspec.structs import replace

from antiphon.errors import UsageError
from antiphon.loop.hooks import Hook, HookChain, RunContext, Stop, resolved
from antiphon.loop.machine import advance
from antiphon.loop.spec import RunSpec
from antiphon.loop.state import Announced, Configured, Decision, Effect, Input, RunState, Slot
from antiphon.loop.telling import Teller
from antiphon.loop.toolset import by_name
from antiphon.tools.tool import Tool
from antiphon.types.cancel import CancelToken
from antiphon.types.content import ToolCall, Unknown
from antiphon.types.events import MessageFinished, MessageStarted, Queue, Role, Status, ToolFinished, ToolRequested
from antiphon.types.joiner import Joiner
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from antiphon.types.request import Model, ModelInfo, PayloadHook, ThinkingLevel, ToolSpec
from antiphon.types.thinking import effective_thinking

__all__ = ["CALL", "INSIDE", "ChildPaused", "HaltRun", "Session", "forbid_inside", "stopped"]

logger = logging.getLogger("antiphon")

INSIDE: ContextVar[tuple[str, ...]] = ContextVar("antiphon_inside", default=())
"""The runs whose own code is being run here: waiting for one of them would never end."""


class ChildPaused(Exception):
    """A sub-agent cannot go on before somebody decides; `state` is where it waits."""

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__("a sub-agent waits for decisions")
        self.state = state


def forbid_inside(run_id: str, what: str) -> None:
    """Raise `UsageError` when called from a listener, a hook or a tool of that run."""
    if run_id in INSIDE.get():
        raise UsageError(
            f"{what} would wait for the run that is calling it, for ever: return from the listener, hook or tool "
            "first, and wait outside",
        )


class Child(Protocol):
    """A sub-agent that runs inside a call: what waits in it, and how it is decided."""

    @property
    def pending(self) -> tuple[ToolCall, ...]: ...
    def decide(self, decisions: Mapping[str, Decision], /) -> None: ...


class HaltRun(Exception):
    """A decision that ends the run, on its way up to the driver."""

    def __init__(self, status: Status, reason: str | None = None, cause: BaseException | None = None) -> None:
        super().__init__(reason)
        self.status: Status = status
        self.reason = reason
        self.cause = cause


def stopped(stop: Stop, point: str) -> HaltRun:
    """What a hook's `Stop` does to the run. Without a reason of its own, the reason says which hook it was."""
    return HaltRun("stopped", stop.reason or f"stopped by {point}")


def role_of(message: Message) -> Role:
    match message:
        case SystemMessage():
            return "system"
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case ToolResultMessage():
            return "tool_result"
        case CustomMessage():
            return "custom"
        case _:
            return "unknown"


class Session:
    """What the parts of a running run share. `feed` is the only way to change `state`."""

    def __init__(self, spec: RunSpec, state: RunState, teller: Teller) -> None:
        self.spec = spec
        self.state = state
        self.teller = teller
        teller.on_warning = self._warned
        self.hooks = HookChain(spec.hooks)
        self.model: Model = spec.model
        self.tools: dict[str, Tool] = by_name(spec.tools, "the agent's tools")
        self.turn_tools: dict[str, Tool] = self.tools
        self.cancel = CancelToken()
        self.live = False
        self.effects: deque[Effect] = deque()
        self.told = len(state.messages)
        self.new: list[Message] = []
        self.undelivered: list[Message] = []
        self.joiner: Joiner | None = None
        self.reply: AssistantMessage | None = None
        self.choice = ""
        self.reminded = 0
        self.children: dict[str, Child] = {}
        self.finder: Callable[[str], Awaitable[Tool | None]] | None = None
        self.failure: BaseException | None = None
        self.outcome: tuple[Status, str | None, BaseException | None] | None = None
        self.open_message = ""
        self.streamed = ""
        self.open_turn = self.turn_began = 0
        self.rounds = 0
        self.resumed_round = False
        self.declined = False
        self.append_failed = False
        self.halting: HaltRun | None = None
        self.closing = False
        self.began = time.monotonic()
        self._waiter: Future[None] | None = None
        self._minted: dict[str, int] = {}

    @property
    def info(self) -> ModelInfo | None:
        return getattr(self.model, "info", None)

    @property
    def seconds(self) -> float:
        """How long the run has worked, resumed parts included."""
        return self.state.counters.seconds + time.monotonic() - self.began

    def snapshot(self) -> RunState:
        """The state of this moment, with the time that the run has worked."""
        return replace(self.state, counters=replace(self.state.counters, seconds=self.seconds))

    def feed(self, given: Input) -> None:
        """Tell the machine; what it asks for waits in `effects`."""
        self.state, effects = advance(self.state, given)
        if effects:
            self.effects.extend(effects)
            self.wake()

    def set_mode(self, queue: Queue, mode: Literal["one", "all"]) -> None:
        """Deliver one message of a queue at a time, or all, from now on."""
        steering = queue == "steering"
        self.feed(Configured(steering_mode=mode) if steering else Configured(follow_up_mode=mode))

    def mint(self, prefix: str) -> str:
        """A new id. The default counts within the run, so that equal inputs give equal ids."""
        if self.spec.id_generator is not None:
            return self.spec.id_generator(prefix)
        number = self._minted[prefix] = self._minted.get(prefix, -1) + 1
        return f"{prefix}-{number}"

    def mint_message_id(self) -> str:
        """A new message id, told apart from those of other runs in the same transcript."""
        return self.mint(f"{self.state.run_id}-message")

    def stamp(self, message: Message) -> Message:
        """The message with the id and the time that its giver left out."""
        if isinstance(message, Unknown):
            return message
        if message.id and message.created_at is not None:
            return message
        id_ = message.id or self.mint_message_id()
        return replace(message, id=id_, created_at=self.now() if message.created_at is None else message.created_at)

    def output(self) -> Any:
        """What the run is for: its typed answer, or the text of its last reply."""
        if self.spec.output is not None:
            return self.spec.output.read(self.state.messages)
        for index in range(len(self.state.messages) - 1, -1, -1):
            message = self.state.messages[index]
            if isinstance(message, AssistantMessage):
                return message.text
        return ""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def common(self) -> dict[str, Any]:
        """What every hook's context has."""
        return {"run_id": self.state.run_id, "cancel": self.cancel, "deps": self.spec.deps}

    def instructions(self, specs: tuple[ToolSpec, ...]) -> str:
        """The run's instructions, with the own text of the advertised tools behind them, in their order."""
        texts = [self.state.instructions, *[spec.instructions for spec in specs if spec.instructions]]
        return "\n\n".join([text for text in texts if text])

    def payload_hook(self) -> PayloadHook | None:
        """All `on_payload` hooks as one."""
        hooks = self.hooks.at("on_payload")
        if not hooks:
            return None

        async def look(payload: dict[str, Any]) -> dict[str, Any]:
            for hook in hooks:
                try:
                    changed = await resolved(hook(payload))
                except Exception as error:
                    raise HaltRun("error", f"on_payload raised {type(error).__name__}: {error}", error) from error
                payload = payload if changed is None else changed
            return payload

        return look

    def run_context(self) -> RunContext[Any]:
        return RunContext(**self.common())

    def thinking(self) -> ThinkingLevel | None:
        """The thinking level that is really used with the model of this moment."""
        return effective_thinking(self.spec.settings.thinking, self.info)

    async def find_tool(self, name: str) -> Tool | None:
        """The tool of this turn with this name, or one that a source finds."""
        tool = self.turn_tools.get(name)
        if tool is None and self.finder is not None:
            tool = await self.finder(name)
        return tool

    def started_now(self, name: str) -> int:
        """How many calls of this tool may run and are not counted yet."""
        return len([slot for slot in self.state.batch.values() if slot.stage == "allowed" and slot.call.name == name])

    # The mailbox: whoever changes something wakes the driver, which sleeps only when there is nothing to do.

    def wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def sleep(self, ready: Callable[[], bool]) -> None:
        """Sleep until something may have changed; `ready` says that it has already."""
        if self.effects or self.halting is not None or ready():
            return
        self._waiter = get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # Telling

    async def settle(self) -> None:
        """Wait for async listeners; then go on only if nobody ended the run meanwhile."""
        if self.teller.unsettled:
            await self.teller.settle()
        self.check()

    def check(self) -> None:
        """Raise what ends the run, if somebody ended it: nothing more is asked, nothing more is started."""
        if self.halting is not None and not self.closing:
            raise self.halting

    def deciding(self, point: str) -> Iterator[Hook]:
        """The hooks of a point, one by one; none is asked any more when the one before it ended the run."""
        for hook in self.hooks.at(point):
            yield hook
            self.check()

    def signal(self, reason: str | None) -> None:
        """Let models, hooks and tools know that the run ends."""
        try:
            self.cancel.cancel(reason)
        except ExceptionGroup as failed:
            self.warn("cancel_listener_raised", f"listeners of the run's cancel signal raised: {failed.exceptions!r}")

    def warn(self, code: str, text: str) -> None:
        """Tell of something odd, as an event and to `on_warning`."""
        self.teller.warn(code, text)

    def warn_once(self, code: str, text: str) -> None:
        """Tell of something odd that may come again and again, the first time in a run."""
        if (code, text) not in self.teller.warnings:
            self.warn(code, text)

    def _warned(self, code: str, text: str) -> None:
        for hook in self.hooks.at("on_warning"):
            try:
                self.teller.call_later(hook(code, text))
            except Exception as error:
                logger.warning("on_warning of run %s raised", self.state.run_id, exc_info=error)

    async def publish(self) -> None:
        """Announce each message that joined the transcript: to `on_append` first, then as events; wait for listeners."""
        while self.told < len(self.state.messages):
            await self._append(self.told)
            self.tell_next()
            await self.settle()

    async def announce(self) -> None:
        """Tell `on_append` of what an earlier run could not tell it of."""
        for index in range(self.state.announced, self.told):
            await self._append(index)

    async def _append(self, index: int) -> None:
        """Tell `on_append` of one message. Once it has failed it is told no more: a log has no holes."""
        hooks = self.hooks.at("on_append")
        if not hooks or self.append_failed:
            return
        try:
            for hook in hooks:
                await resolved(hook(self.state.messages[index]))
        except Exception:
            self.append_failed = True
            raise
        self.feed(Announced(count=index + 1))

    def tell_rest(self) -> None:
        """Tell of the messages that nobody has time to wait for."""
        while self.told < len(self.state.messages):
            self.tell_next()

    def tell_next(self) -> None:
        """Tell of the next message as events."""
        message = self.state.messages[self.told]
        self.told += 1
        self.new.append(message)
        self.tell_message(message)
        if isinstance(message, AssistantMessage) and message.calls:
            self._tell_unrun(message)

    def _tell_unrun(self, reply: AssistantMessage) -> None:
        """Calls that were answered, not run, when their reply joined the transcript have a beginning and an end too."""
        behind = takewhile(lambda message: isinstance(message, ToolResultMessage), self.state.messages[self.told :])
        results = {result.call_id: result for result in behind if isinstance(result, ToolResultMessage)}
        calls = [call for call in reply.calls if call.id in results]
        for call in calls:
            self.teller.tell(ToolRequested, call=call, turn=self.open_turn)
        for call in calls:
            result = results[call.id]
            self.teller.tell(ToolFinished, call_id=call.id, name=call.name, result=result, outcome=result.outcome)

    def tell_message(self, message: Message) -> None:
        """The start (unless it was streamed) and the end of a message."""
        turn = self.open_turn
        message_id = getattr(message, "id", "")
        if not message_id or message_id != self.streamed:
            self.teller.tell(MessageStarted, message_id=message_id, role=role_of(message), turn=turn)
        self.open_message = self.streamed = ""
        self.teller.tell(MessageFinished, message=message, turn=turn)


CALL: ContextVar[tuple[Session, Slot] | None] = ContextVar("antiphon_call", default=None)
"""The call whose body runs here, for tools that are runs themselves."""
