"""A run's events, kept for assertions, and the rules that hold for the events of every run."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from antiphon.agent.run import Run
from antiphon.types.events import (
    ApprovalDecided,
    ApprovalRequested,
    AttemptDiscarded,
    Event,
    MessageFinished,
    MessageStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)

__all__ = ["Recording", "check_events", "record"]

EventT = TypeVar("EventT")


class Recording:
    """The events that it was given, in order. It is a listener: `run.subscribe(Recording())`."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = list(events)

    def __call__(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def kinds(self, *only: type[Any]) -> list[str]:
        """The names of the events' kinds (`text_delta`), in order; with `only`, of those kinds alone."""
        return [kind_of(event) for event in self.events if not only or isinstance(event, only)]

    def of(self, kind: type[EventT]) -> list[EventT]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def one(self, kind: type[EventT]) -> EventT:
        """The only event of its kind. Raises `AssertionError` when there is none, or another."""
        found = self.of(kind)
        if len(found) != 1:
            raise AssertionError(f"{len(found)} events of {kind.__name__}, not one; there are: {self.kinds()}")
        return found[0]

    def run(self, run_id: str) -> "Recording":
        """The events of one run alone, for recordings in which sub-agents speak too."""
        return Recording(event for event in self.events if event.run_id == run_id)

    def text(self) -> str:
        """The replies' text as a viewer saw it in the end: what was discarded is taken back."""
        shown: dict[tuple[str, str], list[str]] = {}
        for event in self.events:
            match event:
                case TextDelta(run_id=run_id, message_id=message_id, text=text):
                    shown.setdefault((run_id, message_id), []).append(text)
                case AttemptDiscarded(run_id=run_id, message_id=message_id):
                    shown.pop((run_id, message_id), None)
                case _:
                    pass
        return "".join(["".join(pieces) for pieces in shown.values()])

    def check(self) -> None:
        """Raise `AssertionError` for events that break the rules; see `check_events`."""
        check_events(self.events)


def record(run: Run[Any]) -> Recording:
    """Record a run that has not started, from its first event."""
    recording = Recording()
    run.subscribe(recording)
    return recording


def kind_of(event: Event) -> str:
    return str(event.__struct_config__.tag)


def check_events(events: Iterable[Event]) -> None:
    """Check the events of whole runs, those of sub-agents among them. Raises `AssertionError` that lists every fault.

    In each run: `seq` counts from 1 without gaps; one `RunFinished` comes, last; each `ToolRequested` has one
    `ToolFinished` (in a paused run a call may stay open), and what is told of a call stands between them; a message's
    deltas stand between its start and its end or its being discarded; turns begin, end, and do not overlap.
    """
    runs: dict[str, Checker] = {}
    for event in events:
        runs.setdefault(event.run_id, Checker(event.run_id)).take(event)
    faults = [fault for checker in runs.values() for fault in checker.finish()]
    if faults:
        raise AssertionError("\n".join(["the events break the rules:", *faults]))


class Checker:
    """Follows the events of one run."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.faults: list[str] = []
        self.seq = 0
        self.last: RunFinished | None = None
        self.resumed = False
        self.turn: int | None = None
        self.message: tuple[str, int] | None = None
        self.open_calls: set[str] = set()
        self.running: set[str] = set()
        self.asked: set[str] = set()

    def fault(self, event: Event, text: str) -> None:
        self.faults.append(f"run {self.run_id}, event {event.seq} ({kind_of(event)}): {text}")

    def take(self, event: Event) -> None:
        if event.seq != self.seq + 1:
            self.fault(event, f"follows event {self.seq}: a gap, or the wrong order")
        if self.last is not None:
            self.fault(event, "comes after the run has finished")
        self.seq = event.seq
        match event:
            case RunStarted(resumed_from=resumed_from):
                self.resumed = resumed_from is not None
                if event.seq != 1:
                    self.fault(event, "is not the first")
            case RunFinished():
                self.last = event
            case TurnStarted() | TurnFinished():
                self.take_turn(event)
            case MessageStarted() | MessageFinished() | AttemptDiscarded() | TextDelta() | ThinkingDelta():
                self.take_message(event)
            case ToolCallDelta():
                self.take_message(event)
            case _:
                self.take_call(event)

    def take_turn(self, event: TurnStarted | TurnFinished) -> None:
        if isinstance(event, TurnStarted):
            if self.turn is not None:
                self.fault(event, f"turn {self.turn} has not ended")
            self.turn = event.turn
        else:
            if self.turn != event.turn:
                self.fault(event, f"turn {event.turn} ends, but turn {self.turn} is open")
            self.turn = None

    def take_message(self, event: Any) -> None:
        match event:
            case MessageStarted():
                if self.message is not None:
                    self.fault(event, f"message {self.message[0]!r} has not ended")
                self.message = (event.message_id, event.attempt)
            case MessageFinished(message=message):
                own = getattr(message, "id", "")
                if self.message is None or self.message[0] != own:
                    self.fault(event, f"message {own!r} was not started")
                self.message = None
            case AttemptDiscarded():
                if self.message is not None and self.message[0] != event.message_id:
                    self.fault(event, f"{event.message_id!r} is discarded, but {self.message[0]!r} is open")
                self.message = None
            case _:
                if self.message != (event.message_id, event.attempt):
                    self.fault(event, f"message {event.message_id!r} is not open in attempt {event.attempt}")

    def take_call(self, event: Event) -> None:
        match event:
            case ToolRequested(call=call):
                if call.id in self.open_calls:
                    self.fault(event, f"call {call.id!r} is open already")
                self.open_calls.add(call.id)
            case ApprovalRequested(call_id=call_id, path=path):
                self.asked.add(call_id)
                self.must_be_open(event, call_id.removeprefix("".join([f"{step}/" for step in path])))
            case ApprovalDecided(call_id=call_id):
                if call_id not in self.asked and not self.resumed:
                    self.fault(event, f"nobody asked about call {call_id!r}")
                self.asked.discard(call_id)
            case ToolStarted(call_id=call_id):
                self.must_be_open(event, call_id)
                self.running.add(call_id)
            case ToolProgress(call_id=call_id):
                if call_id not in self.running:
                    self.fault(event, f"call {call_id!r} does not run")
            case ToolFinished(call_id=call_id):
                self.must_be_open(event, call_id)
                self.open_calls.discard(call_id)
                self.running.discard(call_id)
            case _:
                pass

    def must_be_open(self, event: Event, call_id: str) -> None:
        if call_id not in self.open_calls:
            self.fault(event, f"call {call_id!r} was not requested, or has finished already")

    def finish(self) -> list[str]:
        """All faults, the run being over."""
        if self.last is None:
            self.faults.append(f"run {self.run_id}: RunFinished is missing")
        if self.open_calls and (self.last is None or self.last.status != "paused"):
            self.faults.append(f"run {self.run_id}: calls without ToolFinished: {sorted(self.open_calls)}")
        if self.message is not None:
            self.faults.append(f"run {self.run_id}: message {self.message[0]!r} has not ended")
        if self.turn is not None:
            self.faults.append(f"run {self.run_id}: turn {self.turn} has not ended")
        return self.faults
