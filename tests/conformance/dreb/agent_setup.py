"""The input of a scenario as an agent of ours: model, tools, hooks, options."""

from typing import Any

from antiphon import Agent, Limits, ModelInfo, ModelSettings, Recovery, Tool, ToolOptions

from .hooks import HookMaker
from .script import Script, Scripted
from .stage import Stage
from .tools import make_tool
from .words import Json, model_in, settings_in

__all__ = ["MODES", "Setup", "execution_of"]

MODES = {"one-at-a-time": "one", "all": "all"}

NO_LIMITS = Limits(turns=None, requests=None, tool_calls=None, tokens=None, cost=None, seconds=None, invalid_calls=None)
"""The reference has none."""


def execution_of(word: str) -> Any:
    return ToolOptions(execution=word, timeout=None)  # pyright: ignore[reportArgumentType] - one of two words


class Setup:
    """What a scenario gives, and the agent that it makes."""

    def __init__(self, given: Json) -> None:
        self.given = given
        self.options: Json = given.get("options") or given.get("config") or {}
        self.stage = Stage()
        self.stand_in: ModelInfo = model_in(given.get("model"))
        self.script = Script(self.stage, given.get("llm") or [])
        self.hooks = HookMaker(self.stage, given.get("hooks") or {}, self.model)
        self.tools: dict[str, Tool] = {tool["name"]: make_tool(self.stage, tool) for tool in given.get("tools") or ()}

    def model(self, changes: Json | None = None) -> Scripted:
        """The stand-in, or what it becomes with these changes."""
        info = model_in({**(self.given.get("model") or {}), **(changes or {})})
        return Scripted(self.script, info, self.stand_in, self.hooks.api_key(self.options.get("apiKey")))

    def settings(self, level: str | None = None) -> ModelSettings:
        return settings_in(self.options, level)

    def active(self, names: list[str] | None) -> list[Tool]:
        return [self.tools[name] for name in names] if names is not None else list(self.tools.values())

    def agent(self) -> Agent[None]:
        options = self.options
        return Agent(
            self.model(),
            instructions=self.given.get("system_prompt") or "",
            tools=self.active(self.given.get("active_tools")),
            hooks=self.hooks.hooks(),
            limits=NO_LIMITS,
            settings=self.settings(self.given.get("thinking_level")),
            recovery=self.recovery(),
            tool_options=execution_of(options.get("toolExecution", "parallel")),
            to_model=self.hooks.to_model(),
        )

    def recovery(self) -> Recovery:
        """The reference repeats drops and cut-off answers, keeps empty ones, and knows no stalls."""
        options = self.options
        cap = options.get("maxRetryDelayMs")
        return Recovery(
            retries=options.get("streamRetries", 3),
            delay=options.get("streamRetryBaseDelayMs", 1000) / 1000,
            jitter=0.0,
            max_wait=cap / 1000 if cap else None,
            length_retries=options.get("lengthRetries", 2),
            empty_retries=0,
            on_empty="keep",
            first_token=None,
            idle=None,
            request=None,
        )
