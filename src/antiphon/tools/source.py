"""Tools that come from elsewhere and may change while a run goes on."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec.structs import replace

from antiphon.errors import UsageError
from antiphon.tools.tool import Tool
from antiphon.types.cancel import CancelSignal

__all__ = ["ListedTools", "ToolSource", "close_source", "combined", "filtered", "find_in", "renamed"]

Notice: TypeAlias = Callable[[], None]


@runtime_checkable
class ToolSource(Protocol):
    """Lists tools when a run begins, and again between rounds after it said that they changed.

    A source may also have: `on_invalidated(listener) -> unsubscribe`, which calls the listener whenever a new listing
    would differ; `find(name) -> Tool | None`, sync or async, asked for a called name that was not advertised; and
    `close()`, sync or async, called when a run that used it ends (a source that serves several runs leaves it out).
    """

    name: str

    async def list(self, cancel: CancelSignal, /) -> Sequence[Tool]:
        """The tools of this moment. What it raises is a warning, and the run keeps the tools that it had."""
        ...


class ListedTools:
    """A source whose tools the application sets: `set()` is seen by running runs between rounds."""

    def __init__(self, name: str, tools: Iterable[Tool] = ()) -> None:
        self.name = name
        self._tools = tuple(tools)
        self._listeners: dict[object, Notice] = {}

    def set(self, tools: Iterable[Tool]) -> None:
        """Put other tools in place, and tell every run."""
        self._tools = tuple(tools)
        for listener in list(self._listeners.values()):
            listener()

    async def list(self, _cancel: CancelSignal) -> Sequence[Tool]:
        return self._tools

    def on_invalidated(self, listener: Notice) -> Notice:
        key = object()
        self._listeners[key] = listener
        return lambda: forget(self._listeners, key)


def forget(listeners: dict[object, Notice], key: object) -> None:
    listeners.pop(key, None)


class Derived:
    """A source made of others: each tool goes through `change`, which drops it by giving nothing."""

    def __init__(self, name: str, sources: Sequence[ToolSource], change: Callable[[Tool], Tool | None]) -> None:
        self.name = name
        self._sources = sources
        self._change = change

    async def list(self, cancel: CancelSignal) -> Sequence[Tool]:
        tools: list[Tool] = []
        for source in self._sources:
            tools += [changed for tool in await source.list(cancel) if (changed := self._change(tool)) is not None]
        return tools

    def on_invalidated(self, listener: Notice) -> Notice:
        ends = [watch(listener) for source in self._sources if (watch := getattr(source, "on_invalidated", None))]

        def unsubscribe() -> None:
            for end in ends:
                end()

        return unsubscribe

    async def find(self, name: str) -> Tool | None:
        for source in self._sources:
            found = await find_in(source, name)
            changed = self._change(found) if found is not None else None
            if changed is not None and changed.name == name:
                return changed
        return None

    async def close(self) -> None:
        for source in self._sources:
            await close_source(source)


async def find_in(source: object, name: str) -> Tool | None:
    """What a source finds under a name. What it finds under another name is not what was asked for."""
    find: Callable[[str], Awaitable[Tool | None] | Tool | None] | None = getattr(source, "find", None)
    if find is None:
        return None
    found = find(name)
    tool = await found if inspect.isawaitable(found) else found
    return tool if tool is not None and tool.name == name else None


async def close_source(source: object) -> None:
    """Close a source that can be closed."""
    close: Callable[[], Awaitable[None] | None] | None = getattr(source, "close", None)
    if close is not None:
        closing = close()
        if inspect.isawaitable(closing):
            await closing


def combined(name: str, *sources: ToolSource) -> ToolSource:
    """Several sources as one, in their order."""
    return Derived(name, sources, lambda tool: tool)


def filtered(source: ToolSource, keep: Callable[[Tool], bool]) -> ToolSource:
    """The tools of a source that `keep` says yes to."""
    return Derived(source.name, (source,), lambda tool: tool if keep(tool) else None)


def renamed(source: ToolSource, name_of: Callable[[str], str]) -> ToolSource:
    """The tools of a source under other names, to keep two sources apart."""

    def change(tool: Tool) -> Tool:
        name = name_of(tool.name)
        if not name:
            raise UsageError(f"tool {tool.name!r} of source {source.name!r} was renamed to nothing; give it a name")
        return replace(tool, name=name)

    return Derived(source.name, (source,), change)
