"""How a run begins: what the caller said, as the first state and the first input of the machine."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.agent.prompt import Prompt, as_messages
from antiphon.errors import IllegalMove, UsageError
from antiphon.loop.approval import check_decisions, pending_calls
from antiphon.loop.machine import advance
from antiphon.loop.session import Session
from antiphon.loop.spec import ForcedCall, RunSpec
from antiphon.loop.state import Decision, Input, Phase, Prompted, Resumed, RunState
from antiphon.loop.storage import load_state, resumed
from antiphon.types.content import ToolCall
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message

__all__ = ["Start", "begin", "stamped_input"]


class Start(Struct, frozen=True, kw_only=True):
    """How a run begins, as the caller said it."""

    input: Prompt | None = None
    messages: Sequence[Message] = ()
    resume: Mapping[str, Any] | None = None
    decisions: dict[str, Decision] = {}
    rerun_open: bool = False
    forced: ForcedCall | None = None
    run_id: str | None = None
    steering: tuple[Message, ...] = ()
    follow_ups: tuple[Message, ...] = ()
    steering_mode: Literal["one", "all"] = "one"
    follow_up_mode: Literal["one", "all"] = "one"

    @classmethod
    def of(cls, prompt: Prompt | None, options: Mapping[str, Any]) -> "Start":
        """The beginning that these options of a run say."""
        choice = options.get("tool_choice")
        return cls(
            input=prompt,
            messages=options.get("messages", ()),
            resume=options.get("resume"),
            decisions=dict(options.get("decisions") or {}),
            rerun_open=options.get("rerun_open", False),
            forced=choice if isinstance(choice, ForcedCall) else None,
            run_id=options.get("run_id"),
            steering=tuple(options.get("steering", ())),
            follow_ups=tuple(options.get("follow_ups", ())),
            steering_mode=options.get("steering_mode", "one"),
            follow_up_mode=options.get("follow_up_mode", "one"),
        )

    def queued_in(self, state: RunState) -> RunState:
        """The state with what is queued from the start behind what it has queued already."""
        return replace(
            state,
            steering=state.steering + self.steering,
            follow_ups=state.follow_ups + self.follow_ups,
            steering_mode=self.steering_mode,
            follow_up_mode=self.follow_up_mode,
        )


def begin(start: Start, spec: RunSpec) -> tuple[RunState, Input]:
    """The first state and input. Raises `UsageError` for combinations that mean nothing."""
    run_id = start.run_id or uuid.uuid4().hex
    sequential = spec.tool_options.execution == "sequential"
    if start.resume is not None:
        if len(start.messages):
            raise UsageError("resume= has its own transcript: leave messages= out")
        state = replace(resumed(load_state(start.resume), run_id), sequential=sequential)
        given = resuming(start, state)
        try:
            advance(start.queued_in(state), given)
        except IllegalMove as error:
            raise UsageError(f"this run has nothing to go on with: give input= ({error})") from error
        return state, given
    if start.decisions:
        raise UsageError("decisions= belong to a paused run: give its state with resume=")
    history = History.of(start.messages)
    state = RunState(run_id=run_id, messages=history, announced=len(history), sequential=sequential)
    if start.input is None and start.forced is None:
        return state, going_on(start, state)
    prompts = as_messages(start.input) if start.input is not None else ()
    return state, Prompted(messages=prompts, forced=forced_reply(start.forced))


def going_on(start: Start, state: RunState) -> Resumed:
    """The input for a transcript that nothing is added to. Raises `UsageError` when it gives a model nothing to answer."""
    first = Resumed(rerun_open=start.rerun_open)
    try:
        advance(start.queued_in(state), first)
    except IllegalMove as error:
        if not len(state.messages):
            text = "nothing to do: give input=, messages= that end in a user message, or resume="
        else:
            text = "messages= end in an assistant message, so it is not the model's turn: give input=, or take it away"
        raise UsageError(text) from error
    return first


def resuming(start: Start, state: RunState) -> Input:
    """The input for a stored state: decisions where calls wait, a prompt where nothing does."""
    decisions = check_decisions(state, start.decisions)
    open_batch = state.phase in (Phase.HELD, Phase.CALLING) and state.batch
    if start.input is None:
        return Resumed(decisions=decisions, rerun_open=start.rerun_open)
    if open_batch:
        waiting = ", ".join(map(repr, pending_calls(state)))
        raise UsageError(f"calls wait for decisions ({waiting}): decide first, or resume with all of them denied")
    return Prompted(messages=as_messages(start.input))


def forced_reply(forced: ForcedCall | None) -> AssistantMessage | None:
    """The reply that the application makes in the model's place; its ids come with the session."""
    if forced is None:
        return None
    text = msgspec.json.encode(dict(forced.arguments)).decode()
    return AssistantMessage(parts=(ToolCall(id="", name=forced.name, arguments=text),), stop_reason="tool_calls")


def stamped_input(session: Session, first: Input) -> Input:
    """Ids and times come in with the input: the machine makes none."""
    now = session.now()
    if isinstance(first, Resumed):
        return replace(first, at=now)
    assert isinstance(first, Prompted)
    forced = first.forced
    if forced is not None:
        call = replace(forced.calls[0], id=session.mint("forced"))
        forced = replace(forced, parts=(call,), id=session.mint_message_id(), created_at=now)
    messages = tuple([session.stamp(message) for message in first.messages])
    return Prompted(messages=messages, forced=forced, at=now)
