"""Approval: who decides on a call, and what a decision may be. Decisions are data, keyed by call id."""

from collections.abc import Mapping
from typing import Any

from antiphon.errors import UsageError
from antiphon.loop.hooks import resolved
from antiphon.loop.session import Session
from antiphon.loop.spec import Allow, ApprovalContext, Ask, Verdict
from antiphon.loop.state import Answer, Approve, Decision, Deny, RunState, Slot
from antiphon.tools.arguments import Prepared
from antiphon.tools.tool import Tool
from antiphon.types.content import ToolCall

__all__ = ["approval_context", "check_decisions", "refusal", "verdict_on"]


def approval_context(session: Session, call: ToolCall, tool: Tool | None, arguments: dict[str, Any]) -> ApprovalContext:
    return ApprovalContext(**session.common(), call=call, tool=tool, arguments=dict(arguments))


async def verdict_on(session: Session, call: ToolCall, tool: Tool, prepared: Prepared) -> Verdict:
    """The agent's policy decides; where it has no opinion, the tool's own `needs_approval`."""
    policy = session.spec.policy
    if policy is not None:
        verdict = await resolved(policy(approval_context(session, call, tool, prepared.object)))
        if verdict is not None:
            return verdict
    match tool.verdict(call.id, dict(prepared.object)):
        case "run":
            return Allow()
        case "ask":
            return Ask()
        case "deny":
            return Deny()


def refusal(decision: Deny) -> str:
    """The sentence of a person's refusal, for the model."""
    if decision.reason is not None and decision.reason.strip():
        return decision.reason.strip()
    if decision.instruction:
        return f"a person refused this call and says: {decision.instruction}"
    return "a person refused this call: do not repeat it; ask what to do instead, or go on without it"


def check_decisions(state: RunState, decisions: Mapping[str, Decision]) -> None:
    """Raise `UsageError` for decisions that fit no pending call, naming each and what is pending."""
    pending = {slot.call.id: slot for slot in state.pending}
    strange = [call_id for call_id in decisions if call_id not in pending]
    if strange:
        waiting = ", ".join(map(repr, pending)) or "none"
        raise UsageError(f"no call waits for a decision under {', '.join(map(repr, strange))}; pending are: {waiting}")
    for call_id, decision in decisions.items():
        check_kind(pending[call_id], decision)


def check_kind(slot: Slot, decision: object) -> None:
    call_id = slot.call.id
    if not isinstance(decision, Approve | Deny | Answer):
        raise UsageError(f"a decision is Approve, Deny or Answer, not {type(decision).__name__} (call {call_id!r})")
    if slot.asks == "answer" and isinstance(decision, Approve):
        raise UsageError(f"call {call_id!r} ({slot.call.name}) waits for a value: give Answer(value), or Deny")
    if slot.asks == "approval" and isinstance(decision, Answer):
        raise UsageError(f"call {call_id!r} ({slot.call.name}) waits for a yes or no: give Approve or Deny")
