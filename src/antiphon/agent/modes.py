"""Approval modes: one policy for a coding tool or a shop floor, by what a tool does rather than by its name."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias, get_args

from antiphon.errors import UsageError
from antiphon.loop.spec import Allow, ApprovalContext, Ask, Verdict
from antiphon.loop.state import Deny

__all__ = ["ApprovalModes", "Mode", "Pattern"]

Mode = Literal["plan", "ask", "auto_edit", "auto"]
"""Look only; ask before changing or running anything; change freely, ask before running; ask nothing."""

Kind = Literal["read", "write", "exec"]

Pattern: TypeAlias = "str | re.Pattern[str]"
"""A tool's name, a name with wildcards (`git_*`), or a regular expression for the whole name."""

VERDICTS: dict[Mode, dict[Kind, Verdict]] = {
    "plan": {
        "read": Allow(),
        "write": Deny("only reading is allowed now: say what you would change, and do not change it"),
        "exec": Deny("only reading is allowed now: say what you would run, and do not run it"),
    },
    "ask": {"read": Allow(), "write": Ask(), "exec": Ask()},
    "auto_edit": {"read": Allow(), "write": Allow(), "exec": Ask()},
    "auto": {"read": Allow(), "write": Allow(), "exec": Allow()},
}


class ApprovalModes:
    """An `ApprovalPolicy` whose mode can be switched at any time; the next call is judged by the new one.

    A tool's class is its own `kind`; a tool without one is looked up in `exec`, then `write`, then `read`. Of a tool
    that has no class the policy has no opinion, so that the tool's own `needs_approval` decides; only `auto` allows it.
    """

    def __init__(
        self,
        mode: Mode = "ask",
        *,
        read: Iterable[Pattern] = (),
        write: Iterable[Pattern] = (),
        exec: Iterable[Pattern] = (),  # noqa: A002 - the word that the class of tools has
    ) -> None:
        self._patterns: dict[Kind, tuple[Pattern, ...]] = {
            "exec": tuple(exec),
            "write": tuple(write),
            "read": tuple(read),
        }
        self.mode = mode

    @property
    def mode(self) -> Mode:
        """How much is allowed without asking."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        if mode not in VERDICTS:
            raise UsageError(f"there is no approval mode {mode!r}; the modes are: {', '.join(get_args(Mode))}")
        self._mode: Mode = mode

    def kind_of(self, name: str, kind: Kind | None = None) -> Kind | None:
        """The class of the tool called `name`, whose own `kind` comes first."""
        if kind is not None:
            return kind
        for found, patterns in self._patterns.items():
            if any(fits(pattern, name) for pattern in patterns):
                return found
        return None

    def __call__(self, context: ApprovalContext) -> Verdict | None:
        """The verdict of the mode of this moment."""
        kind = self.kind_of(context.call.name, context.tool.kind if context.tool is not None else None)
        if kind is None:
            return Allow() if self._mode == "auto" else None
        return VERDICTS[self._mode][kind]

    def __repr__(self) -> str:
        return f"ApprovalModes({self._mode!r})"


def fits(pattern: Pattern, name: str) -> bool:
    if isinstance(pattern, str):
        return fnmatchcase(name, pattern)
    return pattern.fullmatch(name) is not None
