"""The steps of the table: each takes a state and an input and gives the next state with what to do."""

from typing import Any, Literal

from msgspec.structs import asdict, replace

from antiphon.loop._closing import CUT_OFF, closed, closed_slot, closing_result, open_calls, without_failed_reply
from antiphon.loop.state import (
    Announced,
    Answer,
    AskModel,
    AwaitDecisions,
    Configured,
    Counters,
    Cut,
    Decided,
    Decision,
    Declined,
    Deny,
    Discarded,
    Effect,
    Failed,
    Finish,
    Halted,
    Judged,
    Phase,
    Prompted,
    Queued,
    Replaced,
    Replied,
    Requested,
    Resumed,
    Returned,
    RunState,
    RunTools,
    Slot,
    Spent,
    Stage,
    Started,
    Taken,
    Unqueued,
)
from antiphon.types.content import ToolCall
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage
from antiphon.types.usage import Usage

Step = tuple[RunState, tuple[Effect, ...]]


def ends_for_the_model(state: RunState) -> bool:
    if state.steering or state.follow_ups:
        return True
    messages = without_failed_reply(state.messages)
    if len(messages) == 0:
        return False
    return not isinstance(messages[-1], AssistantMessage) or open_calls(messages) is not None


def counting(counters: Counters, usage: Usage | None, **changes: Any) -> Counters:
    """The counters with one request's usage added."""
    if usage is not None:
        changes |= {"usage": counters.usage + usage, "last_usage": usage}
    return replace(counters, **changes)


def with_batch(message: AssistantMessage) -> dict[str, Slot]:
    return {call.id: Slot(call=call) for call in message.calls}


def counting_tools(counters: Counters, calls: tuple[ToolCall, ...]) -> dict[str, int]:
    names = {call.name for call in calls}
    return counters.turns_by_tool | {name: counters.turns_by_tool.get(name, 0) + 1 for name in names}


def begun(state: RunState, **changes: Any) -> RunState:
    return replace(state, status=None, reason=None, ending="no", **changes)


# Beginning


def prompt(state: RunState, given: Prompted) -> Step:
    messages = closed(state.messages, given.at).extended(*given.messages)
    return begun(state, phase=Phase.ASKING, messages=messages), (AskModel(),)


def prompt_forced(state: RunState, given: Prompted) -> Step:
    forced = given.forced
    assert forced is not None
    messages = closed(state.messages, given.at).extended(*given.messages, forced)
    state = begun(state, phase=Phase.CALLING, messages=messages, batch=with_batch(forced))
    return state, (RunTools(tuple(state.batch)),)


def resume(state: RunState, given: Resumed) -> Step:
    kept = without_failed_reply(state.messages)
    messages = closed(kept, given.at)
    announced = min(state.announced, len(kept))
    state = replace(
        begun(state, phase=Phase.ASKING, messages=messages, announced=announced), ending=ended_by(state, messages)
    )
    return state, (AskModel(),)


def ended_by(state: RunState, messages: History) -> Literal["no", "reply", "end_turn"]:
    """What it was that ended, and goes on only for what is queued."""
    if len(messages) == 0 or isinstance(messages[-1], AssistantMessage):
        return "reply"
    return "end_turn" if state.phase is Phase.DONE and (state.steering or state.follow_ups) else "no"


def finish_again(state: RunState, _given: Resumed) -> Step:
    return replace(begun(state), status="done"), (Finish("done"),)


def rerun_open(state: RunState, _given: Resumed) -> Step:
    found = open_calls(state.messages)
    assert found is not None
    reply, missing = found
    results = {m.call_id: m for m in state.messages[-len(reply.calls) :] if isinstance(m, ToolResultMessage)}
    kept = len(state.messages) - (len(reply.calls) - len(missing))
    batch = {
        call.id: Slot(call=call, stage="finished", result=results[call.id]) if call.id in results else Slot(call=call)
        for call in reply.calls
    }
    state = begun(state, phase=Phase.CALLING, messages=History(state.messages[:kept]), batch=batch)
    return state, (RunTools(tuple([call.id for call in missing])),)


def resume_batch(state: RunState, given: Resumed) -> Step:
    reply = batch_reply(state)
    batch = dict(state.batch)
    for call_id, slot in batch.items():
        decision = given.decisions.get(call_id)
        if slot.stage == "pending" and decision is not None:
            batch[call_id] = decided_slot(slot, decision)
        elif slot.stage == "started" and slot.repeatable:
            batch[call_id] = replace(slot, stage="allowed")
        elif slot.stage == "started":
            result = closing_result(reply, slot.call, "unknown", given.at)
            batch[call_id] = replace(slot, stage="finished", result=result)
    state = begun(state, phase=Phase.CALLING, batch=batch)
    runnable = runnable_calls(state)
    if runnable:
        return state, (RunTools(runnable),)
    return settle(state)


def runnable_calls(state: RunState) -> tuple[str, ...]:
    """The calls that can be judged or run now; in sequence none behind one that waits for a person."""
    ids: list[str] = []
    for call_id, slot in state.batch.items():
        if slot.stage in ("waiting", "allowed", "denied"):
            ids.append(call_id)
        elif slot.stage == "pending" and state.sequential:
            break
    return tuple(ids)


# Asking


def request(state: RunState, _given: Requested) -> Step:
    return replace(state, counters=replace(state.counters, requests=state.counters.requests + 1)), ()


def discard(state: RunState, given: Discarded) -> Step:
    cuts = state.counters.cuts + given.cut
    return replace(state, counters=counting(state.counters, given.usage, cuts=cuts)), ()


def due(state: RunState) -> Taken:
    """What is to be delivered before the next request: steering first; follow-ups only when nothing else is left."""
    steering = len(state.steering) if state.steering_mode == "all" else min(1, len(state.steering))
    if state.ending == "no" or (state.ending == "reply" and steering):
        return Taken(steering=steering)
    follow_ups = len(state.follow_ups) if state.follow_up_mode == "all" else min(1, len(state.follow_ups))
    return Taken(steering=steering, follow_ups=follow_ups)


def take(state: RunState, given: Taken) -> Step:
    delivered = state.steering[: given.steering] + state.follow_ups[: given.follow_ups]
    state = replace(
        state,
        messages=state.messages.extended(*delivered),
        steering=state.steering[given.steering :],
        follow_ups=state.follow_ups[given.follow_ups :],
        ending="no",
    )
    return state, ()


def decline(state: RunState, _given: Declined) -> Step:
    return replace(state, phase=Phase.DONE, status="done"), (Finish("done"),)


def replace_context(state: RunState, given: Replaced) -> Step:
    if given.messages is None:
        return state, ()
    messages = closed(History(given.messages), given.at)
    return replace(state, messages=messages, announced=len(messages)), ()


def replied(state: RunState, message: AssistantMessage, **changes: Any) -> RunState:
    counters = counting(state.counters, message.usage, turns=state.counters.turns + 1, **changes)
    return replace(state, messages=state.messages.extended(message), counters=counters)


def reply_with_calls(state: RunState, given: Replied) -> Step:
    message = given.message
    state = replied(state, message, cuts=0, turns_by_tool=counting_tools(state.counters, message.calls))
    state = replace(state, phase=Phase.CALLING, batch=with_batch(message))
    return state, (RunTools(tuple(state.batch)),)


def reply_and_go_on(state: RunState, given: Replied) -> Step:
    return replace(replied(state, given.message, cuts=0), ending="reply"), (AskModel(),)


def reply_and_end(state: RunState, given: Replied) -> Step:
    state = replace(replied(state, given.message, cuts=0), phase=Phase.DONE, status="done")
    return state, (Finish("done"),)


def cut(state: RunState, given: Cut) -> RunState:
    message = given.message
    state = replied(state, message, cuts=state.counters.cuts + 1)
    results = [closing_result(message, call, "not_run", given.at, CUT_OFF) for call in message.calls]
    return replace(state, messages=state.messages.extended(*results))


def cut_and_ask(state: RunState, given: Cut) -> Step:
    return cut(state, given), (AskModel(),)


def cut_and_end(state: RunState, given: Cut) -> Step:
    reason = given.message.error or "the reply was cut off by the output limit"
    state = replace(cut(state, given), phase=Phase.STOPPED, status="error", reason=reason)
    return state, (Finish("error", reason),)


def fail(state: RunState, given: Failed) -> Step:
    reason = given.reason or given.message.error or "the model failed"
    message = given.message
    results = [closing_result(message, call, "not_run", message.created_at or 0.0) for call in message.calls]
    state = replace(
        state,
        phase=Phase.STOPPED,
        status="error",
        reason=reason,
        messages=state.messages.extended(message, *results),
        counters=counting(state.counters, message.usage),
    )
    return state, (Finish("error", reason),)


# Calling


def batch_reply(state: RunState) -> AssistantMessage:
    """The reply whose calls are open."""
    for index in range(len(state.messages) - 1, -1, -1):
        message = state.messages[index]
        if isinstance(message, AssistantMessage):
            return message
    raise AssertionError("a batch follows a reply")


def staged(state: RunState, call_id: str, stage: Stage, **changes: Any) -> RunState:
    slot = replace(state.batch[call_id], stage=stage, **changes)
    return replace(state, batch=state.batch | {call_id: slot})


def judge(state: RunState, given: Judged) -> Step:
    changes: dict[str, Any] = {"asks": given.asks, "question": given.question, "nested": given.nested, "decision": None}
    if given.arguments is not None:
        changes["arguments"] = given.arguments
    return settle(staged(state, given.call_id, given.verdict, **changes))


def start(state: RunState, given: Started) -> Step:
    slot, counters = state.batch[given.call_id], state.counters
    if given.arguments is not None:
        slot = replace(slot, arguments=given.arguments)
    slot = replace(slot, stage="started", repeatable=slot.repeatable or given.repeatable)
    name = slot.call.name
    if slot.answers or slot.nested is not None:  # it was started before, and goes on after its question
        return replace(state, batch=state.batch | {given.call_id: slot}), ()
    counters = replace(
        counters,
        tool_calls=counters.tool_calls + 1,
        calls_by_tool=counters.calls_by_tool | {name: counters.calls_by_tool.get(name, 0) + 1},
    )
    return replace(state, batch=state.batch | {given.call_id: slot}, counters=counters), ()


def take_back(state: RunState, given: Started) -> Step:
    return replace(staged(state, given.call_id, "started", question=None, asks="approval"), phase=Phase.CALLING), ()


def spend(state: RunState, given: Spent) -> Step:
    counters = state.counters
    usage, requests = counters.usage + given.usage, counters.requests + given.requests
    return replace(state, counters=replace(counters, usage=usage, requests=requests)), ()


def take_result(state: RunState, given: Returned) -> Step:
    invalid = state.counters.invalid_calls + 1 if given.invalid else 0
    state = staged(state, given.call_id, "finished", result=given.result, end_turn=given.end_turn)
    if invalid != state.counters.invalid_calls:
        state = replace(state, counters=replace(state.counters, invalid_calls=invalid))
    return settle(state)


def decided_slot(slot: Slot, decision: Decision) -> Slot:
    stage: Stage = "denied" if isinstance(decision, Deny) else "allowed"
    answers = (*slot.answers, decision.value) if isinstance(decision, Answer) else slot.answers
    return replace(slot, stage=stage, decision=decision, answers=answers)


def decide(state: RunState, given: Decided) -> Step:
    batch = dict(state.batch)
    for call_id, decision in given.decisions.items():
        batch[call_id] = decided_slot(batch[call_id], decision)
    state = replace(state, phase=Phase.CALLING, status=None, batch=batch)
    if not state.sequential:
        return state, (RunTools(tuple([call_id for call_id in batch if call_id in given.decisions])),)
    runnable = runnable_calls(state)
    return (state, (RunTools(runnable),)) if runnable else settle(state)


def settle(state: RunState) -> Step:
    """What follows when a call of the batch has moved on."""
    stages = {slot.stage for slot in state.batch.values()}
    held_back = state.sequential and "pending" in stages
    if stages & {"allowed", "denied", "started"} or ("waiting" in stages and not held_back):
        return state, ()
    if "pending" in stages:
        return replace(state, phase=Phase.HELD), (AwaitDecisions(tuple([slot.call.id for slot in state.pending])),)
    end_turn = any(slot.end_turn for slot in state.batch.values())
    state = with_results(state, [slot.result for slot in state.batch.values() if slot.result is not None])
    if not end_turn:
        return replace(state, phase=Phase.ASKING), (AskModel(),)
    if state.steering or state.follow_ups:
        return replace(state, phase=Phase.ASKING, ending="end_turn"), (AskModel(),)
    return replace(state, phase=Phase.DONE, status="done"), (Finish("done"),)


def with_results(state: RunState, results: list[ToolResultMessage]) -> RunState:
    return replace(state, messages=state.messages.extended(*results), batch={})


# Anywhere


def queue(state: RunState, given: Queued) -> Step:
    if given.queue == "steering":
        return replace(state, steering=(*state.steering, given.message)), ()
    return replace(state, follow_ups=(*state.follow_ups, given.message)), ()


def unqueue(state: RunState, given: Unqueued) -> Step:
    if given.queue == "steering":
        return replace(state, steering=()), ()
    return replace(state, follow_ups=()), ()


def configure(state: RunState, given: Configured) -> Step:
    changes = {name: value for name, value in asdict(given).items() if value is not None}
    return replace(state, **changes), ()


def announce(state: RunState, given: Announced) -> Step:
    return replace(state, announced=given.count), ()


def halt(state: RunState, given: Halted) -> Step:
    if given.status == "paused" and state.phase is Phase.HELD:
        return replace(state, status="paused", reason=given.reason), (Finish("paused", given.reason),)
    added: list[Message] = []
    if state.batch:
        reply = batch_reply(state)
        added += [closed_slot(reply, slot, given) for slot in state.batch.values()]
    if given.partial is not None:
        partial = given.partial
        added += [partial, *[closing_result(partial, call, "not_run", given.at) for call in partial.calls]]
    state = replace(
        state,
        phase=Phase.STOPPED,
        status=given.status,
        reason=given.reason,
        messages=state.messages.extended(*added),
        batch={},
        counters=counting(state.counters, given.partial.usage if given.partial else None),
    )
    return state, (Finish(given.status, given.reason),)
