"""A run's state as plain JSON data, and back."""

from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from antiphon.errors import UsageError
from antiphon.loop.state import Counters, Phase, RunState, Slot
from antiphon.types.codec import from_plain, to_plain
from antiphon.types.events import Status
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message

__all__ = ["dump_state", "load_state"]

VERSION = 1


class StoredState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The layout of a stored state."""

    version: int
    run_id: str
    phase: Phase
    status: Status | None = None
    reason: str | None = None
    instructions: str = ""
    messages: tuple[Message, ...] = ()
    announced: int = 0
    batch: dict[str, Slot] = {}
    steering: tuple[Message, ...] = ()
    follow_ups: tuple[Message, ...] = ()
    steering_mode: Literal["one", "all"] = "one"
    follow_up_mode: Literal["one", "all"] = "one"
    sequential: bool = False
    ending: Literal["no", "reply", "end_turn"] = "no"
    counters: Counters = Counters()
    resumed_from: str | None = None


def dump_state(state: RunState) -> dict[str, Any]:
    """The state as JSON data: `json.dumps` takes it."""
    fields: dict[str, Any] = asdict(state) | {"version": VERSION, "messages": tuple(state.messages)}
    return cast("dict[str, Any]", to_plain(StoredState(**fields)))


def load_state(raw: object) -> RunState:
    """The state in `raw`. Raises `UsageError` for what is none, or was written by a newer version."""
    if not isinstance(raw, dict) or "version" not in raw:
        raise UsageError("resume= takes what result.state gave (JSON data with a version); this is something else")
    version = cast("dict[str, Any]", raw)["version"]
    if version != VERSION:
        raise UsageError(f"this state was written in version {version!r}, and this library reads {VERSION}; upgrade it")
    stored = from_plain(raw, StoredState, exact=True)
    fields: dict[str, Any] = asdict(stored) | {"messages": History(stored.messages), "batch": batch_of(stored)}
    del fields["version"]
    return RunState(**fields)


def batch_of(stored: StoredState) -> dict[str, Slot]:
    """The open batch in the order of its calls, which a store may have lost. It belongs to the last message, a reply."""
    reply = stored.messages[-1] if stored.messages else None
    calls = reply.calls if isinstance(reply, AssistantMessage) else ()
    is_open = stored.phase in (Phase.CALLING, Phase.HELD)
    batch = {call.id: stored.batch[call.id] for call in calls if call.id in stored.batch} if is_open else {}
    if len(batch) != len(stored.batch) or [slot.call for slot in batch.values()] != list(calls if is_open else ()):
        raise UsageError(
            "this state contradicts itself: its open calls are not those of its last reply; "
            "give what result.state gave, unchanged"
        )
    return batch


def resumed(state: RunState, run_id: str) -> RunState:
    """The state for a run that goes on from this one."""
    return replace(state, run_id=run_id, resumed_from=state.run_id)
