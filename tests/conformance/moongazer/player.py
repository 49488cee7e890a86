"""Plays recorded scenarios with antiphon: the same input, the same moments, and what was seen in the same words."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

from antiphon import Agent, CancelToken, Event, RunError, ToolRegistry, UsageError

from ..clock import run_in_virtual_time
from ..listing import Report, play_scenarios, recordings
from .compare import differing
from .differences import Entry, Verdict, judge, read_entries
from .hooks import HookMaker
from .listeners import ExtraListeners
from .models import scripted_model
from .projection import Teller, messages_from, messages_of, status_of
from .stage import Stage, root_text
from .tools import NO_RECOVERY, Source, limits, make_tool

__all__ = ["Report", "judged", "play", "play_all", "recordings"]


def play_all(folder: Path) -> Report:
    """Play every scenario of a folder and hold it against the list of differences."""
    entries = read_entries()
    return play_scenarios(folder, lambda scenario: judged(scenario, entries))


def judged(scenario: dict[str, Any], entries: list[Entry]) -> Verdict:
    """Play one scenario and hold it against the entries."""
    try:
        observed = json.loads(json.dumps(play(scenario["input"])))
    except Exception as error:  # noqa: BLE001 - a fault of the player is one of this scenario, not of the others
        return Verdict((), {"player": f"it could not be played: {error!r}"}, ())
    return judge(scenario, differing(scenario["observed"], observed), entries)


def play(given: dict[str, Any]) -> dict[str, Any]:
    """What happens for a scenario's `input`, in the shape of its `observed`."""
    return run_in_virtual_time(Player(given).play())


class Player:
    """One scenario: an agent, a run, and whoever watches and stops it."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.stage = Stage()
        self.events: list[dict[str, Any]] = []
        self.run_end: dict[str, Any] | None = None
        self.registry = ToolRegistry()
        for tool in given.get("tools", ()):
            self._register(tool)
        self.stops: list[dict[str, Any]] = given.get("stop", [])

    async def play(self) -> dict[str, Any]:
        try:
            run = self._make_run()
        except UsageError as error:  # refused before there is a run at all
            return {"events": [{"type": "refused", "error": str(error)}], "requests": [], "run_end": None, "trace": []}
        self.stage.run = run
        self.teller, self.children = Teller(run.run_id), dict[str, Teller]()
        extra = ExtraListeners(run, self.given.get("extra_listeners", []))
        extra.subscribe("before_main")
        run.subscribe(self._listen)
        extra.subscribe("after_main")
        if "register_tool_after_run" in self.given:
            self._register(self.given["register_tool_after_run"])
        if self._wanted("immediately"):
            self.stage.stop()
        timers = [(stop["ms"], self.stage.stop) for stop in self._wanted("after_ms")] + extra.late()
        waits = [self.stage.after_ms(milliseconds, act) for milliseconds, act in timers]
        with contextlib.suppress(RunError):
            await run
        if self._wanted("after_end"):
            self.stage.stop()
        await asyncio.sleep(max(waits, default=0.0))  # the moments that come after the run
        for event in self.events:
            if event["type"] == "error" and self.run_end is not None:
                event["error"] = self.run_end.get("error")  # ours says its kind in front; the error itself is the same
        observed: dict[str, Any] = {"events": self.events, "requests": self.stage.requests, "run_end": self.run_end}
        if extra.heard:
            observed["listener_events"] = extra.heard
        return observed | {"trace": self.stage.trace}

    def _register(self, tool: dict[str, Any]) -> None:
        """The last of a name wins."""
        self.registry.register(make_tool(self.stage, tool), replace=True)

    def _wanted(self, when: str) -> list[dict[str, Any]]:
        return [stop for stop in self.stops if stop["when"] == when]

    def _make_run(self) -> Any:
        given, stage = self.given, self.stage
        if self._wanted("signal_already_aborted"):
            stage.token.cancel()
        agent = Agent(
            scripted_model(stage, given["transport"], None),
            tools=self.registry,
            sources=[Source(stage, source) for source in given.get("tool_sources", ())],
            hooks=self._maker("agent").hooks(given.get("agent_hooks") or {}),
            limits=limits(given.get("max_steps")),
            recovery=NO_RECOVERY,
        )
        hooks = self._maker("run").hooks(given.get("run_hooks") or {}, on_run_end=self._ended)
        cancel: CancelToken | None = stage.token if any("signal" in stop["when"] for stop in self.stops) else None
        return agent.run(messages=messages_from(given["messages"]), hooks=hooks, cancel=cancel)

    def _maker(self, label: str) -> HookMaker:
        return HookMaker(self.stage, label, lambda tool: make_tool(self.stage, tool), lambda: self.teller.turns)

    def _listen(self, event: Event) -> None:
        """The recording listener; moments are counted in the events it gets."""
        if event.run_id != self.teller.run_id:
            child = self.children.setdefault(event.run_id, Teller(event.run_id))
            if (told := child.told(event)) is not None:
                self.stage.note("child_event", event=told)
            return
        told = self.teller.told(event)
        if told is None:
            return
        self.events.append(told)
        self.stage.note("event", event=told)
        for stop in self.stops:
            if stop.get("number") == len(self.events):
                (self.stage.stop if stop["when"] == "after_event" else self.stage.cancel)()

    async def _ended(self, context: Any) -> None:
        self.stage.note("run_end")
        self.run_end = {"status": status_of(context.status), "steps": self.teller.turns}
        if context.error is not None:
            self.run_end["error"] = root_text(context.error)
        self.run_end["messages"] = messages_of(context.messages)
