"""What makes a scenario end differently here, told by its input and by what was recorded, never by its name."""

from collections.abc import Callable

from antiphon import Tool
from antiphon.tools.arguments import ArgumentError

from .looking import (
    Scenario,
    actions,
    behaviours,
    calls,
    calls_in,
    events,
    hook,
    hook_entries,
    meanwhile,
    probed,
    steps,
    tool_actions,
    trace,
    triggered,
)
from .words import Json

__all__ = ["CAUSES", "Scenario"]

Cause = Callable[[Scenario], bool]
CAUSES: dict[str, Cause] = {}
"""By the names that the list of differences uses."""


def cause(found: Cause) -> Cause:
    CAUSES[found.__name__] = found
    return found


# Stops


@cause
def went_on_after_the_abort(scenario: Scenario) -> bool:
    """After the abort the model was asked, or a tool was begun or ran to its end."""
    asked = any(call["signal_aborted"] for call in scenario["observed"].get("llm_calls") or ())
    ended = any((entry.get("tool_ends") or {}).get("signal_aborted") for entry in trace(scenario))
    return asked or ended


@cause
def stream_ignored_the_abort(scenario: Scenario) -> bool:
    """The reply went on after the abort. (Who reads the loop's events is behind them: there the end tells it.)"""
    if scenario["input"]["surface"] != "agent":
        in_loop = scenario["input"]["surface"] != "proxy"
        return in_loop and "abort_after_events" in scenario["input"] and not ended_aborted(scenario)
    for place, entry in enumerate(trace(scenario)):
        if entry.get("triggered") == "abort":
            after = [later["event"] for later in trace(scenario)[place:] if "event" in later]
            streamed = [event for event in after if event["type"] == "message_update"]
            return any(event["assistantMessageEvent"]["type"].endswith("_delta") for event in streamed)
    return False


def ended_aborted(scenario: Scenario) -> bool:
    ends = [event["message"] for event in events(scenario, "message_end")]
    return bool(ends) and ends[-1].get("stopReason") == "aborted"


# Several calls at once


@cause
def several_calls(scenario: Scenario) -> bool:
    return any(len(reply) > 1 for reply in calls(scenario))


@cause
def results_out_of_order(scenario: Scenario) -> bool:
    """A call that failed before it ran has its result before those of earlier calls."""
    for event in events(scenario, "turn_end"):
        asked = [call["id"] for call in calls_in(event["message"])]
        answered = [result["toolCallId"] for result in event["toolResults"]]
        if len(asked) > 1 and answered != [call_id for call_id in asked if call_id in answered]:
            return True
    return False


@cause
def repeated_call_id(scenario: Scenario) -> bool:
    rounds = [[call["id"] for call in reply] for reply in calls(scenario)]
    return any("" in ids or len(set(ids)) < len(ids) for ids in rounds)


# Tools


@cause
def arguments_coerced(scenario: Scenario) -> bool:
    """A tool was given other values than the model wrote, and no hook had changed them."""
    asked = {call["id"]: call["arguments"] for reply in calls(scenario) for call in reply}
    ran = [entry["tool_begins"] for entry in trace(scenario) if "tool_begins" in entry]
    edited = any("set_args" in action for action in tool_actions(scenario, "beforeToolCall"))
    return not (edited or repeated_call_id(scenario)) and any(
        begun["args"] != asked.get(begun["id"], begun["args"]) for begun in ran
    )


@cause
def arguments_edited_unchecked(scenario: Scenario) -> bool:
    """A hook put arguments in place that the tool's schema does not allow."""
    names = {call["id"]: call["name"] for reply in calls(scenario) for call in reply}
    schemas = {tool["name"]: tool.get("parameters") or {} for tool in scenario["input"].get("tools") or ()}
    if not any("set_args" in action for action in tool_actions(scenario, "beforeToolCall")):
        return False
    ran = [entry["tool_begins"] for entry in trace(scenario) if "tool_begins" in entry]
    return any(not fits(schemas[names[begun["id"]]], begun["args"]) for begun in ran)


def fits(schema: Json, arguments: Json) -> bool:
    try:
        Tool.from_schema("t", "", schema).prepare_object(arguments)
    except ArgumentError:
        return False
    return True


@cause
def update_after_the_end(scenario: Scenario) -> bool:
    return any("late_update_ms" in behaviour for behaviour in behaviours(scenario))


@cause
def tool_returns_nothing(scenario: Scenario) -> bool:
    return any(behaviour.get("returns_nothing") for behaviour in behaviours(scenario))


# Hooks


@cause
def after_hook_raises(scenario: Scenario) -> bool:
    return any("raises" in action for action in tool_actions(scenario, "afterToolCall"))


@cause
def refused_call_reaches_the_after_hook(scenario: Scenario) -> bool:
    """There is an after hook, and it was not asked about every call that has a result."""
    if hook(scenario, "afterToolCall") is None or after_hook_raises(scenario):
        return False
    asked = [entry["id"] for entry in hook_entries(scenario, "afterToolCall")]
    return any(event["toolCallId"] not in asked for event in events(scenario, "tool_execution_end"))


@cause
def unknown_tool_reaches_the_hooks(scenario: Scenario) -> bool:
    known = {tool["name"] for tool in scenario["input"].get("tools") or ()}
    asked = [call["name"] for reply in calls(scenario) for call in reply]
    return hook(scenario, "beforeToolCall") is not None and any(name not in known for name in asked)


@cause
def hook_fails_around_a_request(scenario: Scenario) -> bool:
    """A hook before the request raised."""
    prepared = hook(scenario, "beforeLlmCall") or ()
    count = len(hook_entries(scenario, "beforeLlmCall"))
    if any("raises" in action for action in prepared[:count]):
        return True
    for name in ("transformContext", "convertToLlm"):
        declared, count = hook(scenario, name) or {}, len(hook_entries(scenario, name))
        if "raises" in declared and count >= declared.get("raises_on_call", 1):
            return True
    return False


@cause
def changed_in_place(scenario: Scenario) -> bool:
    return bool((hook(scenario, "transformContext") or {}).get("drop_first_in_place"))


@cause
def asked_to_go_on_after_delivery(scenario: Scenario) -> bool:
    """Whether to go on was asked when queued messages had been delivered already."""
    if scenario["input"]["surface"] != "agent":
        return False
    before: list[str] = []
    for entry in trace(scenario):
        if entry.get("hook") == "shouldContinue" and before and before[-1] == "user":
            return True
        event = entry.get("event")
        if event is not None and not (event["type"] == "message_end" and event["message"]["role"] == "user"):
            before = []
        elif event is not None:
            before.append("user")
    return False


@cause
def delivered_without_an_answer(scenario: Scenario) -> bool:
    """Nobody was to go on, and what was queued joined the history all the same."""
    refused = False
    for entry in trace(scenario):
        refused = refused or (entry.get("hook") == "shouldContinue" and entry["returns"] is False)
        event = entry.get("event") or {}
        if refused and event.get("type") == "message_end" and event["message"]["role"] == "user":
            return True
    return False


@cause
def key_asked_for_each_attempt(scenario: Scenario) -> bool:
    retried = events(scenario, "stream_retry", "length_retry")
    return hook(scenario, "getApiKey") is not None and bool(retried)


@cause
def request_that_no_provider_takes(scenario: Scenario) -> bool:
    """What was sent begins or ends with the wrong message, or has calls and results that do not belong together."""
    if transcript_changed_mid_run(scenario) or history_not_sendable(scenario):
        return False
    return any(not is_sendable(call["messages"]) for call in scenario["observed"].get("llm_calls") or ())


@cause
def history_not_sendable(scenario: Scenario) -> bool:
    """The history has calls without results, or results without calls."""
    given = scenario["input"].get("messages") or ()
    known = [message for message in given if message["role"] in ("user", "assistant", "toolResult")]
    return bool(known) and not is_sendable([*known, {"role": "user", "content": "more"}])


def is_sendable(messages: list[Json]) -> bool:
    asked: list[str] = []
    seen = [message for message in messages if message.get("stopReason") not in ("error", "aborted")]
    if not seen or seen[-1]["role"] == "assistant":
        return False
    for message in seen:
        if message["role"] == "toolResult":
            if message["toolCallId"] not in asked:
                return False
            asked.remove(message["toolCallId"])
        elif asked:
            return False
        elif message["role"] == "assistant":
            asked = [call["id"] for call in calls_in(message)]
    return not asked


# Replies


@cause
def stream_without_an_end(scenario: Scenario) -> bool:
    return any("ends_without_terminal" in step for step in steps(scenario))


@cause
def deltas_before_the_start(scenario: Scenario) -> bool:
    made = len(scenario["observed"].get("llm_calls") or ())
    for entry in (scenario["input"].get("llm") or ())[:made]:
        kinds = [step["type"] for step in entry.get("steps") or () if "type" in step]
        before = kinds[: kinds.index("start")] if "start" in kinds else kinds
        if any(kind.endswith("_delta") for kind in before):
            return True
    return False


@cause
def failed_reply_with_calls(scenario: Scenario) -> bool:
    ends = [event["message"] for event in events(scenario, "message_end")]
    failed = [message for message in ends if message.get("stopReason") in ("error", "aborted")]
    return any(calls_in(message) for message in failed) and not cut_off_with_calls(scenario)


@cause
def cut_off_with_calls(scenario: Scenario) -> bool:
    cut = [step for step in steps(scenario) if step.get("type") == "done" and step["reason"] == "length"]
    return any(calls_in(step) for step in cut if "content" in step)


@cause
def discarded_in_one_piece(scenario: Scenario) -> bool:
    """A cut-off reply whose content came only with its end was thrown away."""
    ends = [step for step in steps(scenario) if step.get("type") == "done" and step["reason"] == "length"]
    empty = [
        event for event in events(scenario, "length_retry") if not (event.get("discardedPartial") or {}).get("content")
    ]
    return bool(empty) and any(step.get("content") for step in ends) and not cut_off_with_calls(scenario)


@cause
def drops_after_a_cut(scenario: Scenario) -> bool:
    """Drops were repeated more often than the budget says, because a cut-off reply lay between them."""
    options = scenario["input"].get("options") or scenario["input"].get("config") or {}
    turn: list[str] = []
    for event in events(scenario):
        turn = [] if event["type"] == "turn_start" else [*turn, event["type"]]
        if "length_retry" in turn and turn.count("stream_retry") > options.get("streamRetries", 3):
            return True
    return False


@cause
def failed_reply_in_the_next_request(scenario: Scenario) -> bool:
    sent = [message for call in scenario["observed"].get("llm_calls") or () for message in call["messages"]]
    return any(message.get("stopReason") in ("error", "aborted") for message in sent)


@cause
def level_not_clamped(scenario: Scenario) -> bool:
    """The level that was sent is not the one that was announced."""
    announced = [event["thinkingLevel"] for event in events(scenario, "agent_start")]
    sent = [call["options"].get("reasoning", "off") for call in scenario["observed"].get("llm_calls") or ()]
    return bool(announced) and any(level not in announced for level in sent)


# The state at each event


@cause
def failure_told_before_the_end(scenario: Scenario) -> bool:
    """The state told the failure at the end of the turn, ours does at the end of the run."""
    states = [entry["state"] for entry in trace(scenario) if "state" in entry and "event" in entry]
    return probed(scenario) and any(state["error"] and state["isStreaming"] for state in states)


@cause
def discarded_reply_still_shown(scenario: Scenario) -> bool:
    for entry in trace(scenario):
        discarded = entry.get("event", {}).get("type") in ("stream_retry", "length_retry")
        if discarded and (entry.get("state") or {}).get("streamMessage"):
            return True
    return False


# The conversation


@cause
def resumed_after_a_failure(scenario: Scenario) -> bool:
    refused = [action for action in actions(scenario, "continue") if action["outcome"] == "raised"]
    failed = (scenario["observed"].get("final_state") or {}).get("error") is not None
    return failed and any("role: assistant" in action["error"] for action in refused)


@cause
def transcript_changed_mid_run(scenario: Scenario) -> bool:
    changes = ("replace_messages", "append_message", "clear_messages")
    return bool(triggered(scenario, *changes)) or meanwhile(scenario, *changes)


@cause
def reset_mid_run(scenario: Scenario) -> bool:
    return bool(triggered(scenario, "reset"))


@cause
def reset_beside_a_run(scenario: Scenario) -> bool:
    """Somebody outside began anew while a run went on."""
    return meanwhile(scenario, "reset")


@cause
def prompted_before_the_end(scenario: Scenario) -> bool:
    """A subscriber spoke at the end of a run, and was heard."""
    done = [action["outcome"] for action in actions(scenario, "prompt", "continue")]
    return bool(triggered(scenario, "prompt", "continue")) and done.count("finished") == len(done)


@cause
def prompt_of_nothing(scenario: Scenario) -> bool:
    prompts = [action for action in scenario["input"].get("actions") or () if action["do"] == "prompt"]
    return any(action.get("messages") == [] for action in prompts)


@cause
def callers_list_extended(scenario: Scenario) -> bool:
    after = scenario["observed"].get("caller_context_messages")
    return after is not None and len(after) > len(scenario["input"].get("messages") or ())


# Subscribers


@cause
def subscriber_raises(scenario: Scenario) -> bool:
    return any("raises" in entry for entry in trace(scenario) if "subscriber" in entry)


@cause
def subscriber_waits(scenario: Scenario) -> bool:
    """Something was told while an async subscriber was not done with what came before."""
    waiting = later = False
    for entry in trace(scenario):
        if "begins" in entry or "ends" in entry or "saw" in entry:
            if waiting and later and "ends" not in entry:
                return True
            waiting, later = "begins" in entry or (waiting and "ends" not in entry), later and "begins" not in entry
        elif "event" in entry:
            later = waiting
    return False


# The proxy


@cause
def asked_through_the_proxy(scenario: Scenario) -> bool:
    return scenario["observed"].get("request") is not None


@cause
def proxy_reply_without_an_end(scenario: Scenario) -> bool:
    return scenario["observed"].get("result") == "never arrived"


@cause
def delta_for_another_block(scenario: Scenario) -> bool:
    """A server contradicts itself about the kind of a block, which our protocol does not say twice."""
    result = scenario["observed"].get("result")
    return isinstance(result, dict) and "content" in (result.get("errorMessage") or "") and "_delta" in str(result)
