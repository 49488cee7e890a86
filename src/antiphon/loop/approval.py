"""Approval: who decides on a call, and what a decision may be. Decisions are data, keyed by call id."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from antiphon.errors import UsageError
from antiphon.loop.hooks import answer_of
from antiphon.loop.results import copied
from antiphon.loop.session import Session
from antiphon.loop.spec import Allow, ApprovalContext, Ask, Verdict
from antiphon.loop.state import Answer, Approve, Asks, Decision, Deny, Nested, RunState
from antiphon.loop.storage import load_state
from antiphon.tools.arguments import Prepared
from antiphon.tools.tool import Tool
from antiphon.types.content import ToolCall

__all__ = [
    "approval_context",
    "check_decisions",
    "pending_calls",
    "questions",
    "refusal",
    "refuse_strange",
    "verdict_on",
]


def approval_context(session: Session, call: ToolCall, tool: Tool | None, arguments: dict[str, Any]) -> ApprovalContext:
    return ApprovalContext(**session.common(), call=call, tool=tool, arguments=arguments)


async def verdict_on(session: Session, call: ToolCall, tool: Tool, prepared: Prepared) -> Verdict:
    """The agent's policy decides; where it has no opinion, the tool's own `needs_approval`."""
    policy = session.spec.policy
    if policy is not None:
        verdict = await answer_of(
            policy, approval_context(session, call, tool, copied(prepared)), "the policy", Allow, Ask, Deny
        )
        if verdict is not None:
            return verdict
    match tool.verdict(call.id, copied(prepared)):
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


def pending_calls(state: RunState) -> dict[str, tuple[ToolCall, Asks]]:
    """What waits for a decision, in order. Calls inside a sub-agent are under `outer/inner`."""
    waiting: dict[str, tuple[ToolCall, Asks]] = {}
    for slot in state.pending:
        if slot.nested is None:
            waiting[slot.call.id] = (slot.call, slot.asks)
            continue
        for call_id, (call, asks) in pending_calls(load_state(slot.nested)).items():
            path = f"{slot.call.id}/{call_id}"
            waiting[path] = (replace(call, id=path), asks)
    return waiting


def questions(state: RunState) -> dict[str, Any]:
    """What pending calls ask from inside, by call id; those of a sub-agent under `outer/inner`."""
    found: dict[str, Any] = {}
    for slot in state.pending:
        if slot.nested is not None:
            inner = questions(load_state(slot.nested))
            found |= {f"{slot.call.id}/{call_id}": question for call_id, question in inner.items()}
        elif slot.question is not None:
            found[slot.call.id] = slot.question
    return found


def check_decisions(state: RunState, decisions: Mapping[str, Decision]) -> dict[str, Decision]:
    """The decisions under the ids of this run's own calls, those for a sub-agent's calls gathered.

    Raises `UsageError` for decisions that fit no pending call, naming each and what is pending.
    """
    waiting = pending_calls(state)
    refuse_strange(decisions, list(waiting))
    own: dict[str, Decision] = {}
    for call_id, decision in decisions.items():
        check_kind(*waiting[call_id], decision)
        if call_id in state.batch:
            own[call_id] = decision
            continue
        outer = next(slot.call.id for slot in state.pending if call_id.startswith(f"{slot.call.id}/"))
        inner = {call_id[len(outer) + 1 :]: decision}
        former = own.get(outer)
        own[outer] = Nested((former.decisions if isinstance(former, Nested) else {}) | inner)
    return own


def refuse_strange(decisions: Mapping[str, Decision], waiting: Sequence[str]) -> None:
    """Raise `UsageError` for decisions under ids that wait for nothing."""
    strange = [call_id for call_id in decisions if call_id not in waiting]
    if strange:
        known = ", ".join(map(repr, waiting)) or "none"
        raise UsageError(f"no call waits for a decision under {', '.join(map(repr, strange))}; pending are: {known}")


def check_kind(call: ToolCall, asks: Asks, decision: object) -> None:
    if not isinstance(decision, Approve | Deny | Answer):
        raise UsageError(f"a decision is Approve, Deny or Answer, not {type(decision).__name__} (call {call.id!r})")
    if asks == "answer" and isinstance(decision, Approve):
        raise UsageError(f"call {call.id!r} ({call.name}) waits for a value: give Answer(value), or Deny")
    if asks == "approval" and isinstance(decision, Answer):
        raise UsageError(f"call {call.id!r} ({call.name}) waits for a yes or no: give Approve or Deny")
