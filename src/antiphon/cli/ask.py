"""`antiphon ask`: one question, one answer. The answer goes to stdout, everything about it to stderr."""

import asyncio
import sys
from collections.abc import Callable, Sequence

from msgspec import Struct

from antiphon.agent.run import Run
from antiphon.cli._codes import INTERRUPTED, OF_STATUS
from antiphon.cli._interrupt import interrupts
from antiphon.cli._setup import Setup, close_model, made
from antiphon.cli.render import Renderer, terminal
from antiphon.errors import UsageError
from antiphon.types.codec import dump_event
from antiphon.types.events import Event, RunFinished

__all__ = ["Question", "ask", "prompt_of"]

HOW = 'write it as in: antiphon ask "What is 17 * 4?", or pipe it in'


class Question(Struct, frozen=True, kw_only=True):
    """What is asked, and how the answer is told. `timeout` is in seconds."""

    prompt: str
    setup: Setup = Setup()
    as_json: bool = False
    timeout: float | None = None


async def ask(question: Question) -> int:
    """Ask, tell the answer as it comes, and give the exit code. Ctrl-C stops the run and keeps what was said."""
    out, err = terminal(), terminal(stderr=True)
    renderer = Renderer(out, err)
    agent = (await made(question.setup, err)).agent
    try:
        run = agent.run(question.prompt)
        show = lines_of_json(renderer) if question.as_json else renderer.show
        return await watched(run, show, question.timeout)
    finally:
        await close_model(agent.model)


async def watched(
    run: Run[str],
    show: Callable[[Event], None],
    timeout: float | None = None,  # noqa: ASYNC109 - it stops the run, and nothing is cancelled
) -> int:
    """Show the events of a run until it is over, and give the exit code. After `timeout` seconds it is stopped."""
    loop = asyncio.get_running_loop()
    timer = None if timeout is None else loop.call_later(timeout, run.stop, f"no answer within {timeout:g} s")
    try:
        with interrupts(lambda: run.stop("interrupted")) as interrupt:
            async with run:
                async for event in run:
                    show(event)
    finally:
        if timer is not None:
            timer.cancel()
    return INTERRUPTED if interrupt.pressed else OF_STATUS[run.result.status]


def lines_of_json(renderer: Renderer) -> Callable[[Event], None]:
    """Shows each event as a line of JSON on stdout; what went wrong in the end is said on stderr too."""

    def show(event: Event) -> None:
        sys.stdout.buffer.write(dump_event(event) + b"\n")  # UTF-8 whatever the terminal speaks
        sys.stdout.buffer.flush()
        if isinstance(event, RunFinished):
            renderer.show(event)

    return show


def prompt_of(words: Sequence[str]) -> str:
    """What is asked: the words, with stdin in the place of `-`, or stdin alone. Raises `UsageError` for nothing."""
    if not words and sys.stdin.isatty():
        raise UsageError(f"there is no question; {HOW}")
    prompt = "\n\n".join([part for part in parts_of(words or ["-"]) if part.strip()])
    if not prompt:
        raise UsageError(f"the question is empty; {HOW}")
    return prompt


def parts_of(words: Sequence[str]) -> list[str]:
    parts: list[str] = [""]
    for word in words:
        if word == "-":
            parts += [sys.stdin.buffer.read().decode(errors="replace").strip(), ""]
        else:
            parts[-1] = f"{parts[-1]} {word}".strip()
    return parts
