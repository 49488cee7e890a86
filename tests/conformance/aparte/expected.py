"""What a recording lets us expect of a run: what was observed, in one order, and how to compare it with what came."""

import difflib
import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from .projection import UNRESOLVED, Json
from .script import Step
from .stage import Played, ids_of

FIELDS = ("events", "outcome", "requests", "history_appends", "handler_calls", "approval_calls", "predicate_calls")
"""What may differ; the one order of it all counts as part of `events`. In the history group answers count as well."""

KINDS = {"event": "events", "request": "requests", "append": "history_appends", "handler": "handler_calls"}

REFUSAL = "<refusal>"

FLUSH: Step = ("event", {"type": "text-flush"})
TURN: Step = ("event", {"type": "turn-start"})


class Expected:
    """At first what was observed, then what the causes made of it.

    `steps` is the one order of events, requests, notices, and calls of handlers and of the resolver. `whole`: nothing
    follows; otherwise the run went on in a way that the recording cannot show, and only the beginning is compared.
    """

    def __init__(self, recording: Json) -> None:
        self.given: Json = recording["input"]
        self.observed: Json = recording["observed"]
        self.name: str = recording["name"]
        self.steps: list[Step] = list(merged(self.observed))
        self.outcome: Json = deepcopy(self.observed["outcome"])
        self.predicate_calls: list[Json] = self.observed["predicate_calls"]
        self.answers: list[str] = []
        self.warned: set[str] = set(self.observed["warned_kinds"])
        self.whole = True
        self.needles = [self._needle(event) for _, event in self.steps if event.get("type") == "tool-rejected"]

    @property
    def given_up(self) -> set[str]:
        """The calls that were aborted although nobody had stopped the run, nor stopped it because of that."""
        timeline, events = self.observed["timeline"], iter(self.observed["events"])
        found: set[str] = set()
        for at, entry in enumerate(timeline[: timeline.index("stop")] if "stop" in timeline else timeline):
            if entry.startswith("event:") and (event := next(events))["type"] == "tool-aborted":
                call_id = event["toolCallId"]
                if timeline[at + 1 : at + 2] != ["stop"] or self.cancels_itself(call_id):
                    found.add(call_id)
        return set() if self.given.get("abort", {}).get("before_run") else found

    def cancels_itself(self, call_id: str) -> bool:
        """Whether the call's tool raises an abort error of its own."""
        started = next(e for e in self.observed["events"] if e["type"] == "tool-start" and e["toolCallId"] == call_id)
        calls = self.given.get("tools", {}).get(started["name"], {}).get("calls", ())
        return any(call.get("raises", {}).get("name") == "AbortError" for call in calls)

    def copy(self) -> "Expected":
        twin = deepcopy(self)
        twin.given, twin.observed = self.given, self.observed
        return twin

    def same_as(self, other: "Expected") -> bool:
        mine, theirs = [
            (each.steps, each.outcome, each.predicate_calls, each.answers, each.warned, each.whole, each.needles)
            for each in (self, other)
        ]
        return mine == theirs

    def _needle(self, event: Json) -> str:
        """What the model must read of a refusal: the resolver's reason, or else its instruction."""
        ids = [call["id"] for call in self.observed["approval_calls"]]
        if event["toolCallId"] not in ids:
            return ""
        answers = self.given["approvals"]
        answer = answers[min(ids.index(event["toolCallId"]), len(answers) - 1)]
        return (answer.get("reason") or "").strip() or answer.get("instruction") or ""

    # Reading and changing the order

    @property
    def stopped(self) -> bool:
        """Somebody set the stop signal."""
        return "stop" in self.observed["timeline"] or any(e.get("type") == "run-aborted" for _, e in self.steps)

    def turns(self) -> Iterator[tuple[int, int, int]]:
        """Each turn as number, first step and the step behind the last. 0 is what comes before the first request."""
        starts = [0, *[at for at, (kind, _) in enumerate(self.steps) if kind == "request"]]
        ends = [*starts[1:], self._tail()]
        for number, (start, end) in reversed(list(enumerate(zip(starts, ends, strict=True)))):
            yield number, start, end

    def _tail(self) -> int:
        """Where the end of the run begins."""
        at = len(self.steps)
        while at and is_end(self.steps[at - 1]):
            at -= 1
        return at

    def entry(self, turn: int) -> Json:
        """The transport's answer of a turn."""
        entries = self.given["transport"]
        return entries[turn - 1] if 0 < turn <= len(entries) else {"stream": []}

    @property
    def is_forced(self) -> bool:
        """The application makes the first call."""
        choice = self.given["base_request"].get("toolChoice")
        return isinstance(choice, dict) and "input" in choice

    def config_of(self, name: str) -> Json:
        """What the lookup says of a tool."""
        return self.given.get("tools", {}).get(name, {}).get("config", {})

    def runs(self, name: str) -> bool:
        """Whether a tool of this name has a handler."""
        return "calls" in self.given.get("tools", {}).get(name, {})

    def calls_of(self, turn: int) -> list[Json]:
        """Every call of a turn's reply, with the ids that the loop gives them."""
        if turn == 0:
            choice = self.given["base_request"]["toolChoice"]
            started = next(e for _, e in self.steps if e.get("type") == "tool-start")
            return [{"id": started["toolCallId"], "name": choice["name"], "input": started["input"]}]
        calls: list[Json] = []
        for item in self.entry(turn).get("stream", ()):
            if item.get("type") == "tool_use":
                taken = {call["id"] for call in calls}
                own, number = item["id"], 1
                while own in taken:
                    number += 1
                    own = f"{item['id']}#{number}"
                calls.append({"id": own, "name": item["name"], "input": item["input"]})
        return calls

    def text_of(self, turn: int) -> str:
        return "".join([i["delta"] for i in self.entry(turn).get("stream", ()) if i.get("type") == "text"])

    def find(self, type_: str, call_id: str | None = None, kind: str = "event") -> int | None:
        """The place of the first event of a type (of a call), or of a handler's or resolver's call."""
        for at, (each, value) in enumerate(self.steps):
            own = value.get("toolCallId") if kind == "event" else value.get("id")
            if each == kind and (kind != "event" or value["type"] == type_) and call_id in (None, own):
                return at
        return None

    def cut(self, at: int, *, raises: bool = False) -> None:
        """From here on the run goes its own way. `raises`: all that is known of its end is that it raises."""
        self.steps, self.whole, self.outcome = self.steps[:at], False, {"raised" if raises else "returned": None}


def is_end(step: Step) -> bool:
    kind, value = step
    if kind != "event":
        return False
    return value["type"] in ("run-aborted", "run-done") or value.get("scope") == "global"


def is_tool_step(step: Step) -> bool:
    kind, value = step
    if kind == "event":
        return value["type"].startswith("tool-") or value.get("scope") == "tool"
    return kind in ("handler", "approval")


def deltas(items: list[Json]) -> list[Step]:
    """What is told while these are read."""
    kinds = {"text": "text-delta", "thinking": "thinking-delta"}
    told = [{"type": kinds[i["type"]], "delta": i["delta"]} for i in items if i.get("type") in kinds]
    return [TURN, *[("event", event) for event in told]]


def unknown(items: list[Json]) -> set[str]:
    """The kinds of these that no loop knows."""
    kinds = {item["type"] for item in items if "type" in item}
    return kinds - {"text", "thinking", "tool_use", "done", "error"}


def merged(observed: Json) -> Iterator[Step]:
    """The timeline with what each entry stands for."""
    places = {
        "event": iter(observed["events"]),
        "request": iter(observed["requests"]),
        "append": iter(observed["history_appends"]),
        "handler-start": iter(observed["handler_calls"]),
        "approval": iter(observed["approval_calls"]),
    }
    for entry in observed["timeline"]:
        kind = entry.partition(":")[0]
        if kind in places:
            yield kind.removesuffix("-start"), next(places[kind])


# Comparing


def differing(expected: Expected, played: Played) -> dict[str, str]:
    """What is not as expected, by field, each with its diff."""
    given_ids = ids_of(expected.given)
    theirs, ours = Named(given_ids), Named(given_ids)
    wanted = theirs(worded(expected.steps, expected.needles, None))
    came = ours(worded(played.steps, expected.needles, expected.steps))
    wished, predicates = theirs.plainly(expected.predicate_calls), ours.plainly(played.predicate_calls)
    if not expected.whole:
        came = came[: len(wanted)]
        turned_to = {value["toolCallId"] for _, value in expected.steps if value.get("type") == "tool-start"}
        wished = [call for call in wished if call["id"] in turned_to]
        predicates = predicates[: len(wished)]
    found = stepwise(wanted, came)
    pairs: dict[str, Any] = {"outcome": (expected.outcome, played.outcome)}
    if not expected.whole and "returned" in expected.outcome:
        del pairs["outcome"]
    elif not expected.whole:
        pairs["outcome"] = (list(expected.outcome), list(played.outcome))
    pairs["predicate_calls"] = (wished, predicates)
    pairs["requests"] = (True, played.unchanged)
    pairs["events"] = (sorted(expected.warned), played.warned) if expected.whole else ([], [])
    if expected.name.startswith("history-") and expected.whole:
        pairs["history_appends"] = (expected.answers, played.answers)
    for field, (one, other) in pairs.items():
        if one != other:
            found.setdefault(field, f"expected {one!r}\ncame     {other!r}")
    return found


def stepwise(wanted: list[Step], came: list[Step]) -> dict[str, str]:
    """The fields whose content differs; if only the order does, `events`. The first has the diff."""
    if wanted == came:
        return {}
    fields = [
        KINDS.get(kind, "approval_calls")
        for kind in ("event", "request", "append", "handler", "approval")
        if [value for each, value in wanted if each == kind] != [value for each, value in came if each == kind]
    ]
    one, other = [[f"{kind} {json.dumps(value)}" for kind, value in steps] for steps in (wanted, came)]
    diff = "\n".join(difflib.unified_diff(one, other, "expected", "came", n=2, lineterm=""))
    first, *others = fields or ["events"]
    return {first: diff, **dict.fromkeys(others, f"see {first}")}


class Named:
    """Ids that an engine made up, told apart by the order in which they appear in their reply."""

    def __init__(self, given: set[str]) -> None:
        self.given = given - {""}
        self.made: dict[str, str] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self(each) for each in value]
        if isinstance(value, tuple):
            return tuple([self(each) for each in value])
        if not isinstance(value, dict):
            return value
        said: Json = {}
        if "toolCalls" in value:
            self.made.clear()
        for key, each in value.items():
            if key in ("toolCallId", "id") and isinstance(each, str):
                said[key] = self._name(each)
            else:
                said[key] = each if key in ("input", "structuredResult", "tools", "_meta") else self(each)
        return said

    def plainly(self, calls: list[Json]) -> list[Json]:
        """Calls without the reply that they stand in."""
        return [{**call, "id": call["id"] if call["id"] in self.given else "made"} for call in calls]

    def _name(self, id_: str) -> str:
        if id_ in self.given or "synthetic-tool" in id_:
            return id_
        return self.made.setdefault(id_, f"made-{len(self.made) + 1}")


def worded(steps: list[Step], needles: list[str], wanted: list[Step] | None) -> list[Step]:
    """The steps without what is wording: refusals, once they tell what they must, and the frame of an error's text.

    A refusal is the same in the event and in the message, or it is left as it is. `wanted` has the errors to look for.
    """
    refusals: dict[str, str] = {}
    errors = [value["error"] for _, value in wanted or () if value.get("type") == "tool-failed"]
    left, made = list(needles), list[Step]()
    for kind, value in steps:
        said = value
        if kind == "event" and value["type"] == "tool-rejected":
            refusals[value["toolCallId"]] = value["reason"]
            if wanted is None or (left.pop(0) if left else "") in value["reason"]:
                said = {**value, "reason": REFUSAL}
        elif kind == "event" and value["type"] == "tool-failed" and wanted is not None:
            error = errors.pop(0) if errors else ""
            said = {**value, "error": error if error in value["error"] else value["error"]}
        elif kind == "append":
            said = reworded(value, refusals)
        elif kind == "request":
            said = {**value, "messages": [reworded(message, refusals) for message in value["messages"]]}
        made.append((kind, said))
    return made


def reworded(message: Json, refusals: dict[str, str]) -> Json:
    told = refusals.get(message.get("toolCallId", ""))
    return {**message, "content": REFUSAL} if told is not None and message["content"] == told else message


def unresolved(call: Json) -> Json:
    """The result of a call that has none there."""
    return {"role": "tool", "content": UNRESOLVED, "toolCallId": call["id"], "toolName": call["name"]}
