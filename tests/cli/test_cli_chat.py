"""`antiphon chat`: a talk that remembers, in a terminal or through a pipe."""

import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from antiphon.types.codec import load_messages

from .conftest import COMMAND, Command, Start
from .server import ModelServer, Reply, called, chunk, refused, said
from .terminal import opened

CHAT = ("chat", "-m", "openai:test")


def words_of(request: dict[str, Any]) -> list[str]:
    """Who said what, without the instructions."""
    return [f"{message['role']}: {message['content']}" for message in request["messages"][1:]]


def test_what_was_said_is_remembered(talk: Command, server: ModelServer) -> None:
    server.script(said("Hello Ada."), called("calculate", {"expression": "6*7"}), said("42."), said("Ada."))
    ended = talk("I am Ada.", "", "What is 6*7?", "Who am I?")
    assert (ended.code, ended.out) == (0, "Hello Ada.\n42.\nAda.\n")
    assert words_of(server.requests[3]) == [
        "user: I am Ada.",
        "assistant: Hello Ada.",
        "user: What is 6*7?",
        "assistant: None",
        "tool: 42",
        "assistant: 42.",
        "user: Who am I?",
    ]


def test_a_backslash_joins_lines(talk: Command, server: ModelServer) -> None:
    server.script(said("Yes."))
    talk("One \\", "and two")
    assert words_of(server.requests[0]) == ["user: One \nand two"]


def test_a_pipe_is_read_line_by_line(start: Start, server: ModelServer) -> None:
    """A program on the other side waits for one answer before it says more."""
    server.script(said("One."), said("Two."))
    running = start(*CHAT)
    running.type(b"First\n")
    assert running.read_until(b"\n") == b"One.\n"
    ended = running.end(b"Second, without an end")
    assert (ended.code, ended.out) == (0, "Two.\n")
    assert words_of(server.requests[1])[-1] == "user: Second, without an end"


def test_a_line_after_a_blank_is_no_command(talk: Command, server: ModelServer) -> None:
    server.script(said("Yes."))
    talk(" /etc is what?")
    assert words_of(server.requests[0]) == ["user: /etc is what?"]


def test_undo_forgets_the_last_exchange(talk: Command, server: ModelServer) -> None:
    server.script(said("One."), said("Two."), said("Three."))
    ended = talk("First", "Second", "/undo", "Third", "/undo", "/undo", "/undo")
    assert words_of(server.requests[2]) == ["user: First", "assistant: One.", "user: Third"]
    assert ended.err.splitlines()[-4:] == [
        "forgotten: Second",
        "forgotten: Third",
        "forgotten: First",
        "antiphon: nothing was said yet",
    ]


def test_a_talk_is_saved_and_gone_on_with(talk: Command, server: ModelServer, folder: Path) -> None:
    """The file is the transcript that the library reads too."""
    server.script(said("Hello Ada."), said("Ada."))
    saved = talk("I am Ada.", "/save talk.json", "/save talk.json")
    assert "2 messages in 'talk.json'" in saved.err
    assert [getattr(message, "text", "") for message in load_messages((folder / "talk.json").read_bytes())] == [
        "I am Ada.",
        "Hello Ada.",
    ]
    loaded = talk("/load talk.json", "Who am I?")
    assert "2 messages from 'talk.json'" in loaded.err
    assert words_of(server.requests[1]) == ["user: I am Ada.", "assistant: Hello Ada.", "user: Who am I?"]


def test_tools_are_taken_away_and_given_back(talk: Command, server: ModelServer) -> None:
    server.script(said("1"), said("2"), said("3"))
    ended = talk("a", "/tools off", "b", "/tools on", "c")
    assert ["tools" in request for request in server.requests] == [True, False, True]
    assert "calculate      Work out an arithmetic expression." in ended.err.splitlines()


def test_the_model_is_changed(talk: Command, server: ModelServer) -> None:
    server.script(said("1"), said("2"))
    ended = talk("a", "/model openai:other", "/model nope", "b", "/model")
    assert [request["model"] for request in server.requests] == ["test", "other"]
    assert ended.err.splitlines()[-1] == "openai:other (asked for with /model)"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/hepl", "there is no command '/hepl'; did you mean /help?"),
        ("/model nope", "no provider in 'nope'"),
        ("/tools maybe", "/tools takes 'on' or 'off', not 'maybe'"),
        ("/save", "/save needs the path of a file, as in /save chat.json"),
        ("/save .", "'.' is a folder; give the path of a file"),
        ("/save notes.txt", "'notes.txt' is there and is no transcript; give another path"),
        ("/save no/such/folder", "antiphon: "),
        ("/load .", "'.' is a folder; give the path of a file"),
        ("/load nothing.json", "there is no file 'nothing.json'; give one that /save wrote"),
        ("/load notes.txt", "not JSON"),
    ],
)
def test_a_wrong_command_is_one_line_and_the_chat_goes_on(
    talk: Command, server: ModelServer, folder: Path, line: str, says: str
) -> None:
    (folder / "notes.txt").write_text("mine")
    server.script(said("Yes."))
    ended = talk(line, "Still there?")
    assert (ended.code, ended.out) == (0, "Yes.\n")
    complaint = ended.err.splitlines()[1]
    assert complaint.startswith("antiphon: ")
    assert says in complaint
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_failed_answer_does_not_end_the_chat(talk: Command, server: ModelServer) -> None:
    server.script(refused(400, "not today"), said("Now."))
    ended = talk("Now?", "And now?")
    assert (ended.code, ended.out) == (0, "Now.\n")
    assert "not today" in ended.err


def test_the_last_answer_of_a_pipe_decides_the_exit_code(talk: Command, server: ModelServer) -> None:
    server.script(said("Yes."), refused(400, "not today"))
    assert talk("a", "b").code == 1


def test_quit_leaves(talk: Command, server: ModelServer) -> None:
    server.script(said("Yes."))
    assert talk("a", "/quit", "never asked").code == 0
    assert len(server.requests) == 1


def test_help_names_every_command(talk: Command, server: ModelServer) -> None:
    lines = talk("/help").err.splitlines()
    for command in ("/help", "/model [name]", "/tools [on|off]", "/undo", "/save file", "/load file", "/quit"):
        assert any(line.startswith(command) for line in lines)


def test_ctrl_c_stops_the_answer_and_once_more_leaves(server: ModelServer) -> None:
    """People press it to be heard, not to lose what was said."""
    hold = threading.Event()
    server.script(Reply([chunk({"content": "It began "}), hold]), said("Still here."))
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("Go on\r")
        terminal.wait_for("It began")
        terminal.type("\x03")
        terminal.wait_for("aborted: interrupted")
        hold.set()
        terminal.wait_for_prompt()
        terminal.type("And now?\r")
        terminal.wait_for("Still here.")
        terminal.wait_for_prompt()
        terminal.type("\x03")
        terminal.wait_for("Ctrl-C again, or Ctrl-D, leaves")
        terminal.wait_for_prompt()
        terminal.type("\x03")
        assert terminal.end() == 130
    assert "Traceback" not in terminal.screen
    assert words_of(server.requests[1]) == ["user: Go on", "assistant: It began ", "user: And now?"]


def test_two_ctrl_c_in_a_row_stop_and_leave(server: ModelServer) -> None:
    hold = threading.Event()
    server.script(Reply([chunk({"content": "It began "}), hold]))
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("Go on\r")
        terminal.wait_for("It began")
        terminal.type("\x03")
        terminal.wait_for("aborted: interrupted")
        terminal.wait_for_prompt()
        terminal.type("\x03")
        assert terminal.end() == 130
        hold.set()
    assert "Traceback" not in terminal.screen


def test_ctrl_d_leaves(server: ModelServer) -> None:
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("\x04")
        assert terminal.end() == 0


def test_several_lines_are_typed_and_the_history_is_kept(server: ModelServer, tmp_path: Path) -> None:
    """Escape and Enter, or a backslash, begin a line; Arrow up brings back what was said in an earlier chat."""
    server.script(said("Heard."), said("Again."))
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("One\x1b\rtwo\\\rthree\r")
        terminal.wait_for("Heard.")
        terminal.wait_for_prompt()
        terminal.type("\x04")
        assert terminal.end() == 0
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("\x1b[A\r")
        terminal.wait_for("Again.")
        terminal.wait_for_prompt()
        terminal.type("\x04")
        terminal.end()
    assert [words_of(request) for request in server.requests] == [["user: One\ntwo\nthree"]] * 2
    history = tmp_path / "cache" / "antiphon" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600


def test_a_history_that_cannot_be_kept_is_no_failure(
    server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a-file"))
    server.script(said("Heard."))
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("One\r")
        terminal.wait_for("Heard.")
        terminal.wait_for_prompt()
        terminal.type("\x04")
        assert terminal.end() == 0


def test_a_terminal_without_its_package_names_the_extra(server: ModelServer) -> None:
    with opened(*CHAT, code=f"import sys; sys.modules['prompt_toolkit'] = None; {COMMAND}") as terminal:
        assert terminal.end() == 1
    assert "the command needs 'prompt_toolkit', which is not installed; pip install 'antiphon[cli]'" in terminal.screen


def test_the_saved_file_is_json(talk: Command, server: ModelServer, folder: Path) -> None:
    server.script(said("Yes."))
    talk("a", "/save talk.json")
    assert json.loads((folder / "talk.json").read_text())["version"] == 1
