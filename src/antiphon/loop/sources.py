"""Where a run's tools come from: its own first, then those of its sources, with the hooks around each listing."""

from collections.abc import Callable, Sequence
from typing import Literal

from antiphon.errors import UsageError
from antiphon.loop.hooks import Stop, ToolsContext, UseTools, answer_of, resolved
from antiphon.loop.session import Session, stopped
from antiphon.loop.toolset import by_name
from antiphon.tools.source import ToolSource, close_source, find_in
from antiphon.tools.tool import Tool

__all__ = ["Sources"]

Why = Literal["initial", "refresh"]
OWN = -1


class Sources:
    """The tools of one run, settled before its first request and again between rounds when a source has changed.

    The order is a function of names and registration: the run's own tools, then each source's in the order of the
    sources, whenever they came. A change that is noticed while a listing runs makes that source be listed again.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._sources: Sequence[ToolSource] = session.spec.sources
        self._stale = set(range(len(self._sources)))
        self._entries: list[tuple[int, Tool]] = [(OWN, tool) for tool in session.spec.tools]
        self._dropped: set[str] = set()
        self._watching: dict[int, Callable[[], None]] = {}

    async def begin(self) -> None:
        """The first listing. Without a source the after hook is asked once, with the run's own tools."""
        for index, source in enumerate(self._sources):
            watch = getattr(source, "on_invalidated", None)
            if watch is not None:
                self._watching[index] = watch(lambda index=index: self._stale.add(index))
        if not self._sources:
            await self._after(None, "initial")
        await self._list_stale("initial")
        self._settle()

    async def refresh(self) -> None:
        """List again what has changed since."""
        if self._stale:
            await self._list_stale("refresh")
            self._settle()

    async def end(self) -> None:
        """The run is over: listen no more, and close what wants to be closed."""
        for index, source in enumerate(self._sources):
            try:
                unsubscribe = self._watching.pop(index, None)
                if unsubscribe is not None:
                    unsubscribe()
                await close_source(source)
            except Exception as error:  # noqa: BLE001 - the run is over; a source's failure cannot change its end
                self.session.warn("source_close_failed", f"tool source {source.name!r} did not close: {error!r}")

    async def find(self, name: str) -> Tool | None:
        """A tool that was called and not advertised. A name that a hook took away is never asked for."""
        if name in self._dropped or name in self.session.tools:
            return None
        for source in self._sources:
            try:
                tool = await find_in(source, name)
            except Exception as error:  # noqa: BLE001 - a source that cannot look is no reason to end the run
                self.session.warn(
                    "source_failed", f"tool source {source.name!r} could not look for {name!r}: {error!r}"
                )
                continue
            if tool is not None:
                return tool
        return None

    async def _list_stale(self, why: Why) -> None:
        for index in sorted(self._stale):
            await self._list(index, why)

    async def _list(self, index: int, why: Why) -> None:
        session, source = self.session, self._sources[index]
        for hook in session.deciding("before_tools_resolved"):
            await resolved(hook(ToolsContext(**session.common(), why=why, source=source)))
        self._stale.discard(index)
        try:
            tools = list(await source.list(session.cancel))
        except Exception as error:  # noqa: BLE001 - a failing source keeps its old tools
            session.warn("source_failed", f"tool source {source.name!r} could not list its tools: {error!r}")
        else:
            self._merge(index, tools)
        await self._after(source, why)

    def _merge(self, index: int, tools: list[Tool]) -> None:
        """Put a source's new tools where its old ones were. The run's own names win."""
        source = self._sources[index]
        by_name(tools, f"tool source {source.name!r}")
        others = {tool.name: origin for origin, tool in self._entries if origin != index}
        taken: list[tuple[int, Tool]] = []
        for tool in tools:
            origin = others.get(tool.name)
            if origin is None:
                taken.append((index, tool))
            elif origin == OWN:
                text = f"the tool {tool.name!r} of source {source.name!r} is hidden by the run's own tool of that name"
                self.session.warn("tool_hidden", text)
            else:
                other = self._sources[origin].name
                raise UsageError(
                    f"two sources have a tool named {tool.name!r}: {other!r} and {source.name!r}; "
                    "rename one with tools.renamed(source, …)"
                )
        kept = [entry for entry in self._entries if entry[0] != index]
        self._entries = sorted([*kept, *taken], key=lambda entry: entry[0])

    async def _after(self, source: ToolSource | None, why: Why) -> None:
        """Show the merge to the application, which may put other tools in place."""
        session = self.session
        for hook in session.deciding("after_tools_resolved"):
            tools = tuple([tool for _, tool in self._entries])
            context = ToolsContext(**session.common(), why=why, source=source, tools=tools)
            change = await answer_of(hook, context, "after_tools_resolved", UseTools, Stop)
            if isinstance(change, Stop):
                raise stopped(change, "after_tools_resolved")
            if change is not None:
                self._replace(change.tools)

    def _replace(self, tools: Sequence[Tool]) -> None:
        named = by_name(tools, "after_tools_resolved")
        origins: dict[str, int] = {tool.name: origin for origin, tool in self._entries}
        self._dropped |= set(origins) - set(named)
        self._dropped -= set(named)
        self._entries = [(origins.get(name, OWN), tool) for name, tool in named.items()]

    def _settle(self) -> None:
        self.session.tools = {tool.name: tool for _, tool in self._entries}
        self.session.turn_tools = self.session.tools
