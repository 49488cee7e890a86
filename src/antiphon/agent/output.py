"""Typed answers: the final answer as a validated value.

It comes through a final tool call, which every provider has; or, where the models keep to a schema and there is no tool
that they would have to choose instead, as the text of the reply.
"""

from collections.abc import Sequence
from typing import Any

from antiphon.errors import UsageError
from antiphon.tools.arguments import ArgumentError, Arguments, Prepared
from antiphon.tools.result import ToolResult
from antiphon.tools.tool import Tool
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

__all__ = ["FINAL", "TextOutput", "TypedOutput"]

FINAL = "final_answer"

INSTRUCTIONS = (
    f"When you have everything you need, give your answer by calling the tool {FINAL!r}; do not write it as text."
)
REMINDER = f"Give your answer by calling the tool {FINAL!r}."
MOST_PROBLEMS = 20


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

    def in_text(self) -> "TextOutput":
        """The same answer as the text of a reply."""
        return TextOutput(self.tool.arguments, wrapped=self._wrapped, reminders=self.reminders)

    def accepts(self, message: AssistantMessage) -> bool:  # noqa: ARG002 - a text is none, whatever it says
        """Whether a reply without calls is the answer."""
        return False

    def reminder(self, message: AssistantMessage) -> UserMessage:  # noqa: ARG002 - as above
        """What the model is told when it answered in text."""
        return UserMessage.of(REMINDER)

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


class TextOutput:
    """One type of answer as JSON text, for models that keep to the schema that a request asks for.

    An answer that does not fit all the same is told to the model, which repairs it, `reminders` times.
    """

    tool = None

    def __init__(self, arguments: Arguments, *, wrapped: bool, reminders: int) -> None:
        self.reminders = reminders
        self._arguments = arguments
        self._wrapped = wrapped

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the answer."""
        return self._arguments.parameters

    def accepts(self, message: AssistantMessage) -> bool:
        """Whether the reply is the answer."""
        return isinstance(self._prepared(message), Prepared)

    def reminder(self, message: AssistantMessage) -> UserMessage:
        """What the model is told when its answer does not fit."""
        error = self._prepared(message)
        problems = error.problems if isinstance(error, ArgumentError) else ()
        lines = [f"- {problem}" for problem in problems[:MOST_PROBLEMS]]
        what = "\n".join(["Your answer does not fit:", *lines]) if lines else "Your answer is not one JSON object."
        return UserMessage.of(f"{what}\nAnswer again, with nothing but the JSON that was asked for.")

    def read(self, messages: Sequence[Message]) -> Any:
        """The answer as a value, or `None` when the run ended without one."""
        last = messages[-1] if len(messages) > 0 else None
        prepared = self._prepared(last) if isinstance(last, AssistantMessage) and not last.calls else None
        if not isinstance(prepared, Prepared):
            return None
        return prepared.values["value"] if self._wrapped else prepared.values

    def _prepared(self, message: AssistantMessage) -> Prepared | ArgumentError:
        if message.partial or not message.text.strip():
            return ArgumentError("there is no answer")
        try:
            return self._arguments.prepare(message.text, strict=True)
        except ArgumentError as error:
            return error


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
