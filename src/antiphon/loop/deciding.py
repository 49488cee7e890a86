"""Decisions on pending calls: who is asked, and who answers for whom."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from antiphon.loop.approval import approval_context, check_decisions, pending_calls, refusal, refuse_strange
from antiphon.loop.bodies import Body
from antiphon.loop.hooks import resolved
from antiphon.loop.session import Session
from antiphon.loop.state import Approve, Decided, Decision, Deny, Nested
from antiphon.loop.telling import told
from antiphon.tools.tool import Tool
from antiphon.types.content import ToolCall
from antiphon.types.events import ApprovalDecided

__all__ = ["Deciding"]


class Deciding:
    """The questions about calls that are open: with an approver, with a person, inside a sub-agent."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.approvers: dict[str, Body] = {}

    def ask(self, call: ToolCall, tool: Tool, arguments: dict[str, Any], ended: Callable[[Body], None]) -> None:
        """Put a call to the approver, if there is one and nobody has decided yet."""
        approver = self.session.spec.approver
        if approver is None or not self._is_pending(call.id):
            return
        context = approval_context(self.session, call, tool, arguments)

        async def decide() -> Any:
            return await resolved(approver(context))

        grace = self.session.spec.tool_options.grace
        self.approvers[call.id] = Body(decide, timeout=None, grace=grace, ended=ended)

    def take(self, call_id: str, body: Body) -> bool:
        """Take what an approver decided; `False` when this body was none. One that fails has refused."""
        if self.approvers.get(call_id) is not body:
            return False
        del self.approvers[call_id]
        if self._is_pending(call_id):
            decided = decision_of(body)
            if isinstance(decided, str):
                self.session.warn("approver_failed", f"{decided}; call {call_id!r} was refused")
                decided = Deny(f"nobody could be asked: {decided}")
            self.decide({call_id: decided})
        return True

    def _is_pending(self, call_id: str) -> bool:
        slot = self.session.state.batch.get(call_id)
        return slot is not None and slot.stage == "pending"

    def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a decision; those inside a sub-agent that runs now are under `outer/inner`."""
        calls = [call for call, _ in pending_calls(self.session.state).values()]
        for outer, child in self.session.children.items():
            calls += [replace(call, id=f"{outer}/{call.id}") for call in child.pending]
        return tuple(calls)

    def decide(self, decisions: dict[str, Decision]) -> None:
        """Take decisions on pending calls. Raises `UsageError` for those that fit none, before any is taken."""
        session = self.session
        refuse_strange(decisions, [call.id for call in self.waiting()])
        own = self._for_children(decisions)
        if not own:
            return
        session.feed(Decided(decisions=check_decisions(session.state, own)))
        self.tell_decided(own)
        for call_id in own:
            approver = self.approvers.pop(call_id, None)
            if approver is not None:
                approver.cancel()

    def tell_decided(self, decisions: Mapping[str, Decision]) -> None:
        """Tell of decisions on this run's own calls; a sub-agent tells of its own."""
        for call_id, decision in decisions.items():
            if call_id in self.session.state.batch and not isinstance(decision, Nested):
                self.session.teller.tell(
                    ApprovalDecided,
                    call_id=call_id,
                    approved=not isinstance(decision, Deny),
                    arguments=decision.arguments if isinstance(decision, Approve) else None,
                    reason=refusal(decision) if isinstance(decision, Deny) else None,
                )

    def _for_children(self, decisions: dict[str, Decision]) -> dict[str, Decision]:
        """Hand the decisions on calls of sub-agents that run now to them; those that are left are this run's."""
        own = dict(decisions)
        for call_id, child in self.session.children.items():
            prefix = f"{call_id}/"
            inner = {path[len(prefix) :]: own.pop(path) for path in list(own) if path.startswith(prefix)}
            if inner:
                child.decide(inner)
        return own


def decision_of(body: Body) -> Approve | Deny | str:
    """What an approver decided, or a sentence about why it did not."""
    task = body.task
    if task.cancelled():
        return "the approver was cancelled"
    error = task.exception()
    if error is not None:
        return f"the approver raised {told(error)}"
    match task.result():
        case Approve() | Deny() as decided:
            return decided
        case True:
            return Approve()
        case False:
            return Deny()
        case other:
            return f"the approver answered {other!r}, which is neither a boolean nor Approve or Deny"
