"""The machine: all the logic of a run, as one table, without I/O.

`advance(state, input)` gives the next state and what to do. It is pure: no clock, no random ids, no I/O, so that a
replay of the inputs gives an equal state. `MOVES` is the table; `print_table()` shows it. Whenever a request is due, and
whenever a run rests in any phase but `held`, every call has exactly one result, in call order, right after its message.
"""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from antiphon.errors import IllegalMove
from antiphon.loop import _steps as step
from antiphon.loop.state import (
    Announced,
    AskModel,
    AwaitDecisions,
    Configured,
    Cut,
    Decided,
    Declined,
    Discarded,
    Effect,
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
    Spent,
    Started,
    Taken,
    Unqueued,
)

__all__ = ["MOVES", "Move", "advance", "expected", "print_table"]

IDLE, ASKING, CALLING, HELD, DONE, STOPPED = Phase
RESTING = (IDLE, DONE, STOPPED)
RUNNING = (ASKING, CALLING)
ANY = tuple(Phase)
ANYTHING = (AskModel, RunTools, AwaitDecisions, Finish)

Guard = Callable[[RunState, Any], bool]
Step = Callable[[RunState, Any], tuple[RunState, tuple[Effect, ...]]]


class Move(Struct, frozen=True):
    """A row: in one of `phases`, `input` (when `guard` holds) leads to one of `next` and may ask for `effects`."""

    phases: tuple[Phase, ...]
    input: type[Input]
    when: str
    guard: Guard
    next: tuple[Phase, ...]
    effects: tuple[type[Effect], ...]
    step: Step


def always(_state: RunState, _given: Input) -> bool:
    return True


def is_forced(_state: RunState, given: Prompted) -> bool:
    return given.forced is not None


def has_batch(state: RunState, _given: Input) -> bool:
    return bool(state.batch)


def may_rerun(state: RunState, given: Resumed) -> bool:
    return given.rerun_open and bool(step.open_calls(state.messages))


def can_go_on(state: RunState, _given: Resumed) -> bool:
    return step.ends_for_the_model(state)


def is_untold(state: RunState, _given: Resumed) -> bool:
    return state.status == "error" and state.announced < len(state.messages)


def has_calls(_state: RunState, given: Replied) -> bool:
    return bool(given.message.calls)


def is_queued(state: RunState, _given: Input) -> bool:
    return bool(state.steering or state.follow_ups)


def is_again(_state: RunState, given: Cut) -> bool:
    return given.again


def is_open(*stages: str) -> Guard:
    def guard(state: RunState, given: Judged | Started | Returned) -> bool:
        slot = state.batch.get(given.call_id)
        return slot is not None and slot.stage in stages

    return guard


def are_pending(state: RunState, given: Decided) -> bool:
    return bool(given.decisions) and all(
        (slot := state.batch.get(call_id)) is not None and slot.stage == "pending" for call_id in given.decisions
    )


UNJUDGED, MAY_RUN, RUNS, IS_ASKING = (
    is_open("waiting", "allowed"),
    is_open("allowed"),
    is_open("started"),
    is_open("pending"),
)
UNFINISHED = is_open("waiting", "allowed", "denied", "started")

# One row a line, as a table is read. The first row whose guard holds counts.
# fmt: off
MOVES: tuple[Move, ...] = (
    Move(RESTING, Prompted, "a call is forced", is_forced, (CALLING,), (RunTools,), step.prompt_forced),
    Move(RESTING, Prompted, "", always, (ASKING,), (AskModel,), step.prompt),
    Move((HELD, CALLING), Resumed, "a batch is open", has_batch, (CALLING, HELD, ASKING, DONE), ANYTHING, step.resume_batch),
    Move(RESTING, Resumed, "open calls may run", may_rerun, (CALLING,), (RunTools,), step.rerun_open),
    Move((*RESTING, ASKING), Resumed, "it is the model's turn", can_go_on, (ASKING,), (AskModel,), step.resume),
    Move((DONE,), Resumed, "only notices are missing", is_untold, (DONE,), (Finish,), step.finish_again),
    Move((ASKING,), Requested, "", always, (ASKING,), (), step.request),
    Move((ASKING,), Discarded, "", always, (ASKING,), (), step.discard),
    Move((ASKING,), Taken, "", always, (ASKING,), (), step.take),
    Move((ASKING,), Declined, "", always, (DONE,), (Finish,), step.decline),
    Move((ASKING,), Replaced, "", always, (ASKING,), (), step.replace_context),
    Move((ASKING,), Replied, "with calls", has_calls, (CALLING,), (RunTools,), step.reply_with_calls),
    Move((ASKING,), Replied, "something is queued", is_queued, (ASKING,), (AskModel,), step.reply_and_go_on),
    Move((ASKING,), Replied, "", always, (DONE,), (Finish,), step.reply_and_end),
    Move((ASKING,), Cut, "may be asked again", is_again, (ASKING,), (AskModel,), step.cut_and_ask),
    Move((ASKING,), Cut, "", always, (STOPPED,), (Finish,), step.cut_and_end),
    Move((ASKING,), Failed, "", always, (STOPPED,), (Finish,), step.fail),
    Move((CALLING,), Judged, "it has no verdict", UNJUDGED, (CALLING, HELD), (AwaitDecisions,), step.judge),
    Move((CALLING,), Judged, "it asks while it runs", RUNS, (CALLING, HELD), (AwaitDecisions,), step.judge),
    Move((CALLING,), Started, "it may run", MAY_RUN, (CALLING,), (), step.start),
    Move((CALLING, HELD), Started, "it took its question back", IS_ASKING, (CALLING,), (), step.take_back),
    Move((CALLING,), Spent, "", always, (CALLING,), (), step.spend),
    Move((CALLING,), Returned, "it has no result", UNFINISHED, (CALLING, HELD, ASKING, DONE), ANYTHING, step.take_result),
    Move((HELD, CALLING), Decided, "all of them wait", are_pending, (CALLING,), (RunTools,), step.decide),
    Move(ANY, Queued, "", always, ANY, (), step.queue),
    Move(ANY, Unqueued, "", always, ANY, (), step.unqueue),
    Move(ANY, Configured, "", always, ANY, (), step.configure),
    Move(ANY, Announced, "", always, ANY, (), step.announce),
    Move((*RUNNING, HELD, IDLE), Halted, "", always, (STOPPED, HELD), (Finish,), step.halt),
)
# fmt: on
"""The table: every move that a run can make."""

INDEX: dict[tuple[Phase, type[Input]], list[Move]] = {}
for _move in MOVES:
    for _phase in _move.phases:
        INDEX.setdefault((_phase, _move.input), []).append(_move)


def advance(state: RunState, given: Input) -> tuple[RunState, tuple[Effect, ...]]:
    """The state after `given`, and what to do now. Raises `IllegalMove` for what the phase does not take."""
    for move in INDEX.get((state.phase, type(given)), ()):
        if move.guard(state, given):
            return move.step(state, given)
    raise IllegalMove(f"{type(given).__name__} cannot follow {state.phase.value!r}; expected: {expected(state.phase)}")


def expected(phase: Phase) -> str:
    """What a phase takes, for people."""
    names = dict.fromkeys(
        move.input.__name__ + (f" ({move.when})" if move.when else "") for move in MOVES if phase in move.phases
    )
    return ", ".join(names)


def print_table() -> Iterator[str]:
    """The table as lines of Markdown."""
    yield "| phase | input | when | next | effects |"
    yield "| --- | --- | --- | --- | --- |"
    for move in MOVES:
        phases = "any" if move.phases == ANY else ", ".join(phase.value for phase in move.phases)
        following = "same" if move.next == ANY else ", ".join(phase.value for phase in move.next)
        effects = ", ".join(effect.__name__ for effect in move.effects) or "none"
        yield f"| {phases} | `{move.input.__name__}` | {move.when} | {following} | {effects} |"
