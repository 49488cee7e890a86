"""Causes that lie in how a run begins and ends, and in what becomes of a reply."""

from .expected import FLUSH, TURN, Expected, deltas, is_end, is_tool_step, unknown
from .projection import Json


def cancelled_before_it_began(e: Expected) -> None:
    if e.given.get("abort", {}).get("before_run"):
        e.steps.remove(("event", {"type": "run-start"}))


def a_string_is_a_reply(e: Expected) -> None:
    for turn, start, _ in e.turns():
        if "text" in e.entry(turn) and not e.entry(turn).get("aborts_run"):
            e.steps.insert(start + 1, TURN)


def empty_text_says_nothing(e: Expected) -> None:
    e.steps = [step for step in e.steps if step[1].get("delta") != ""]


def a_stop_ends_every_wait(e: Expected) -> None:
    """A string that comes back although the run was stopped while it was awaited."""
    for turn, start, end in e.turns():
        if "text" in e.entry(turn) and e.entry(turn).get("aborts_run"):
            e.steps[start + 1 : end] = []


def a_stop_is_no_error(e: Expected) -> None:
    """Something failed after the run was stopped, or because of it."""
    if e.stopped and "raised" in e.outcome:
        turn, start, end = next(e.turns())
        works = any(is_tool_step(step) for step in e.steps[start:end])
        e.outcome = {"returned": usage_before(e, turn)}
        ending: list[Json] = [{"type": "run-aborted"}, {"type": "run-done"}]
        e.steps += [*([] if works else [FLUSH]), *[("event", each) for each in ending]]


def usage_before(e: Expected, turn: int) -> Json | None:
    """The last usage that the turns before this one told."""
    told = [i["usage"] for n in range(1, turn) for i in e.entry(n).get("stream", ()) if i.get("usage")]
    return told[-1] if told else None


def no_request_after_a_stop(e: Expected) -> None:
    """The run was stopped by an event, and the next request was made all the same."""
    number = e.given.get("abort", {}).get("on_event")
    events = [at for at, (kind, _) in enumerate(e.steps) if kind == "event"]
    if number is None or number > len(events):
        return
    for _, start, end in e.turns():
        if start > events[number - 1]:
            del e.steps[start:end]


def a_request_is_the_models_to_answer(e: Expected) -> None:
    """Nothing to answer, or a name that no tool on offer has, is a mistake that the caller is told at once."""
    base = e.given["base_request"]
    messages, choice = base["messages"], base.get("toolChoice")
    if not messages or (messages[-1]["role"] == "assistant" and not messages[-1].get("toolCalls") and not e.is_forced):
        e.cut(0, raises=True)
    elif (
        isinstance(choice, dict)
        and not e.is_forced
        and choice["name"] not in [t["name"] for t in base.get("tools", ())]
    ):
        e.cut(1, raises=True)


def a_reply_that_never_came(e: Expected) -> None:
    """The run was stopped while the reply's first word was awaited."""
    turn, start, end = next(e.turns())
    entry = e.entry(turn)
    first = next(iter(entry.get("stream", ())), {})
    waited = entry.get("aborts_run") or first.get("control") == "abort"
    if turn and e.stopped and waited and e.steps[start + 1 : end] == [TURN, FLUSH]:
        del e.steps[start + 1 : end]


def a_cancellation_nobody_asked_for(e: Expected) -> None:
    """The transport raises an abort error, and nobody stopped the run."""
    for turn, _, _ in e.turns():
        raises = e.entry(turn).get("raises")
        if raises and raises["name"] == "AbortError" and not e.stopped:
            e.outcome = {"raised": raises}
            e.steps = [step for step in e.steps if not is_end(step)]


def a_failed_reply_is_a_reply(e: Expected) -> None:
    """Nothing came of the transport's call but its failure."""
    for turn, start, end in e.turns():
        if turn and "raises" in e.entry(turn) and "raised" in e.outcome and end == start + 1:
            e.steps.insert(end, TURN)


def a_broken_reply_runs_nothing(e: Expected) -> None:
    """Calls of a reply that never became whole: the run ends as it would have ended without them."""
    for turn, start, end in list(e.turns())[::-1]:
        items = e.entry(turn).get("stream")
        broken = None if items is None else break_of(e, items, start, end)
        if items is None or broken is None or not any(is_tool_step(step) for step in e.steps[start:end]):
            continue
        said, calls = items[:broken], e.calls_of(turn)
        e.predicate_calls = [call for call in e.predicate_calls if call not in calls]
        e.steps[start + 1 :] = deltas(said)
        e.warned |= unknown(said)
        item = items[broken] if broken < len(items) else {}
        if item.get("type") == "error" or item.get("control") == "raise":
            e.outcome = {"raised": item.get("error") or {"name": "Error", "message": item["message"]}}
            return
        told = [i["usage"] for i in said if i.get("usage")]
        usage = told[-1] if told else usage_before(e, turn)
        e.outcome = {"returned": usage}
        done = {"type": "run-done"} | ({} if usage is None else {"usage": usage})
        e.steps += [FLUSH, ("event", {"type": "run-aborted"}), ("event", done)]
        return


def break_of(e: Expected, items: list[Json], start: int, end: int) -> int | None:
    """How much of a reply comes before it breaks off: by an error, or by a stop, also one that a delta's sink sets."""
    number = e.given.get("abort", {}).get("on_event")
    events = [at for at, (kind, _) in enumerate(e.steps) if kind == "event"]
    if number is not None and number <= len(events) and start < (at := events[number - 1]) < end:
        kinds = ("text-delta", "thinking-delta")
        if e.steps[at][1]["type"] in kinds:
            count = sum(value.get("type") in kinds for _, value in e.steps[start : at + 1])
            spoken = [place for place, item in enumerate(items) if item.get("type") in ("text", "thinking")]
            return spoken[count - 1] + 1
    return next((at for at, item in enumerate(items) if item.get("type") == "error" or "control" in item), None)


def text_is_kept_as_said(e: Expected) -> None:
    """The text before and behind a turn's calls is not trimmed."""
    for turn, start, end in e.turns():
        whole = e.text_of(turn)
        for kind, reply in e.steps[start:end]:
            if kind == "append" and reply["role"] == "assistant" and reply["content"] == whole.strip() != whole:
                e.steps = [(each, as_said(value, reply, whole)) for each, value in e.steps]


def as_said(value: Json, reply: Json, whole: str) -> Json:
    if value == reply:
        return {**value, "content": whole}
    if "messages" in value:
        return {**value, "messages": [as_said(message, reply, whole) for message in value["messages"]]}
    return value


def answers_are_announced(e: Expected) -> None:
    """In the group about the history: the last words are in it, whole or not."""
    turn, start, end = next(e.turns())
    said = [value["delta"] for _, value in e.steps[start:end] if value.get("type") == "text-delta"]
    answered = turn and said and not any(is_tool_step(step) for step in e.steps[start:end])
    if e.name.startswith("history-") and e.whole and answered:
        e.answers = ["".join(said)]


def a_listener_never_ends_a_run(e: Expected) -> None:
    number = e.given.get("emitter_raises_at")
    if number is None or number > len(e.observed["events"]):
        return
    failed = e.observed["events"][number - 1]
    for at, (kind, value) in enumerate(e.steps):
        if kind == "event" and value == failed:
            e.cut(at + 1)
            return
