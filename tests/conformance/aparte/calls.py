"""Causes that lie in how a call is judged, run and answered."""

from typing import Any

import jsonschema_rs

from .expected import FLUSH, Expected, deltas, is_tool_step, unknown, unresolved
from .projection import Json


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
    if e.is_forced and e.find("tool-start") is None and not e.given.get("abort", {}).get("before_run"):
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


def arguments_are_checked(e: Expected) -> None:
    """What is no object, or not what the tool's schema says, is told to the model; the tool does not run."""
    schemas = {tool["name"]: tool["inputSchema"] for tool in e.given["base_request"].get("tools", ())}
    for turn, _, _ in reversed(list(e.turns())):
        for call in e.calls_of(turn) if turn else ():
            started = e.find("tool-start", call["id"])
            sound = isinstance(call["input"], dict) and jsonschema_rs.is_valid(
                schemas.get(call["name"], {}), call["input"]
            )
            if started is not None and not sound and e.runs(call["name"]):
                e.cut(started + 1)
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


def deny_asks_nobody(e: Expected) -> None:
    """A predicate's no is final; there it only changed the announcement, and a resolver could overrule it."""
    for call in asked(e, "deny"):
        rejected, started = e.find("tool-rejected", call["id"]), e.find("tool-start", call["id"])
        if rejected is None and started is not None and e.runs(call["name"]):
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


def asked(e: Expected, verdict: str) -> list[Json]:
    """The calls that were turned to and have this verdict, in order."""
    found = [call for turn, _, _ in reversed(list(e.turns())) if turn for call in e.calls_of(turn)]
    return [
        call for call in found if e.find("tool-start", call["id"]) is not None and needs_approval(e, call) == verdict
    ]


def needs_approval(e: Expected, call: Json) -> Any:
    """The verdict on a call: `False`, `ask`, or what the predicate says."""
    needs = e.config_of(call["name"]).get("needs_approval", False)
    if not isinstance(needs, dict):
        return "ask" if needs else False
    if "raises" in needs:
        return "raises"
    said = [rule["answer"] for rule in needs.get("rules", ()) if rule["when_input"] == call["input"]]
    answer = said[0] if said else needs.get("otherwise")
    return "ask" if answer is True else answer


def a_failed_call_is_told_to_the_model(e: Expected) -> None:
    """An unknown tool, a time-out, a cancellation of the tool's own: an error result, and the run goes on."""
    for at, (kind, value) in enumerate(e.steps):
        if kind == "event" and value["type"] == "tool-aborted" and value["toolCallId"] in e.given_up:
            call_id = value["toolCallId"]
            started = e.find("tool-start", call_id)
            name = e.steps[started or 0][1]["name"]
            if not e.runs(name) or e.find("", call_id, "handler") is not None:
                e.cut(at)
            return


def a_tools_limit_refuses_one_call(e: Expected) -> None:
    """The limit counts the turns that use the tool, and what is over it is not run; the run goes on."""
    for at, (kind, value) in enumerate(e.steps):
        if kind == "event" and value.get("scope") == "tool":
            used = [v["name"] for _, v in e.steps[:at] if v.get("type") == "tool-start"]
            is_over = e.runs(used[-1]) and used.count(used[-1]) > value["limit"]
            if not (is_over and e.stopped):
                e.cut(at + 1 if is_over else at)
            return


def finished_work_is_kept(e: Expected) -> None:
    """A handler that sets the stop and returns in the same breath has a result."""
    for at, (kind, value) in enumerate(e.steps):
        if kind == "handler" and e.stopped and at_once(e, at, value):
            e.cut(at + 1)
            return


def at_once(e: Expected, at: int, call: Json) -> bool:
    before = [value["name"] for kind, value in e.steps[:at] if kind == "handler"].count(call["name"])
    calls = e.given["tools"][call["name"]]["calls"]
    behaviour = calls[min(before, len(calls) - 1)]
    return bool(behaviour.get("aborts_run")) and not behaviour.get("delay_ms")


def a_forced_call_is_no_turn(e: Expected) -> None:
    """It runs although the limit allows no reply."""
    if e.is_forced and e.given.get("limits", {}).get("max_turns") == 0 and not e.stopped:
        e.cut(1)


def a_forced_call_is_checked(e: Expected) -> None:
    """It passes the same approval and limits as any other."""
    started = e.find("tool-start") if e.is_forced else None
    if started is None:
        return
    call = e.calls_of(0)[0]
    config = e.config_of(call["name"])
    if needs_approval(e, call) or config.get("max_turns") == 0:
        e.cut(started + 1)
    elif isinstance(config.get("needs_approval"), dict) and e.runs(call["name"]):
        e.predicate_calls = [call, *e.predicate_calls]


def no_input_is_an_empty_object(e: Expected) -> None:
    """Arguments are an object: a forced call without any has an empty one."""
    if e.is_forced and e.given["base_request"]["toolChoice"]["input"] is None:
        e.steps = [(kind, with_object(value)) for kind, value in e.steps]


def with_object(value: Any) -> Any:
    if isinstance(value, list):
        return [with_object(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: {} if key == "input" and each is None else with_object(each) for key, each in value.items()}


def none_offers_no_tools(e: Expected) -> None:
    """With the choice `none` the tools are not sent, and a call made all the same does not run."""
    choice = e.given["base_request"].get("toolChoice")
    if choice != "none" and not e.is_forced:
        return
    for at, (kind, value) in enumerate(e.steps):
        if kind == "request":
            e.steps[at] = (kind, {key: each for key, each in value.items() if key != "tools"})
    for turn, start, end in list(e.turns())[::-1]:
        called = [at for at in range(start, end) if is_tool_step(e.steps[at])]
        if turn and called:
            e.cut(called[0] + 1)
            e.predicate_calls = [call for call in e.predicate_calls if e.is_forced and call in e.calls_of(0)]
            return
