"""Typed answers: the final answer as a validated value, through a final tool call that every provider has."""

from collections.abc import Sequence
from typing import Any

from antiphon.errors import UsageError
from antiphon.tools.arguments import Arguments
from antiphon.tools.result import ToolResult
from antiphon.tools.tool import Tool
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

__all__ = ["FINAL", "TypedOutput"]

FINAL = "final_answer"

INSTRUCTIONS = (
    f"When you have everything you need, give your answer by calling the tool {FINAL!r}; do not write it as text."
)
REMINDER = f"Give your answer by calling the tool {FINAL!r}."


class TypedOutput:
    """One type of answer: the tool that takes it, and how to read it back from a transcript.

    A value that is no object is wrapped in one under `value`, because the arguments of a call are always an object.
    Arguments that do not fit are told to the model, which repairs them, as often as the limit of invalid calls allows;
    a reply without the call is reminded `reminders` times.
    """

    def __init__(self, kind: Any, reminders: int = 2) -> None:
        self.reminders = reminders
        arguments, self._wrapped = answer_arguments(kind)
        self.tool = Tool(
            name=FINAL,
            description="Give the final answer.",
            arguments=arguments,
            body=take_answer,
            instructions=INSTRUCTIONS,
            repeatable=True,
        )

    def reminder(self) -> UserMessage:
        """What the model is told when it answered in text."""
        return UserMessage.of(REMINDER)

    def given(self, messages: Sequence[Message]) -> bool:
        """Whether the transcript ends in an answer."""
        return self._last_arguments(messages) is not None

    def read(self, messages: Sequence[Message]) -> Any:
        """The answer as a value, or `None` when the run ended without one."""
        text = self._last_arguments(messages)
        if text is None:
            return None
        values = self.tool.prepare(text).values
        return values["value"] if self._wrapped else values

    def _last_arguments(self, messages: Sequence[Message]) -> str | None:
        """The JSON text of the last accepted answer of the last reply."""
        accepted: dict[str, str | None] = {}
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if isinstance(message, ToolResultMessage):
                if message.tool_name == FINAL and message.outcome == "ok":
                    accepted[message.call_id] = message.used_arguments
            elif isinstance(message, AssistantMessage):
                for call in reversed(message.calls):
                    if call.id in accepted:
                        return accepted[call.id] or call.arguments
                return None
            else:
                return None
        return None


def answer_arguments(kind: Any) -> tuple[Arguments, bool]:
    """The arguments that take a value of this type, and whether it is wrapped in an object, being none itself."""
    from antiphon.tools.typed import Parameter, model_arguments, named_arguments

    try:
        return model_arguments(FINAL, kind)[0], False
    except UsageError:
        pass
    try:
        return named_arguments(FINAL, [Parameter(name="value", annotation=kind)]), True
    except UsageError as error:
        raise UsageError(
            f"output_type={kind!r} has no JSON Schema: give a model, a dataclass, plain types ({error})"
        ) from error


async def take_answer(_values: Any, _context: Any) -> ToolResult:
    return ToolResult("the answer was taken", end_turn=True)
