"""The machine as a specification: its table, and what holds on every walk through it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import IllegalMove
from antiphon.loop._steps import due
from antiphon.loop.machine import INDEX, MOVES, advance, print_table
from antiphon.loop.state import (
    Announced,
    Answer,
    Approve,
    AskModel,
    AwaitDecisions,
    Configured,
    Cut,
    Decided,
    Decision,
    Declined,
    Deny,
    Discarded,
    Failed,
    Finish,
    Halted,
    Input,
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
    Started,
    Taken,
    Unqueued,
)
from antiphon.loop.storage import dump_state, load_state
from antiphon.types.content import Text, ToolCall
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from antiphon.types.transcript import validate
from antiphon.types.usage import Usage

INPUTS: tuple[type[Any], ...] = (
    Prompted,
    Resumed,
    Requested,
    Discarded,
    Taken,
    Declined,
    Replied,
    Cut,
    Failed,
    Replaced,
    Judged,
    Started,
    Returned,
    Decided,
    Queued,
    Unqueued,
    Configured,
    Announced,
    Halted,
)


def fresh(*messages: Message, **fields: Any) -> RunState:
    return RunState(run_id="r1", messages=History(messages), **fields)


def user(text: str = "hi", named: str = "u") -> UserMessage:
    return UserMessage(parts=(Text(text),), id=named)


def says(text: str = "ok", *calls: str, named: str = "a") -> AssistantMessage:
    parts = (Text(text), *[ToolCall(id=name, name="tool_" + name) for name in calls])
    return AssistantMessage(parts=parts, id=named, usage=Usage(input=2, output=1))


def result(call_id: str, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, tool_name="tool_" + call_id, parts=(Text(text),), id="res-" + call_id)


def walk(state: RunState, *inputs: Input) -> tuple[RunState, tuple[Any, ...]]:
    effects: tuple[Any, ...] = ()
    for item in inputs:
        state, effects = advance(state, item)
    return state, effects


# The straight road


def test_a_prompt_asks_the_model_and_an_answer_without_calls_ends_the_run():
    state, effects = walk(fresh(), Prompted(messages=(user(),)))
    assert state.phase is Phase.ASKING
    assert effects == (AskModel(),)
    state, effects = walk(state, Replied(message=says("hello")))
    assert (state.phase, state.status) == (Phase.DONE, "done")
    assert effects == (Finish("done"),)
    assert [type(m) for m in state.messages] == [UserMessage, AssistantMessage]
    assert state.counters.turns == 1
    assert state.counters.usage == Usage(input=2, output=1)


def test_results_join_the_transcript_when_the_batch_is_complete_and_in_call_order():
    state, effects = walk(fresh(), Prompted(messages=(user(),)), Replied(message=says("", "x", "y")))
    assert effects == (RunTools(("x", "y")),)
    allowed = [Judged(call_id=c, verdict="allowed", arguments="{}") for c in "xy"]
    started = [Started(call_id=c) for c in "xy"]
    state, effects = walk(state, *allowed, *started, Returned(call_id="y", result=result("y")))
    assert effects == ()
    assert len(state.messages) == 2
    state, effects = walk(state, Returned(call_id="x", result=result("x")))
    assert effects == (AskModel(),)
    assert [getattr(m, "call_id", None) for m in state.messages] == [None, None, "x", "y"]
    assert state.batch == {}


def test_a_result_may_end_the_turn_unless_something_is_queued():
    to_calls = (Prompted(messages=(user(),)), Replied(message=says("", "x")))
    end = Returned(call_id="x", result=result("x"), end_turn=True)
    state, effects = walk(fresh(), *to_calls, end)
    assert (state.phase, effects) == (Phase.DONE, (Finish("done"),))
    state, effects = walk(fresh(), *to_calls, Queued(message=user("more"), queue="follow_up"), end)
    assert effects == (AskModel(),)
    assert due(state) == Taken(follow_ups=1)


def test_steering_comes_before_follow_ups_and_follow_ups_only_when_nothing_else_is_left():
    """A follow-up that slipped between a call and its answer would change the subject under the model."""
    queued = (
        Queued(message=user("later", "f"), queue="follow_up"),
        Queued(message=user("now", "s1"), queue="steering"),
        Queued(message=user("now too", "s2"), queue="steering"),
    )
    state, _ = walk(fresh(), Prompted(messages=(user(),)), *queued)
    assert due(state) == Taken(steering=1)
    state, effects = walk(state, due(state), Replied(message=says()))
    assert effects == (AskModel(),)
    assert due(state) == Taken(steering=1)
    state, _ = walk(state, due(state), Replied(message=says()))
    assert due(state) == Taken(follow_ups=1)
    state, effects = walk(state, due(state), Replied(message=says()))
    assert effects == (Finish("done"),)
    assert [m.id for m in state.messages if isinstance(m, UserMessage)] == ["u", "s1", "s2", "f"]


def test_all_at_once_empties_the_queue():
    state, _ = walk(fresh(steering_mode="all"), *[Queued(message=user(named=i), queue="steering") for i in "abc"])
    assert due(state) == Taken(steering=3)


def test_what_is_settled_or_changed_meanwhile_is_an_input_too():
    """A replay of the inputs would else give another state than the run had."""
    state, effects = walk(fresh(), Configured(instructions="be brief"), Configured(follow_up_mode="all"))
    assert (state.instructions, state.steering_mode, state.follow_up_mode) == ("be brief", "one", "all")
    assert effects == ()


# Decisions


def test_a_batch_is_held_when_nothing_runs_any_more_and_a_decision_is_missing():
    state, _ = walk(fresh(), Prompted(messages=(user(),)), Replied(message=says("", "x", "y")))
    state, effects = walk(
        state,
        Judged(call_id="x", verdict="pending"),
        Judged(call_id="y", verdict="allowed"),
        Started(call_id="y"),
    )
    assert (state.phase, effects) == (Phase.CALLING, ())
    state, effects = walk(state, Returned(call_id="y", result=result("y")))
    assert (state.phase, effects) == (Phase.HELD, (AwaitDecisions(("x",)),))
    state, effects = walk(state, Decided(decisions={"x": Approve({"a": 1})}))
    assert (state.phase, effects) == (Phase.CALLING, (RunTools(("x",)),))
    assert state.batch["x"].decision == Approve({"a": 1})


def test_decisions_may_come_one_by_one_and_each_is_taken_once():
    state, _ = walk(fresh(), Prompted(messages=(user(),)), Replied(message=says("", "x", "y")))
    state, _ = walk(state, *[Judged(call_id=c, verdict="pending") for c in "xy"])
    state, effects = walk(state, Decided(decisions={"y": Deny("no")}))
    assert effects == (RunTools(("y",)),)
    with pytest.raises(IllegalMove):
        advance(state, Decided(decisions={"y": Approve()}))
    state, effects = walk(state, Returned(call_id="y", result=result("y")))
    assert (state.phase, effects) == (Phase.HELD, (AwaitDecisions(("x",)),))


def test_in_sequence_the_first_question_holds_the_later_calls():
    state, _ = walk(fresh(sequential=True), Prompted(messages=(user(),)), Replied(message=says("", "x", "y")))
    state, effects = walk(state, Judged(call_id="x", verdict="pending"))
    assert (state.phase, effects) == (Phase.HELD, (AwaitDecisions(("x",)),))
    state, effects = walk(state, Decided(decisions={"x": Approve()}))
    assert effects == (RunTools(("x", "y")),)


def test_a_paused_run_keeps_its_open_calls():
    state, _ = walk(fresh(), Prompted(messages=(user(),)), Replied(message=says("", "x")))
    state, effects = walk(state, Judged(call_id="x", verdict="pending"), Halted(status="paused"))
    assert (state.phase, state.status) == (Phase.HELD, "paused")
    assert effects == (Finish("paused"),)
    assert [slot.call.id for slot in state.pending] == ["x"]
    with pytest.raises(IllegalMove, match="expected: "):
        advance(state, Prompted(messages=(user(),)))


def test_on_resume_finished_calls_stay_started_ones_become_unknown_and_the_rest_run():
    state, _ = walk(fresh(), Prompted(messages=(user(),)), Replied(message=says("", "a", "b", "c", "d", "e")))
    state, _ = walk(
        state,
        *[Judged(call_id=c, verdict="allowed") for c in "abc"],
        Judged(call_id="d", verdict="pending"),
        Started(call_id="a"),
        Started(call_id="b"),
        Returned(call_id="a", result=result("a")),
    )
    state, effects = walk(load_state(dump_state(state)), Resumed(decisions={"d": Approve()}))
    stages = {call_id: slot.stage for call_id, slot in state.batch.items()}
    assert stages == {"a": "finished", "b": "finished", "c": "allowed", "d": "allowed", "e": "waiting"}
    unknown = state.batch["b"].result
    assert unknown is not None
    assert unknown.outcome == "unknown"
    assert effects == (RunTools(("c", "d", "e")),)


def test_a_repeatable_call_runs_again_on_resume():
    state, _ = walk(fresh(), Prompted(messages=(user(),)), Replied(message=says("", "a")))
    state, _ = walk(state, Judged(call_id="a", verdict="allowed"), Started(call_id="a", repeatable=True))
    state, effects = walk(state, Resumed())
    assert effects == (RunTools(("a",)),)


def test_the_open_calls_of_a_bare_transcript_become_unknown_unless_they_may_run():
    transcript = (user(), says("", "x", "y"), result("x"))
    state, effects = walk(fresh(*transcript), Resumed())
    assert effects == (AskModel(),)
    last = state.messages[-1]
    assert isinstance(last, ToolResultMessage)
    assert (last.call_id, last.outcome) == ("y", "unknown")
    state, effects = walk(fresh(*transcript), Resumed(rerun_open=True))
    assert effects == (RunTools(("y",)),)
    assert state.batch["x"].stage == "finished"


# Endings


def test_a_cut_reply_gets_its_calls_answered_and_is_asked_again_or_ends():
    state, _ = walk(fresh(), Prompted(messages=(user(),)))
    again, effects = walk(state, Cut(message=says("", "x"), again=True))
    assert effects == (AskModel(),)
    answer = again.messages[-1]
    assert isinstance(answer, ToolResultMessage)
    assert (answer.outcome, "cut off" in answer.text) == ("not_run", True)
    ended, effects = walk(state, Cut(message=says("", "x"), again=False))
    assert (ended.phase, ended.status) == (Phase.STOPPED, "error")
    assert isinstance(effects[0], Finish)


def test_a_halt_closes_every_call_running_ones_as_cancelled_others_as_not_run():
    state, _ = walk(fresh(), Prompted(messages=(user(),)), Replied(message=says("", "a", "b", "c")))
    state, _ = walk(state, *[Judged(call_id=c, verdict="allowed") for c in "ab"], Started(call_id="a"))
    state, _ = walk(state, Started(call_id="b"), Returned(call_id="a", result=result("a")))
    state, effects = walk(state, Halted(status="aborted", reason="stop"))
    outcomes = {m.call_id: m.outcome for m in state.messages if isinstance(m, ToolResultMessage)}
    assert outcomes == {"a": "ok", "b": "cancelled", "c": "not_run"}
    assert effects == (Finish("aborted", "stop"),)
    assert validate(state.messages) == []


def test_resume_after_a_failure_leaves_the_failed_reply_out():
    failed = AssistantMessage(parts=(Text("half"),), stop_reason="error", error="boom", partial=True, id="f")
    state, _ = walk(fresh(), Prompted(messages=(user(),)), Failed(message=failed))
    assert (state.phase, state.status, state.reason) == (Phase.STOPPED, "error", "boom")
    state, effects = walk(state, Resumed())
    assert effects == (AskModel(),)
    assert [type(m) for m in state.messages] == [UserMessage]


def test_what_a_phase_does_not_take_is_an_illegal_move_that_names_what_was_expected():
    with pytest.raises(IllegalMove, match=r"Replied cannot follow 'idle'; expected: Prompted"):
        advance(fresh(), Replied(message=says()))


@pytest.mark.parametrize("phase", list(Phase))
@pytest.mark.parametrize("kind", INPUTS)
def test_every_pair_is_in_the_table_or_illegal(phase: Phase, kind: type[Any]):
    """The table is the whole logic: a pair that is in no row cannot happen."""
    rows = INDEX.get((phase, kind), [])
    assert rows == [move for move in MOVES if move.input is kind and phase in move.phases]


def test_the_table_can_be_printed():
    lines = list(print_table())
    assert len(lines) == len(MOVES) + 2
    assert any("`Prompted`" in line and "calling" in line for line in lines)


# Every walk

CALLS = ("x", "y", "z")


def inputs_for(state: RunState, draw: Any, step: int) -> Input:
    """An input that is likely to be legal here, and now and then one that is not."""
    ids = list(state.batch) or ["x"]
    call_id = draw(st.sampled_from(ids))
    options: list[Input] = [
        Queued(message=user(named=f"q{step}"), queue=draw(st.sampled_from(["steering", "follow_up"]))),
        Halted(status=draw(st.sampled_from(["aborted", "stopped", "limit", "error", "paused"]))),
        Announced(count=len(state.messages)),
        Configured(steering_mode=draw(st.sampled_from(["one", "all", None]))),
    ]
    if state.phase in (Phase.IDLE, Phase.DONE, Phase.STOPPED):
        forced = says("", "x", named=f"forced{step}") if draw(st.booleans()) else None
        options += [
            Prompted(messages=(user(named=f"u{step}"),), forced=forced),
            Resumed(rerun_open=draw(st.booleans())),
        ]
    elif state.phase is Phase.ASKING:
        calls = draw(st.lists(st.sampled_from(CALLS), unique=True))
        reply = says("t", *calls, named=f"a{step}")
        broken = AssistantMessage(parts=(Text("half"),), stop_reason="error", error="e", partial=True, id=f"f{step}")
        options += [Replied(message=reply)] * 3
        options += [Cut(message=reply, again=draw(st.booleans())), Failed(message=broken), Requested()]
        options += [
            due(state),
            Declined(),
            Discarded(usage=Usage(input=1)),
            Replaced(messages=(user(named=f"r{step}"),)),
        ]
    else:
        verdict = draw(st.sampled_from(["allowed", "pending"]))
        options += [Judged(call_id=call_id, verdict=verdict), Started(call_id=call_id)] * 2
        options += [Returned(call_id=call_id, result=result(call_id), end_turn=draw(st.booleans()))] * 2
        pending = [slot.call.id for slot in state.pending]
        chosen = draw(st.lists(st.sampled_from(pending), unique=True, min_size=1)) if pending else ["nobody"]
        decision: Decision = draw(st.sampled_from([Approve(), Deny(), Answer(1)]))
        options.append(Decided(decisions=dict.fromkeys(chosen, decision)))
        options.append(Resumed(decisions={}))
    return draw(st.sampled_from(options))


@settings(max_examples=150, deadline=None)
@given(data=st.data(), sequential=st.booleans())
def test_whatever_happens_the_transcript_is_valid_whenever_a_request_is_due_or_the_run_rests(
    data: st.DataObject, sequential: bool
):
    """The invariant of the library. Also: a replay gives an equal state, and the state survives storage at every step."""
    start = fresh(sequential=sequential)
    state = start
    walked: list[Input] = []
    for step in range(data.draw(st.integers(1, 30))):
        item = inputs_for(state, data.draw, step)
        try:
            after, effects = advance(state, item)
        except IllegalMove:
            continue
        row = next(move for move in INDEX[state.phase, type(item)] if move.guard(state, item))
        assert after.phase in row.next
        assert {type(effect) for effect in effects} <= set(row.effects)
        walked.append(item)
        state = after
        if state.phase is not Phase.CALLING and state.phase is not Phase.HELD:
            assert validate(state.messages) == []
            assert state.batch == {}
        if state.phase is Phase.HELD:
            assert state.pending
    replayed, _ = walk(start, *walked)
    assert replayed == state
    assert load_state(dump_state(state)) == state
