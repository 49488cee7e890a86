"""Tools that can be added and taken away while an agent stays the same."""

import threading
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from antiphon.errors import UsageError
from antiphon.tools.tool import Tool

__all__ = ["ToolRegistry"]


class ToolRegistry:
    """A set of tools by name, in the order of their registration, safe to change from any thread.

    A run takes its tools when it begins, so a change is seen by later runs.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._lock = threading.Lock()
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool, *, replace: bool = False) -> None:
        """Add a tool. With `replace` it takes the place of the one with its name, if there is one.

        Raises `UsageError` for a name that is taken, and for what is no tool.
        """
        if not isinstance(tool, Tool):  # pyright: ignore[reportUnnecessaryIsInstance] - not every caller is typed
            raise UsageError(f"{tool!r} is no tool; decorate the function with @tool")
        with self._lock:
            if tool.name in self._tools and not replace:
                raise UsageError(f"a tool named {tool.name!r} is registered already; rename one, or say replace=True")
            self._tools[tool.name] = tool

    def unregister(self, name: str) -> Tool:
        """Take a tool away and return it. Raises `UsageError` for a name that is not there."""
        with self._lock:
            if name in self._tools:
                return self._tools.pop(name)
            near = get_close_matches(name, self._tools, 1)
            known = f"did you mean {near[0]!r}?" if near else f"known are {sorted(self._tools)}"
        raise UsageError(f"no tool named {name!r} is registered; {known}")

    def get(self, name: str) -> Tool | None:
        """The tool of this name, if there is one."""
        with self._lock:
            return self._tools.get(name)

    def snapshot(self) -> tuple[Tool, ...]:
        """The tools as they are now, in order."""
        with self._lock:
            return tuple(self._tools.values())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.snapshot())

    def __len__(self) -> int:
        return len(self.snapshot())

    def __contains__(self, name: object) -> bool:
        return any(tool.name == name for tool in self.snapshot())

    def __repr__(self) -> str:
        return f"ToolRegistry({list(self.snapshot())!r})"
