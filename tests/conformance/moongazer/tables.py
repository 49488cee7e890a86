"""Plays the tables: arguments on their way to a tool, chunks on their way to deltas, messages on their way to the wire."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from antiphon import ModelError, Tool
from antiphon.providers.raw_stream import RawStreamModel
from antiphon.tools.arguments import ArgumentError
from antiphon.types.request import CallChunk, FinishChunk, ModelRequest, TextChunk, ThinkingChunk

from .differences import TableEntry
from .projection import messages_from

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
        path = folder / "tables" / f"{name}.json"
        if path.exists():
            for row in table(json.loads(path.read_text())):
                yield Row(f"{name}: {row.name}", row.recorded, row.played)


def judge_rows(found: list[Row], entries: list[TableEntry]) -> tuple[list[str], list[str]]:
    """The rows that differ and are not listed, with a diff, and the entries that are listed and equal."""
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


def arguments(table: dict[str, Any]) -> Iterator[Row]:
    """Whether the tool was called, and with what; the words of a refusal are each engine's own."""
    for number, row in enumerate(table["rows"]):
        recorded = row["outcome"].get("tool_received", "refused")
        yield Row(f"{number} {row['about']} {row['arguments_text']}", recorded, received(row))


def received(row: dict[str, Any]) -> Any:
    tool = Tool.from_schema("f", "d", row["parameters"], lambda given: given)
    try:
        return tool.prepare(row["arguments_text"]).object
    except ArgumentError:
        return "refused"


# The adapter


def adapter(table: dict[str, Any]) -> Iterator[Row]:
    for row in table["reassembly"]:
        recorded = {"events": row["events"]} | ({"raises": True} if "raises" in row else {})
        yield Row(row["about"], recorded, asyncio.run(reassembled(row)))
    for number, row in enumerate(table["wire_requests"]):
        yield Row(f"wire request {number}", row["wire_request"], asyncio.run(sent(row)))


async def reassembled(row: dict[str, Any]) -> dict[str, Any]:
    """The deltas of the chunks, as their events.

    Most of these streams just stop, which is a dropped connection here. So that the rest can be compared, they are given
    an end of which nothing is told, all but the row that is about the missing end.
    """
    chunks: list[Any] = row["chunks"]
    ends = any(choice.get("finish_reason") for chunk in chunks for choice in (chunk or {}).get("choices") or ())
    closed = ends or row["about"] == "no finish"
    first = next((choice for chunk in chunks for choice in (chunk or {}).get("choices") or ()), {})

    async def raw(_request: Any, _cancel: Any) -> AsyncIterator[Any]:
        for chunk in chunks if closed else [*chunks, marker(first.get("index", 0))]:
            yield chunk

    events: list[dict[str, Any]] = []
    calls: dict[int, dict[str, Any]] = {}
    ending: list[dict[str, Any]] = []
    failed = False
    try:
        async for delta in RawStreamModel(raw).stream(ModelRequest(messages=())):
            match delta:
                case TextChunk(text=text):
                    events.append({"type": "content", "delta": text})
                case ThinkingChunk(text=text):
                    events.append({"type": "reasoning", "delta": text})
                case CallChunk():
                    take_call(calls, delta)
                case FinishChunk() if closed:
                    ending.append({"type": "finish", "reason": delta.detail})
                case _:
                    pass
    except ModelError:
        failed = True
    called = [{"type": "tool_calls", "calls": [calls[key] for key in sorted(calls)]}] if calls else []
    return {"events": [*events, *called, *ending]} | ({"raises": True} if failed else {})


def marker(index: int) -> dict[str, Any]:
    """The end of a stream that is read in this choice."""
    return {"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]}


def take_call(calls: dict[int, dict[str, Any]], chunk: CallChunk) -> None:
    call = calls.setdefault(chunk.key, {"id": "", "name": "", "arguments": ""})
    call["id"] = chunk.id or call["id"]
    call["name"] += chunk.name
    call["arguments"] += chunk.arguments


async def sent(row: dict[str, Any]) -> dict[str, Any]:
    """The request as the raw stream of the application gets it."""
    seen: list[Any] = []

    async def raw(request: Any, _cancel: Any) -> AsyncIterator[Any]:
        seen.append(request)
        yield marker(0)

    functions = [tool["function"] for tool in row["wire_request"].get("tools", ())]
    tools = [
        Tool.from_schema(one["name"], one["description"], one["parameters"], lambda given: given) for one in functions
    ]
    specs = tuple([tool.spec() for tool in tools])
    request = ModelRequest(messages=messages_from(row["messages"]), tools=specs)
    async for _ in RawStreamModel(raw).stream(request):
        pass
    return seen[0]


# Not built yet


def later(table: dict[str, Any]) -> Iterator[Row]:
    """A table of what stands outside: there is nothing here to play it with."""
    for part, found in table.items():
        for number, _ in enumerate(found if isinstance(found, list) else ()):
            yield Row(f"{part} {number}", "recorded", "not built")


TABLES: dict[str, Callable[[dict[str, Any]], Iterator[Row]]] = {
    "argument_preparation": arguments,
    "openai_adapter": adapter,
    "mcp_schema": later,
    "mcp_client": later,
}
