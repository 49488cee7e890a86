"""The declared tools of a scenario, each call of one recorded."""

import asyncio
import json
from typing import Any

from antiphon import Text, Tool, ToolContext, ToolError, ToolResult

from .stage import Boom, Stage, signalled, wait_ms
from .words import Json, part_in

__all__ = ["make_tool"]


def make_tool(stage: Stage, declared: Json) -> Tool:
    async def body(arguments: Json, context: ToolContext[Any]) -> Any:
        call = {"id": context.call_id, "name": declared["name"]}
        stage.note(tool_begins={**call, "args": arguments})
        behaviour = (declared.get("by_call_id") or {}).get(context.call_id, declared.get("behaviour") or {})
        try:
            with stage.watched():
                return await act(behaviour, arguments, context)
        finally:
            stage.note(tool_ends={**call, "signal_aborted": context.cancelled})

    return Tool.from_schema(
        declared["name"],
        declared.get("description", ""),
        declared.get("parameters") or {"type": "object"},
        body,
        label=declared.get("label"),
    )


async def act(behaviour: Json, arguments: Json, context: ToolContext[Any]) -> Any:
    if "delay_ms" in behaviour:
        await wait_ms(behaviour["delay_ms"])
    for update in behaviour.get("updates", ()):
        if "delay_ms" in update:
            await wait_ms(update["delay_ms"])
        context.progress([Text(update["text"])], update.get("details"))
    if "late_update_ms" in behaviour:
        late = behaviour["late_update_ms"] / 1000
        asyncio.get_running_loop().call_later(late, context.progress, [Text("late")])
    if behaviour.get("wait_for_abort"):
        await signalled(context.cancel)
    if "raises" in behaviour:
        raise ToolError(behaviour["raises"])
    if "raises_value" in behaviour:
        raise Boom(str(behaviour["raises_value"]))
    return value_of(behaviour, arguments, context)


def value_of(behaviour: Json, arguments: Json, context: ToolContext[Any]) -> Any:
    if behaviour.get("returns_args"):
        text = json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
        return ToolResult(text, details={"args": arguments})
    if behaviour.get("returns_nothing"):
        return None
    returned = behaviour.get("returns", f"ok {context.call_id}")
    if isinstance(returned, str):
        return returned
    content = [part_in(block) for block in returned.get("content", ())]
    return ToolResult(content or "", details=returned.get("details"), end_turn=bool(returned.get("endTurn")))
