"""What a line that begins with a slash does in a chat."""

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from msgspec import Struct

from antiphon.cli._talk import Talk
from antiphon.errors import UsageError

__all__ = ["COMMANDS", "LeaveChat", "obey"]


class LeaveChat(Exception):
    """The person wants to go."""


class Command(Struct, frozen=True):
    """A command: what may follow it, what it is for, and what it does; it answers with lines."""

    argument: str
    about: str
    act: Callable[[Talk, str], Awaitable[list[str]]]


async def obey(talk: Talk, line: str) -> list[str]:
    """Do what the line says, and give the lines to show. Raises `LeaveChat`, and `UsageError` for what cannot be done."""
    name, _, argument = line.strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else "see /help"
        raise UsageError(f"there is no command {name!r}; {hint}")
    return await command.act(talk, argument.strip())


async def show_help(_talk: Talk, _argument: str) -> list[str]:
    rows = [f"{name} {command.argument}".ljust(18) + command.about for name, command in COMMANDS.items()]
    return [
        *rows,
        "Enter sends; Escape and Enter, or a backslash at the end, begin a new line.",
        "Ctrl-C stops an answer, once more leaves; Ctrl-D leaves.",
        "A line that begins with a space is no command.",
    ]


async def change_model(talk: Talk, name: str) -> list[str]:
    if name:
        await talk.use_model(name)
        return []
    return [f"{talk.choice.name} ({talk.choice.reason})"]


async def change_tools(talk: Talk, argument: str) -> list[str]:
    if argument not in {"", "on", "off"}:
        raise UsageError(f"/tools takes 'on' or 'off', not {argument!r}")
    if argument:
        talk.use_tools(talk.tools if argument == "on" else ())
    if not talk.agent.tools:
        return ["no tools; /tools on gives them back"]
    return [f"{tool.name.ljust(14)} {tool.description.splitlines()[0]}" for tool in talk.agent.tools]


async def undo(talk: Talk, _argument: str) -> list[str]:
    return [f"forgotten: {talk.undo()}"]


async def save(talk: Talk, path: str) -> list[str]:
    where = path_of(path, "/save")
    return [f"{talk.save(where)} messages in {str(where)!r}"]


async def load(talk: Talk, path: str) -> list[str]:
    where = path_of(path, "/load")
    return [f"{talk.load(where)} messages from {str(where)!r}"]


async def leave(_talk: Talk, _argument: str) -> list[str]:
    raise LeaveChat


def path_of(path: str, command: str) -> Path:
    if not path:
        raise UsageError(f"{command} needs the path of a file, as in {command} chat.json")
    return Path(path).expanduser()


COMMANDS: Final[dict[str, Command]] = {
    "/help": Command("", "what there is", show_help),
    "/model": Command("[name]", "which model answers, or another one from now on", change_model),
    "/tools": Command("[on|off]", "which tools the model has, or none", change_tools),
    "/undo": Command("", "forget the last prompt and its answer", undo),
    "/save": Command("file", "write the transcript", save),
    "/load": Command("file", "go on from a transcript", load),
    "/quit": Command("", "leave", leave),
}
