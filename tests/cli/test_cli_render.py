"""Events on the screen: the answer on one console, the rest on the other."""

from collections.abc import Sequence
from io import StringIO
from typing import Any, get_args

import pytest
from rich.console import Console

from antiphon.cli.render import Renderer
from antiphon.types.content import Text, ToolCall
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
from antiphon.types.messages import AssistantMessage, Outcome, ToolResultMessage, UserMessage
from antiphon.types.request import ModelInfo

RUN: dict[str, Any] = {"run_id": "r", "seq": 1}
END = MessageFinished(**RUN, message=AssistantMessage(parts=()))


def text(said: str) -> TextDelta:
    return TextDelta(**RUN, message_id="m", text=said)


def thought(said: str) -> ThinkingDelta:
    return ThinkingDelta(**RUN, message_id="m", text=said)


def requested(arguments: str) -> ToolRequested:
    return ToolRequested(**RUN, call=ToolCall(id="c", name="find", arguments=arguments))


def returned(said: str, outcome: Outcome = "ok") -> ToolFinished:
    result = ToolResultMessage(call_id="c", tool_name="find", parts=(Text(said),), outcome=outcome)
    return ToolFinished(**RUN, call_id="c", name="find", result=result, outcome=outcome)


def shown(*events: Event, terminal: bool = False, width: int = 60, together: bool = False) -> tuple[str, str]:
    """What the two consoles have; `together` gives both the same screen."""
    out = StringIO()
    err = out if together else StringIO()
    options: dict[str, Any] = {"force_terminal": terminal, "no_color": True, "width": width, "highlight": False}
    renderer = Renderer(
        Console(file=out, soft_wrap=True, **options), Console(file=err, soft_wrap=True, markup=False, **options)
    )
    for event in events:
        renderer.show(event)
    return out.getvalue(), err.getvalue()


def line(event: Event) -> str:
    """The one line that an event has on the side of the answer."""
    out, err = shown(event)
    assert out == ""
    return err.removesuffix("\n")


LINES: Sequence[tuple[Event, str]] = [
    (RunStarted(**RUN), ""),
    (TurnStarted(**RUN, turn=1), ""),
    (MessageStarted(**RUN, message_id="m", role="assistant"), ""),
    (MessageFinished(**RUN, message=UserMessage.of("Hi")), ""),
    (ToolCallDelta(**RUN, message_id="m", text="{"), ""),
    (ToolStarted(**RUN, call_id="c", name="find", arguments={}), ""),
    (TurnFinished(**RUN, turn=1), ""),
    (RunFinished(**RUN, status="done"), ""),
    (thought("Hm."), "Hm."),
    (requested('{"word": "a b", "most": 3}'), "-> find(word='a b', most=3)"),
    (requested("{broken"), "-> find({broken)"),
    (ToolProgress(**RUN, call_id="c", name="find", content="half"), ".. find: 'half'"),
    (returned("one"), "<- find: one"),
    (returned("\n one\ntwo\nthree\n"), "<- find: one (+2 lines)"),
    (returned(""), "<- find: [1 parts]"),
    (returned('<tool_error name="find">a &lt; b</tool_error>', "error"), "x find: a < b"),
    (returned("too slow", "timeout"), "x find (timeout): too slow"),
    (ApprovalRequested(**RUN, call_id="c", name="find", arguments={"a": 1}), "? find(a=1): waits for a decision"),
    (ApprovalRequested(**RUN, call_id="c", name="find", arguments={}, question="Sure?"), "? find(): 'Sure?'"),
    (ApprovalDecided(**RUN, call_id="c", approved=True), "? approved"),
    (ApprovalDecided(**RUN, call_id="c", approved=False, reason="no"), "? refused: no"),
    (
        AttemptDiscarded(**RUN, why="rate_limited", attempt=1, of=3, message_id="m", wait=1.25),
        "< rate limited: asking again in 1.25 s (1 of 3)",
    ),
    (ContextReplaced(**RUN, model=ModelInfo(provider="a", id="b"), why="busy"), "goes on with a:b: busy"),
    (ContextReplaced(**RUN, messages=()), "goes on with other messages"),
    (LimitReached(**RUN, scope="run", which="turns", limit=3), ""),
    (LimitReached(**RUN, scope="tool", which="calls", limit=3, name="find"), "the limit of find is reached: 3 calls"),
    (MessageQueued(**RUN, message=UserMessage.of("x"), queue="follow_up"), "queued (follow up)"),
    (MessageDelivered(**RUN, message_id="m", queue="steering"), "delivered (steering)"),
    (MessageReturned(**RUN, message=UserMessage.of("x"), queue="steering"), "not delivered (steering)"),
    (Warned(**RUN, code="odd", text="that is\nodd"), "warning: that is odd"),
    (RunFinished(**RUN, status="error", error="it broke;\nmend it"), "antiphon: it broke; mend it"),
    (RunFinished(**RUN, status="limit", reason="3 turns"), "limit: 3 turns"),
]


@pytest.mark.parametrize(("event", "expected"), LINES)
def test_an_event_is_at_most_one_line(event: Event, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Console, "encoding", "ascii")
    assert line(event) == expected


def test_every_kind_of_event_is_looked_at() -> None:
    """A new kind is decided on here before a person misses it."""
    assert {type(event) for event, _ in LINES} | {TextDelta} == set(get_args(Event))


def test_the_answer_is_as_the_model_said_it() -> None:
    """What is piped on may be anything: nothing is wrapped, highlighted, or read as markup."""
    said = "[bold]1 + 1[/bold] :smile: " + "long " * 50 + "\x1b[0m"
    assert shown(text(said), END, RunFinished(**RUN, status="done")) == (f"{said}\n", "")


def test_a_terminal_obeys_nobody_but_the_command() -> None:
    """A model, or a file that it read, could clear the screen, or write into the clipboard."""
    evil = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31mred\x08\r"
    out, err = shown(text(evil), END, thought(evil), END, returned(evil), requested(evil), terminal=True)
    for control in "\x07\x9b\x08\r":
        assert control not in out + err
    assert "\x1b]" not in out + err
    assert "\x1b[2J" not in out + err


def test_lines_on_one_screen_do_not_run_into_each_other() -> None:
    screen, _ = shown(
        thought("Hm"), text("It is"), Warned(**RUN, code="odd", text="odd"), text(" so."), END, returned("x"),
        text("Done"), RunFinished(**RUN, status="aborted", reason="enough"), terminal=True, together=True, width=80,
    )  # fmt: skip
    plain = [
        part.replace("\x1b[2;3m", "").replace("\x1b[0m", "").replace("\x1b[1m", "") for part in screen.splitlines()
    ]
    assert plain == ["Hm", "It is", "warning: odd", " so.", "← find: x", "Done", "aborted: enough"]


def test_what_comes_in_between_does_not_cut_an_answer_in_a_file() -> None:
    out, err = shown(text("It is"), Warned(**RUN, code="odd", text="odd"), text(" so."), END)
    assert (out, err) == ("It is so.\n", "warning: odd\n")


def test_only_what_was_said_is_taken_back() -> None:
    again = AttemptDiscarded(**RUN, why="dropped", attempt=1, of=3, message_id="m")
    assert shown(text("It"), again, text("It is so."), END)[0] == "It\n[taken back]\nIt is so.\n"
    assert shown(again, text("It is so."), END)[0] == "It is so.\n"
    assert shown(text("First."), END, again, text("It is so."), END)[0] == "First.\nIt is so.\n"


def test_a_line_about_a_tool_fits_the_screen() -> None:
    _, err = shown(returned("word " * 50), terminal=True, width=40)
    assert err.rstrip("\n").endswith("…")
    assert len(err) < 70
