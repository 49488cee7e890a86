"""The causes of differences. Each takes what a recording lets us expect, and changes it to what must come here instead.

Where the rest of a run follows from the recording, the change is exact. Where the run goes on there is no recording of
the rest: the cause cuts, and the beginning is compared. A cause that changes nothing does not apply.
"""

from collections.abc import Callable
from typing import Any

import jsonschema_rs

from .expected import Expected, is_end, is_tool_step, unresolved
from .projection import Json
from .script import Step

Cause = Callable[[Expected], None]

FLUSH: Step = ("event", {"type": "text-flush"})
TURN: Step = ("event", {"type": "turn-start"})


# Beginnings, replies, endings


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
    if not messages or (messages[-1]["role"] == "assistant" and not messages[-1].get("toolCalls") and not is_forced(e)):
        e.cut(0, raises=True)
    elif isinstance(choice, dict) and not is_forced(e) and choice["name"] not in [t["name"] for t in base.get("tools", ())]:
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


def whole_reply_first(e: Expected) -> None:
    """The reply is read, announced and flushed as a whole; then its calls run; then their results are announced."""
    for turn, start, end in e.turns():
        seen = e.steps[start:end]
        work = [step for step in seen if is_tool_step(step)]
        if not work:
            continue
        items = e.entry(turn).get("stream", ())
        reply: Json = {"role": "assistant", "content": e.text_of(turn).strip(), "toolCalls": e.calls_of(turn)}
        results = [(kind, value) for kind, value in seen if kind == "append" and value["role"] == "tool"]
        said = [step for step in seen if step[1].get("type") == "run-start"]
        said = [seen[0], *deltas(items)] if turn else said
        flush = [FLUSH] if turn else []
        e.steps[start:end] = [*said, ("append", reply), *flush, *work, *results]
        e.warned |= unknown(items)
    read_whole(e)


def unknown(items: list[Json]) -> set[str]:
    kinds = {item["type"] for item in items if "type" in item}
    return kinds - {"text", "thinking", "tool_use", "done", "error"}


def deltas(items: list[Json]) -> list[Step]:
    """What is told while these are read."""
    kinds = {"text": "text-delta", "thinking": "thinking-delta"}
    told = [{"type": kinds[i["type"]], "delta": i["delta"]} for i in items if i.get("type") in kinds]
    return [TURN, *[("event", event) for event in told]]


def read_whole(e: Expected) -> None:
    """The usage at the end of a stream that was given up there."""
    if "returned" not in e.outcome:
        return
    usage, given_up = None, False
    for turn, start, end in reversed(list(e.turns())):
        if turn and "stream" in (entry := e.entry(turn)):
            stream, items = e.observed["streams"][turn - 1], entry["stream"]
            works = any(is_tool_step(step) for step in e.steps[start:end])
            given_up = given_up or (works and stream["closed_early"])
            read = items if works or stream["ended"] else items[: max(0, stream["read"] - 1)]
            usage = next((i["usage"] for i in reversed(read) if i.get("usage")), usage)
    if given_up and usage != e.outcome["returned"]:
        e.outcome = {"returned": usage}
        e.steps = [(kind, {**v, "usage": usage} if v.get("type") == "run-done" else v) for kind, v in e.steps]


def every_call_is_answered(e: Expected) -> None:
    """The run was stopped or raised amid the calls of a turn: each has an end and a result all the same."""
    if not e.whole or not (e.stopped or "raised" in e.outcome):
        return
    if is_forced(e) and e.find("tool-start") is None and not e.given.get("abort", {}).get("before_run"):
        begin_forced(e)
    for turn, start, end in e.turns():
        seen = e.steps[start:end]
        if not any(is_tool_step(step) for step in seen):
            continue
        results = {v["toolCallId"]: (kind, v) for kind, v in seen if kind == "append" and v["role"] == "tool"}
        work = [step for step in seen if not (step[0] == "append" and step[1]["role"] == "tool")]
        for call in e.calls_of(turn):
            mine = [v["type"] for kind, v in work if kind == "event" and v.get("toolCallId") == call["id"]]
            if "tool-start" not in mine:
                begun = {"type": "tool-start", "toolCallId": call["id"], "name": call["name"], "input": call["input"]}
                work.append(("event", begun))
            if not {"tool-resolved", "tool-rejected", "tool-failed", "tool-aborted"} & set(mine):
                work.append(("event", {"type": "tool-aborted", "toolCallId": call["id"]}))
        e.steps[start:end] = [*work, *[results.get(c["id"], ("append", unresolved(c))) for c in e.calls_of(turn)]]


def begin_forced(e: Expected) -> None:
    """A forced call that was not reached is in the transcript from the beginning."""
    choice, id_gen = e.given["base_request"]["toolChoice"], e.given.get("id_gen")
    call = {
        "id": "synthetic-tool-0" if id_gen is None else f"{id_gen}:synthetic-tool",
        "name": choice["name"],
        "input": choice["input"] or {},
    }
    started = {"type": "tool-start", "toolCallId": call["id"], "name": call["name"], "input": call["input"]}
    reply: Json = {"role": "assistant", "content": "", "toolCalls": [call]}
    e.steps[1:1] = [("append", reply), ("event", started)]


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


# Choice and forced calls


def none_offers_no_tools(e: Expected) -> None:
    """With the choice `none` the tools are not sent, and a call made all the same does not run."""
    choice = e.given["base_request"].get("toolChoice")
    if choice != "none" and not is_forced(e):
        return
    for at, (kind, value) in enumerate(e.steps):
        if kind == "request":
            e.steps[at] = (kind, {key: each for key, each in value.items() if key != "tools"})
    for turn, start, end in list(e.turns())[::-1]:
        called = [at for at in range(start, end) if is_tool_step(e.steps[at])]
        if turn and called:
            e.cut(called[0] + 1)
            return


def is_forced(e: Expected) -> bool:
    choice = e.given["base_request"].get("toolChoice")
    return isinstance(choice, dict) and "input" in choice


def a_forced_call_is_no_turn(e: Expected) -> None:
    """It runs although the limit allows no reply."""
    if is_forced(e) and e.given.get("limits", {}).get("max_turns") == 0 and not e.stopped:
        e.cut(1)


def a_forced_call_is_checked(e: Expected) -> None:
    """It passes the same approval and limits as any other."""
    if not is_forced(e):
        return
    config = config_of(e, e.given["base_request"]["toolChoice"]["name"])
    started = e.find("tool-start")
    if started is not None and (needs_approval(e, config, 0) or config.get("max_turns") == 0):
        e.cut(started + 1)
    elif started is not None and isinstance(config.get("needs_approval"), dict) and runs(e, e.calls_of(0)[0]["name"]):
        e.predicate_calls = [*e.calls_of(0), *e.predicate_calls]


def no_input_is_an_empty_object(e: Expected) -> None:
    """Arguments are an object: a forced call without any has an empty one."""
    if is_forced(e) and e.given["base_request"]["toolChoice"]["input"] is None:
        e.steps = [(kind, with_object(value)) for kind, value in e.steps]


def with_object(value: Any) -> Any:
    if isinstance(value, list):
        return [with_object(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: {} if key == "input" and each is None else with_object(each) for key, each in value.items()}


def arguments_are_checked(e: Expected) -> None:
    """What is no object, or not what the tool's schema says, is told to the model; the tool does not run."""
    schemas = {tool["name"]: tool["inputSchema"] for tool in e.given["base_request"].get("tools", ())}
    for turn, _, _ in reversed(list(e.turns())):
        for call in e.calls_of(turn) if turn else ():
            started = e.find("tool-start", call["id"])
            sound = isinstance(call["input"], dict) and jsonschema_rs.is_valid(schemas.get(call["name"], {}), call["input"])
            if started is not None and not sound and runs(e, call["name"]):
                e.cut(started + 1)
                return


# Calls


def config_of(e: Expected, name: str) -> Json:
    return e.given.get("tools", {}).get(name, {}).get("config", {})


def needs_approval(e: Expected, config: Json, turn: int, call: Json | None = None) -> Any:
    """The verdict on a call: `False`, `ask`, or what the predicate says."""
    needs = config.get("needs_approval", False)
    if not isinstance(needs, dict):
        return "ask" if needs else False
    if "raises" in needs:
        return "raises"
    call = call or e.calls_of(turn)[0]
    said = [rule["answer"] for rule in needs.get("rules", ()) if rule["when_input"] == call["input"]]
    answer = said[0] if said else needs.get("otherwise")
    return "ask" if answer is True else answer


def asked(e: Expected, verdict: str) -> list[Json]:
    """The calls that were turned to and have this verdict, in order."""
    found = [call for turn, _, _ in reversed(list(e.turns())) if turn for call in e.calls_of(turn)]
    return [
        call
        for call in found
        if e.find("tool-start", call["id"]) is not None and needs_approval(e, config_of(e, call["name"]), 1, call) == verdict
    ]


def runs(e: Expected, name: str) -> bool:
    return "calls" in e.given.get("tools", {}).get(name, {})


def deny_asks_nobody(e: Expected) -> None:
    """A predicate's no is final; there it only changed the announcement, and a resolver could overrule it."""
    for call in asked(e, "deny"):
        rejected, started = e.find("tool-rejected", call["id"]), e.find("tool-start", call["id"])
        if rejected is None and started is not None and runs(e, call["name"]):
            e.cut(started + 1)
            return
        resolver = e.find("", call["id"], "approval")
        if rejected is not None and resolver is not None:
            number = [v["toolCallId"] for _, v in e.steps if v.get("type") == "tool-rejected"].index(call["id"])
            e.needles[number] = ""
            del e.steps[resolver]


def a_question_pauses_the_run(e: Expected) -> None:
    """Nobody is there to be asked."""
    for call in () if "approvals" in e.given else asked(e, "ask"):
        awaiting = e.find("tool-awaiting-approval", call["id"])
        if awaiting is not None and call["id"] in e.given_up:
            e.cut(awaiting + 1)
            return


def a_failing_approver_refuses(e: Expected) -> None:
    """The resolver raised or answered nothing, and nobody stopped the run."""
    answers = e.given.get("approvals", ())
    calls = [value["id"] for kind, value in e.steps if kind == "approval"]
    for number, call_id in enumerate(calls):
        answer = answers[min(number, len(answers) - 1)]
        failed = "raises" in answer or answer.get("nothing")
        if failed and (call_id in e.given_up or not e.stopped):
            at = e.find("", call_id, "approval")
            e.cut((at or 0) + 1)
            return


def a_refusal_spares_the_others(e: Expected) -> None:
    """Only the refused call is skipped; the reply's other calls and its text are there."""
    for turn, start, end in list(e.turns())[::-1]:
        for at in range(start, end):
            kind, value = e.steps[at]
            last = e.stopped and turn == len(e.observed["requests"])
            rejected = kind == "event" and value["type"] == "tool-rejected"
            if rejected and not last and skipped(e, turn, value["toolCallId"]):
                e.cut(at + 1)
                return


def skipped(e: Expected, turn: int, call_id: str) -> bool:
    """Whether something of the reply was not read behind the call."""
    behind = [item.get("type") for item in e.entry(turn).get("stream", ())]
    number = [call["id"] for call in e.calls_of(turn)].index(call_id)
    place = [at for at, kind in enumerate(behind) if kind == "tool_use"][number]
    return bool({"tool_use", "text", "thinking"} & set(behind[place + 1 :]))


def a_failed_call_is_told_to_the_model(e: Expected) -> None:
    """An unknown tool, a time-out, a cancellation of the tool's own: an error result, and the run goes on."""
    for at, (kind, value) in enumerate(e.steps):
        if kind == "event" and value["type"] == "tool-aborted" and value["toolCallId"] in e.given_up:
            call_id = value["toolCallId"]
            started = e.find("tool-start", call_id)
            name = e.steps[started or 0][1]["name"]
            if not runs(e, name) or e.find("", call_id, "handler") is not None:
                e.cut(at)
            return


def a_tools_limit_refuses_one_call(e: Expected) -> None:
    """The limit counts the turns that use the tool, and what is over it is not run; the run goes on."""
    for at, (kind, value) in enumerate(e.steps):
        if kind == "event" and value.get("scope") == "tool":
            used = [v["name"] for _, v in e.steps[:at] if v.get("type") == "tool-start"]
            is_over = runs(e, used[-1]) and used.count(used[-1]) > value["limit"]
            if not (is_over and e.stopped):
                e.cut(at + 1 if is_over else at)
            return


def finished_work_is_kept(e: Expected) -> None:
    """A handler that sets the stop and returns in the same breath has a result."""
    for turn, start, end in list(e.turns())[::-1]:
        for at in range(start, end):
            kind, value = e.steps[at]
            if kind == "handler" and e.stopped and turn is not None and at_once(e, at, value):
                e.cut(at + 1)
                return


def at_once(e: Expected, at: int, call: Json) -> bool:
    before = [value["name"] for kind, value in e.steps[:at] if kind == "handler"].count(call["name"])
    calls = e.given["tools"][call["name"]]["calls"]
    behaviour = calls[min(before, len(calls) - 1)]
    return bool(behaviour.get("aborts_run")) and not behaviour.get("delay_ms")


def a_listener_never_ends_a_run(e: Expected) -> None:
    number = e.given.get("emitter_raises_at")
    if number is None or number > len(e.observed["events"]):
        return
    failed = e.observed["events"][number - 1]
    for at, (kind, value) in enumerate(e.steps):
        if kind == "event" and value == failed:
            e.cut(at + 1)
            return


CAUSES: tuple[Cause, ...] = (
    cancelled_before_it_began,
    a_string_is_a_reply,
    a_stop_ends_every_wait,
    a_stop_is_no_error,
    no_request_after_a_stop,
    a_request_is_the_models_to_answer,
    a_reply_that_never_came,
    a_cancellation_nobody_asked_for,
    a_failed_reply_is_a_reply,
    a_broken_reply_runs_nothing,
    no_input_is_an_empty_object,
    whole_reply_first,
    a_forced_call_is_no_turn,
    a_forced_call_is_checked,
    none_offers_no_tools,
    arguments_are_checked,
    deny_asks_nobody,
    a_question_pauses_the_run,
    a_failing_approver_refuses,
    a_refusal_spares_the_others,
    a_tools_limit_refuses_one_call,
    finished_work_is_kept,
    a_failed_call_is_told_to_the_model,
    a_listener_never_ends_a_run,
    every_call_is_answered,
    text_is_kept_as_said,
    empty_text_says_nothing,
    answers_are_announced,
)
"""In the order in which they are asked: each sees what the former made of the recording."""
