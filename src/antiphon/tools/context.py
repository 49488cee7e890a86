"""What a running tool can reach: its call, the application's own object, the stop, progress, a question."""

import threading
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeAlias, cast

from antiphon.errors import UsageError
from antiphon.types.cancel import CancelSignal
from antiphon.types.deps import DepsT

__all__ = ["Asker", "Report", "ToolContext"]

Report: TypeAlias = Callable[[Any, Any], None]
"""Takes content and details of a progress report, in the tool's own thread, and never waits."""

Asker: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Puts a question to a person and gives the answer."""


class ToolContext(Generic[DepsT]):
    """One call, seen from inside the tool.

    A body gets it through a parameter with this annotation, whatever the parameter's name; the model does not see that
    parameter. `ToolContext[MyDeps]` says what `deps` is. Without arguments it can be made by hand, for a test.
    """

    __slots__ = ("_asker", "_lock", "_open", "_report", "call_id", "cancel", "deps", "name", "run_id")

    def __init__(  # noqa: PLR0917 - made by the engine, in one place
        self,
        call_id: str = "",
        run_id: str = "",
        name: str = "",
        deps: DepsT = cast("Any", None),  # noqa: B008 - a cast is no call worth the name
        cancel: CancelSignal | None = None,
        report: Report | None = None,
        asker: Asker | None = None,
    ) -> None:
        self.call_id = call_id
        self.run_id = run_id
        self.name = name
        self.deps = deps
        self.cancel = cancel or CancelSignal()
        self._report = report
        self._asker = asker
        self._open = True
        self._lock = threading.Lock()

    @property
    def cancelled(self) -> bool:
        """Whether this call should end, or has been given up (out of time). Look at it between steps, from any thread."""
        return self.cancel.cancelled or not self._open

    def progress(self, content: Any = None, details: Any = None) -> None:
        """Show what there is so far, from any thread, without waiting. After the call has finished nothing happens."""
        with self._lock:  # held while reporting, so that no report comes after `close` has returned
            if self._open and self._report is not None:
                self._report(content, details)

    async def ask(self, question: Any) -> Any:
        """Put a question to a person and wait for the answer.

        Ask before you act: where nobody can wait (the run is resumed later, maybe elsewhere), the body is left here and
        run again from its top, and then this gives the answer at once. Raises `UsageError` outside a run.
        """
        if self._asker is None:
            raise UsageError(
                f"tool {self.name!r} asks {question!r}, but this context has nobody to ask: "
                "use the one that a run gives, or make it with asker="
            )
        return await self._asker(question)

    def close(self) -> None:
        """Let no more progress through: the call has finished."""
        with self._lock:
            self._open = False

    def __repr__(self) -> str:
        return f"ToolContext(call_id={self.call_id!r}, run_id={self.run_id!r}, name={self.name!r})"
