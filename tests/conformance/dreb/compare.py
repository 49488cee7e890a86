"""What is the same in two observations of one scenario, and what is not.

Both sides are brought into one form first. What is left out of it, because it means nothing or stands elsewhere: the
beginnings and ends of blocks (see `Projection`), empty text blocks, empty details, `endTurn` of a result, the transport,
the content of an assistant's `message_start`, signatures in a reply on its way, who asks for queued messages.
"""

import difflib
import json
import re
from collections import defaultdict
from typing import Any, cast

from .words import Json

__all__ = ["FIELDS", "differing"]

FIELDS = (
    "order",
    "events",
    "place",
    "hooks",
    "requests",
    "actions",
    "final",
    "states",
    "subscribers",
    "timers",
    "warnings",
    "caller",
    "request",
    "result",
)
"""order: types of events; events: what is in them, strand by strand; place: of hooks, requests and tools among events."""

SENTENCES: tuple[tuple[str, str], ...] = (
    (r"Validation failed for tool", r"the arguments (do not fit|are not valid JSON|must be one JSON object)"),
    (r"Tool \S+ not found", r"no tool named"),
    (r"Tool execution was blocked", r"the call was refused"),
    (r"Stream dropped repeatedly", r".*(connection|stream|socket)"),
    (r"Stream ended without|.*connection likely dropped", r".*(connection|stream|socket)"),
    (r"Response truncated", r"the reply was cut off by the output limit"),
    (r"Request (was )?aborted|This operation was aborted|.*aborted", r".*aborted"),
    (r"Cannot continue|No messages to continue", r"messages= end in|nothing to do|.*model's turn"),
    (r"Agent is already processing", r"a run goes on"),
    (r"Proxy error: (?P<word>.+)", r".*(status \d+|answered \d+|\d{3})"),
)
"""Sentences of the engines themselves, whose words are their own: how theirs begins, how ours does."""


def differing(theirs: Json, ours: Json, *, any_error_text: bool = False) -> dict[str, str]:
    """The fields that differ, each with a diff for people. A text of the platform may be any text."""
    left, right = canonical(theirs), canonical(ours)
    if any_error_text and "errorMessage" in left["result"] and right["result"].get("errorMessage"):
        right["result"]["errorMessage"] = left["result"]["errorMessage"]
    found: dict[str, str] = {}
    for field in FIELDS:
        aligned = in_their_words(left.get(field), right.get(field))
        if aligned != left.get(field):
            found[field] = text_diff(left.get(field), aligned)
    return found


def text_diff(left: Any, right: Any) -> str:
    lines = difflib.unified_diff(lines_of(left), lines_of(right), "recorded", "antiphon", lineterm="", n=1)
    return "\n".join(lines)


def lines_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        items = cast("Json", value).items()
        return [f"{key}: {line}" for key, item in items for line in lines_of(item)]
    if isinstance(value, list):
        return [json.dumps(item, ensure_ascii=False, sort_keys=True) for item in cast("list[Any]", value)]
    return [json.dumps(value, ensure_ascii=False)]


# One form for both


def canonical(observed: Json) -> Json:
    """An observation, theirs or ours, in the form that is compared."""
    if "iteration" in observed:
        return proxied(observed)
    trace = [entry for entry in observed["trace"] if not is_edge(entry)]
    events = [entry["event"] for entry in trace if "event" in entry]
    loop = "caller_context_messages" in observed
    return {
        "order": [short(event) for event in events],
        "events": strands(events),
        "place": apart(trace) if loop else [place for entry in trace for place in places(entry)],
        "hooks": hooks_of(trace),
        "requests": [request_of(call) for call in observed["llm_calls"]],
        "actions": [action_of(action) for action in observed["actions"]],
        "final": final_of(observed.get("final_state")),
        "states": [state_of(entry["state"]) for entry in trace if "state" in entry],
        "subscribers": [entry for entry in trace if "subscriber" in entry and entry.get("saw") != "message_update"],
        "timers": [entry["timer_ms"] for entry in trace if "timer_ms" in entry],
        "warnings": [words(entry["warning"]) for entry in trace if "warning" in entry],
        "caller": plain(observed.get("caller_context_messages")),
    }


def proxied(observed: Json) -> Json:
    """What a client of the proxy got: the deltas, the end, the reply."""
    told = [event for event in observed["events"] if event["type"].split("_")[-1] in ("delta", "done", "error")]
    events = [{name: event.get(name) for name in ("type", "delta", "reason")} for event in told]
    return {"request": observed["request"], "events": events, "result": plain(observed["result"])}


def is_edge(entry: Json) -> bool:
    """A block begins or ends."""
    inner = entry.get("event", {}).get("assistantMessageEvent")
    return inner is not None and not inner["type"].endswith("_delta")


def short(event: Json) -> str:
    role = (event.get("message") or {}).get("role")
    return f"{event['type']}:{role}" if role else event["type"]


def strands(events: list[Json]) -> Json:
    """The events of each call and its result, and of everything else, each strand in its order."""
    found: dict[str, list[Json]] = defaultdict(list)
    for event in events:
        message = event.get("message") or {}
        call_id = event.get("toolCallId") or message.get("toolCallId")
        strand = "run" if call_id is None or event["type"] == "turn_end" else f"call {call_id}"
        found[strand].append(event_of(event))
    return dict(found)


def event_of(event: Json) -> Json:
    kind = event["type"]
    if kind == "message_start" and event["message"]["role"] == "assistant":
        return {"type": kind, "role": "assistant"}
    if kind == "message_update":
        inner = event["assistantMessageEvent"]
        content = plain(event["message"]["content"])
        for block in content:
            block.pop("thinkingSignature", None)
            block.pop("textSignature", None)
        return {"type": inner["type"], "delta": inner["delta"], "content": content}
    if kind in ("stream_retry", "length_retry"):
        content = plain((event.get("discardedPartial") or {}).get("content") or [])
        return {name: event[name] for name in ("type", "attempt", "maxAttempts")} | {"partial": content}
    return plain(event)


def plain(value: Any) -> Any:
    """Without what says nothing."""
    if isinstance(value, list):
        items = [plain(item) for item in cast("list[Any]", value)]
        return [item for item in items if item != {"type": "text", "text": ""}]
    if not isinstance(value, dict):
        return value
    told: Json = {}
    for name, item in cast("Json", value).items():
        if name in ("endTurn", "api", "durationMs", "timestamp", "responseId"):
            continue
        if name == "content" and isinstance(item, str):
            told[name] = plain([{"type": "text", "text": item}])
        elif name == "details":
            told[name] = item or {}
        elif name == "cost" and isinstance(item, dict):
            told[name] = item.get("total", 0)
        else:
            told[name] = plain(item)
    told.pop("partialJson", None)
    if told.get("stopReason") == "aborted":
        told.pop("errorMessage", None)  # a stop is no failure; ours says so by the reason alone
    return told


def places(entry: Json) -> list[str]:
    """What an entry is called in the order of everything."""
    if "event" in entry:
        return [short(entry["event"])]
    if "hook" in entry:
        return [" ".join([entry["hook"], *([entry["id"]] if "id" in entry else [])])]
    if "llm_call" in entry:
        return [f"request {entry['llm_call']}"]
    for name in ("tool_begins", "tool_ends"):
        if name in entry:
            return [f"{name} {entry[name]['id']}"]
    return []


def apart(trace: list[Json]) -> list[str]:
    """In the loop only the order of what is no event is dependable."""
    return [place for entry in trace if "event" not in entry for place in places(entry)]


def hooks_of(trace: list[Json]) -> Json:
    found: dict[str, list[Json]] = defaultdict(list)
    for entry in trace:
        if "hook" in entry:
            told = {name: value for name, value in entry.items() if name != "system_prompt"}
            if "state_roles" in told and "id" in told:  # results join the transcript together
                told["state_roles"] = re.sub(r"(,toolResult)+$", "", told["state_roles"])
            found[places(entry)[0]].append(plain(told))
        for name in ("tool_begins", "tool_ends"):
            if name in entry:
                found[f"body {entry[name]['id']}"].append({name: entry[name]})
    return dict(found)


def request_of(call: Json) -> Json:
    options = {name: value for name, value in call["options"].items() if name not in ("transport", "maxRetryDelayMs")}
    return plain(call | {"options": options})


def action_of(action: Json) -> Json:
    return plain(action)


def final_of(state: Json | None) -> Json | None:
    return None if state is None else plain(state | state_of(state) | {"messages": state["messages"]})


def state_of(state: Json) -> Json:
    streams = state["streamMessage"]
    role = streams["role"] if isinstance(streams, dict) else streams
    return state | {"streamMessage": role if role == "assistant" else None, "error": state["error"]}


def words(warning: Any) -> list[str]:
    if isinstance(warning, dict):
        return sorted(map(str, cast("Json", warning).values()))
    return sorted(map(str, warning)) if isinstance(warning, list) else [str(warning)]


# Texts: an error may say more than theirs did, and engines have words of their own


def in_their_words(theirs: Any, ours: Any, *, error: bool = False) -> Any:
    """Ours, with every error text that says the same as theirs replaced by theirs."""
    if isinstance(theirs, str) and isinstance(ours, str):
        return theirs if error and same_error(theirs, ours) else ours
    if isinstance(theirs, dict) and isinstance(ours, dict):
        left, right = cast("Json", theirs), cast("Json", ours)
        failed = error or bool(left.get("isError") and right.get("isError"))
        return {
            name: in_their_words(left.get(name), value, error=is_error_text(name, left, failed=failed))
            for name, value in right.items()
        }
    if isinstance(theirs, list) and isinstance(ours, list):
        both = cast("list[Any]", theirs), cast("list[Any]", ours)
        known = both[0] + [None] * (len(both[1]) - len(both[0]))
        return [in_their_words(left, right, error=error) for left, right in zip(known, both[1], strict=False)]
    return ours


def is_error_text(name: str, around: Json, *, failed: bool) -> bool:
    if name in ("errorMessage", "error"):
        return True
    return failed and (name in ("content", "result", "text", "message") or around.get("type") == "text")


def same_error(theirs: str, ours: str) -> bool:
    if theirs and theirs in ours:
        return True
    return any(re.match(left, theirs) and re.match(right, ours, re.DOTALL) for left, right in SENTENCES)
