"""Running the calls of a batch: judge in order, start what may run, finish what has ended, ask where somebody must decide."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from antiphon.loop.approval import refusal
from antiphon.loop.bodies import Body, run_tool, wait_for_bodies
from antiphon.loop.deciding import Deciding
from antiphon.loop.ends import end_of_body, paused_child
from antiphon.loop.judging import denied, judge
from antiphon.loop.results import NOT_RUN, after_hooks, copied, error_end, finish_call, last_reply, value_end
from antiphon.loop.session import CALL, Session
from antiphon.loop.state import Answer, Approve, Asks, Decision, Deny, Judged, Slot, Started
from antiphon.tools.arguments import ArgumentError, Prepared
from antiphon.tools.context import ToolContext
from antiphon.tools.tool import Tool
from antiphon.types.events import ApprovalRequested, ToolProgress, ToolRequested, ToolStarted
from antiphon.types.messages import ToolResultMessage

__all__ = ["Work"]


class Work:
    """The calls of the open batch on their way: to be judged, to be started, running, ended."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.todo: deque[str] = deque()
        self.ready: deque[str] = deque()
        self.running: dict[str, Body] = {}
        self.ended: deque[tuple[str, Body]] = deque()
        self.deciding = Deciding(session)
        self._batch = ""
        self._requested: set[str] = set()
        self._prepared: dict[str, tuple[Tool, Prepared]] = {}
        self._questions: dict[str, asyncio.Future[Any]] = {}
        self._asked: dict[str, int] = {}
        self._contexts: dict[str, ToolContext[Any]] = {}

    # What there is to do

    @property
    def idle(self) -> bool:
        return not (self.todo or self.ready or self.running or self.ended)

    def add(self, call_ids: tuple[str, ...]) -> None:
        """These calls may move on. A new batch is told of first, every call in order."""
        self.tell_requested()
        batch = self.session.state.batch
        waiting = set(self.todo) | set(call_ids)
        self.todo = deque([call_id for call_id in batch if call_id in waiting])

    def tell_requested(self) -> None:
        """Tell of the calls that were not told of, in order. Ids are unique within a batch only."""
        if self.session.state.batch and self._batch != (reply := last_reply(self.session).id):
            self._batch = reply
            for kept in (self._requested, self._prepared, self._asked):
                kept.clear()
        for call_id, slot in self.session.state.batch.items():
            if slot.stage != "finished" and call_id not in self._requested:
                self._requested.add(call_id)
                self.session.teller.tell(ToolRequested, call=slot.call, turn=self.session.state.counters.turns)

    async def step(self) -> bool:
        """Do one thing; `False` when there is nothing to do but wait."""
        if self.ended:
            await self._finish_one()
        elif self.ready and self._may_start(self.ready[0]):
            await self._start(self.ready.popleft())
        elif self.todo and self._may_judge():
            await self._move(self.todo.popleft())
        else:
            return False
        return True

    def _may_judge(self) -> bool:
        if not self.session.state.sequential:
            return True
        others = self.running.keys() - {self.todo[0]}  # a body that asked runs itself, and goes on with its answer
        return not (self.ready or others) and not self._blocked()

    def _blocked(self) -> bool:
        """In sequence, a call that waits for a person holds those behind it."""
        first = self.todo[0]
        for call_id, slot in self.session.state.batch.items():
            if call_id == first:
                return False
            if slot.stage == "pending":
                return True
        return False

    def _may_start(self, call_id: str) -> bool:
        running = [self._prepared[other][0] for other in self.running]
        if len(running) >= max(1, self.session.spec.tool_options.max_parallel):
            return False
        tool = self._prepared[call_id][0]
        return not running or not (tool.exclusive or any(other.exclusive for other in running))

    # Judging

    async def _move(self, call_id: str) -> None:
        slot = self.session.state.batch.get(call_id)
        if slot is None or slot.stage not in ("waiting", "allowed", "denied"):
            return
        if slot.stage == "denied":
            await self._deny(slot)
        elif slot.decision is not None:
            await self._follow(slot, slot.decision)
        elif slot.stage == "allowed":
            await self._restore(slot)
        else:
            await self._judge(slot)

    async def _judge(self, slot: Slot) -> None:
        session, call = self.session, slot.call
        judgement = await judge(session, call)
        if judgement.end is not None:
            await finish_call(session, call, judgement.tool, judgement.end, judgement.stop)
            return
        tool, prepared = judgement.tool, judgement.prepared
        assert tool is not None
        assert prepared is not None
        if judgement.asks:
            await self._ask(slot, tool, prepared, "approval")
            return
        session.feed(Judged(call_id=call.id, verdict="allowed", arguments=prepared.text))
        await self._allow(slot, tool, prepared)

    async def _allow(self, slot: Slot, tool: Tool, prepared: Prepared) -> None:
        """Nothing stands in the call's way any more. One that runs elsewhere waits for its result now."""
        if tool.external:
            await self._ask(slot, tool, prepared, "answer")
            return
        self._prepared[slot.call.id] = (tool, prepared)
        self.ready.append(slot.call.id)

    async def _ask(self, slot: Slot, tool: Tool, prepared: Prepared, asks: Asks) -> None:
        """Put the call to whoever decides; nobody is waited for."""
        session, call = self.session, slot.call
        self._prepared[call.id] = (tool, prepared)
        session.feed(Judged(call_id=call.id, verdict="pending", arguments=prepared.text, asks=asks))
        session.teller.tell(ApprovalRequested, call_id=call.id, name=call.name, arguments=copied(prepared))
        if asks == "approval":
            self.deciding.ask(call, tool, copied(prepared), self._ender(call.id))
        await session.settle()

    async def ask_again(self) -> None:
        """A resumed run puts what still waits for a yes or no to its approver, if it has one."""
        if self.session.spec.approver is None:
            return
        for slot in self.session.state.pending:
            tool, prepared = await self._prepare(slot) if slot.asks == "approval" else (None, None)
            if tool is not None and prepared is not None:
                self.deciding.ask(slot.call, tool, copied(prepared), self._ender(slot.call.id))

    async def _deny(self, slot: Slot) -> None:
        """A person refused: a body that waits for them is unwound first."""
        body = self.running.pop(slot.call.id, None)
        self._questions.pop(slot.call.id, None)
        if body is not None:
            await wait_for_bodies([body])
            self.ended = deque([item for item in self.ended if item[1] is not body])
        tool, prepared = await self._prepare(slot)
        assert isinstance(slot.decision, Deny)
        end = denied(self.session, slot.call, refusal(slot.decision), prepared, inner=True)
        await finish_call(self.session, slot.call, tool, end)

    async def _follow(self, slot: Slot, decision: Decision) -> None:
        """An approved or answered call goes on."""
        session, call = self.session, slot.call
        question = self._questions.pop(call.id, None)
        if question is not None:
            session.feed(Started(call_id=call.id))
            self.running[call.id].resume()
            question.set_result(decision.value if isinstance(decision, Answer) else True)
            return
        tool, prepared = await self._prepare(slot)
        if tool is None or prepared is None:
            await self._gone(slot)
        elif isinstance(decision, Answer) and tool.external:
            await finish_call(session, call, tool, value_end(session, call, decision.value, prepared, inner=True))
        elif isinstance(decision, Approve):
            await self._approved(slot, tool, prepared, decision)
        else:
            self._prepared[call.id] = (tool, prepared)
            self.ready.append(call.id)

    async def _approved(self, slot: Slot, tool: Tool, prepared: Prepared, decision: Approve) -> None:
        """A person's arguments are validated like any other, and final."""
        if decision.arguments is not None:
            try:
                prepared = tool.prepare_object(decision.arguments)
            except ArgumentError as error:
                text = f"the edited arguments are wrong: {error}"
                end = error_end(self.session, slot.call, text, "error", error=error, inner=True)
                await finish_call(self.session, slot.call, tool, end)
                return
        await self._allow(slot, tool, prepared)

    async def _restore(self, slot: Slot) -> None:
        """A call that was allowed before a restart runs with the arguments that were allowed."""
        tool, prepared = await self._prepare(slot)
        if tool is None or prepared is None:
            await self._gone(slot)
            return
        await self._allow(slot, tool, prepared)

    async def _prepare(self, slot: Slot) -> tuple[Tool | None, Prepared | None]:
        known = self._prepared.get(slot.call.id)
        if known is not None:
            return known
        tool = await self.session.find_tool(slot.call.name)
        if tool is None:
            return None, None
        text = slot.arguments if slot.arguments is not None else slot.call.arguments
        try:
            return tool, tool.prepare(text)
        except ArgumentError:
            return tool, None

    async def _gone(self, slot: Slot) -> None:
        text = f"the tool {slot.call.name!r} does not exist any more, or takes other arguments now"
        await finish_call(self.session, slot.call, None, error_end(self.session, slot.call, text, "error"))

    # Running

    async def _start(self, call_id: str) -> None:
        session = self.session
        slot = session.state.batch[call_id]
        tool, prepared = self._prepared[call_id]
        session.feed(Started(call_id=call_id, arguments=prepared.text, repeatable=tool.repeatable))
        session.teller.tell(ToolStarted, call_id=call_id, name=slot.call.name, arguments=copied(prepared))
        await session.settle()
        context = self._context(slot, tool)
        options = session.spec.tool_options
        timeout = tool.timeout if tool.timeout is not None else options.timeout
        token = CALL.set((session, slot))
        self.running[call_id] = Body(
            lambda: run_tool(tool, prepared, context), timeout=timeout, grace=options.grace, ended=self._ender(call_id)
        )
        CALL.reset(token)

    def _ender(self, call_id: str) -> Callable[[Body], None]:
        def ended(body: Body) -> None:
            self.ended.append((call_id, body))
            self.session.wake()

        return ended

    def _context(self, slot: Slot, tool: Tool) -> ToolContext[Any]:
        session, call_id = self.session, slot.call.id
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        self._asked[call_id] = 0

        def tell(content: Any, details: Any) -> None:
            if call_id in self.running and not self.running[call_id].over.done():
                said = {"call_id": call_id, "name": tool.name, "content": content, "details": details}
                session.teller.tell(ToolProgress, **said)
                session.wake()

        def report(content: Any, details: Any) -> None:
            if threading.get_ident() == thread:
                tell(content, details)
            else:
                with suppress(RuntimeError):  # the loop may be gone when a thread was left behind
                    loop.call_soon_threadsafe(tell, content, details)

        async def ask(question: Any) -> Any:
            return await self._question(call_id, question)

        context = self._contexts[call_id] = ToolContext(
            call_id=call_id,
            run_id=session.state.run_id,
            name=tool.name,
            deps=session.spec.deps,
            cancel=session.cancel,
            report=report,
            asker=ask,
        )
        return context

    async def _question(self, call_id: str, question: Any) -> Any:
        """A running body asks. Questions answered before a restart are answered again at once, in their order."""
        session = self.session
        slot = session.state.batch[call_id]
        number = self._asked[call_id]
        self._asked[call_id] = number + 1
        if number < len(slot.answers):
            return slot.answers[number]
        answer = self._questions[call_id] = asyncio.get_running_loop().create_future()
        self.running[call_id].pause()
        session.feed(Judged(call_id=call_id, verdict="pending", asks="answer", question=question))
        arguments = copied(self._prepared[call_id][1])
        session.teller.tell(
            ApprovalRequested, call_id=call_id, name=slot.call.name, arguments=arguments, question=question
        )
        session.wake()
        try:
            return await answer
        except asyncio.CancelledError:
            self._take_back(call_id, answer)
            raise

    def _take_back(self, call_id: str, answer: asyncio.Future[Any]) -> None:
        """A body that gave up waiting goes on without the answer; one that is ended leaves its question open."""
        body = self.running.get(call_id)
        if self._questions.get(call_id) is answer and body is not None and not body.cancelled:
            del self._questions[call_id]
            self.session.feed(Started(call_id=call_id))
            body.resume()

    # Ending

    async def _finish_one(self) -> None:
        call_id, body = self.ended.popleft()
        if self.deciding.take(call_id, body):
            await self.session.settle()
        elif self.running.get(call_id) is body:
            await self.finish_body(call_id, body)
            del self.running[call_id]

    async def finish_body(self, call_id: str, body: Body) -> None:
        """The body has ended, or was left behind: its result goes through the hooks into the batch."""
        slot = self.session.state.batch[call_id]
        tool, prepared = self._prepared[call_id]
        if (context := self._contexts.pop(call_id, None)) is not None:
            context.close()
        paused = paused_child(body)
        if paused is not None:
            self.session.feed(Judged(call_id=call_id, verdict="pending", asks="nested", nested=paused))
            return
        await finish_call(self.session, slot.call, tool, end_of_body(self.session, slot.call, tool, prepared, body))

    async def unrun(self, slot: Slot) -> ToolResultMessage:
        """The result of a call that was judged and will not run any more. The hooks after it close what theirs opened."""
        session, call = self.session, slot.call
        tool, prepared = await self._prepare(slot)
        if isinstance(slot.decision, Answer) and tool is not None and tool.external:
            end = value_end(session, call, slot.decision.value, prepared, inner=True)
        elif slot.question is not None or slot.nested is not None:
            text = "the call was cancelled while it waited for an answer"
            end = error_end(session, call, text, "cancelled", prepared, inner=True)
        else:
            end = error_end(session, call, NOT_RUN, "not_run", prepared, inner=True)
        return (await after_hooks(session, call, tool, end))[0].result

    async def stop(self) -> None:
        """End every body: what has a result keeps it, what does not is cancelled; nothing new starts."""
        self.todo.clear()
        self.ready.clear()
        await wait_for_bodies([*self.running.values(), *self.deciding.approvers.values()])
        self.deciding.approvers.clear()
        self.ended.clear()
