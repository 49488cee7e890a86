"""Looking into a recording: what was done, what was said, what was reached."""

from collections.abc import Iterator
from typing import Any

from .words import Json

__all__ = [
    "Scenario",
    "actions",
    "behaviours",
    "calls",
    "calls_in",
    "events",
    "hook",
    "hook_entries",
    "meanwhile",
    "probed",
    "steps",
    "tool_actions",
    "trace",
    "triggered",
]

Scenario = dict[str, Any]
"""A recording: `input` and `observed`."""


def trace(scenario: Scenario) -> list[Json]:
    return scenario["observed"].get("trace") or []


def events(scenario: Scenario, *kinds: str) -> list[Json]:
    found = [entry["event"] for entry in trace(scenario) if "event" in entry]
    return [event for event in found if not kinds or event["type"] in kinds]


def actions(scenario: Scenario, *names: str) -> list[Json]:
    """What was done, with its outcome."""
    return [action for action in scenario["observed"].get("actions") or () if action["do"] in names]


def triggered(scenario: Scenario, *names: str) -> list[Json]:
    """What was done from inside a subscriber."""
    declared = [action for trigger in scenario["input"].get("triggers") or () for action in trigger["do"]]
    return [action for action in declared if action["do"] in names]


def meanwhile(scenario: Scenario, *names: str) -> bool:
    """Something was done while a run went on that nobody waited for."""
    going = False
    for action in scenario["input"].get("actions") or ():
        if going and action["do"] in names:
            return True
        going = action.get("background", False) or (going and action["do"] != "wait_for_idle")
    return False


def steps(scenario: Scenario) -> Iterator[Json]:
    """The steps of each model call that was made."""
    made = len(scenario["observed"].get("llm_calls") or ())
    for entry in (scenario["input"].get("llm") or ())[:made]:
        yield from entry.get("steps") or ()


def behaviours(scenario: Scenario) -> Iterator[Json]:
    for tool in scenario["input"].get("tools") or ():
        yield tool.get("behaviour") or {}
        yield from (tool.get("by_call_id") or {}).values()


def hook(scenario: Scenario, name: str) -> Any:
    return (scenario["input"].get("hooks") or {}).get(name)


def hook_entries(scenario: Scenario, name: str) -> list[Json]:
    return [entry for entry in trace(scenario) if entry.get("hook") == name]


def tool_actions(scenario: Scenario, name: str) -> list[Json]:
    """The actions of a tool hook that were reached."""
    declared = hook(scenario, name) or {}
    reached = [entry["id"] for entry in hook_entries(scenario, name)]
    chosen = [(declared.get("by_call_id") or {}).get(call_id) or declared.get("always") for call_id in reached]
    return [action for action in chosen if action]


def calls(scenario: Scenario) -> list[list[Json]]:
    """The calls of each complete reply that was kept."""
    ends = events(scenario, "message_end")
    replies = [event["message"] for event in ends if event["message"]["role"] == "assistant"]
    found = [calls_in(reply) for reply in replies if reply.get("stopReason") not in ("error", "aborted")]
    return [reply for reply in found if reply]


def calls_in(message: Json) -> list[Json]:
    return [block for block in message["content"] if block["type"] == "toolCall"]


def probed(scenario: Scenario) -> bool:
    return bool(scenario["input"].get("probe_state"))
