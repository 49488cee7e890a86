"""Events as short lines: pure, one event in, at most one line out."""

import html
import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct
from rich.text import Text as Line

from antiphon.types.content import ToolCall
from antiphon.types.events import (
    ApprovalDecided,
    ApprovalRequested,
    AttemptDiscarded,
    ContextReplaced,
    LimitReached,
    MessageDelivered,
    MessageQueued,
    MessageReturned,
    MessageStarted,
    RunFinished,
    RunStarted,
    ToolCallDelta,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Warned,
)

__all__ = ["ASCII", "UNICODE", "Brief", "Marks", "first_line", "line_of", "one_line", "printable"]

LONGEST_VALUE: Final = 120
"""Characters of an argument that are shown."""

CONTROLS: Final = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
ERROR_TAG: Final = re.compile(r'<tool_error name="[^"]*">(.*)</tool_error>', re.DOTALL)

Brief: TypeAlias = (
    RunStarted
    | TurnStarted
    | MessageStarted
    | ToolCallDelta
    | ToolRequested
    | ApprovalRequested
    | ApprovalDecided
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | TurnFinished
    | AttemptDiscarded
    | ContextReplaced
    | LimitReached
    | MessageQueued
    | MessageDelivered
    | MessageReturned
    | Warned
    | RunFinished
)
"""The events that are told in a line, or not at all: all but those that carry the reply."""


class Marks(Struct, frozen=True):
    """How a line begins."""

    call: str
    answer: str
    failure: str
    progress: str
    back: str


UNICODE: Final = Marks("→", "←", "✗", "…", "↶")
ASCII: Final = Marks("->", "<-", "x", "..", "<")


def line_of(event: Brief, marks: Marks) -> Line | None:  # noqa: C901, PLR0912 - one case for each event, none of them deep
    """What a person should read of an event; `None` where there is nothing to say."""
    match event:
        case ToolRequested(call=call):
            return Line.assemble((f"{marks.call} ", "cyan"), (call.name, "bold cyan"), asked(call))
        case ToolProgress(name=name, content=content):
            return Line(f"{marks.progress} {name}: {short(content)}", "dim")
        case ToolFinished():
            return finished(event, marks)
        case ApprovalRequested(name=name, arguments=arguments, question=question):
            waits = "waits for a decision" if question is None else short(question)
            return Line(f"? {name}{listed(arguments)}: {waits}", "yellow")
        case ApprovalDecided(approved=approved, reason=reason):
            return Line(f"? {'approved' if approved else 'refused'}{because(reason)}", "yellow")
        case AttemptDiscarded(why=why, wait=wait, attempt=attempt, of=of):
            later = f" in {wait:.3g} s" if wait else ""
            return Line(f"{marks.back} {plain(why)}: asking again{later} ({attempt} of {of})", "yellow")
        case ContextReplaced(model=model, why=why):
            now = "other messages" if model is None else model.origin
            return Line(f"goes on with {now}{because(why)}", "yellow")
        case LimitReached(scope="tool", which=which, limit=limit, name=name):
            return Line(f"the limit of {name} is reached: {limit:g} {plain(which)}", "yellow")
        case MessageQueued(queue=queue):
            return Line(f"queued ({plain(queue)})", "dim")
        case MessageDelivered(queue=queue):
            return Line(f"delivered ({plain(queue)})", "dim")
        case MessageReturned(queue=queue, why=why):
            return Line(f"not delivered ({plain(queue)}){because(why)}", "yellow")
        case Warned(text=text):
            return Line(f"warning: {one_line(text)}", "yellow")
        case RunFinished(status="error", error=error, reason=reason):
            return Line(f"antiphon: {one_line(error or reason or 'the run failed')}", "red")
        case RunFinished(status=status, reason=reason):
            return None if status == "done" else Line(f"{status}{because(reason)}", "yellow")
        case (
            RunStarted()
            | TurnStarted()
            | TurnFinished()
            | MessageStarted()
            | ToolStarted()
            | ToolCallDelta()
            | LimitReached()
        ):
            return None
        case _:
            assert_never(event)


def finished(event: ToolFinished, marks: Marks) -> Line:
    """The first line of a result, or of what went wrong."""
    text = event.result.text or f"[{len(event.result.parts)} parts]"
    if event.outcome == "ok":
        return Line.assemble((f"{marks.answer} ", "green"), (event.name, "bold green"), f": {first_line(text)}")
    tagged = ERROR_TAG.fullmatch(text)
    text = html.unescape(tagged[1]) if tagged else text
    how = "" if event.outcome == "error" else f" ({plain(event.outcome)})"
    return Line.assemble((f"{marks.failure} ", "red"), (event.name, "bold red"), f"{how}: {first_line(text)}")


def printable(text: str) -> str:
    """The text without what a terminal would obey."""
    return text.translate(CONTROLS)


def one_line(text: str) -> str:
    return " ".join(printable(text).split())


def first_line(text: str) -> str:
    lines = [line for line in printable(text).splitlines() if line.strip()]
    if not lines:
        return "[empty]"
    return one_line(lines[0]) + (f" (+{len(lines) - 1} lines)" if len(lines) > 1 else "")


def asked(call: ToolCall) -> str:
    """The arguments as the model wrote them, as in a call."""
    try:
        return listed(call.parse())
    except ValueError:
        return f"({one_line(call.arguments)})"


def listed(arguments: Mapping[str, Any]) -> str:
    return f"({', '.join([f'{name}={short(value)}' for name, value in arguments.items()])})"


def short(value: Any) -> str:
    text = one_line(repr(value))
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def plain(word: str) -> str:
    return word.replace("_", " ")


def because(reason: str | None) -> str:
    return f": {one_line(reason)}" if reason else ""
