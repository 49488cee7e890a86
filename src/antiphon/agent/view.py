"""What a person should see, as a fold over events: nothing else is needed to rebuild it."""

from collections.abc import Iterable
from typing import assert_never

from antiphon.types.content import Part, Text, Thinking, ToolCall
from antiphon.types.events import (
    ApprovalDecided,
    ApprovalRequested,
    AttemptDiscarded,
    ContextReplaced,
    Event,
    LimitReached,
    MessageDelivered,
    MessageFinished,
    MessageQueued,
    MessageReturned,
    MessageStarted,
    RunFinished,
    RunStarted,
    Status,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Warned,
)
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, Message
from antiphon.types.request import ModelInfo, ThinkingLevel

__all__ = ["View"]


class View:
    """A conversation as it looks after the events so far. Give `apply` every event of its runs, in order.

    `running_calls` are ids of calls whose bodies run, `waiting_calls` of those that wait for a decision (inside a
    sub-agent under `outer/inner`), `queued` the messages that the run will deliver, `error` the sentence of the last
    run's failure. What is changed between runs has no event: make a new view of the messages then.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self.messages = History.of(messages)
        self.streaming = False
        self.status: Status | None = None
        self.error: str | None = None
        self.model: ModelInfo | None = None
        self.thinking: ThinkingLevel | None = None
        self.running_calls: set[str] = set()
        self.waiting_calls: set[str] = set()
        self.queued: list[Message] = []
        self._open: str | None = None
        self._fragments: dict[int, tuple[ToolCallDelta | TextDelta | ThinkingDelta, list[str]]] = {}

    @property
    def partial(self) -> AssistantMessage | None:
        """The reply so far, joined on demand; `None` between replies."""
        if self._open is None:
            return None
        parts: list[Part] = []
        for first, texts in self._fragments.values():
            text = "".join(texts)
            match first:
                case TextDelta():
                    parts.append(Text(text))
                case ThinkingDelta():
                    parts.append(Thinking(text=text))
                case ToolCallDelta(call_id=call_id, name=name):
                    parts.append(ToolCall(id=call_id, name=name, arguments=text))
        return AssistantMessage(parts=tuple(parts), id=self._open, partial=True)

    def apply(self, event: Event) -> None:
        """Take one event. Of those of sub-agents only the questions are seen here."""
        if event.parent_run_id is not None:
            if isinstance(event, ApprovalRequested | ApprovalDecided):
                self._take_call(event)
            return
        match event:
            case TextDelta() | ThinkingDelta() | ToolCallDelta():
                self._grow(event)
            case MessageStarted() | MessageFinished() | AttemptDiscarded() | ContextReplaced():
                self._take_message(event)
            case MessageQueued() | MessageDelivered() | MessageReturned():
                self._take_receipt(event)
            case ToolStarted() | ToolFinished() | ApprovalRequested() | ApprovalDecided():
                self._take_call(event)
            case RunStarted() | RunFinished():
                self._take_run(event)
            case TurnStarted() | TurnFinished() | ToolRequested() | ToolProgress() | LimitReached() | Warned():
                pass
            case _:
                assert_never(event)

    def _grow(self, event: TextDelta | ThinkingDelta | ToolCallDelta) -> None:
        if self._open != event.message_id:
            return
        key = event.index if not isinstance(event, ToolCallDelta) else -1 - event.index
        self._fragments.setdefault(key, (event, []))[1].append(event.text)

    def _take_message(self, event: MessageStarted | MessageFinished | AttemptDiscarded | ContextReplaced) -> None:
        match event:
            case MessageStarted(role="assistant", message_id=message_id):
                self._open = message_id
                self._fragments = {}
            case MessageFinished(message=message):
                self.messages = self.messages.extended(message)
                self._close()
            case AttemptDiscarded():
                self._close()
            case ContextReplaced(messages=messages, model=model):
                self.messages = self.messages if messages is None else History(messages)
                self.model = model or self.model
            case _:
                pass

    def _close(self) -> None:
        self._open = None
        self._fragments = {}

    def _take_receipt(self, event: MessageQueued | MessageDelivered | MessageReturned) -> None:
        match event:
            case MessageQueued(message=message):
                self.queued.append(message)
            case MessageDelivered(message_id=message_id):
                self._unqueue(message_id)
            case MessageReturned(message=message):
                self._unqueue(getattr(message, "id", ""))

    def _unqueue(self, message_id: str) -> None:
        """One receipt is for one message, also when the same was queued twice."""
        for index, message in enumerate(self.queued):
            if getattr(message, "id", "") == message_id:
                del self.queued[index]
                return

    def _take_call(self, event: ToolStarted | ToolFinished | ApprovalRequested | ApprovalDecided) -> None:
        call_id = event.call_id
        match event:
            case ToolStarted():
                self.running_calls.add(call_id)
                self.waiting_calls.discard(call_id)
            case ToolFinished():
                inside = f"{call_id}/"  # what waited in a sub-agent that is over waits no more
                self.running_calls.discard(call_id)
                self.waiting_calls -= {other for other in self.waiting_calls if f"{other}/".startswith(inside)}
            case ApprovalRequested():
                self.waiting_calls.add(call_id)
            case ApprovalDecided():
                self.waiting_calls.discard(call_id)

    def _take_run(self, event: RunStarted | RunFinished) -> None:
        match event:
            case RunStarted(model=model, thinking=thinking):
                self.streaming, self.status, self.error = True, None, None
                self.model, self.thinking = model, thinking
                self.queued = []
            case RunFinished(status=status, error=error):
                self.streaming, self.status, self.error = False, status, error
                self.running_calls = set()
                if status != "paused":
                    self.waiting_calls = set()
                self._close()
