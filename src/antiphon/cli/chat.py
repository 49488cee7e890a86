"""`antiphon chat`: a talk with a model. What a person sees goes as in `ask`: answers to stdout, the rest to stderr."""

import sys
from typing import Final, cast

import anyio

from antiphon.agent.modes import ApprovalModes
from antiphon.cli._codes import DONE
from antiphon.cli._commands import COMMANDS, LeaveChat, obey, set_mode
from antiphon.cli._reader import LineReader, TerminalReader
from antiphon.cli._screen import Screen
from antiphon.cli._sentences import sentence_of
from antiphon.cli._setup import Setup, made
from antiphon.cli._talk import Talk
from antiphon.cli.render import Renderer, terminal
from antiphon.errors import AntiphonError
from antiphon.providers.llama_cpp.weights import cache_folder

__all__ = ["chat"]

LATER: Final = ">"
"""What begins a line that is said when nothing else is left to do."""


async def chat(setup: Setup, approve: str = "ask") -> int:
    """Read prompts and show answers until the person leaves. Gives the exit code: 0, or for lines from a pipe that of
    the last answer. Raises `KeyboardInterrupt` when it was left with Ctrl-C.
    """
    modes = ApprovalModes()
    set_mode(modes, approve)
    screen = Screen(sys.stdout if sys.stdout.isatty() else sys.stderr) if sys.stdin.isatty() else None
    err = terminal(stderr=True, file=screen if sys.stderr.isatty() else None)
    out = terminal(file=screen if sys.stdout.isatty() else None)
    renderer = Renderer(out, err, screen)
    talk = Talk(await made(setup, err), modes, err, renderer)
    try:
        async with anyio.create_task_group() as group:
            talk.group = group
            await (talked(talk, renderer) if screen is None else typed(talk, renderer, screen))
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failed:
        raise first_of(failed) from None
    finally:
        await talk.close()
    return DONE if sys.stdin.isatty() else talk.code


async def typed(talk: Talk, renderer: Renderer, screen: Screen) -> None:
    """The loop in a terminal: the prompt is always there, also while an answer comes."""
    renderer.note("/help says what can be done here")
    with TerminalReader(talk, renderer, screen, cache_folder() / "history", list(COMMANDS)) as reader:
        while (line := await reader.read()) is not None and await heard(talk, renderer, line):
            pass


async def talked(talk: Talk, renderer: Renderer) -> None:
    """The loop for a pipe or a file: a line, its answer, the next line. Where nobody can be asked, the answer is no."""
    reader = LineReader(sys.stdin.fileno())
    while (line := await reader.read()) is not None and await heard(talk, renderer, line):
        await talk.settled()
    while talk.questions and line is None:
        talk.refuse("nobody is there to decide")
        await talk.settled()


async def heard(talk: Talk, renderer: Renderer, line: str) -> bool:
    """Do what a line says; false when it says to leave."""
    text = line.strip()
    try:
        if line.startswith("/"):
            for told in await obey(talk, line):
                renderer.note(told)
        elif talk.questions:
            talk.decide(text)
        elif later := text.removeprefix(LATER).strip() if line.startswith(LATER) else "":
            talk.later(later)
        elif text:
            talk.say(text)
    except LeaveChat:
        return False
    except (AntiphonError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        renderer.note(f"antiphon: {sentence_of(error)}", "red")
    return True


def first_of(failed: BaseException) -> BaseException:
    """What went wrong, out of the groups that tasks wrap it in."""
    while isinstance(failed, BaseExceptionGroup):
        failed = cast("BaseExceptionGroup[BaseException]", failed).exceptions[0]
    return failed
