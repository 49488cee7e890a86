"""Closing what is open: the results of calls that nobody answered, and the end of a transcript."""

from antiphon.loop.state import Halted, Slot
from antiphon.tools.result import error_text
from antiphon.types.content import Text, ToolCall
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Outcome, ToolResultMessage, UserMessage

CLOSING: dict[Outcome, str] = {
    "cancelled": "the call was cancelled while it ran",
    "not_run": "the call was not run because the run ended first",
    "unknown": "the call was started, and whether it finished is not known",
}
CUT_OFF = "the call was not run: the reply was cut off by the output limit; ask again, with shorter arguments"


def closing_result(
    message: AssistantMessage, call: ToolCall, outcome: Outcome, at: float, why: str = ""
) -> ToolResultMessage:
    """The result of a call that nobody answered. Its id follows from the reply's, so that a replay gives the same."""
    text = error_text(call.name, why or CLOSING[outcome])
    return ToolResultMessage(
        id=f"{message.id}/{call.id}",
        created_at=at,
        call_id=call.id,
        tool_name=call.name,
        parts=(Text(text),),
        is_error=True,
        outcome=outcome,
    )


def open_calls(messages: History) -> tuple[AssistantMessage, tuple[ToolCall, ...]] | None:
    """The last reply and those of its calls that have no result, if there are any; none once a user message followed."""
    answered: set[str] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, ToolResultMessage):
            answered.add(message.call_id)
        elif isinstance(message, AssistantMessage):
            missing = tuple([call for call in message.calls if call.id not in answered])
            return (message, missing) if missing else None
        elif isinstance(message, UserMessage):
            return None
    return None


def without_failed_reply(messages: History) -> History:
    """The transcript without a failed or aborted reply (and its results) at its end."""
    index = len(messages) - 1
    while index >= 0 and isinstance(messages[index], ToolResultMessage):
        index -= 1
    if index < 0:
        return messages
    last = messages[index]
    if isinstance(last, AssistantMessage) and (last.partial or last.stop_reason in ("error", "aborted")):
        return History(messages[:index])
    return messages


def closed(messages: History, at: float) -> History:
    """The transcript with every open call of its end answered: nobody knows what became of it."""
    found = open_calls(messages)
    if found is None:
        return messages
    reply, missing = found
    return messages.extended(*[closing_result(reply, call, "unknown", at) for call in missing])


def closed_slot(reply: AssistantMessage, slot: Slot, given: Halted) -> ToolResultMessage:
    """The result of a call when its run is halted: its own, the one given for it, or one that says how far it came."""
    if slot.result is not None:
        return slot.result
    outcome = given.outcomes.get(slot.call.id)
    if outcome is not None:
        return outcome
    return closing_result(reply, slot.call, "cancelled" if slot.stage == "started" else "not_run", given.at)
