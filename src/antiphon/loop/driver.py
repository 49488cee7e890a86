"""The driver: carries out what the machine asks for, until it asks for nothing more, and closes whatever is open."""

import asyncio
import logging
import math
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, assert_never

import anyio
import msgspec
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from antiphon.loop.asking import ask, close_turn
from antiphon.loop.bodies import Body
from antiphon.loop.hooks import RunEndContext, RunStartContext, resolved
from antiphon.loop.invoke import Work
from antiphon.loop.reply import partial_reply
from antiphon.loop.session import INSIDE, HaltRun, Session
from antiphon.loop.sources import Sources
from antiphon.loop.spec import Instructions
from antiphon.loop.state import (
    AskModel,
    AwaitDecisions,
    Configured,
    Finish,
    Halted,
    Input,
    Phase,
    Resumed,
    RunTools,
    Slot,
    Unqueued,
)
from antiphon.loop.telling import cancelled_from_outside, told, undisturbed
from antiphon.types.cancel import CancelSignal
from antiphon.types.events import (
    ApprovalRequested,
    ContextReplaced,
    MessageQueued,
    MessageReturned,
    Queue,
    RunFinished,
    RunStarted,
    Status,
    ToolFinished,
)
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage

__all__ = ["Driver"]

logger = logging.getLogger("antiphon")

END_SECONDS = 5.0
"""How long the ending may wait for hooks and listeners, whatever happens around it."""


class Driver:
    """Runs one session from its first input to its last event."""

    def __init__(self, session: Session, first: Input, preloaded: Sequence[tuple[Message, Queue]] = ()) -> None:
        self.session = session
        self.first = first
        self.preloaded = preloaded
        self.work = Work(session)
        self.sources = Sources(session)
        session.finder = self.sources.find
        self.scope = anyio.CancelScope()
        self.finished = False
        self.deadline = math.inf

    def halt(self, status: Status, reason: str | None) -> None:
        """End the run from outside. The first reason counts."""
        session = self.session
        if session.closing or session.halting is not None:
            return
        session.halting = HaltRun(status, reason)
        self.scope.cancel()
        session.signal(reason)
        session.wake()

    def follow(self, signal: CancelSignal | None) -> Callable[[], None]:
        """Let an outside signal, cancelled in whatever thread, end the run. Returns what ends the following."""
        if signal is None or signal.cancelled:
            return lambda: None
        loop, thread = asyncio.get_running_loop(), threading.get_ident()

        def cancelled() -> None:
            if threading.get_ident() == thread:
                self.halt("aborted", signal.reason)
                return
            with suppress(RuntimeError):  # the loop was closed meanwhile, and the run with it
                loop.call_soon_threadsafe(self.halt, "aborted", signal.reason)

        return signal.on_cancel(cancelled)

    async def drive(self) -> None:
        """The whole run. Raises only what cancels the task it runs in."""
        token = INSIDE.set((*INSIDE.get(), self.session.state.run_id))
        halted: HaltRun | None = None
        try:
            with self.scope:
                halted = await self._run()
        except BaseException:
            halted = HaltRun("aborted", "the task of the run was cancelled")
            raise
        finally:
            try:
                await self._end(self.session.halting or halted)
            finally:
                INSIDE.reset(token)

    async def _run(self) -> HaltRun | None:
        try:
            await undisturbed(self._sing())
        except HaltRun as halt:
            return halt
        except Exception as error:  # noqa: BLE001 - whatever an application's code raises ends the run, not the process
            return HaltRun("error", told(error), error)
        return None

    async def _sing(self) -> None:
        await self._begin()
        while not await self._go_on():
            pass

    async def _begin(self) -> None:
        session = self.session
        outside = session.spec.cancel
        if session.halting is not None or (outside is not None and outside.cancelled):
            raise HaltRun("aborted", outside.reason if outside is not None else None)
        before, session.resumed_round = session.state.messages, bool(session.state.batch)
        session.feed(self.first)  # before anything is told: whoever stores the state from now on has the prompt in it
        session.teller.tell(
            RunStarted, model=session.info, thinking=session.thinking(), resumed_from=session.state.resumed_from
        )
        for message, queue in self.preloaded:
            if message in (*session.state.steering, *session.state.follow_ups):  # else a listener has taken it back
                session.teller.tell(MessageQueued, message=message, queue=queue)
        self._tell_left_out(before)
        context = RunStartContext(**session.common(), messages=session.state.messages)
        for hook in session.deciding("on_run_start"):
            await resolved(hook(context))
        await session.settle()
        await self._instruct(session.spec.instructions)
        await self.sources.begin()
        await session.announce()
        await session.publish()
        if isinstance(self.first, Resumed):
            self.work.tell_requested()
            self.work.deciding.tell_decided(self.first.decisions)
            self._tell_pending()
            await self.work.ask_again()

    def _tell_pending(self) -> None:
        """Who watches the run, or decides in it, must see what still waits; a sub-agent tells of its own."""
        seen = self.session.live or self.session.spec.approver is not None
        for slot in self.session.state.pending:
            if seen and slot.nested is None:
                arguments: dict[str, Any] = msgspec.json.decode(slot.arguments) if slot.arguments else {}
                said: dict[str, Any] = {"name": slot.call.name, "arguments": arguments, "question": slot.question}
                self.session.teller.tell(ApprovalRequested, call_id=slot.call.id, **said)

    def _tell_left_out(self, before: History) -> None:
        """Going on may leave a failed reply out: viewers must take it back."""
        after = self.session.state.messages
        if after.grew_from(before):
            return
        kept = min(len(before), len(after))
        while after[:kept] != before[:kept]:
            kept -= 1
        if kept == len(before):
            return
        self.session.told = kept
        why = "the failed reply was left out"
        self.session.teller.tell(ContextReplaced, messages=after[:kept], why=why)

    async def _instruct(self, instructions: Instructions) -> None:
        """Instructions are asked for once in a run, and kept in its state."""
        session = self.session
        if session.state.instructions:
            return
        text = instructions if isinstance(instructions, str) else await resolved(instructions(session.run_context()))
        session.feed(Configured(instructions=text))

    async def _go_on(self) -> bool:
        """Carry out one thing; `True` when the run is over."""
        session = self.session
        await session.settle()
        if session.effects:
            effect = session.effects.popleft()
            match effect:
                case AskModel():
                    await session.publish()
                    await ask(session, self.sources)
                case RunTools(call_ids=call_ids):
                    self.work.add(call_ids)
                    await session.settle()
                case AwaitDecisions():
                    await self._hold()
                case Finish():
                    await session.publish()
                    return not await self._reopened()
                case _:
                    assert_never(effect)
        elif not await self.work.step():
            await session.sleep(lambda: bool(self.work.ended) or session.teller.unsettled)
        return False

    async def _reopened(self) -> bool:
        """What is queued while the last words are announced opens a turn, unless the application wants no further one."""
        session = self.session
        if session.state.phase is not Phase.DONE or session.declined:
            return False
        close_turn(session)
        await session.settle()
        if not (session.state.steering or session.state.follow_ups):
            return False
        session.feed(Resumed(at=session.now()))
        return True

    async def _hold(self) -> None:
        """Nothing can go on: wait for a decision where somebody can give one, else pause."""
        session = self.session
        if session.state.phase is not Phase.HELD:
            return
        options = session.spec.tool_options
        wait = session.live if options.on_ask is None else options.on_ask == "wait"
        if wait or self.work.deciding.approvers:
            return
        session.feed(Halted(status="paused", reason="decisions are missing", at=session.now()))

    # Ending: whatever happened, the transcript is closed, every call has its end, and the last event is told.

    async def _end(self, halted: HaltRun | None) -> None:
        """Close whatever is open, tell the last event, take leave."""
        await self._take(self._steps(halted))

    async def _take(self, steps: Iterator[Callable[[], Awaitable[None]]]) -> None:
        """A cancel that comes meanwhile ends the step that it meets, not the closing, and goes on when all is closed."""
        try:
            for step in steps:
                try:
                    with anyio.CancelScope(shield=True, deadline=self.deadline):
                        await self._take_one(step)
                finally:
                    self.deadline = min(self.deadline, anyio.current_time() + END_SECONDS)
        except asyncio.CancelledError:
            await self._take(steps)
            raise

    async def _take_one(self, step: Callable[[], Awaitable[None]]) -> None:
        try:
            await undisturbed(step())
        except Exception as error:
            logger.exception("closing run %s", self.session.state.run_id)
            self.session.warn("closing_failed", f"closing the run raised {told(error)}")

    def _steps(self, halted: HaltRun | None) -> Iterator[Callable[[], Awaitable[None]]]:
        for step in self._closing(halted):
            if cancelled_from_outside():
                yield checkpoint  # a cancel that was asked for and not raised yet would end the next step, not this one
            yield step

    def _closing(self, halted: HaltRun | None) -> Iterator[Callable[[], Awaitable[None]]]:
        """The steps of the ending, in order; what is between them happens at once."""
        session = self.session
        session.closing = True
        reason = halted.reason if halted is not None else session.state.reason
        busy = self.work.running or self.work.deciding.approvers
        if busy or (halted is not None and halted.status in ("aborted", "stopped")):
            session.signal(reason)
        yield self.work.stop
        if halted is not None or session.state.phase not in (Phase.DONE, Phase.STOPPED, Phase.HELD):
            unrun: dict[str, ToolResultMessage] = {}
            for call_id, body in list(self.work.running.items()):
                yield partial(self._finish_running, call_id, body)
            for slot in session.state.batch.values():
                yield partial(self._finish_judged, slot, unrun)
            yield self._publish
            session.tell_rest()
            self._halt_state(halted or HaltRun("error", "the run ended before it was finished"), unrun)
            yield self._publish
            session.tell_rest()
        self._conclude(halted)
        while session.teller.unsettled:
            yield session.settle
        for hook in session.hooks.at("on_run_end"):
            yield partial(self._call_end_hook, hook)
        yield self.sources.end
        while session.teller.unsettled:
            yield session.settle
        session.signal(reason)  # whatever was left behind learns that nobody waits for it any more

    async def _finish_running(self, call_id: str, body: Body) -> None:
        """A body that ended in time keeps its result, through the same hooks as ever."""
        slot = self.session.state.batch.get(call_id)
        if slot is not None and slot.stage == "started":
            with suppress(HaltRun):
                await self.work.finish_body(call_id, body)

    async def _finish_judged(self, slot: Slot, unrun: dict[str, ToolResultMessage]) -> None:
        """A call that was judged and will not run any more gets a result too, through the hooks after it."""
        if slot.stage in ("allowed", "pending", "denied"):
            unrun[slot.call.id] = await self.work.unrun(slot)

    def _halt_state(self, halted: HaltRun, unrun: dict[str, ToolResultMessage]) -> None:
        """The machine closes the open calls; each gets its finish event."""
        session = self.session
        if session.state.phase in (Phase.DONE, Phase.STOPPED):
            session.state = replace(session.state, status=halted.status, reason=halted.reason)
            return
        self.work.tell_requested()
        open_slots = [slot for slot in session.state.batch.values() if slot.stage != "finished"]
        known = len(session.state.messages)
        session.effects.clear()
        session.feed(replace(self._last_input(halted), outcomes=unrun))
        results = {m.call_id: m for m in session.state.messages[known:] if isinstance(m, ToolResultMessage)}
        for slot in open_slots:
            result = results.get(slot.call.id)
            if result is not None:
                session.teller.tell(
                    ToolFinished, call_id=slot.call.id, name=slot.call.name, result=result, outcome=result.outcome
                )

    def _last_input(self, halted: HaltRun) -> Halted:
        session = self.session
        if session.reply is not None:
            said: AssistantMessage | None = session.reply
        elif halted.status == "error" and session.state.phase is Phase.ASKING:
            text = halted.reason or "the run failed"
            said = partial_reply(session, session.model, session.joiner, stop_reason="error", error=text)
        elif session.joiner is not None:
            begun = bool(session.streamed)
            said = partial_reply(session, session.model, session.joiner, stop_reason="aborted", begun=begun)
        else:
            said = None
        return Halted(status=halted.status, reason=halted.reason, partial=said, at=session.now())

    async def _publish(self) -> None:
        try:
            await self.session.publish()
        except Exception as error:  # noqa: BLE001 - the ending goes on; what was not announced is on resume
            self.session.warn("on_append_failed", f"on_append raised {told(error)}")

    def _conclude(self, halted: HaltRun | None) -> None:
        """All is closed: say how it ended. From here on the run takes nothing more."""
        session = self.session
        close_turn(session)
        self.finished = True
        self._return_queued()
        state = session.state
        status: Status = state.status or "error"
        session.outcome = (status, state.reason, halted.cause if halted is not None else session.failure)
        session.teller.close(
            RunFinished,
            status=status,
            reason=state.reason,
            usage=state.counters.usage,
            error=state.reason if status == "error" else None,
        )

    def _return_queued(self) -> None:
        """Messages that were not delivered are handed back, or else the state keeps them for the resume, never both."""
        session = self.session
        state = session.state
        if state.status == "paused":
            return
        queues: tuple[tuple[Queue, tuple[Message, ...]], ...] = (
            ("steering", state.steering),
            ("follow_up", state.follow_ups),
        )
        for queue, messages in queues:  # all of it first: a listener may look at the queues
            session.undelivered += messages
            session.feed(Unqueued(queue=queue))
        for queue, messages in queues:
            for message in messages:
                session.teller.tell(MessageReturned, message=message, queue=queue, why=state.status or "ended")

    async def _call_end_hook(self, hook: Callable[[Any], Any]) -> None:
        session = self.session
        assert session.outcome is not None
        status, reason, error = session.outcome
        messages = session.state.messages
        context = RunEndContext(**session.common(), status=status, reason=reason, error=error, messages=messages)
        try:
            await resolved(hook(context))
        except Exception as failure:
            logger.warning("on_run_end of run %s raised", session.state.run_id, exc_info=failure)
            session.warn("on_run_end_failed", f"on_run_end raised {told(failure)}")
