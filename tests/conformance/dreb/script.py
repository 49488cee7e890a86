"""The scripted model of a scenario: the steps of each call as deltas."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from antiphon import Dropped, ModelError, ModelInfo, ModelRequest, Usage
from antiphon.providers.keys import ApiKey, find_key
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)

from .stage import Stage, signalled, wait_ms
from .words import Json, message_out, reason_in, usage_in

__all__ = ["Script", "Scripted"]

DROP = re.compile(r"stream ended without|connection likely dropped|stream closed before", re.IGNORECASE)
"""How the reference recognises a dropped stream."""


class Script:
    """What each call of the model gets, in order, whichever model is called."""

    def __init__(self, stage: Stage, entries: list[Json]) -> None:
        self.stage = stage
        self._entries = entries
        self._number = 0

    def asked(self, info: ModelInfo, stand_in: ModelInfo, request: ModelRequest, key: str | None) -> Json:
        """Write the call down; its entry."""
        self._number += 1
        self.stage.note(llm_call=self._number)
        self.stage.llm_calls.append(
            {
                "call": self._number,
                "model": {"provider": info.provider, "id": info.id},
                "options": options_out(info, request, key),
                "signal_aborted": request.cancel.cancelled,
                "system_prompt": request.instructions,
                "messages": [message_out(message, stand_in) for message in request.messages],
                "tools": [tool.name for tool in request.tools],
            }
        )
        if self._number > len(self._entries):
            return {"raises": f"the script has no call {self._number}"}
        return self._entries[self._number - 1]


def options_out(info: ModelInfo, request: ModelRequest, key: str | None) -> Json:
    """What reached the model, in their words: the output limit of a model that none is set for is its own."""
    settings = request.settings
    limit = settings.max_output_tokens
    options: Json = {
        "maxTokens": info.output_limit if limit is None else limit,
        "reasoning": settings.thinking if settings.thinking != "off" else None,
        "temperature": settings.temperature,
        "apiKey": key,
        "sessionId": request.session_id,
        "thinkingBudgets": settings.thinking_budgets,
        "thinkingDisplay": settings.thinking_display,
        "cacheRetention": settings.cache,
        "headers": settings.extra_headers,
    }
    return {name: value for name, value in options.items() if value is not None}


class Scripted:
    """A model that follows the script. Its key is looked up for every request, as a provider does it."""

    def __init__(self, script: Script, info: ModelInfo, stand_in: ModelInfo, api_key: ApiKey = None) -> None:
        self.info = info
        self._script = script
        self._stand_in = stand_in
        self._api_key = api_key

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The steps of the next entry. A drop is told by its type, as ours are."""
        key = await find_key(self._api_key, self.info.provider, ())
        entry = self._script.asked(self.info, self._stand_in, request, key)
        for code, text in warnings_of(entry.get("warn")):
            yield WarningChunk(code, text)
        if "raises" in entry:
            raise failure(entry["raises"])
        reply = Reply(self._script.stage)
        for step in entry["steps"]:
            await asyncio.sleep(0)
            if "pause_ms" in step:
                await wait_ms(step["pause_ms"])
            elif "wait_for_abort" in step:
                await signalled(request.cancel)
            elif "iterator_raises" in step:
                raise failure(step["iterator_raises"])
            elif "ends_without_terminal" in step:
                return
            else:
                with self._script.stage.watched():
                    deltas = reply.deltas(step)
                    told = next(deltas, None)
                while told is not None:
                    yield told
                    with self._script.stage.watched():
                        told = next(deltas, None)
                if step["type"] == "error":
                    raise failure(step.get("errorMessage") or "the reply failed")


def warnings_of(given: Any) -> Iterator[tuple[str, str]]:
    if given is None:
        return
    for item in given if isinstance(given, list) and given and not isinstance(given[0], str) else [given]:
        if isinstance(item, dict):
            yield str(item.get("code", "")), str(item.get("message", item.get("text", "")))
        elif isinstance(item, list):
            yield str(item[0]), str(item[1] if len(item) > 1 else "")
        else:
            yield str(item), ""


def failure(text: str) -> ModelError:
    return Dropped(text) if DROP.search(text) else ModelError(text)


class Reply:
    """One reply of the script. Content that came only with its end is given in one piece."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._streamed: dict[int, Json] = {}

    def deltas(self, step: Json) -> Iterator[Delta]:
        kind: str = step["type"]
        if kind == "start":
            yield UsageChunk(usage_in(step["usage"]) if "usage" in step else Usage())
        elif kind in ("done", "error"):
            yield from self._end(step)
        else:
            yield from self._block(kind, step)
            if not kind.endswith("_delta"):
                self._stage.block(kind)

    def _block(self, kind: str, step: Json) -> Iterator[Delta]:
        index = step["contentIndex"]
        block = self._streamed.setdefault(index, {})
        match kind:
            case "text_delta":
                block["text"] = block.get("text", "") + step["delta"]
                yield TextChunk(step["delta"])
            case "thinking_delta":
                yield ThinkingChunk(step["delta"])
            case "toolcall_start":
                yield CallChunk(index, step["id"], step["name"])
            case "toolcall_delta":
                yield CallChunk(index, arguments=step["delta"])
            case "text_end" if step.get("signature"):
                yield TextChunk("", step["signature"])
            case "thinking_end" if step.get("signature") or step.get("redacted"):
                yield ThinkingChunk("", step.get("signature"), step.get("redacted", False))
            case _:
                pass

    def _end(self, step: Json) -> Iterator[Delta]:
        dropped = step["type"] == "error" and DROP.search(step.get("errorMessage") or "") is not None
        self._stage.in_one_piece = True
        try:
            for index, block in enumerate(step.get("content") or () if not dropped else ()):
                if index not in self._streamed:
                    yield whole(block)
        finally:
            self._stage.in_one_piece = False
        if "usage" in step:
            yield UsageChunk(usage_in(step["usage"]))
        if step["type"] == "done":
            yield FinishChunk(reason_in(step["reason"]), step.get("errorMessage"))


def whole(block: Json) -> Delta:
    """A block that was never streamed."""
    match block["type"]:
        case "text":
            return TextChunk(block["text"], block.get("textSignature"))
        case "thinking":
            return ThinkingChunk(block["thinking"], block.get("thinkingSignature"), block.get("redacted", False))
        case _:
            return WholeCall(name=block["name"], arguments=json.dumps(block["arguments"]), id=block["id"])
