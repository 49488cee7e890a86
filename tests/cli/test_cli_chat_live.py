"""`antiphon chat` in a terminal while an answer comes: steering, follow-ups, Ctrl-C, what is taken back."""

import threading
from collections.abc import Sequence
from typing import Any

from .conftest import COMMAND
from .server import ModelServer, Reply, Step, called, chunk, said
from .terminal import Terminal, opened

CHAT = ("chat", "-m", "openai:test")
IMPATIENT = (
    "import functools; from antiphon.cli import _setup; from antiphon.loop.spec import Recovery; "
    f"_setup.Agent = functools.partial(_setup.Agent, recovery=Recovery(delay=0.0)); {COMMAND}"
)
USAGE = {"id": "r", "model": "test", "choices": [], "usage": {"prompt_tokens": 1200, "completion_tokens": 34}}


def words_of(request: dict[str, Any]) -> list[str]:
    """Who said what, without the instructions."""
    return [f"{message['role']}: {message['content']}" for message in request["messages"][1:]]


def begun(*steps: Step) -> Reply:
    """A whole line, and then whatever is to happen before the end."""
    return Reply([chunk({"content": "It began\n"}), *steps, chunk({}, "stop")])


def begin(terminal: Terminal) -> None:
    """Ask, and wait for the line that the answer begins with."""
    terminal.wait_for_prompt()
    terminal.type("Go on\r")
    terminal.wait_for("It began")


def in_order(screen: str, lines: Sequence[str]) -> bool:
    """Whether the lines are on the screen one after the other, with whatever in between."""
    place = 0
    for line in lines:
        place = screen.find(line, place)
        if place < 0:
            return False
        place += len(line)
    return True


def test_what_is_typed_while_an_answer_comes_steers_it(server: ModelServer) -> None:
    hold = threading.Event()
    server.script(begun(hold), said("In Rome too."))
    with opened(*CHAT) as terminal:
        begin(terminal)
        terminal.type("And Rome?\r")
        terminal.wait_for("queued (steering)")
        hold.set()
        terminal.wait_for_end("In Rome too.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert words_of(server.requests[1]) == ["user: Go on", "assistant: It began\n", "user: And Rome?"]
    assert in_order(terminal.screen, ["It began", "queued (steering)", "delivered (steering)", "In Rome too."])


def test_a_line_after_the_mark_is_said_when_nothing_else_is_left(server: ModelServer) -> None:
    """What steers comes first, whenever it was typed; then one follow-up for each answer."""
    hold = threading.Event()
    server.script(begun(hold), said("Steered."), said("One."), said("Two."))
    with opened(*CHAT) as terminal:
        begin(terminal)
        terminal.type("> first\r/later second\rsteer\r")
        terminal.wait_for("queued (steering)")
        terminal.type("/queue\r")
        terminal.wait_for("follow up: second")
        hold.set()
        terminal.wait_for_end("Two.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert in_order(terminal.screen, ["steering: steer", "follow up: first", "follow up: second"])
    assert [words_of(request)[-1] for request in server.requests[1:]] == ["user: steer", "user: first", "user: second"]


def test_what_is_queued_is_taken_back(server: ModelServer) -> None:
    hold = threading.Event()
    server.script(begun(hold))
    with opened(*CHAT) as terminal:
        begin(terminal)
        terminal.type("> first\r")
        terminal.wait_for("queued (follow up)")
        terminal.type("/queue clear\r")
        terminal.wait_for("1 taken back")
        hold.set()
        terminal.wait_for_end("not delivered (follow up): cleared")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert len(server.requests) == 1


def test_ctrl_c_stops_the_answer_and_once_more_leaves(server: ModelServer) -> None:
    """People press it to be heard, not to lose what was said, nor what they were typing."""
    hold = threading.Event()
    server.script(begun(hold), said("Still here."))
    with opened(*CHAT) as terminal:
        begin(terminal)
        terminal.type("And\x03")
        terminal.wait_for_end("aborted: interrupted")
        hold.set()
        terminal.type(" now?\r")
        terminal.wait_for_end("Still here.")
        terminal.type("\x03")
        terminal.wait_for("Ctrl-C again, or Ctrl-D, leaves")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert "Traceback" not in terminal.screen
    assert words_of(server.requests[1]) == ["user: Go on", "assistant: It began\n", "user: And now?"]


def test_two_ctrl_c_in_a_row_stop_and_leave(server: ModelServer) -> None:
    hold = threading.Event()
    server.script(begun(hold))
    with opened(*CHAT) as terminal:
        begin(terminal)
        terminal.type("\x03\x03")
        assert terminal.end() == 130
        hold.set()
    assert "Traceback" not in terminal.screen


def test_ctrl_c_in_a_quiet_chat_throws_the_line_away(server: ModelServer) -> None:
    server.script(said("Heard."))
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("wrong\x03right\r")
        terminal.wait_for_end("Heard.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert words_of(server.requests[0]) == ["user: right"]


def test_what_was_queued_when_an_answer_was_stopped_waits_for_the_next(server: ModelServer) -> None:
    hold = threading.Event()
    server.script(begun(hold), said("Both."))
    with opened(*CHAT) as terminal:
        begin(terminal)
        terminal.type("Remember me\r")
        terminal.wait_for("queued (steering)")
        terminal.type("/abort enough\r")
        terminal.wait_for_end("aborted: enough")
        hold.set()
        terminal.type("Next\r")
        terminal.wait_for_end("Both.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "not delivered (steering): aborted" in terminal.screen
    assert sorted(words_of(server.requests[1])[2:]) == ["user: Next", "user: Remember me"]


def test_the_transcript_is_not_changed_under_an_answer(server: ModelServer) -> None:
    hold = threading.Event()
    server.script(begun(hold))
    with opened(*CHAT) as terminal:
        begin(terminal)
        for times, line in enumerate(("/undo", "/load talk.json"), start=1):
            terminal.type(f"{line}\r")
            terminal.wait_for("antiphon: an answer is under way: wait for its end, or /abort it first", times)
        hold.set()
        terminal.wait_for_end("It began")
        terminal.type("/undo\r")
        terminal.wait_for("forgotten: Go on")
        terminal.type("\x04")
        assert terminal.end() == 0


def test_undo_forgets_an_exchange_with_all_that_steered_it(server: ModelServer) -> None:
    hold = threading.Event()
    server.script(said("Hello."), begun(hold), said("Steered."), said("Anew."))
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("Hi\r")
        terminal.wait_for_end("Hello.")
        begin(terminal)
        terminal.type("faster\r")
        terminal.wait_for("queued (steering)")
        hold.set()
        terminal.wait_for_end("Steered.")
        terminal.type("/undo\rAgain\r")
        terminal.wait_for_end("Anew.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "forgotten: Go on" in terminal.screen
    assert words_of(server.requests[3]) == ["user: Hi", "assistant: Hello.", "user: Again"]


def test_a_talk_is_saved_while_it_goes_on_and_loaded_in_another_terminal(server: ModelServer) -> None:
    """What has been said until then is saved: the prompt, and the tool's result."""
    hold = threading.Event()
    server.script(called("calculate", {"expression": "6*7"}), begun(hold), said("42, as before."))
    with opened(*CHAT) as terminal:
        begin(terminal)
        terminal.type("/save talk.json\r")
        terminal.wait_for("3 messages in 'talk.json'")
        hold.set()
        terminal.type("\x04")
        assert terminal.end() == 0
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("/load talk.json\rWhat was it?\r")
        terminal.wait_for_end("42, as before.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert words_of(server.requests[2]) == ["user: Go on", "assistant: None", "tool: 42", "user: What was it?"]


def test_an_attempt_that_fails_takes_back_what_it_showed(server: ModelServer) -> None:
    server.script(Reply([chunk({"content": "A line.\nWrong"})], cut=True), said("A better line."))
    with opened(*CHAT, code=IMPATIENT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("Go on\r")
        terminal.wait_for_end("A better line.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert in_order(terminal.screen, ["A line.", "[taken back]", "dropped: asking again", "A better line."])


def test_the_status_line_says_what_a_chat_has_used(server: ModelServer) -> None:
    server.script(*[Reply([chunk({"content": "Yes."}), chunk({}, "stop"), USAGE])] * 2)
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("One\r")
        terminal.wait_for_end("Yes.")
        terminal.wait_for("openai:test | 1,200 in, 34 out")
        terminal.type("Two\r")
        terminal.wait_for("openai:test | 2,400 in, 68 out")
        terminal.type("\x04")
        assert terminal.end() == 0


def test_leaving_ends_an_answer_that_is_under_way(server: ModelServer) -> None:
    hold = threading.Event()
    server.script(begun(hold))
    with opened(*CHAT) as terminal:
        begin(terminal)
        terminal.type("/quit\r")
        assert terminal.end() == 0
        hold.set()
    assert "Traceback" not in terminal.screen
