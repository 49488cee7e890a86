"""What makes a transcript unfit to be sent, and how it is mended."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings

from antiphon.types.content import Text, ToolCall, Unknown
from antiphon.types.history import History
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from antiphon.types.transcript import open_calls, repair, validate

from .strategies import TRANSCRIPTS

walks = settings(deadline=None, max_examples=400)

HELLO = UserMessage.of("hello")
NOTE = CustomMessage(kind="note")
LATER = Unknown({"type": "later"})
RULES = SystemMessage.of("be brief")


def call(call_id: str, name: str = "read") -> ToolCall:
    return ToolCall(id=call_id, name=name)


def asks(*calls: str | ToolCall) -> AssistantMessage:
    parts = [call(each) if isinstance(each, str) else each for each in calls]
    return AssistantMessage(parts=(Text("let me see"), *parts), stop_reason="tool_calls")


def result(call_id: str, text: str = "ok", name: str = "read") -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, tool_name=name, parts=(Text(text),))


def found(*messages: Message) -> list[tuple[int, str]]:
    return [(problem.index, problem.code) for problem in validate(messages)]


def mended(*messages: Message) -> tuple[Message, ...]:
    return repair(messages)[0]


def texts(messages: Iterable[Message]) -> list[str]:
    return [
        message.text for message in messages if isinstance(message, UserMessage | AssistantMessage) and message.text
    ]


def not_known(call_id: str, name: str = "read") -> ToolResultMessage:
    text = "It is not known whether this call was started, or whether it finished: no result was recorded."
    return ToolResultMessage(call_id=call_id, tool_name=name, parts=(Text(text),), is_error=True, outcome="unknown")


FIT = [
    (),
    (HELLO,),
    (HELLO, asks("a", "b"), result("a"), result("b"), AssistantMessage(parts=())),
    (HELLO, asks("a"), result("a"), asks("a"), result("a")),
    (RULES, HELLO, RULES, asks("a"), result("a"), RULES, NOTE, LATER, HELLO),
    (HELLO, AssistantMessage(parts=(Text("partial"),), stop_reason="error", error="lost")),
]


@pytest.mark.parametrize("messages", FIT)
def test_a_fit_transcript_has_no_problems_and_stays_as_it_is(messages: tuple[Message, ...]) -> None:
    """The same id in another reply is another call; local servers count each reply's calls from 0."""
    assert validate(messages) == []
    assert repair(messages) == (messages, [])
    assert repair(History(messages)) == (messages, [])


@pytest.mark.parametrize(
    ("messages", "problems", "after"),
    [
        pytest.param(
            (HELLO, asks("a", "b"), result("b")),
            [(1, "open_call")],
            (HELLO, asks("a", "b"), not_known("a"), result("b")),
            id="a call without result gets one that says so",
        ),
        pytest.param(
            (asks("a"), HELLO),
            [(0, "open_call")],
            (asks("a"), not_known("a"), HELLO),
            id="also in the middle",
        ),
        pytest.param(
            (result("a"), HELLO, result("b"), asks("a"), result("a")),
            [(0, "orphan_result"), (2, "orphan_result")],
            (HELLO, asks("a"), result("a")),
            id="a result before its call answers something else",
        ),
        pytest.param(
            (asks("a"), result("a", "first"), result("a", "second")),
            [(2, "duplicate_result")],
            (asks("a"), result("a", "first")),
            id="the first result of a call counts",
        ),
        pytest.param(
            (asks("a"), result("a", "1"), asks("a"), result("a", "2"), result("a", "3")),
            [(4, "duplicate_result")],
            (asks("a"), result("a", "1"), asks("a"), result("a", "2")),
            id="a result belongs to the nearest reply with its id",
        ),
        pytest.param(
            (asks("a", "b"), NOTE, result("a"), LATER, result("b"), RULES),
            [(2, "misplaced_result"), (4, "misplaced_result")],
            (asks("a", "b"), result("a"), result("b"), NOTE, LATER, RULES),
            id="what stands between comes after",
        ),
        pytest.param(
            (asks("a"), HELLO, AssistantMessage(parts=(Text("well"),)), result("a")),
            [(3, "misplaced_result")],
            (asks("a"), result("a"), HELLO, AssistantMessage(parts=(Text("well"),))),
            id="a late result moves back",
        ),
        pytest.param(
            (asks("a"), asks("b"), result("a"), result("b")),
            [(2, "misplaced_result")],
            (asks("a"), result("a"), asks("b"), result("b")),
            id="each result goes to its own reply",
        ),
        pytest.param(
            (asks("a", "b", "c"), result("c"), result("a"), result("b")),
            [(2, "unordered_result"), (3, "unordered_result")],
            (asks("a", "b", "c"), result("a"), result("b"), result("c")),
            id="results stand in the order of the calls",
        ),
        pytest.param(
            (asks("a", "b"), result("a"), result("x"), result("b")),
            [(2, "orphan_result")],
            (asks("a", "b"), result("a"), result("b")),
            id="an orphan in between is one problem, not two",
        ),
        pytest.param(
            (asks("", "call_1", ""), result("", "1"), result("call_1", "2"), result("", "3")),
            [(0, "empty_id"), (0, "empty_id")],
            (asks("call_2", "call_1", "call_3"), result("call_2", "1"), result("call_1", "2"), result("call_3", "3")),
            id="empty ids are given, in calls and results",
        ),
        pytest.param(
            (asks("a", "a"), result("a", "1"), result("a", "2"), result("a", "3")),
            [(0, "repeated_id"), (3, "duplicate_result")],
            (asks("a", "call_2"), result("a", "1"), result("call_2", "2")),
            id="of calls with one id the first keeps it",
        ),
        pytest.param(
            (asks(call("a", "read"), call("a", "write")), result("a", "w", "write"), result("a", "r", "read")),
            [(0, "repeated_id"), (2, "unordered_result")],
            (
                asks(call("a", "read"), call("call_2", "write")),
                result("a", "r", "read"),
                result("call_2", "w", "write"),
            ),
            id="the tool tells calls with one id apart",
        ),
        pytest.param(
            (asks("a", "a"), result("a")),
            [(0, "repeated_id"), (0, "open_call")],
            (asks("a", "call_2"), result("a"), not_known("call_2")),
            id="one result for two calls answers the first",
        ),
        pytest.param(
            (HELLO, UserMessage(parts=()), asks("a"), UserMessage(parts=()), result("a")),
            [(1, "empty_message"), (3, "empty_message"), (4, "misplaced_result")],
            (HELLO, asks("a"), result("a")),
            id="a user message without parts goes away",
        ),
    ],
)
def test_each_problem_is_found_and_mended(
    messages: tuple[Message, ...], problems: list[tuple[int, str]], after: tuple[Message, ...]
) -> None:
    """Providers refuse such requests; the report has one line for each problem, where it was."""
    assert found(*messages) == problems
    fit, report = repair(messages)
    assert fit == after
    assert [(change.index, change.code) for change in report] == problems


def test_a_problem_says_what_to_do_and_a_report_what_was_done() -> None:
    """Both are read by people."""
    messages = (asks("a"), result("b"), UserMessage(parts=()))
    assert [problem.text for problem in validate(messages)] == [
        "call 'a' has no result; add one behind its reply, or take the call out",
        "the result of 'b' answers no call before it; take it out",
        "a user message without parts; take it out",
    ]
    assert [change.text for change in repair(messages)[1]] == [
        "call 'a' had no result; one was added that says so",
        "the result of 'b' answered no call before it; it was taken out",
        "a user message without parts was taken out",
    ]


def test_a_renamed_call_keeps_all_else() -> None:
    """The signature of a provider hangs on its call."""
    signed = ToolCall(id="", name="n", arguments='{"a":1}', opaque={"s": 1})
    reply = AssistantMessage(parts=(signed, Text("t"), LATER), id="m", model="x", stop_reason="tool_calls")
    renamed = AssistantMessage(
        parts=(ToolCall(id="call_1", name="n", arguments='{"a":1}', opaque={"s": 1}), Text("t"), LATER),
        id="m",
        model="x",
        stop_reason="tool_calls",
    )
    assert mended(reply) == (renamed, not_known("call_1", "n"))


@given(TRANSCRIPTS)
@walks
def test_what_was_repaired_is_fit(messages: tuple[Message, ...]) -> None:
    """Whatever a crash, an import or an edit by hand left behind can be sent again."""
    fit, report = repair(messages)
    assert validate(fit) == []
    assert repair(fit) == (fit, [])
    assert bool(report) == (fit != messages)
    assert [(each.index, each.code) for each in report] == found(*messages)


@given(TRANSCRIPTS)
@walks
def test_repair_loses_no_words_and_changes_no_list(messages: tuple[Message, ...]) -> None:
    """What people and models said stays, in order; so do an application's own messages and unknown ones."""
    given_list = list(messages)
    fit, _ = repair(given_list)
    assert tuple(given_list) == messages
    assert texts(fit) == texts(messages)
    others = [each for each in messages if not isinstance(each, UserMessage | AssistantMessage | ToolResultMessage)]
    assert [each for each in fit if not isinstance(each, UserMessage | AssistantMessage | ToolResultMessage)] == others


@given(TRANSCRIPTS)
@walks
def test_repair_invents_no_result(messages: tuple[Message, ...]) -> None:
    """A result that a tool did not give is always marked as not known."""
    had = [each.parts for each in messages if isinstance(each, ToolResultMessage)]
    for each in repair(messages)[0]:
        if isinstance(each, ToolResultMessage) and each != not_known(each.call_id, each.tool_name):
            assert each.parts in had
            had.remove(each.parts)


# Calls at the end


@pytest.mark.parametrize(
    ("messages", "ids"),
    [
        ((), []),
        ((HELLO,), []),
        ((asks("a", "b", "c"), result("b")), ["a", "c"]),
        ((asks("a"), result("a")), []),
        ((asks("a"), NOTE, LATER, RULES), ["a"]),
        ((asks("a"), HELLO), []),
        ((asks("a"), AssistantMessage(parts=(Text("well"),))), []),
        ((asks("a", "a"), result("a")), ["a"]),
        ((asks("x"), result("y")), ["x"]),
    ],
)
def test_open_calls_are_those_of_the_last_reply(messages: tuple[Message, ...], ids: list[str]) -> None:
    """A run that goes on from here answers them first. Once somebody spoke, the reply is history, and wants repair."""
    assert [each.id for each in open_calls(messages)] == ids
    assert open_calls(History(messages)) == open_calls(messages)
