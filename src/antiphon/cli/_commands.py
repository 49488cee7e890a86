"""What a line that begins with a slash does in a chat."""

from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from pathlib import Path
from typing import Final, cast, get_args

from msgspec import Struct

from antiphon.agent.modes import ApprovalModes, Mode
from antiphon.cli._lines import first_line
from antiphon.cli._talk import Talk
from antiphon.errors import UsageError
from antiphon.types.events import Queue

__all__ = ["COMMANDS", "LeaveChat", "obey", "set_mode"]

QUEUES: Final[tuple[Queue, ...]] = get_args(Queue)


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
    rows = [f"{name} {command.argument}".ljust(20) + command.about for name, command in COMMANDS.items()]
    return [
        *rows,
        "Enter sends, and steers while an answer comes; > at the beginning keeps the line until it is done.",
        "Escape and Enter, or a backslash at the end, begin a new line.",
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
    tools = talk.conversation.agent.tools
    if not tools:
        return ["no tools; /tools on gives them back"]
    return [f"{tool.name.ljust(14)} {first_line(tool.description)}" for tool in tools]


async def change_thinking(talk: Talk, level: str) -> list[str]:
    if level:
        talk.think(level)
    return [f"thinking {talk.conversation.agent.settings.thinking or 'as the model likes'}"]


async def change_mode(talk: Talk, mode: str) -> list[str]:
    if mode:
        set_mode(talk.modes, mode)
    return [f"approval: {talk.modes.mode}"]


def set_mode(modes: ApprovalModes, mode: str) -> None:
    """Switch to the mode of this name. Raises `UsageError` if there is none."""
    modes.mode = cast("Mode", mode)  # what is no mode is refused there


async def later(talk: Talk, text: str) -> list[str]:
    if not text:
        raise UsageError("/later needs what to say, as in /later And in Rome?")
    talk.later(text)
    return []


async def queue(talk: Talk, argument: str) -> list[str]:
    if argument not in {"", "clear"}:
        raise UsageError(f"/queue takes 'clear' or nothing, not {argument!r}")
    if argument:
        return [f"{talk.clear_queue()} taken back"]
    waiting = [(name, message) for name in QUEUES for message in talk.queued(name)]
    return [f"{name.replace('_', ' ')}: {getattr(message, 'text', '')}" for name, message in waiting] or [
        "nothing waits"
    ]


async def abort(talk: Talk, reason: str) -> list[str]:
    if not talk.abort(reason or "as you asked"):
        raise UsageError("no answer is under way")
    return []


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
    "/thinking": Command("[level]", "how hard the model thinks", change_thinking),
    "/tools": Command("[on|off]", "which tools the model has, or none", change_tools),
    "/approve": Command("[mode]", "which calls you are asked about: plan, ask, auto_edit, auto", change_mode),
    "/later": Command("text", "say something when the answer is done, as with >", later),
    "/queue": Command("[clear]", "what waits to be said, or take it back", queue),
    "/abort": Command("[reason]", "stop the answer; what was said stays", abort),
    "/undo": Command("", "forget the last prompt and its answer", undo),
    "/save": Command("file", "write the transcript", save),
    "/load": Command("file", "go on from a transcript", load),
    "/quit": Command("", "leave", leave),
}
