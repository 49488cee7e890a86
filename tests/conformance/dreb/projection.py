"""antiphon's events as those of the recordings: made of what ours say, one listener's worth at a time."""

from collections.abc import Iterator
from typing import Any

from antiphon import (
    AssistantMessage,
    AttemptDiscarded,
    Conversation,
    Event,
    MessageFinished,
    MessageStarted,
    ModelInfo,
    RunFinished,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    TurnFinished,
    TurnStarted,
    View,
)
from antiphon.types.content import Part
from antiphon.types.messages import Message

from .stage import Stage
from .words import Json, arguments_of, level_of, message_out, messages_out, partial_out, parts_out, roles_of

__all__ = ["Projection"]

KINDS: dict[type[Any], str] = {TextDelta: "text", ThinkingDelta: "thinking", ToolCallDelta: "toolcall"}


class Projection:
    """Their events of the runs of one conversation, and their state as the fold of ours.

    Two things are always said in another place or shape, and mean the same: their first `turn_start` of a run stands
    before the prompt that opens the turn, ours behind it (section 7: `prepare_context` → `TurnStarted`), so it is told
    with the start of the run; and ours has no event for the beginning and the end of a block, whose index is on each
    delta.
    """

    def __init__(self, stage: Stage, stand_in: ModelInfo, messages: list[Message]) -> None:
        self._stage = stage
        self._stand_in = stand_in
        self.view = View(messages)
        self.new: list[Message] = []
        self.calls: dict[str, ToolCall] = {}
        self.pending: list[str] = []
        self._turns = 0

    def told(self, event: Event) -> Iterator[Json]:
        """Their events for one of ours. Theirs are told of a message's beginning before it is in the state."""
        if isinstance(event, MessageFinished) and not isinstance(event.message, AssistantMessage):
            yield {"type": "message_start", "message": message_out(event.message, self._stand_in)}
        self.view.apply(event)
        match event:
            case RunStarted(model=model, thinking=thinking):
                self.new, self.pending, self._turns = [], [], 0
                known = {"provider": model.provider, "id": model.id} if model is not None else None
                yield {"type": "agent_start", "model": known, "thinkingLevel": level_of(thinking)}
                yield {"type": "turn_start"}
            case TurnStarted():
                self._turns += 1
                if self._turns > 1:
                    yield {"type": "turn_start"}
            case MessageStarted(role=role):
                if role == "assistant":
                    yield {"type": "message_start", "message": {"role": "assistant"}}
            case TextDelta() | ThinkingDelta() | ToolCallDelta():
                yield from self._update(event)
            case MessageFinished(message=message):
                self.new.append(message)
                yield {"type": "message_end", "message": message_out(message, self._stand_in)}
            case AttemptDiscarded():
                yield discarded(event, self._stand_in)
            case ToolRequested(call=call):
                self.calls[call.id] = call
                self.pending.append(call.id)
                yield {"type": "tool_execution_start", **self._call(call.id, call.name)}
            case ToolProgress(call_id=call_id, name=name, content=content, details=details):
                partial = {"content": parts_out(content), "details": details}
                yield {"type": "tool_execution_update", **self._call(call_id, name), "partialResult": partial}
            case ToolFinished(call_id=call_id, name=name, result=result):
                self.pending.remove(call_id)
                told = {"content": parts_out(result.parts), "details": result.details}
                yield {
                    "type": "tool_execution_end",
                    "toolCallId": call_id,
                    "toolName": name,
                    "result": told,
                    "isError": result.is_error,
                }
            case TurnFinished(message=message, results=results):
                reply = message_out(message, self._stand_in) if message is not None else None
                yield {"type": "turn_end", "message": reply, "toolResults": messages_out(results, self._stand_in)}
            case RunFinished():
                yield {"type": "agent_end", "messages": messages_out(self.new, self._stand_in)}
            case _:
                pass

    def _call(self, call_id: str, name: str) -> Json:
        return {"toolCallId": call_id, "toolName": name, "args": arguments_of(self.calls[call_id])}

    def _update(self, event: TextDelta | ThinkingDelta | ToolCallDelta) -> Iterator[Json]:
        partial = self.view.partial
        if self._stage.in_one_piece or not event.text or partial is None:
            return
        delta = {"type": f"{KINDS[type(event)]}_delta", "delta": event.text}
        message = {"role": "assistant", "content": partial_out(partial)}
        yield {"type": "message_update", "assistantMessageEvent": delta, "message": message}

    def state(self, of: View | Conversation[Any] | None = None) -> Json:
        """Their state as the events tell it, or as the conversation does.

        They have one word, `error`, for what failed and for what was aborted.
        """
        told = of or self.view
        aborted = "the run was aborted" if told.status == "aborted" else None
        return {
            "isStreaming": told.streaming,
            "streamMessage": "assistant" if told.partial is not None else None,
            "pendingToolCalls": list(dict.fromkeys(self.pending)),
            "messages": roles_of(told.messages),
            "error": told.error or aborted,
        }


def discarded(event: AttemptDiscarded, stand_in: ModelInfo) -> Json:
    """Ours says why in a word, theirs by the kind of the event."""
    kind = "length_retry" if event.why == "truncated" else "stream_retry"
    told: Json = {"type": kind, "attempt": event.attempt, "maxAttempts": event.of}
    parts: tuple[Part, ...] = event.partial.parts if event.partial is not None else ()
    return told | {"discardedPartial": {"role": "assistant", "content": parts_out(parts)}}
