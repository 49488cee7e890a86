"""`antiphon chat`: a talk that remembers, in a terminal or through a pipe."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli._commands import COMMANDS
from antiphon.types.codec import dump_messages, load_messages
from antiphon.types.content import ToolCall
from antiphon.types.messages import AssistantMessage, UserMessage

from .conftest import COMMAND, Command, Start
from .server import ModelServer, called, refused, said
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


def test_the_thinking_level_is_changed(talk: Command, server: ModelServer) -> None:
    server.script(said("1"), said("2"))
    ended = talk("a", "/thinking high", "b")
    assert [request.get("reasoning_effort") for request in server.requests] == [None, "high"]
    assert "thinking high" in ended.err.splitlines()


def test_what_is_said_later_in_a_quiet_chat_is_said_at_once(talk: Command, server: ModelServer) -> None:
    """A follow-up waits for what is under way; in a pipe nothing ever is."""
    server.script(said("1"), said("2"))
    assert talk("> a", "/later b", "/queue").out == "1\n2\n"
    assert words_of(server.requests[1]) == ["user: a", "assistant: 1", "user: b"]


def test_a_transcript_that_is_not_fit_to_be_sent_is_repaired(talk: Command, server: ModelServer, folder: Path) -> None:
    """A file may be from a process that died while a tool ran."""
    open_call = AssistantMessage(parts=(ToolCall(id="c", name="calculate", arguments="{}"),), stop_reason="tool_calls")
    (folder / "talk.json").write_bytes(dump_messages([UserMessage.of("What is it?"), open_call]))
    server.script(said("Yes."))
    assert talk("/load talk.json", "And now?").code == 0
    assert [message["role"] for message in server.requests[0]["messages"][1:]] == ["user", "assistant", "tool", "user"]


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
        ("/thinking loudly", "there is no thinking level 'loudly'; take one of off, "),
        ("/approve never", "there is no approval mode 'never'; the modes are: plan, ask, auto_edit, auto"),
        ("/later", "/later needs what to say, as in /later And in Rome?"),
        ("/queue all", "/queue takes 'clear' or nothing, not 'all'"),
        ("/abort", "no answer is under way"),
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
    for command, about in COMMANDS.items():
        assert any(line.startswith(command) and about.about in line for line in lines)


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
        terminal.wait_for_end("Heard.")
        terminal.type("\x04")
        assert terminal.end() == 0
    with opened(*CHAT) as terminal:
        terminal.wait_for_prompt()
        terminal.type("\x1b[A\r")
        terminal.wait_for_end("Again.")
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
        terminal.wait_for_end("Heard.")
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
