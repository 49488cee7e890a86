"""Plays the tables of single-function cases. A row's name says what kind of case it is, by its input and output."""

import json
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, cast

from antiphon import AssistantMessage, ModelInfo, Prices, Tool, Usage, repair
from antiphon.loop.outgoing import sendable
from antiphon.providers.anthropic._models import rules_for
from antiphon.providers.anthropic._thinking import budget
from antiphon.providers.call_ids import IdRule
from antiphon.providers.catalogue import Catalogue, model_info
from antiphon.providers.history import HistoryRules, visible_messages
from antiphon.providers.json_text import dumps
from antiphon.providers.overflow import is_context_overflow
from antiphon.tools.arguments import ArgumentError
from antiphon.types.messages import StopReason
from antiphon.types.partial_json import parse_partial
from antiphon.types.thinking import effective_thinking

from .differences import TableEntry
from .history_words import message_in_table, message_out_table
from .words import Json

__all__ = ["Row", "judge_rows", "rows"]


class Row(NamedTuple):
    """One row, what was recorded, and what happens here (both as JSON)."""

    name: str
    recorded: Any
    played: Any

    @property
    def equal(self) -> bool:
        return self.recorded == self.played


def rows(folder: Path) -> Iterator[Row]:
    """All rows of the tables in `folder`."""
    for name, table in TABLES.items():
        path = folder / "vectors" / f"{name}.json"
        if path.exists():
            for row in table(json.loads(path.read_text())["cases"]):
                yield Row(f"{name}: {row.name}", *json.loads(json.dumps([row.recorded, row.played])))


def judge_rows(found: list[Row], entries: list[TableEntry]) -> tuple[list[str], list[str]]:
    """The rows that differ and are not listed, with both sides, and those that are listed and equal."""
    unlisted: list[str] = []
    stale: list[str] = []
    for row in found:
        listed = [entry for entry in entries if any(fnmatch(row.name, pattern) for pattern in entry.rows)]
        if row.equal and listed:
            stale.append(row.name)
        elif not row.equal and not listed:
            unlisted.append(f"{row.name}\n  recorded {row.recorded}\n  antiphon {row.played}")
    return unlisted, stale


# Arguments


def arguments(cases: list[Json]) -> Iterator[Row]:
    """Whether the tool would be called, and with what; the words of a refusal are each engine's own."""
    for case in cases:
        recorded = case.get("value", "refused")
        coerced = recorded not in ("refused", case["arguments"]) or is_bool_changed(recorded, case["arguments"])
        filled = '"default"' in json.dumps(case["schema"])
        kind = "coerced" if coerced else "with a default" if filled else "as written"
        yield Row(f"{kind}: {case['about']}", {"received": recorded}, {"received": received(case)})


def is_bool_changed(recorded: Any, given: Any) -> bool:
    """For Python `True == 1`."""
    return json.dumps(recorded) != json.dumps(given) and recorded != "refused"


def received(case: Json) -> Any:
    tool = Tool.from_schema("t", "", case["schema"] or {"type": "object"}, lambda given: given)
    try:
        return tool.prepare(json.dumps(case["arguments"])).object
    except ArgumentError:
        return "refused"


# JSON on its way


def partial_json(cases: list[Json]) -> Iterator[Row]:
    """What a viewer reads. Where nothing can be read yet, ours says nothing, theirs an empty object."""
    for case in cases:
        value, text = parse_partial(case["text"]), case["text"]
        if value is None and text.strip() != "null":
            value = {}
        if case["warnings"]:
            kind = "garbage"
        elif re.fullmatch(r".*(\d[.]|\d[eE][+-]?|-)", text):
            kind = "half a number"
        elif text == "nul":
            kind = "half a literal alone"
        elif "\n" in text:
            kind = "a line end in a text"
        else:
            kind = "plain"
        recorded = {"value": case["value"], "warnings": case["warnings"]}
        yield Row(f"{kind}: {text!r}", recorded, {"value": value, "warnings": []})


# Models


def overflow(cases: list[Json]) -> Iterator[Row]:
    for case in cases:
        read = case.get("cacheRead", 0)
        usage = Usage(input=case["input"] + read, cache_read=read or None) if "input" in case else None
        reasons: dict[str, StopReason] = {"toolUse": "tool_calls"}
        reason: StopReason = reasons.get(case["stopReason"]) or case["stopReason"]
        message = AssistantMessage(parts=(), stop_reason=reason, error=case.get("errorMessage"), usage=usage)
        said = case.get("errorMessage") or json.dumps({name: case[name] for name in case if name != "overflow"})
        yield Row(
            f"{case['stopReason']}: {said}", case["overflow"], is_context_overflow(message, case.get("contextWindow"))
        )


def cost(cases: list[Json]) -> Iterator[Row]:
    """Theirs counts cached tokens apart from the input, and tells the parts; the sum is compared."""
    for number, case in enumerate(cases):
        prices, usage = case["prices"], case["usage"]
        told = Usage(
            input=usage["input"] + usage["cacheRead"] + usage["cacheWrite"],
            output=usage["output"],
            cache_read=usage["cacheRead"],
            cache_write=usage["cacheWrite"],
        )
        ours = Prices(
            input=prices["input"],
            output=prices["output"],
            cache_read=prices["cacheRead"],
            cache_write=prices["cacheWrite"],
        ).cost(told)
        yield Row(str(number), round(case["cost"]["total"], 12), round(ours or 0, 12))


def search(cases: list[Json]) -> Iterator[Row]:
    """The list that was searched is made of what was found in it."""
    ids = sorted({case["found"] for case in cases if case["found"] is not None})
    models = [ModelInfo(provider="test", id=each, name=each.upper().replace("-", " ")) for each in ids]
    catalogue = Catalogue(models)
    for case in cases:
        found = catalogue.find_model(case["pattern"])
        yield Row(repr(case["pattern"]), case["found"], found.id if found else None)


def capabilities(cases: list[Json]) -> Iterator[Row]:
    """What becomes of a level. Ours knows models by provider from its catalogue, not by what a name looks like."""
    for case in cases:
        info = known(case["id"])
        names = ("max", "xhigh", "high")
        recorded = {name: case[f"{name}_becomes"] for name in names}
        played: Json = {name: effective_thinking(cast("Any", name), info) for name in names}
        claude = case["id"].find("claude-") >= 0
        if claude:
            recorded["adaptive"] = case["adaptive_thinking"]
            played["adaptive"] = rules_for(case["id"]).thinking in ("either", "adaptive")
        nothing_said = info is None or info.thinking_levels is None
        kind = "unknown" if nothing_said and recorded["max"] != "max" else "told by both"
        yield Row(f"{kind}: {case['id']}", recorded, played)


def known(model: str) -> ModelInfo | None:
    for provider in ("openai", "anthropic", "gemini"):
        if (info := model_info(provider, model)) is not None:
            return info
    return None


def budgets(cases: list[Json]) -> Iterator[Row]:
    """The smaller of both limits is what a request sends; theirs writes no budget as 0."""
    for case in cases:
        limit = min(case["requested_max_tokens"], case["model_max_tokens"])
        tokens = budget(case["level"], limit, case["custom_budgets"]) or 0
        said = f"{case['level']} of {limit}, own {json.dumps(case['custom_budgets'])}"
        tokens_then: int = case["thinkingBudget"]
        kind = "room"
        if 0 < tokens_then < 1024:
            kind = "below the least"
        elif tokens_then > max(1024, limit - max(4096, limit // 4)):
            kind = "answer cut short"
        recorded = {"limit": case["maxTokens"], "budget": case["thinkingBudget"]}
        yield Row(f"{kind}: {said}", recorded, {"limit": limit, "budget": tokens})


# History for another model


def history(cases: list[Json]) -> Iterator[Row]:
    rules = HistoryRules(origin="prov:m1", thoughts="signed", foreign="text", ids=IdRule())
    for case in cases:
        given = [message_in_table(message) for message in case["messages"]]
        seen = visible_messages(sendable(repair(given)[0]), rules)
        ids: dict[str, int] = {}
        recorded = [message_out_table(message_in_table(message), ids) for message in case["result"]]
        ids = {}
        yield Row(case["about"], recorded, [message_out_table(message, ids) for message in seen])


# Text and credentials


def text(cases: list[Json]) -> Iterator[Row]:
    for case in cases:
        cleaned: str = json.loads(dumps("".join([chr(unit) for unit in case["in"]])))
        units = cleaned.encode("utf-16-le")
        played = [int.from_bytes(units[place : place + 2], "little") for place in range(0, len(units), 2)]
        kind = "NUL" if 0 in case["in"] else "half a character" if len(case["out"]) < len(case["in"]) else "whole"
        yield Row(f"{kind}: {case['in']}", case["out"], played)


def credentials(cases: list[Json]) -> Iterator[Row]:
    """There is no login here: a key is asked for at every request, from whoever keeps it fresh."""
    for case in cases:
        yield Row(json.dumps(case), case["expired"], None)


TABLES: dict[str, Callable[[list[Json]], Iterator[Row]]] = {
    "validate-tool-arguments": arguments,
    "parse-streaming-json": partial_json,
    "context-overflow": overflow,
    "cost": cost,
    "find-model": search,
    "model-capabilities": capabilities,
    "thinking-budget": budgets,
    "transform-messages": history,
    "sanitize-text": text,
    "oauth-expiry": credentials,
}
