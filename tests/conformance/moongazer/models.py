"""The scripted model of a scenario: provider chunks through the Chat Completions adapter, or finished deltas."""

from collections.abc import AsyncIterator, Callable
from typing import Any, cast

from antiphon.providers.function import FunctionModel
from antiphon.providers.raw_stream import RawStreamModel
from antiphon.types.cancel import CancelSignal
from antiphon.types.messages import StopReason
from antiphon.types.request import Delta, FinishChunk, Model, ModelRequest, TextChunk, ThinkingChunk, WholeCall

from .projection import messages_of
from .stage import Boom, Stage, signalled, wait_ms

__all__ = ["scripted_model"]

REASONS: dict[str, StopReason] = {"tool_calls": "tool_calls", "length": "length", "content_filter": "filtered"}


def scripted_model(stage: Stage, transport: dict[str, Any], agent: str | None) -> Model:
    """The model of the run itself, or of a sub-agent (`agent` is then its label in the recording)."""
    script = Script(stage, transport["requests"], agent)
    if transport["kind"] == "openai_chunks":
        return RawStreamModel(script.chunks)
    return FunctionModel(script.deltas)


class Script:
    """What each model call gets, in order; calls beyond the list get an empty stream."""

    def __init__(self, stage: Stage, requests: list[list[dict[str, Any]]], agent: str | None) -> None:
        self._stage = stage
        self._requests = requests
        self._label = {} if agent is None else {"agent": agent}
        self._number = 0

    def _asked(self, cancel: CancelSignal, **said: Any) -> list[dict[str, Any]]:
        self._number += 1
        self._stage.note("model_request", **self._label, number=self._number)
        asked = {**self._label, "number": self._number, **said, "signal_aborted": cancel.cancelled}
        self._stage.requests.append(asked)
        return self._requests[self._number - 1] if self._number <= len(self._requests) else []

    async def chunks(self, request: Any, cancel: CancelSignal) -> AsyncIterator[dict[str, Any]]:
        """The raw stream that an application would put under the adapter."""
        said = {"messages": request["messages"]}
        if "tools" in request:
            said["tools"] = [tool["function"]["name"] for tool in request["tools"]]
        if "tool_choice" in request:
            said["tool_choice"] = request["tool_choice"]
        return played(self._asked(cancel, **said), cancel, lambda item: [item])

    async def deltas(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """A model of the application's own."""
        tools = [tool.name for tool in request.tools]
        items = self._asked(request.cancel, messages=messages_of(request.messages), tools=tools)
        return played(items, request.cancel, deltas_of)


async def played(
    items: list[dict[str, Any]], cancel: CancelSignal, make: Callable[[dict[str, Any]], list[Any]]
) -> AsyncIterator[Any]:
    for item in items:
        if "$raise" in item:
            raise Boom(item["$raise"])
        if "$delay_ms" in item:
            await wait_ms(item["$delay_ms"])
        elif "$wait_for_abort" in item:
            await signalled(cancel)
            if item["$wait_for_abort"] == "raise":
                raise Boom("aborted")
        else:
            for made in make(item):
                yield made


def deltas_of(event: dict[str, Any]) -> list[Delta]:
    """A transport event of theirs as our deltas. A kind that neither knows says nothing."""
    match event["type"]:
        case "content":
            return [TextChunk(event["delta"])]
        case "reasoning":
            return [ThinkingChunk(event["delta"])]
        case "tool_calls":
            calls = cast("list[dict[str, Any]]", event["calls"])
            return [WholeCall(name=call["name"], arguments=call["arguments"], id=call["id"]) for call in calls]
        case "finish":
            return [FinishChunk(REASONS.get(event.get("reason") or "", "stop"), event.get("reason"))]
        case _:
            return []
