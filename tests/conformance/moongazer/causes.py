"""What makes a scenario end differently here, told by its input and by what was recorded, never by its name."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from .stage import text_of_value

__all__ = ["CAUSES", "Scenario"]

Scenario = dict[str, Any]
"""A recording: `input` and `observed`."""

Cause = Callable[[Scenario], bool]
CAUSES: dict[str, Cause] = {}
"""By the names that the list of differences uses."""


def cause(found: Cause) -> Cause:
    CAUSES[found.__name__] = found
    return found


# Looking into a recording


def transcript(scenario: Scenario) -> list[dict[str, Any]]:
    end = scenario["observed"]["run_end"]
    return end["messages"] if end else []


def status(scenario: Scenario) -> str | None:
    end = scenario["observed"]["run_end"]
    return end["status"] if end else None


def events(scenario: Scenario, kind: str) -> list[dict[str, Any]]:
    return [event for event in scenario["observed"]["events"] if event["type"] == kind]


def results(scenario: Scenario) -> list[str]:
    """The texts of all results, as events tell them; whatever is no text is told as one."""
    return [text_of_value(event["result"]) for event in events(scenario, "tool_result")]


def calls(scenario: Scenario) -> list[list[dict[str, Any]]]:
    """The calls of each reply, in the transcript or on their way."""
    return [event["calls"] for event in events(scenario, "tool_calls")]


def tools(scenario: Scenario) -> Iterator[dict[str, Any]]:
    given = scenario["input"]
    for tool in given.get("tools", ()):
        yield tool
        yield from tool.get("subagent", {}).get("tools", ())
    for source in given.get("tool_sources", ()):
        for entry in source["lists"]:
            yield from entry.get("tools", ())


def asked_for(scenario: Scenario) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The script of each model call that was made, with its kind. Beyond the script there is nothing."""
    transports = [scenario["input"]["transport"]]
    transports += [tool["subagent"]["transport"] for tool in tools(scenario) if "subagent" in tool]
    own = [request for request in scenario["observed"]["requests"] if "agent" not in request]
    made = [len(own), len(scenario["observed"]["requests"]) - len(own)]
    for place, transport in enumerate(transports):
        for number in range(made[min(place, 1)]):
            script = transport["requests"]
            yield transport["kind"], script[number] if number < len(script) else []


def deltas(scenario: Scenario) -> Iterator[list[dict[str, Any]]]:
    """The deltas of each model call that answered in provider chunks."""
    for kind, script in asked_for(scenario):
        if kind == "openai_chunks":
            choices = [chunk["choices"][0] for chunk in script if chunk.get("choices")]
            yield [choice.get("delta") or {} for choice in choices]


def fragments(scenario: Scenario) -> Iterator[list[dict[str, Any]]]:
    """The fragments of tool calls of each model call."""
    for reply in deltas(scenario):
        yield [fragment for delta in reply for fragment in delta.get("tool_calls") or ()]


def actions(scenario: Scenario, *points: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Level, point and action of each declared hook."""
    given = scenario["input"]
    levels = [("agent", given.get("agent_hooks")), ("run", given.get("run_hooks"))]
    levels += [("tool", tool.get("hooks")) for tool in tools(scenario)]
    levels += [("agent", tool["subagent"].get("hooks")) for tool in tools(scenario) if "subagent" in tool]
    for level, hooks in levels:
        for point, declared in (hooks or {}).items():
            if not points or point in points:
                for action in declared if isinstance(declared, list) else [declared]:
                    yield level, point, action


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


# Endings


@cause
def stopped_amid_a_reply(scenario: Scenario) -> bool:
    """Something was said in the last round, and the run ended before the reply was whole."""
    said: list[str] = []
    for event in scenario["observed"]["events"]:
        if event["type"] in ("assistant_start", "tool_calls"):
            said = []
        elif event["type"] in ("content", "reasoning"):
            said.append(event["type"])
    return status(scenario) in ("abort", "stopped", "error") and "content" in said


@cause
def ended_on_a_whole_reply(scenario: Scenario) -> bool:
    """The last thing that happened was a hook looking at the whole reply."""
    hooks = [entry["hook"] for entry in before_the_end(scenario) if entry["at"] == "hook"]
    ended = status(scenario) in ("abort", "stopped", "error")
    return ended and bool(hooks) and hooks[-1].endswith(".after_model_response")


def before_the_end(scenario: Scenario) -> list[dict[str, Any]]:
    """The trace up to the terminal event."""
    trace: list[dict[str, Any]] = scenario["observed"]["trace"]
    terminal = ("done", "error", "abort", "stopped")
    for place, entry in enumerate(trace):
        if entry["at"] == "event" and entry["event"]["type"] in terminal:
            return trace[: place + 1]
    return trace


@cause
def calls_left_unanswered(scenario: Scenario) -> bool:
    """The recorded transcript has calls without their results."""
    open_calls = 0
    for message in transcript(scenario)[len(scenario["input"]["messages"]) :]:
        if message["role"] == "assistant":
            open_calls = len(message.get("toolCalls") or ())
        elif message["role"] == "tool":
            open_calls -= 1
    return open_calls > 0


@cause
def went_on_after_the_stop(scenario: Scenario) -> bool:
    """After the stop the model was asked all the same, or the run ended as if nobody had stopped it."""
    trace = before_the_end(scenario)
    places = [place for place, entry in enumerate(trace) if entry["at"] in ("stop_called", "signal_aborted")]
    if not places:
        return False
    after = trace[places[0] + 1 :]
    kinds = [entry["event"]["type"] for entry in after if entry["at"] == "event"]
    hooks = [entry["hook"].split(".")[-1] for entry in after if entry["at"] == "hook"]
    asked = any(entry["at"] == "model_request" for entry in after)
    return asked or "assistant_start" in kinds or "done" in kinds or "before_model_request" in hooks


@cause
def stopped_before_a_word(scenario: Scenario) -> bool:
    """The model was being asked, and nothing of its reply had come."""
    kinds = [event["type"] for event in scenario["observed"]["events"]]
    return status(scenario) in ("abort", "stopped") and kinds[-2:-1] == ["assistant_start"]


@cause
def ended_in_error(scenario: Scenario) -> bool:
    return status(scenario) == "error" and bool(scenario["observed"]["requests"]) and asked_last(scenario)


def asked_last(scenario: Scenario) -> bool:
    """The last round had made its request."""
    kinds = [event["type"] for event in scenario["observed"]["events"]]
    return (
        "assistant_start" in kinds and "tool_result" not in kinds[len(kinds) - kinds[::-1].index("assistant_start") :]
    )


@cause
def ended_in_error_before_the_request(scenario: Scenario) -> bool:
    """A hook or a listing failed where no request had been made."""
    return status(scenario) == "error" and not asked_last(scenario) and not scenario["input"].get("extra_listeners")


@cause
def round_counted_before_its_listing(scenario: Scenario) -> bool:
    """The listing between two rounds ended the run: theirs had counted the next round already."""
    last = [entry["at"] for entry in before_the_end(scenario) if entry["at"] not in ("log", "event")][-1:]
    refreshed = [entry for entry in before_the_end(scenario) if entry["at"] == "source_list" and entry["number"] > 1]
    return status(scenario) in ("error", "abort", "stopped") and last == ["source_list"] and bool(refreshed)


# Limits


def max_steps(scenario: Scenario) -> int:
    steps = scenario["input"].get("max_steps")
    return 6 if steps is None else steps


@cause
def out_of_steps(scenario: Scenario) -> bool:
    """Ended as done, although the model was to have the last word."""
    messages = transcript(scenario)
    unfinished = status(scenario) == "done" and bool(messages) and messages[-1]["role"] == "tool"
    return unfinished and scenario["observed"]["run_end"]["steps"] >= max(1, max_steps(scenario))


@cause
def no_step_allowed(scenario: Scenario) -> bool:
    return max_steps(scenario) <= 0


# Listeners


@cause
def listener_raises(scenario: Scenario) -> bool:
    return any("raises_on" in listener for listener in scenario["input"].get("extra_listeners", ()))


@cause
def subscribed_twice(scenario: Scenario) -> bool:
    return any(listener.get("subscribe_twice") for listener in scenario["input"].get("extra_listeners", ()))


@cause
def subscribed_while_told(scenario: Scenario) -> bool:
    return any("subscribe_new_on" in listener for listener in scenario["input"].get("extra_listeners", ()))


# The model's side


@cause
def id_missing_or_repeated(scenario: Scenario) -> bool:
    rounds = [[call["id"] for call in reply] for reply in calls(scenario)]
    return any("" in ids or len(set(ids)) < len(ids) for ids in rounds)


@cause
def stream_without_an_end(scenario: Scenario) -> bool:
    """A stream of chunks ended and no chunk had said that it would."""
    for kind, script in asked_for(scenario):
        special = any(key.startswith(("$raise", "$wait")) for item in script for key in item)
        choices = [choice for item in script for choice in item.get("choices") or ()]
        if kind == "openai_chunks" and not special and not any(choice.get("finish_reason") for choice in choices):
            return status(scenario) == "done"
    return False


@cause
def filtered_and_empty(scenario: Scenario) -> bool:
    """A filter of the provider took the whole reply away."""
    for reply in asked_for(scenario):
        choices = [choice for item in reply[1] for choice in item.get("choices") or ()]
        said = any((choice.get("delta") or {}).get(part) for choice in choices for part in ("content", "tool_calls"))
        if not said and any(choice.get("finish_reason") == "content_filter" for choice in choices):
            return True
    return False


@cause
def arguments_as_an_object(scenario: Scenario) -> bool:
    found = [fragment.get("function") or {} for reply in fragments(scenario) for fragment in reply]
    return any(isinstance(function.get("arguments"), dict) for function in found)


@cause
def odd_call_fragments(scenario: Scenario) -> bool:
    """A name told again, an index left out, or one index used for two calls."""
    for reply in fragments(scenario):
        seen: dict[Any, tuple[str, str]] = {}
        for fragment in reply:
            index = fragment.get("index")
            if not isinstance(index, int) or index < 0:
                return True
            name, call_id = (fragment.get("function") or {}).get("name") or "", fragment.get("id") or ""
            known = seen.get(index, ("", ""))
            if (name and name == known[0]) or (call_id and known[1] and call_id != known[1]):
                return True
            seen[index] = (name or known[0], call_id or known[1])
    return False


@cause
def error_told_in_the_stream(scenario: Scenario) -> bool:
    return any(item.get("error") for _, script in asked_for(scenario) for item in script)


@cause
def thought_and_text_in_one_chunk(scenario: Scenario) -> bool:
    found = [delta for reply in deltas(scenario) for delta in reply]
    return any(delta.get("content") and delta.get("reasoning_content") for delta in found)


@cause
def empty_delta(scenario: Scenario) -> bool:
    scripts = [item for kind, script in asked_for(scenario) if kind == "events" for item in script]
    return any(item.get("delta") == "" for item in scripts)


@cause
def calls_in_several_events(scenario: Scenario) -> bool:
    for kind, script in asked_for(scenario):
        if kind == "events" and len([item for item in script if item.get("type") == "tool_calls"]) > 1:
            return True
    return False


# Tools


@cause
def tool_registered_after_the_run_was_made(scenario: Scenario) -> bool:
    return "register_tool_after_run" in scenario["input"]


@cause
def raw_schema(scenario: Scenario) -> bool:
    return any("raw_schema" in tool for tool in tools(scenario))


@cause
def unknown_tool(scenario: Scenario) -> bool:
    return any(text.startswith("Unknown tool: ") for text in results(scenario))


@cause
def unknown_tool_after_hook(scenario: Scenario) -> bool:
    return unknown_tool(scenario) and any(actions(scenario, "after_tool_execute"))


@cause
def values_of_another_language(scenario: Scenario) -> bool:
    return any("returns_special" in (tool.get("behaviour") or {}) for tool in tools(scenario))


@cause
def markup_in_an_error(scenario: Scenario) -> bool:
    """An error's text has signs that close the tag around it, or look as if they did."""
    prefix, suffix = "<tool_error ", "</tool_error>"
    inner = [text.split(">", 1)[1].removesuffix(suffix) for text in results(scenario) if text.startswith(prefix)]
    return any(sign in text for text in inner for sign in "<>&")


@cause
def arguments_no_object(scenario: Scenario) -> bool:
    """A call was made with what is no JSON object, and the model was asked again."""
    found = [call for request in scenario["observed"]["requests"] for call in sent_calls(request)]
    return any(not is_object(arguments) for arguments in found)


def sent_calls(request: dict[str, Any]) -> list[str]:
    """The argument texts of all calls in a request in wire form."""
    return [
        call["function"]["arguments"] for message in request["messages"] for call in message.get("tool_calls") or ()
    ]


@cause
def broken_arguments_ran(scenario: Scenario) -> bool:
    """What was no JSON ran as an empty object."""
    ran = {event["id"] for event in events(scenario, "tool_result") if "Invalid arguments" not in str(event["result"])}
    found = [call for reply in calls(scenario) for call in reply if call["id"] in ran]
    return any(call["arguments"].strip() and not is_object(call["arguments"]) for call in found)


@cause
def subagent_without_an_answer(scenario: Scenario) -> bool:
    return any(text.startswith("<subagent_error>") for text in results(scenario))


# Hooks and sources


@cause
def stop_where_nothing_can_stop(scenario: Scenario) -> bool:
    found = [*actions(scenario, "should_continue", "before_execute", "after_execute")]
    return any(stops(action.get("returns")) for _, _, action in found)


def stops(value: Any) -> bool:
    return isinstance(value, dict) and value.get("stop") is True


@cause
def hook_gives_no_text(scenario: Scenario) -> bool:
    """A hook answers with a result that is no text."""
    found = [action["returns"] for _, _, action in actions(scenario) if isinstance(action.get("returns"), dict)]
    return any("result" in answer and not isinstance(answer["result"], str) for answer in found)


@cause
def reply_of_another_role(scenario: Scenario) -> bool:
    """A hook puts a message in the reply's place that no model says."""
    found = [action["returns"] for _, _, action in actions(scenario, "after_model_response") if "returns" in action]
    return any((answer.get("message") or {}).get("role", "assistant") != "assistant" for answer in found)


@cause
def after_hook_fails_inside_others(scenario: Scenario) -> bool:
    """The run's after hook fails, and the agent's stands outside of it."""
    found = [*actions(scenario, "after_tool_execute")]
    failing = any(level == "run" and ("raises" in action or "raises_value" in action) for level, _, action in found)
    return failing and any(level == "agent" for level, _, _ in found)


@cause
def listing_fails(scenario: Scenario) -> bool:
    """A listing fails, and a hook wants to see every merge."""
    sources = scenario["input"].get("tool_sources", ())
    failing = any("raises" in entry for source in sources for entry in source["lists"])
    return failing and any(actions(scenario, "after_tools_resolved"))


@cause
def refreshed_before_another_source(scenario: Scenario) -> bool:
    """A source that is not the last was listed again: theirs moves its tools behind the others'."""
    names = [source["name"] for source in scenario["input"].get("tool_sources", ())]
    trace = scenario["observed"]["trace"]
    again = {entry["source"] for entry in trace if entry["at"] == "source_list" and entry["number"] > 1}
    return bool(again) and len(names) > 1 and any(name != names[-1] for name in again) and status(scenario) == "done"


@cause
def changed_while_listed(scenario: Scenario) -> bool:
    sources = scenario["input"].get("tool_sources", ())
    return any(entry.get("invalidates_itself") for source in sources for entry in source["lists"])


@cause
def refreshed_and_asked_to_go_on(scenario: Scenario) -> bool:
    """A source is listed again in a run whose rounds are judged."""
    again = [entry for entry in scenario["observed"]["trace"] if entry["at"] == "source_list" and entry["number"] > 1]
    return bool(again) and any(actions(scenario, "should_continue"))
