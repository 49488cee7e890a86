"""What `ask` and `chat` have in common: the options that make an agent, and the agent that they make."""

from pathlib import Path
from typing import Final, get_args

from msgspec import Struct
from rich.console import Console
from rich.text import Text as Line

from antiphon.agent.agent import Agent
from antiphon.cli._embedded import is_embedded, make_ready
from antiphon.cli._lines import one_line
from antiphon.cli.choose import Choice, choose
from antiphon.cli.workspace import workspace
from antiphon.errors import UsageError
from antiphon.loop.limits import Limits
from antiphon.tools.tool import Tool
from antiphon.types.request import Model, ModelSettings, ThinkingLevel

__all__ = ["INSTRUCTIONS", "LEVELS", "Made", "Setup", "close_model", "made", "model_of"]

INSTRUCTIONS: Final = "You answer in a terminal: briefly, in plain text."
"""What the model is told when nobody says anything else."""

LEVELS: Final = get_args(ThinkingLevel)


class Setup(Struct, frozen=True, kw_only=True):
    """The options as they were typed; `None` leaves the choice to the defaults."""

    model: str | None = None
    system: str | None = None
    seed: int | None = None
    temperature: float | None = None
    thinking: str | None = None
    max_turns: int | None = None
    tools: bool = True
    cwd: Path | None = None


class Made(Struct, frozen=True, kw_only=True):
    """An agent, why it has its model, and the tools that it could have."""

    agent: Agent[None]
    choice: Choice
    tools: tuple[Tool, ...]


async def made(setup: Setup, err: Console) -> Made:
    """The agent, its model chosen, told of on `err`, and made ready. Raises `UsageError` for what cannot be."""
    settings = settings_of(setup)
    tools = workspace(folder_of(setup))
    choice = await choose(setup.model)
    agent = Agent(
        await model_of(choice, err),
        instructions=INSTRUCTIONS if setup.system is None else setup.system,
        tools=tools if setup.tools else (),
        limits=Limits() if setup.max_turns is None else Limits(turns=setup.max_turns),
        settings=settings,
    )
    return Made(agent=agent, choice=choice, tools=tools)


async def model_of(choice: Choice, err: Console) -> Model:
    """The model of a choice, ready to be asked; says on `err` which one it is, and why."""
    model = choice.model()
    err.print(Line(one_line(f"{choice.name} ({choice.reason})"), "dim"))
    if is_embedded(choice.name) and (licence := await make_ready(err)):
        err.print(Line(licence, "dim"))
    return model


async def close_model(model: Model) -> None:
    """Free what the model holds, if it holds anything."""
    close = getattr(model, "aclose", None)
    if close is not None:
        await close()


def settings_of(setup: Setup) -> ModelSettings:
    if setup.thinking is not None and setup.thinking not in LEVELS:
        raise UsageError(f"there is no thinking level {setup.thinking!r}; take one of {', '.join(LEVELS)}")
    thinking: ThinkingLevel | None = next((level for level in LEVELS if level == setup.thinking), None)
    return ModelSettings(seed=setup.seed, temperature=setup.temperature, thinking=thinking)


def folder_of(setup: Setup) -> Path:
    """What the tools see."""
    if setup.cwd is not None:
        return setup.cwd
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the current folder is gone; go to another, or name one with --cwd") from error
