"""The commands and their options, as typer reads them off the functions. They give back what is to be done.

It is done outside of typer, which has ideas of its own about interrupts and broken pipes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, TypeAlias, get_args

import anyio
import typer

from antiphon.agent.modes import Mode
from antiphon.cli._codes import DONE
from antiphon.cli._setup import INSTRUCTIONS, LEVELS, Setup
from antiphon.errors import UsageError

__all__ = ["app", "invoke"]

app = typer.Typer(
    name="antiphon",
    help="An agent in the terminal: a model calls, tools answer, until nothing is left to say.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Job: TypeAlias = Callable[[], int]

ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", help="The model, as in openai:gpt-5-mini; `antiphon models` shows what there is."),
]
System = Annotated[str | None, typer.Option("--system", help=f"Instructions for the model. Default: {INSTRUCTIONS}")]
Seed = Annotated[int | None, typer.Option("--seed", help="For the same answer again, where the model can do that.")]
Temperature = Annotated[float | None, typer.Option("--temperature", min=0.0, help="How freely the model chooses.")]
Thinking = Annotated[str | None, typer.Option("--thinking", help=f"How hard to think: {', '.join(LEVELS)}.")]
Turns = Annotated[int | None, typer.Option("--max-turns", min=1, help="The most replies of the model.")]
WithTools = Annotated[
    bool, typer.Option("--tools/--no-tools", help="Whether the model may look at the folder's files.")
]
Folder = Annotated[Path | None, typer.Option("--cwd", help="The folder that the tools see. Default: the current one.")]


def version_asked(asked: bool) -> None:
    if asked:
        typer.echo(f"antiphon {version('antiphon')}")
        raise typer.Exit(DONE)


@app.callback()
def common(
    _version: Annotated[
        bool, typer.Option("--version", callback=version_asked, is_eager=True, help="Tell the version, and end.")
    ] = False,
) -> None:
    """What every command has."""


@app.command()
def ask(
    *,
    prompt: Annotated[
        list[str] | None, typer.Argument(help="The question; `-`, or nothing at all, takes it from stdin.")
    ] = None,
    model: ModelName = None,
    system: System = None,
    seed: Seed = None,
    temperature: Temperature = None,
    thinking: Thinking = None,
    max_turns: Turns = None,
    tools: WithTools = True,
    cwd: Folder = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as a line of JSON.")] = False,
    timeout: Annotated[float | None, typer.Option("--timeout", min=0.001, help="Stop after so many seconds.")] = None,
) -> Job:
    """Ask one question; the answer streams to stdout, everything about it goes to stderr.

    Exit codes: 0 done, 1 a failure, 2 used wrongly, 3 stopped, 4 a limit was reached, 5 waiting, 130 Ctrl-C.
    """
    from antiphon.cli.ask import Question, prompt_of
    from antiphon.cli.ask import ask as answer

    setup = Setup(
        model=model,
        system=system,
        seed=seed,
        temperature=temperature,
        thinking=thinking,
        max_turns=max_turns,
        tools=tools,
        cwd=cwd,
    )
    question = partial(Question, setup=setup, as_json=json, timeout=timeout)
    return lambda: anyio.run(answer, question(prompt=prompt_of(prompt or ())))


@app.command()
def chat(
    *,
    model: ModelName = None,
    system: System = None,
    seed: Seed = None,
    temperature: Temperature = None,
    thinking: Thinking = None,
    max_turns: Turns = None,
    tools: WithTools = True,
    cwd: Folder = None,
    approve: Annotated[
        str, typer.Option("--approve", help=f"Which calls of tools you are asked about: {', '.join(get_args(Mode))}.")
    ] = "ask",
) -> Job:
    """Talk with a model, also while it answers; `/help` says what can be done there."""
    from antiphon.cli.chat import chat as talk

    setup = Setup(
        model=model,
        system=system,
        seed=seed,
        temperature=temperature,
        thinking=thinking,
        max_turns=max_turns,
        tools=tools,
        cwd=cwd,
    )
    return lambda: anyio.run(talk, setup, approve)


@app.command()
def models(
    provider: Annotated[
        str | None, typer.Argument(help="Show what is known of this provider's models, with prices.")
    ] = None,
) -> Job:
    """Show which models can be used here, and how."""
    if provider is not None:
        from antiphon.cli._catalogue import show_catalogue

        return lambda: anyio.run(show_catalogue, provider)
    from antiphon.cli.models import show_models

    return lambda: anyio.run(show_models)


def invoke(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name. Raises `UsageError` for arguments that make none."""
    try:
        job: Job | int = app(list(arguments) or ["--help"], standalone_mode=False, prog_name="antiphon")
    except typer.TyperException as error:
        raise UsageError(sentence(error)) from error
    return DONE if isinstance(job, int) else job()  # a number: typer has told the help, or the version


def sentence(error: typer.TyperException) -> str:
    """The parser's complaint in the way of all others: lower case, the way out last."""
    text = error.format_message().strip().rstrip(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "antiphon"
    return f"{text[:1].lower()}{text[1:]}; see {command} --help"
