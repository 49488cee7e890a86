"""What is the same in two observations of one scenario, and what is not."""

import difflib
import json
import re
from collections import defaultdict
from typing import Any, cast

__all__ = ["FIELDS", "differing"]

FIELDS = ("events", "requests", "run_end", "listener_events", "trace")

TOOL_ERROR = re.compile(r'<tool_error name="([^"]*)">(.*)</tool_error>', re.DOTALL)

SENTENCES: dict[str, tuple[str, str]] = {
    # what it is about: how theirs begins, how ours begins
    "arguments": (
        r'Invalid arguments for tool "[^"]*": ',
        r"the arguments (do not fit|are not valid JSON|must be one JSON object|given in the model's place)",
    ),
    "answer": (r"Cannot use 'in' operator|Cannot read propert", r".* means nothing here"),
    "name": (r'Duplicate tool name[^"]*"(?P<name>[^"]+)"', r"[^']*'(?P<name>[^']+)'"),
}
"""Sentences of the engines themselves, whose words are their own."""


def differing(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, str]:
    """The fields that differ, each with a diff for people."""
    found: dict[str, str] = {}
    for field in FIELDS:
        left, right = theirs.get(field), ours.get(field)
        if field == "trace":
            left, right = lanes(left or []), lanes(right or [])
        aligned = in_their_words(left, right)
        if aligned != left:
            found[field] = text_diff(left, aligned)
    return found


def text_diff(left: Any, right: Any) -> str:
    lines = difflib.unified_diff(lines_of(left), lines_of(right), "recorded", "antiphon", lineterm="", n=1)
    return "\n".join(lines)


def lines_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return [f"{key}: {line}" for key, item in items for line in lines_of(item)]
    if isinstance(value, list):
        return [json.dumps(item, ensure_ascii=False, sort_keys=True) for item in cast("list[Any]", value)]
    return [json.dumps(value, ensure_ascii=False)]


# Texts: an error may say more than theirs did, and engines have words of their own


def in_their_words(theirs: Any, ours: Any, key: str = "") -> Any:
    """Ours, with every error text that says the same as theirs replaced by theirs."""
    if isinstance(theirs, str) and isinstance(ours, str):
        return theirs if same_text(theirs, ours, key) else ours
    if isinstance(theirs, dict) and isinstance(ours, dict):
        left, right = cast("dict[str, Any]", theirs), cast("dict[str, Any]", ours)
        return {name: in_their_words(left.get(name), value, name) for name, value in right.items()}
    if isinstance(theirs, list) and isinstance(ours, list):
        both = cast("list[Any]", theirs), cast("list[Any]", ours)
        known = both[0] + [None] * (len(both[1]) - len(both[0]))
        return [in_their_words(left, right, key) for left, right in zip(known, both[1], strict=False)]
    return ours


def same_text(theirs: str, ours: str, key: str) -> bool:
    if theirs == ours:
        return True
    left, right = TOOL_ERROR.fullmatch(theirs), TOOL_ERROR.fullmatch(ours)
    if left is not None and right is not None:
        return left[1] == right[1] and same_error(left[2], right[2])
    return key == "error" and same_error(theirs, ours)


def same_error(theirs: str, ours: str) -> bool:
    for their_sentence, our_sentence in SENTENCES.values():
        left = re.match(their_sentence, theirs)
        if left is not None:
            right = re.match(our_sentence, ours)
            return right is not None and left.groupdict() == right.groupdict()
    return bool(theirs) and theirs in ours


# The trace: the order within one call, and of everything outside calls, is dependable; how calls interleave is not


def lanes(trace: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The trace in strands that each have an order of their own. What was printed is left out."""
    ids = ids_by_tool(trace)
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in trace:
        lane = lane_of(entry, ids)
        if lane is not None:
            found[lane].append(short(entry))
    found["main"] = request_after_start(found["main"])
    return dict(found) | {"left open": [{"source": name} for name in sorted(still_watched(trace))]}


def still_watched(trace: list[dict[str, Any]]) -> set[str]:
    """Sources that somebody subscribed to for good. When they do is their own affair, as long as it ends."""
    watched: set[str] = set()
    for entry in trace:
        if entry["at"] == "source_subscribed":
            watched.add(entry["source"])
        elif entry["at"] == "source_unsubscribed":
            watched.discard(entry["source"])
    return watched


def ids_by_tool(trace: list[dict[str, Any]]) -> dict[str, set[str]]:
    """The ids under which each tool was called."""
    ids: dict[str, set[str]] = defaultdict(set)
    for entry in trace:
        for call in entry.get("event", {}).get("calls", ()):
            ids[call["name"]].add(call["id"])
    return ids


def lane_of(entry: dict[str, Any], ids: dict[str, set[str]]) -> str | None:
    at = entry["at"]
    if at in ("log", "unhandled_rejection", "source_subscribed", "source_unsubscribed"):
        return None
    if at == "child_event":
        return "child events"
    if entry.get("agent") == "child" or entry.get("hook", "").startswith("child."):
        return "child"
    if at.startswith("tool_"):
        known = ids[entry["tool"]]
        return f"call {next(iter(known))}" if len(known) == 1 else f"tool {entry['tool']}"
    call_id = entry.get("context", {}).get("call_id")
    return "main" if call_id is None else f"call {call_id}"


def short(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry without what other fields are compared for."""
    if entry["at"] == "event":
        return {"at": "event", "type": entry["event"]["type"]}
    return entry


def request_after_start(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ours says that a reply starts when it does, theirs just before it is asked for: one moment in two places."""
    start = {"at": "event", "type": "assistant_start"}
    ordered = list(entries)
    for place in range(1, len(ordered)):
        if ordered[place] == start and ordered[place - 1]["at"] == "model_request":
            ordered[place - 1], ordered[place] = ordered[place], ordered[place - 1]
    return ordered
