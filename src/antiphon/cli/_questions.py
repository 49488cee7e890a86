"""Calls that wait for a person: what is asked, and what a typed line decides."""

import json
from typing import Any, Final, cast

from antiphon.errors import UsageError
from antiphon.loop.state import Answer, Approve, Decision, Deny
from antiphon.types.events import ApprovalDecided, ApprovalRequested, Event, RunFinished, ToolFinished

__all__ = ["HOW", "Questions", "decision_of"]

HOW: Final = "y: yes; n or n REASON: no; e: edit the arguments; other words: no, do this instead"
YES: Final = frozenset({"y", "yes"})
NO: Final = frozenset({"n", "no"})


class Questions:
    """The calls that wait, the oldest first; the one whose arguments are being edited, if any."""

    def __init__(self) -> None:
        self._waiting: dict[str, ApprovalRequested] = {}
        self._editing = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def first(self) -> ApprovalRequested | None:
        """The call that the next line decides on."""
        return next(iter(self._waiting.values()), None)

    @property
    def draft(self) -> str:
        """The arguments to begin with while they are edited, else nothing."""
        return json.dumps(self.first.arguments, ensure_ascii=False) if self.first and self._editing else ""

    @property
    def prompt(self) -> str:
        """What stands before the line that is typed; empty when nothing waits."""
        if self.first is None:
            return ""
        if self._editing:
            return "arguments> "
        return "answer> " if self.first.question is not None else "y/n/e> "

    def apply(self, event: Event) -> None:
        """Take one event."""
        match event:
            case ApprovalRequested():
                self._waiting[event.call_id] = event
            case ApprovalDecided() | ToolFinished():
                self._forget(event.call_id)
            case RunFinished(parent_run_id=None):
                self._waiting.clear()
                self._editing = False
            case _:
                pass

    def take(self, line: str) -> dict[str, Decision]:
        """What the line decides, by call id; nothing when it only begins, or leaves, the editing of arguments.

        Raises `UsageError` for arguments that are no JSON object.
        """
        asked = self.first
        if asked is None:
            raise UsageError("nothing waits for a decision")
        editing, self._editing = self._editing, False
        if asked.question is not None:
            decision: Decision | None = Answer(line)
        elif editing:
            self._editing = bool(line)  # until the arguments are good; an empty line goes back to the question
            decision = Approve(arguments_of(line)) if line else None
        else:
            decision = decision_of(line)
            self._editing = decision is None and bool(line)
        return {} if decision is None else {asked.call_id: decision}

    def decided(self, call_id: str) -> None:
        """A decision was taken: the next line is about the next call."""
        self._forget(call_id)

    def _forget(self, call_id: str) -> None:
        if self.first is not None and self.first.call_id == call_id:
            self._editing = False
        self._waiting.pop(call_id, None)


def decision_of(line: str) -> Decision | None:
    """The decision that a line means; `None` where the arguments are to be edited first, or nothing was typed."""
    word, _, rest = line.partition(" ")
    word, rest = word.lower().rstrip(",.:;!"), rest.strip()
    if word in YES and not rest:
        return Approve()
    if word in NO:
        return Deny(rest or None)
    if word == "e":
        return Approve(arguments_of(rest)) if rest else None
    return Deny(instruction=line) if line else None


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments as they were typed. Raises `UsageError` when they are no JSON object."""
    try:
        value: object = json.loads(text)
    except ValueError as error:
        raise UsageError(f"these arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError('arguments are a JSON object, as in {"amount": 5}')
    return cast("dict[str, Any]", value)
