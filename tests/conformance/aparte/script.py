"""What a recording's input scripts: the transport, the tools, the approvals, the stop. Everything follows events."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio.lowlevel

from antiphon import Approve, CancelToken, Deny, Tool, ToolContext, ToolResult
from antiphon.loop.spec import ApprovalContext
from antiphon.tools.hooks import CallInfo
from antiphon.types.request import (
    Delta,
    ModelRequest,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)

from .projection import Json, usage_in

Step = tuple[str, Any]
"""What happened: `event`, `request`, `append`, `handler` or `approval`, and what with."""


def encoded(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def failure(said: Json) -> BaseException:
    """An error of a script. An abort error is a cancellation; others keep the name that they have there."""
    if said["name"] == "AbortError":
        return asyncio.CancelledError(said["message"])
    return type(said["name"], (Exception,), {})(said["message"])


class Script:
    """The far side of a run, played from the recording's input. `steps` is the one order of all that happens."""

    def __init__(self, given: Json) -> None:
        self.given = given
        self.token = CancelToken()
        self.steps: list[Step] = []
        self.predicate_calls: list[Json] = []
        self.warned: set[str] = set()
        self._handled: dict[str, int] = {}
        self._requests = itertools.count()
        self._approved = itertools.count()

    # The transport

    async def transport(self, _request: ModelRequest) -> str | AsyncIterator[Delta]:
        """The next entry's answer: text, or a stream."""
        number, entries = next(self._requests), self.given["transport"]
        entry: Json = entries[number] if number < len(entries) else {"stream": []}
        await anyio.lowlevel.checkpoint()
        if entry.get("aborts_run"):
            self.token.cancel()
        if "raises" in entry:
            raise failure(entry["raises"])
        return entry["text"] if "text" in entry else self._stream(entry)

    async def _stream(self, entry: Json) -> AsyncIterator[Delta]:
        try:
            for item in entry["stream"]:
                await anyio.lowlevel.checkpoint()
                if item.get("control") == "abort":
                    self.token.cancel()
                elif item.get("control") == "raise":
                    raise failure(item["error"])
                elif (delta := self._delta(item)) is not None:
                    yield delta
        except (GeneratorExit, asyncio.CancelledError) as closed:
            if entry.get("close_raises"):
                raise failure({"name": "Error", "message": "close failed"}) from closed
            raise

    def _delta(self, item: Json) -> Delta | None:
        match item["type"]:
            case "text":
                return TextChunk(item["delta"])
            case "thinking":
                return ThinkingChunk(item["delta"])
            case "tool_use":
                return WholeCall(item["name"], encoded(item["input"]), item["id"])
            case "done":
                return UsageChunk(usage_in(item["usage"])) if item.get("usage") else None
            case "error":
                raise failure({"name": "Error", "message": item["message"]})
            case kind if kind in self.warned:
                return None
            case kind:
                self.warned.add(kind)
                return WarningChunk("unknown_event", kind)

    # The tools

    def declared(self) -> list[Tool]:
        """The tools that the request advertises."""
        return [self.tool(said["name"], said) for said in self.given["base_request"].get("tools", ())]

    name = "lookup"

    async def list(self, _cancel: Any) -> Sequence[Tool]:
        """As a tool source: nothing is advertised."""
        return ()

    def find(self, name: str) -> Tool | None:
        """As a tool source: what a call names is looked up when it is called."""
        return self.tool(name, {}) if "calls" in self.given.get("tools", {}).get(name, {}) else None

    def tool(self, name: str, said: Json) -> Tool:
        """A tool: `said` is its declaration, if it is advertised; its limit and its need of approval are looked up."""
        scripted = self.given.get("tools", {}).get(name, {})
        config = scripted.get("config", {})
        needs = config.get("needs_approval", False)

        async def body(arguments: Json, context: ToolContext[Any]) -> Any:
            self.steps.append(("handler", {"id": context.call_id, "name": name, "input": arguments}))
            number = self._handled[name] = self._handled.get(name, -1) + 1
            return await self._behave(scripted["calls"][min(number, len(scripted["calls"]) - 1)])

        return Tool.from_schema(
            name,
            said.get("description", ""),
            said.get("inputSchema", {"type": "object"}),
            body if "calls" in scripted else None,
            max_turns=config.get("max_turns"),
            needs_approval=(lambda call: self._predicate(needs, call)) if isinstance(needs, dict) else needs,
            instructions=said.get("systemPrompt"),
        )

    async def _behave(self, behaviour: Json) -> Any:
        if behaviour.get("aborts_run"):
            self.token.cancel()
        await wait(behaviour.get("delay_ms", 0) / 1000, deaf=behaviour.get("on_abort") != "raise_abort_error")
        if "raises" in behaviour:
            raise failure(behaviour["raises"])
        structured = behaviour.get("structured")
        return behaviour["returns"] if structured is None else ToolResult(behaviour["returns"], details=structured)

    # Approval

    def _predicate(self, rules: Json, call: CallInfo) -> Any:
        self.predicate_calls.append({"id": call.id, "name": call.name, "input": call.arguments})
        if "raises" in rules:
            raise failure(rules["raises"])
        for rule in rules["rules"]:
            if rule["when_input"] == call.arguments:
                return rule["answer"]
        return rules["otherwise"]

    async def approver(self, context: ApprovalContext) -> Approve | Deny:
        """The resolver's next answer. A payload that is an object is merged over the arguments."""
        call, answers = context.call, self.given["approvals"]
        self.steps.append(("approval", {"id": call.id, "name": call.name, "input": context.arguments}))
        answer = answers[min(next(self._approved), len(answers) - 1)]
        if answer.get("aborts_run"):
            self.token.cancel()
        if "raises" in answer:
            raise failure(answer["raises"])
        if answer.get("nothing"):
            return None  # pyright: ignore[reportReturnType] - what the recording is about
        if not answer["approved"]:
            return Deny(answer.get("reason"), answer.get("instruction"))
        payload = answer.get("payload")
        return Approve(context.arguments | payload if isinstance(payload, dict) else None)


async def wait(seconds: float, *, deaf: bool) -> None:
    """Let time pass. A deaf handler goes on when it is cancelled."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while (left := end - loop.time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            if not deaf:
                raise
