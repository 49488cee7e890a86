"""The declared tools and tool sources of a scenario."""

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

from antiphon import Agent, Limits, Recovery, Tool, ToolContext
from antiphon.types.cancel import CancelSignal

from .hooks import HookMaker
from .models import scripted_model
from .stage import Boom, Stage, raised, signalled, wait_ms

__all__ = ["DEFAULT_STEPS", "NO_RECOVERY", "Source", "limits", "make_tool"]

DEFAULT_STEPS = 6
NO_RECOVERY = Recovery(retries=0, length_retries=0, on_length="keep", empty_retries=0, on_empty="keep")
"""The recorded package asks once and takes what comes."""


def limits(max_steps: int | None) -> Limits:
    return Limits(turns=DEFAULT_STEPS if max_steps is None else max_steps, invalid_calls=None)


def make_tool(stage: Stage, declared: dict[str, Any]) -> Tool:
    """A tool of a scenario."""
    if "subagent" in declared:
        return make_subagent(stage, declared)
    name, behaviour = declared["name"], declared.get("behaviour") or {}

    async def body(arguments: dict[str, Any], context: ToolContext[Any]) -> Any:
        return await behave(stage, name, behaviour, arguments, context)

    parameters = declared.get("parameters") or declared.get("raw_schema") or {}
    hooks = HookMaker(stage, f"tool:{name}", lambda tool: make_tool(stage, tool))
    own = hooks.tool_hooks(declared["hooks"]) if declared.get("hooks") else None
    return Tool.from_schema(name, declared.get("description", ""), parameters, body, hooks=own)


def make_subagent(stage: Stage, declared: dict[str, Any]) -> Tool:
    child = declared["subagent"]
    hooks = HookMaker(stage, "child", lambda tool: make_tool(stage, tool))
    agent = Agent(
        scripted_model(stage, child["transport"], "child"),
        tools=[make_tool(stage, tool) for tool in child.get("tools", ())],
        hooks=hooks.hooks(child.get("hooks") or {}),
        limits=limits(child.get("max_steps")),
        recovery=NO_RECOVERY,
    )
    own = HookMaker(stage, f"tool:{declared['name']}", lambda tool: make_tool(stage, tool))
    return agent.as_tool(
        declared["name"],
        declared.get("description", ""),
        parameters=declared["parameters"],
        prompt=lambda arguments: arguments["task"],
        hooks=own.tool_hooks(declared["hooks"]) if declared.get("hooks") else None,
    )


async def behave(
    stage: Stage, name: str, behaviour: dict[str, Any], arguments: dict[str, Any], context: ToolContext[Any]
) -> Any:
    stage.note("tool_started", tool=name, args=arguments)
    if "delay_ms" in behaviour:
        await stubbornly(behaviour["delay_ms"])
        stage.note("tool_finished", tool=name)
    if "invalidates" in behaviour:
        stage.sources[behaviour["invalidates"]].invalidate()
    if "wait_for_abort" in behaviour:
        await until_aborted(context.cancel)
        stage.note("tool_saw_abort", tool=name)
        if behaviour["wait_for_abort"] == "raise":
            raise Boom("aborted")
    if (error := raised(behaviour)) is not None:
        raise error
    if behaviour.get("echo_args"):
        return arguments
    if "returns_special" in behaviour:
        return SPECIAL[behaviour["returns_special"]]()
    return behaviour.get("returns")


async def stubbornly(milliseconds: float) -> None:
    """Wait without heed to a stop: a cancellation is swallowed, as a careless tool would."""
    waiting = asyncio.ensure_future(wait_ms(milliseconds))
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError:
            continue


async def until_aborted(cancel: CancelSignal) -> None:
    """Wait for the stop, and react to it in one's own way."""
    try:
        await signalled(cancel)
    except asyncio.CancelledError:
        if not cancel.cancelled:
            raise


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


SPECIAL: dict[str, Callable[[], Any]] = {
    "undefined": lambda: None,
    "nan": lambda: float("nan"),
    "bigint": lambda: 2**70,
    "circular": circular,
    "function": lambda: circular,
    "error_object": lambda: Boom("an error as a value"),
    "date": lambda: dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    "map": lambda: {"a": 1},
    "symbol": object,
}


class Source:
    """A tool source of a scenario: its listings in order, the last one repeating."""

    def __init__(self, stage: Stage, declared: dict[str, Any]) -> None:
        self.name: str = declared["name"]
        self._stage = stage
        self._lists: list[dict[str, Any]] = declared["lists"]
        self._number = 0
        self._listeners: dict[object, Callable[[], None]] = {}
        if declared.get("can_invalidate", True):
            self.on_invalidated = self._subscribe
        stage.sources[self.name] = self

    async def list(self, _cancel: CancelSignal) -> list[Tool]:
        self._number += 1
        self._stage.note("source_list", source=self.name, number=self._number)
        entry = self._lists[min(self._number, len(self._lists)) - 1]
        if "delay_ms" in entry:
            await wait_ms(entry["delay_ms"])
        if entry.get("invalidates_itself"):
            self.invalidate()
        if (error := raised(entry)) is not None:
            raise error
        return [make_tool(self._stage, tool) for tool in entry["tools"]]

    def invalidate(self) -> None:
        """Tell that a new listing would differ."""
        self._stage.note("source_invalidated", source=self.name)
        for listener in list(self._listeners.values()):
            listener()

    def _subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        self._stage.note("source_subscribed", source=self.name)
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            if self._listeners.pop(key, None) is not None:
                self._stage.note("source_unsubscribed", source=self.name)

        return unsubscribe
