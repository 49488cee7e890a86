"""The built-in model, made ready: its weights put together with a progress bar, its licence told the first time."""

from importlib.util import find_spec
from typing import Final

import anyio.from_thread
import anyio.to_thread
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from antiphon.providers.llama_cpp.provider import BUILT_IN as NAME
from antiphon.providers.llama_cpp.weights import BUILT_IN, assemble, licence_note

__all__ = ["EMBEDDED", "is_embedded", "is_installed", "make_ready"]

EMBEDDED: Final = f"local:{NAME}"


def is_embedded(name: str) -> bool:
    """Whether this is the built-in model's name, and not that of a file."""
    return name in {EMBEDDED, "local:"}


def is_installed() -> bool:
    """Whether the packages of the extra `local` are there. Loads nothing."""
    return all(find_spec(name) is not None for name in ("xllamacpp", *[part.package for part in BUILT_IN.parts]))


async def make_ready(err: Console) -> str | None:
    """Put the weights together where that has not been done; the licence's sentence, the first time.

    Raises `UsageError` when they are not installed, or cannot be written.
    """
    columns = (TextColumn("putting the built-in model together (once)"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("", total=None, visible=False)

        def advanced(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=True)
            anyio.from_thread.check_cancelled()

        await anyio.to_thread.run_sync(lambda: assemble(progress=advanced))
    return licence_note()
