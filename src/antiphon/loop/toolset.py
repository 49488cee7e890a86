"""The tools of a run, by name."""

import difflib
from collections.abc import Iterable

from antiphon.errors import UsageError
from antiphon.tools.tool import Tool

__all__ = ["by_name", "unknown_tool"]


def by_name(tools: Iterable[Tool], origin: str) -> dict[str, Tool]:
    """The tools under their names, in order. A repeated name is a `UsageError` that names it and where it came from."""
    named: dict[str, Tool] = {}
    for tool in tools:
        if tool.name in named:
            raise UsageError(f"two tools are named {tool.name!r} (from {origin}): a name must be unique; rename one")
        named[tool.name] = tool
    return named


def unknown_tool(name: str, known: Iterable[str]) -> str:
    """What the model reads when it calls a tool that does not exist."""
    names = list(known)
    if not names:
        return f"no tool named {name!r}: there are no tools; answer in text"
    close = difflib.get_close_matches(name, names, 1)
    guess = f" did you mean {close[0]!r}?" if close else ""
    return f"no tool named {name!r};{guess} the tools are: {', '.join(names)}"
