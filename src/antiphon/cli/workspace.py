"""The built-in tools: they look at one folder, work out arithmetic, tell the time, and change nothing."""

import json
import sys
import zoneinfo
from collections.abc import Callable
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from subprocess import DEVNULL
from typing import Annotated, Any, Final

import anyio

from antiphon.cli import _search
from antiphon.cli._calculate import work_out
from antiphon.cli._folder import Folder
from antiphon.errors import ToolError, UsageError
from antiphon.tools.field import Field
from antiphon.tools.function import tool
from antiphon.tools.tool import Tool

__all__ = ["workspace"]

SEARCH_SECONDS: Final = 10.0

LineNumber = Annotated[int | None, Field(ge=1)]


def workspace(root: Path) -> tuple[Tool, ...]:
    """Tools that see what is in the folder `root`, and nothing else. Raises `UsageError` if it is no folder."""
    if not root.exists():
        raise UsageError(f"there is no folder {str(root)!r}; name one that exists")
    if not root.is_dir():
        raise UsageError(f"{str(root)!r} is a file; name a folder")
    here = Workspace(Folder(root))

    def reading(function: Callable[..., Any]) -> Tool:
        return tool(function, kind="read", repeatable=True)

    return tuple(map(reading, (here.list_files, here.read_file, here.search_text, calculate, current_time)))


class Workspace:
    """The tools for files. Their docstrings are what the model reads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def list_files(self, path: str = ".") -> str:
        """List the files and folders in a folder.

        Args:
            path: The folder, relative to the current one.
        """
        return self._folder.entries(path)

    def read_file(self, path: str, start: LineNumber = None, end: LineNumber = None) -> str:
        """Read a text file, the whole or some of its lines.

        Args:
            path: The file, relative to the current folder.
            start: The first line to read, counted from 1.
            end: The last line to read.
        """
        return self._folder.lines(path, start, end)

    async def search_text(self, pattern: str, path: str = ".", regex: bool = False) -> str:
        """Find the lines of files that contain a text; case does not matter.

        Args:
            pattern: The text to look for.
            path: The file or folder to look in, relative to the current folder.
            regex: Whether the pattern is a regular expression of Python.
        """
        if not pattern:
            raise ToolError("the pattern is empty; give the text to look for")
        place = self._folder.place(path)
        question = {"root": str(self._folder.root), "place": str(place), "pattern": pattern, "regex": regex}
        return found_text(await asked(question), pattern)


def calculate(expression: str) -> str:
    """Work out an arithmetic expression.

    Args:
        expression: Numbers, + - * / // % **, parentheses, and functions such as sqrt, log, sin, round, min and max.
    """
    return work_out(expression)


def current_time(timezone: str | None = None) -> str:
    """Tell the current date and time.

    Args:
        timezone: A time zone such as "Europe/Oslo"; without it, that of this machine.
    """
    now = datetime.now().astimezone(zone(timezone.strip()) if timezone and timezone.strip() else None)
    offset = now.strftime("%z")
    return f"{now:%A, %Y-%m-%d %H:%M:%S} {now.tzname()} (UTC{offset[:3]}:{offset[3:5]})"


def zone(name: str) -> zoneinfo.ZoneInfo:
    """The time zone of this name, or that of the city of this name."""
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a whole region
        cities = {known.rpartition("/")[2].lower(): known for known in sorted(zoneinfo.available_timezones())}
    city = name.replace(" ", "_").lower()
    if city in cities:
        return zoneinfo.ZoneInfo(cities[city])
    near = get_close_matches(city, cities, n=1)
    hint = f"did you mean {cities[near[0]]!r}?" if near else "give one such as 'Europe/Oslo' or 'UTC'"
    raise ToolError(f"there is no time zone {name!r}; {hint}")


async def asked(question: dict[str, Any]) -> dict[str, Any]:
    """The answer of the search process, which is ended when it takes too long, or the call is cancelled."""
    try:
        with anyio.fail_after(SEARCH_SECONDS):
            return json.loads(
                await output_of([sys.executable, "-I", str(_search.__file__)], json.dumps(question).encode())
            )
    except TimeoutError:
        text = f"looking for {question['pattern']!r} takes too long; give a simpler pattern or a narrower path"
        raise ToolError(text) from None


async def output_of(command: list[str], given: bytes) -> bytes:
    """What a process writes when it is given some input. It does not outlive this.

    A tool's body is cancelled once: `anyio.run_process` would then wait for the process to end by itself.
    """
    async with await anyio.open_process(command, stderr=DEVNULL) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.send(given)
            await process.stdin.aclose()
            return b"".join([data async for data in process.stdout])
        except BaseException:
            process.kill()
            raise


def found_text(found: dict[str, Any], pattern: str) -> str:
    """The answer as the model reads it."""
    if "error" in found:
        raise ToolError(f"{pattern!r} is no regular expression: {found['error']}; mend it, or leave regex out")
    lines: list[str] = found["lines"]
    match found["cut"]:
        case "matches":
            return "\n".join([*lines, "[more lines have it; give a longer pattern or a narrower path]"])
        case "files":
            return "\n".join([*lines, f"[only {found['looked']} files were looked at; give a narrower path]"])
        case _:
            return "\n".join(lines) or f"[no line has {pattern!r}; {found['looked']} files were looked at]"
