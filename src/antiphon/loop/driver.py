"""The driver: carries out what the machine asks for, until it asks for nothing more, and closes whatever is open."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import assert_never

import anyio
from msgspec.structs import replace

from antiphon.loop.asking import ask, close_turn
from antiphon.loop.hooks import RunEndContext, RunStartContext, resolved
from antiphon.loop.invoke import Work
from antiphon.loop.reply import partial_reply
from antiphon.loop.session import INSIDE, HaltRun, Session
from antiphon.loop.sources import Sources
from antiphon.loop.spec import Instructions
from antiphon.loop.state import AskModel, AwaitDecisions, Failed, Finish, Halted, Input, Phase, RunTools
from antiphon.types.cancel import CancelSignal
from antiphon.types.events import (
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

    def halt(self, status: Status, reason: str | None) -> None:
        """End the run from outside. The first reason counts."""
        session = self.session
        if self.finished or session.halting is not None:
            return
        session.halting = HaltRun(status, reason)
        session.cancel.cancel(reason)
        session.wake()
        self.scope.cancel()

    def follow(self, signal: CancelSignal | None) -> Callable[[], None]:
        """Let an outside signal, cancelled in whatever thread, end the run. Returns what ends the following."""
        if signal is None or signal.cancelled:
            return lambda: None
        loop = asyncio.get_running_loop()

        def cancelled() -> None:
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
            await self._end(self.session.halting or halted)
        except BaseException:
            if not self.finished:
                await self._end(self.session.halting or HaltRun("aborted", "the task of the run was cancelled"))
            raise
        finally:
            INSIDE.reset(token)

    async def _run(self) -> HaltRun | None:
        try:
            await self._begin()
            while not await self._go_on():
                pass
        except HaltRun as halt:
            return halt
        except Exception as error:  # noqa: BLE001 - whatever an application's code raises ends the run, not the process
            return HaltRun("error", f"{type(error).__name__}: {error}", error)
        return None

    async def _begin(self) -> None:
        session = self.session
        outside = session.spec.cancel
        if session.halting is not None or (outside is not None and outside.cancelled):
            raise HaltRun("aborted", outside.reason if outside is not None else None)
        session.teller.tell(
            RunStarted, model=session.info, thinking=session.thinking(), resumed_from=session.state.resumed_from
        )
        for message, queue in self.preloaded:
            session.teller.tell(MessageQueued, message=message, queue=queue)
        context = RunStartContext(**session.common(), messages=session.state.messages)
        for hook in session.hooks.at("on_run_start"):
            await resolved(hook(context))
        await session.settle()
        await self._instruct(session.spec.instructions)
        await self.sources.begin()
        before = session.state.messages
        session.feed(self.first)
        self._tell_left_out(before)
        await session.publish()

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
        session.state = replace(session.state, instructions=text)

    async def _go_on(self) -> bool:
        """Carry out one thing; `True` when the run is over."""
        session = self.session
        if session.teller.unsettled:
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
                    return True
                case _:
                    assert_never(effect)
        elif not await self.work.step():
            await session.sleep(lambda: bool(self.work.ended) or session.teller.unsettled)
        return False

    async def _hold(self) -> None:
        """Nothing can go on: wait for a decision where somebody can give one, else pause."""
        session = self.session
        if session.state.phase is not Phase.HELD:
            return
        options = session.spec.tool_options
        wait = session.live if options.on_ask is None else options.on_ask == "wait"
        if wait or self.work.approvers:
            return
        session.feed(Halted(status="paused", reason="decisions are missing", at=session.now()))

    # Ending: whatever happened, the transcript is closed, every call has its end, and the last event is told.

    async def _end(self, halted: HaltRun | None) -> None:
        session = self.session
        error: BaseException | None = halted.cause if halted is not None else session.failure
        with anyio.CancelScope(shield=True):
            await self.work.stop()
            await self._close(halted)
        close_turn(session)
        self._return_queued()
        state = session.state
        status: Status = state.status or "error"
        self.finished = True
        session.cancel.cancel(state.reason)
        session.outcome = (status, state.reason, error)
        session.teller.close(
            RunFinished,
            status=status,
            reason=state.reason,
            usage=state.counters.usage,
            error=state.reason if status == "error" else None,
        )
        with anyio.move_on_after(END_SECONDS, shield=True):
            await session.settle()
            await self.sources.end()
            await self._end_hooks(status, error)
        session.teller.drop_unsettled()

    async def _close(self, halted: HaltRun | None) -> None:
        session = self.session
        if halted is None and session.state.phase in (Phase.DONE, Phase.STOPPED, Phase.HELD):
            return
        with anyio.move_on_after(END_SECONDS):
            await self._finish_running()
        if halted is None:
            halted = HaltRun("error", "the run ended before it was finished")
        if session.state.phase in (Phase.DONE, Phase.STOPPED):
            session.state = replace(session.state, status=halted.status, reason=halted.reason)
            await self._publish()
            return
        self._halt_state(halted)
        await self._publish()

    async def _finish_running(self) -> None:
        """Bodies that ended in time keep their results, through the same hooks as ever."""
        for call_id, body in list(self.work.running.items()):
            slot = self.session.state.batch.get(call_id)
            if slot is None or slot.stage != "started":
                continue
            try:
                await self.work.finish_body(call_id, body)
            except HaltRun:
                continue

    def _halt_state(self, halted: HaltRun) -> None:
        """The machine closes the open calls; each gets its finish event."""
        session = self.session
        open_slots = [slot for slot in session.state.batch.values() if slot.stage != "finished"]
        known = len(session.state.messages)
        session.effects.clear()
        session.feed(self._last_input(halted))
        results = {m.call_id: m for m in session.state.messages[known:] if isinstance(m, ToolResultMessage)}
        for slot in open_slots:
            result = results.get(slot.call.id)
            if result is not None:
                session.teller.tell(
                    ToolFinished, call_id=slot.call.id, name=slot.call.name, result=result, outcome=result.outcome
                )

    def _last_input(self, halted: HaltRun) -> Halted | Failed:
        session = self.session
        if session.reply is not None:
            partial: AssistantMessage | None = session.reply
        elif halted.status == "error" and session.state.phase is Phase.ASKING:
            text = halted.reason or "the run failed"
            partial = partial_reply(session, session.model, session.joiner, stop_reason="error", error=text)
        elif session.joiner is not None:
            partial = partial_reply(session, session.model, session.joiner, stop_reason="aborted")
        else:
            partial = None
        return Halted(status=halted.status, reason=halted.reason, partial=partial, at=session.now())

    async def _publish(self) -> None:
        try:
            await self.session.publish()
        except Exception as error:  # noqa: BLE001 - the ending goes on; what was not announced is announced on resume
            self.session.warn("on_append_failed", f"on_append raised {type(error).__name__}: {error}")
            await self.session.publish(quietly=True)

    def _return_queued(self) -> None:
        """Messages that were not delivered are handed back, unless the state keeps them for the resume."""
        session = self.session
        if session.state.status == "paused":
            return
        why = session.state.status or "ended"
        for message in session.state.steering:
            session.teller.tell(MessageReturned, message=message, queue="steering", why=why)
        for message in session.state.follow_ups:
            session.teller.tell(MessageReturned, message=message, queue="follow_up", why=why)

    async def _end_hooks(self, status: Status, error: BaseException | None) -> None:
        session = self.session
        context = RunEndContext(
            **session.common(),
            status=status,
            reason=session.state.reason,
            error=error,
            messages=session.state.messages,
        )
        for hook in session.hooks.at("on_run_end"):
            try:
                await resolved(hook(context))
            except Exception as failure:
                logger.warning("on_run_end of run %s raised", session.state.run_id, exc_info=failure)
                session.teller.warn("on_run_end_failed", f"on_run_end raised {type(failure).__name__}: {failure}")
