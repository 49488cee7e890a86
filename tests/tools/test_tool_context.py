"""What a running body can reach."""

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from antiphon.errors import UsageError
from antiphon.tools import ToolContext
from antiphon.types.cancel import CancelToken

pytestmark = pytest.mark.anyio


@dataclass
class Deps:
    name: str


def test_a_context_can_be_made_by_hand() -> None:
    """For the test of a tool, without an engine."""
    context = ToolContext(deps=Deps("a"))
    assert (context.call_id, context.run_id, context.name, context.cancelled) == ("", "", "", False)
    assert context.deps.name == "a"
    context.progress("nobody looks")
    assert repr(ToolContext("c", "r", "n")) == "ToolContext(call_id='c', run_id='r', name='n')"


@pytest.mark.parity("C17")
def test_a_body_sees_that_it_should_stop() -> None:
    """A sync tool in its thread has no other way to learn of it."""
    token = CancelToken()
    context = ToolContext("c", "r", "n", None, token)
    heard: list[str] = []
    context.cancel.on_cancel(lambda: heard.append("stop"))
    assert not context.cancelled
    thread = threading.Thread(target=token.cancel)
    thread.start()
    thread.join()
    assert context.cancelled
    assert heard == ["stop"]


@pytest.mark.parity("C17")
def test_progress_is_reported_until_the_call_has_finished() -> None:
    """What comes later would be shown under a call that is over."""
    seen: list[Any] = []
    context = ToolContext(report=lambda content, details: seen.append((content, details)))
    context.progress("half")
    context.progress(details={"done": 0.5})
    context.close()
    context.progress("late")
    assert seen == [("half", None), (None, {"done": 0.5})]


def test_no_report_comes_after_the_close_from_any_thread() -> None:
    """A thread that was left behind must not speak for a call whose finish was announced."""
    closed = threading.Event()
    late: list[Any] = []

    def report(content: Any, details: Any) -> None:
        if closed.is_set():
            late.append(content)

    context = ToolContext(report=report)
    ready = threading.Barrier(5)

    def work() -> None:
        ready.wait()
        for number in range(2000):
            context.progress(number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    ready.wait()
    context.close()
    closed.set()
    for thread in threads:
        thread.join()
    assert late == []


async def test_a_body_can_ask() -> None:
    """Who answers is the business of whoever made the context."""

    async def answer(question: Any) -> str:
        return f"{question} yes"

    assert await ToolContext(asker=answer).ask("sure?") == "sure? yes"


async def test_without_anybody_to_ask_asking_is_an_error() -> None:
    """Waiting for ever would be worse."""
    with pytest.raises(
        UsageError, match=r"^tool 't' asks 'sure\?', but this context has nobody to ask: use the one that"
    ):
        await ToolContext(name="t").ask("sure?")


def test_a_call_that_was_given_up_reads_as_cancelled() -> None:
    """A thread whose call ran out of time has no other way to learn that nobody waits for it any more."""
    context: ToolContext[None] = ToolContext()
    assert not context.cancelled
    context.close()
    assert context.cancelled
