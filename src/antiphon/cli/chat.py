"""`antiphon chat`: a talk with a model. What a person sees goes as in `ask`: answers to stdout, the rest to stderr."""

import sys

from antiphon.cli._codes import DONE, INTERRUPTED
from antiphon.cli._commands import COMMANDS, LeaveChat, obey
from antiphon.cli._reader import Reader, make_reader
from antiphon.cli._sentences import sentence_of
from antiphon.cli._setup import Setup, close_model, made
from antiphon.cli._talk import Talk
from antiphon.cli.render import Renderer, terminal
from antiphon.errors import AntiphonError
from antiphon.providers.llama_cpp.weights import cache_folder

__all__ = ["chat"]


async def chat(setup: Setup) -> int:
    """Read prompts and show answers until the person leaves. Gives the exit code: 0, or for lines from a pipe that of
    the last answer. Raises `KeyboardInterrupt` when it was left with Ctrl-C.
    """
    err = terminal(stderr=True)
    renderer = Renderer(terminal(), err)
    talk = Talk(await made(setup, err), err, renderer)
    reader = make_reader(renderer, cache_folder() / "history", list(COMMANDS))
    if sys.stdin.isatty():
        renderer.note("/help says what can be done here")
    try:
        return await talked(talk, reader, renderer)
    finally:
        await close_model(talk.agent.model)


async def talked(talk: Talk, reader: Reader, renderer: Renderer) -> int:
    """The loop: one line, one answer."""
    code = DONE
    while (line := await reader.read()) is not None:
        if not line.strip():
            continue
        try:
            if line.startswith("/"):
                for text in await obey(talk, line):
                    renderer.note(text)
                continue
            code = await talk.say(line.strip())
            reader.interrupted = code == INTERRUPTED
            if sys.stdin.isatty():
                renderer.note("")
        except LeaveChat:
            break
        except (AntiphonError, OSError) as error:
            renderer.note(f"antiphon: {sentence_of(error)}", "red")
    return DONE if sys.stdin.isatty() else code
