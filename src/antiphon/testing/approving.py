"""An approver that reads its decisions from a script: for tests, where no person sits."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from antiphon.errors import UsageError
from antiphon.loop.spec import ApprovalContext
from antiphon.loop.state import Approve, Deny
from antiphon.providers.scripted import Waitable

__all__ = ["ScriptedApproval", "ScriptedApprover"]

ScriptedApproval: TypeAlias = (
    bool
    | Approve
    | Deny
    | Exception
    | tuple[Waitable, "bool | Approve | Deny | Exception"]
    | Callable[[ApprovalContext], "bool | Approve | Deny"]
)
"""A decision, an exception to raise, either behind something to wait for first, or a function of what was asked."""


class ScriptedApprover:
    """Decides on each call it is asked about, and keeps what it was asked in `asked`.

    `by_name` has the decisions for the tools that it names, every time; the other calls get the next of `decisions`.
    A call more than there are decisions raises `UsageError`.
    """

    def __init__(self, *decisions: ScriptedApproval, by_name: Mapping[str, ScriptedApproval] | None = None) -> None:
        self.asked: list[ApprovalContext] = []
        self._decisions = list(decisions)
        self._by_name = dict(by_name or {})

    @property
    def remaining(self) -> int:
        """How many decisions are left."""
        return len(self._decisions)

    async def __call__(self, context: ApprovalContext) -> Approve | Deny | bool:
        """The decision on this call."""
        self.asked.append(context)
        step = self._next(context)
        if isinstance(step, tuple):
            first, step = cast("tuple[Waitable, bool | Approve | Deny | Exception]", step)
            await first.wait()
        elif callable(step):
            step = step(context)
        if isinstance(step, Exception):
            raise step
        return step

    def _next(self, context: ApprovalContext) -> ScriptedApproval:
        name = context.call.name
        if name in self._by_name:
            return self._by_name[name]
        if not self._decisions:
            raise UsageError(f"the script has no decision left for call {context.call.id!r} of {name!r}; add one")
        return self._decisions.pop(0)
