"""What a typed line decides about a call that waits."""

from typing import Any

import pytest

from antiphon.cli._questions import Questions, decision_of
from antiphon.errors import UsageError
from antiphon.loop.state import Answer, Approve, Decision, Deny
from antiphon.types.events import ApprovalDecided, ApprovalRequested, RunFinished


def asked(
    call_id: str = "a", arguments: dict[str, Any] | None = None, question: str | None = None
) -> ApprovalRequested:
    return ApprovalRequested(
        run_id="r", seq=1, call_id=call_id, name="pay", arguments=arguments or {"amount": 5}, question=question
    )


def waiting(*events: ApprovalRequested) -> Questions:
    questions = Questions()
    for event in events or (asked(),):
        questions.apply(event)
    return questions


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("y", Approve()),
        ("Yes.", Approve()),
        ("n", Deny()),
        ("no, too much", Deny("too much")),
        ('e {"amount": 7}', Approve({"amount": 7})),
        ("ask Ann first", Deny(instruction="ask Ann first")),
        ("yes, but only 3", Deny(instruction="yes, but only 3")),
        ("yesterday", Deny(instruction="yesterday")),
        ("e", None),
        ("", None),
    ],
)
def test_only_a_plain_yes_lets_a_call_run(line: str, decision: Decision | None) -> None:
    """A line may have been begun before the question came: whatever it says, it must not let anything run."""
    assert decision_of(line) == decision


def test_arguments_are_edited_until_they_are_good() -> None:
    questions = waiting()
    assert (questions.prompt, questions.draft) == ("y/n/e> ", "")
    assert questions.take("e") == {}
    assert (questions.prompt, questions.draft) == ("arguments> ", '{"amount": 5}')
    for wrong in ("{amount", "[5]"):
        with pytest.raises(UsageError):
            questions.take(wrong)
        assert questions.prompt == "arguments> "
    assert questions.take('{"amount": 7}') == {"a": Approve({"amount": 7})}


def test_an_empty_line_leaves_the_editing() -> None:
    questions = waiting()
    questions.take("e")
    assert questions.take("") == {}
    assert questions.prompt == "y/n/e> "


def test_calls_are_decided_on_in_order() -> None:
    questions = waiting(asked("a"), asked("b"))
    assert questions.take("y") == {"a": Approve()}
    questions.decided("a")
    assert questions.take("n") == {"b": Deny()}


def test_a_question_from_inside_a_tool_is_answered_with_the_line() -> None:
    questions = waiting(asked(question="How many?"))
    assert questions.prompt == "answer> "
    assert questions.take("y") == {"a": Answer("y")}


def test_nothing_waits_when_it_was_decided_elsewhere_or_the_run_is_over() -> None:
    questions = waiting(asked("a"), asked("b"))
    questions.apply(ApprovalDecided(run_id="r", seq=2, call_id="a", approved=True))
    assert questions.first == asked("b")
    questions.apply(RunFinished(run_id="r", seq=3, status="aborted"))
    assert (len(questions), questions.prompt) == (0, "")
    with pytest.raises(UsageError, match="nothing waits"):
        questions.take("y")
