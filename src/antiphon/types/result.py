"""How a run ended: the result, and the error that carries it."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from antiphon.errors import AntiphonError
from antiphon.types.content import ToolCall
from antiphon.types.events import Status
from antiphon.types.messages import AssistantMessage, Message
from antiphon.types.usage import Usage

__all__ = ["OutputT", "RunError", "RunResult"]

OutputT = TypeVar("OutputT")
"""The type of the answer: text, or what `output_type` says."""


class RunResult(Struct, Generic[OutputT], frozen=True, kw_only=True, eq=False):
    """What a run leaves behind, after any ending.

    `messages` is the whole transcript, always valid to send again; `new_messages` is what this run added, its prompt
    included. `usage` is the sum over all requests, discarded attempts too; `last_usage` is the last request's; `turns`
    are replies, `requests` attempts. `pending` are the calls that wait for a decision (`paused`), `questions` what they
    ask from inside, by call id; `undelivered` are the queued messages that were not delivered, `warnings` what `Warned`
    events said, as `(code, text)`.
    """

    status: Status
    run_id: str
    output: OutputT
    messages: Sequence[Message]
    new_messages: Sequence[Message]
    usage: Usage = Usage()
    last_usage: Usage | None = None
    turns: int = 0
    requests: int = 0
    reason: str | None = None
    error: str | None = None
    pending: tuple[ToolCall, ...] = ()
    questions: dict[str, Any] = {}
    undelivered: tuple[Message, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    snapshot: Callable[[], dict[str, Any]] = dict[str, Any]

    @property
    def text(self) -> str:
        """The text of the last reply, or an empty string."""
        for message in reversed(self.messages):
            if isinstance(message, AssistantMessage):
                return message.text
        return ""

    @property
    def state(self) -> dict[str, Any]:
        """The run as plain JSON data, for `agent.run(resume=…)`, here or in another process.

        Keep it where users cannot forge it: it says which calls were allowed.
        """
        return self.snapshot()


class RunError(AntiphonError):
    """A run ended in `error`. `result` is what it left behind; the cause is chained."""

    def __init__(self, message: str, result: RunResult[Any]) -> None:
        super().__init__(message)
        self.result = result
