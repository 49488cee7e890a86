"""`antiphon ask`: the answer on stdout, everything about it on stderr, and an exit code that says how it ended."""

import threading
from pathlib import Path

import pytest

from .conftest import COMMAND, Command, Start
from .server import ModelServer, Reply, called, chunk, refused, said


def test_the_answer_goes_to_stdout_and_the_calls_to_stderr(command: Command, server: ModelServer) -> None:
    """What is piped on must be the answer and nothing else."""
    server.script(called("calculate", {"expression": "1234 * 56"}), said("It is 69104."))
    ended = command("ask", "-m", "openai:test", "What is 1234 * 56?")
    assert (ended.code, ended.out) == (0, "It is 69104.\n")
    assert ended.err.splitlines() == [
        "openai:test (asked for with --model)",
        "→ calculate(expression='1234 * 56')",
        "← calculate: 69104",
    ]


def test_the_answer_streams_as_it_comes(start: Start, server: ModelServer) -> None:
    """A slow model is read while it speaks."""
    more = threading.Event()
    server.script(Reply([chunk({"content": "first "}), more, chunk({"content": "second"}), chunk({}, "stop")]))
    running = start("ask", "-m", "openai:test", "Speak")
    assert running.read_until(b"first ") == b"first "
    more.set()
    ended = running.end()
    assert (ended.code, ended.out) == (0, "second\n")


def test_a_tool_that_fails_is_shown_and_the_run_goes_on(command: Command, server: ModelServer) -> None:
    server.script(called("read_file", {"path": "a <b>"}), said("There is none."))
    ended = command("ask", "-m", "openai:test", "Read it")
    assert (ended.code, ended.out) == (0, "There is none.\n")
    assert "✗ read_file: there is no 'a <b>'; see what there is with list_files" in ended.err.splitlines()


def test_thinking_is_told_apart_from_the_answer(command: Command, server: ModelServer) -> None:
    server.script(Reply([chunk({"reasoning_content": "Let me see."}), chunk({"content": "Yes."}), chunk({}, "stop")]))
    ended = command("ask", "-m", "openai:test", "Is it?")
    assert ended.out == "Yes.\n"
    assert "Let me see." in ended.err.splitlines()


@pytest.mark.usefixtures("impatient")
def test_a_reply_that_is_thrown_away_is_taken_back(command: Command, server: ModelServer) -> None:
    """Words cannot be unsaid; who reads them must know that they do not count."""
    server.script(Reply([chunk({"content": "It is 4"})], cut=True), said("It is 42."))
    ended = command("ask", "-m", "openai:test", "What is it?")
    assert (ended.code, ended.out) == (0, "It is 4\n[taken back]\nIt is 42.\n")
    assert "↶ dropped: asking again (1 of 3)" in ended.err.splitlines()


def test_options_reach_the_model(command: Command, server: ModelServer) -> None:
    """An option that is read and forgotten is worse than none."""
    server.script(said("Aye."))
    options = ("--system", "Talk like a sailor.", "--seed", "7", "--temperature", "0.5", "--no-tools")
    command("ask", "-m", "openai:test", *options, "Hello")
    request = server.requests[0]
    assert (request["seed"], request["temperature"]) == (7, 0.5)
    assert request["messages"][0]["content"] == "Talk like a sailor."
    assert "tools" not in request
    assert server.headers[0]["authorization"] == "Bearer a key of the tests"


def test_the_tools_see_the_folder_that_is_named(command: Command, server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "only-here.txt").write_text("x")
    server.script(called("list_files", {}), said("One file."))
    ended = command("ask", "-m", "openai:test", "--cwd", str(tmp_path / "there"), "What is there?")
    assert "← list_files: only-here.txt" in ended.err.splitlines()


@pytest.mark.parametrize(
    ("words", "given", "asked"),
    [
        ([], b"From a pipe\n", "From a pipe"),
        (["-"], b"From a pipe\n", "From a pipe"),
        (["Sum", "this", "up:", "-"], b"One.\nTwo.\n", "Sum this up:\n\nOne.\nTwo."),
        (["Hello", "there"], b"not read", "Hello there"),
    ],
)
def test_the_question_comes_from_the_words_or_from_stdin(
    start: Start, server: ModelServer, words: list[str], given: bytes, asked: str
) -> None:
    """Files are piped into questions; and words alone must not wait for a pipe that nobody closes."""
    server.script(said("Yes."))
    ended = start("ask", "-m", "openai:test", *words).end(given)
    assert (ended.code, ended.out) == (0, "Yes.\n")
    assert server.requests[0]["messages"][-1]["content"] == asked


def test_a_limit_ends_with_a_code_of_its_own(command: Command, server: ModelServer) -> None:
    server.script(called("calculate", {"expression": "1"}))
    ended = command("ask", "-m", "openai:test", "--max-turns", "1", "Go on")
    assert (ended.code, ended.complaint) == (4, "limit: the limit of 1 turns was reached")


def test_the_time_limit_stops_the_run(command: Command, server: ModelServer) -> None:
    hold = threading.Event()
    server.script(Reply([chunk({"content": "I am"}), hold]))
    ended = command("ask", "-m", "openai:test", "--timeout", "0.2", "Go on")
    hold.set()
    assert (ended.code, ended.complaint) == (3, "aborted: no answer within 0.2 s")


def test_ctrl_c_stops_the_run_and_keeps_what_was_said(start: Start, server: ModelServer) -> None:
    hold = threading.Event()
    server.script(Reply([chunk({"content": "It began "}), hold]))
    running = start("ask", "-m", "openai:test", "Go on")
    running.read_until(b"It began ")
    running.interrupt()
    ended = running.end()
    hold.set()
    assert (ended.code, ended.out) == (130, "\n")
    assert ended.err.splitlines()[1:] == ["aborted: interrupted"]


def test_a_reader_that_leaves_ends_the_command_quietly(start: Start, server: ModelServer) -> None:
    """As `antiphon ask … | head -1` does."""
    more = threading.Event()
    server.script(Reply([chunk({"content": "one\n"}), more, *[chunk({"content": "more\n"})] * 50, chunk({}, "stop")]))
    running = start("ask", "-m", "openai:test", "Go on")
    running.read_until(b"one\n")
    running.out.close()
    more.set()
    ended = running.end()
    assert (ended.code, ended.err) == (141, "openai:test (asked for with --model)\n")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["ask", "-m", "nope", "Hi"], 2, "no provider in 'nope'; write 'provider:name'"),
        (["ask", "-m", "opnai:gpt-5", "Hi"], 2, "no provider named 'opnai'; did you mean 'openai'?"),
        (["ask", "-m", "local:/no/such.gguf", "Hi"], 2, "'/no/such.gguf'"),
        (["ask", "-m", "local:.", "Hi"], 2, "'.' is a folder; give the path of a GGUF file"),
        (["ask", "-m", "openai:test", "  "], 2, "the question is empty; write it as in: antiphon ask"),
        (
            ["ask", "-m", "openai:test", "--cwd", "no-such", "Hi"],
            2,
            "there is no folder 'no-such'; name one that exists",
        ),
        (["ask", "-m", "openai:test", "--cwd", "a-file", "Hi"], 2, "'a-file' is a file; name a folder"),
        (["ask", "-m", "openai:test", "--thinking", "hard", "Hi"], 2, "no thinking level 'hard'; take one of off, "),
        (["ask", "--max-turns", "0", "Hi"], 2, "see antiphon ask --help"),
        (["ask", "--seed", "x", "Hi"], 2, "see antiphon ask --help"),
        (["ask", "--no-such", "Hi"], 2, "no such option: --no-such"),
        (["aks", "Hi"], 2, "no such command 'aks'"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(
    command: Command, folder: Path, arguments: list[str], code: int, says: str
) -> None:
    """A traceback tells a person nothing but that they are not welcome."""
    (folder / "a-file").write_text("x")
    ended = command(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("antiphon: ")
    assert ended.err.count("\n") == 1
    assert says in ended.err


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (refused(401, "wrong key"), "check the API key"),
        (refused(404, "no such model"), "check the base URL and the name of the model"),
        (Reply(status=200, body="what?"), "antiphon: "),
    ],
)
def test_what_a_server_refuses_is_one_line(command: Command, server: ModelServer, reply: Reply, says: str) -> None:
    server.script(*[reply] * 4)
    ended = command("ask", "-m", "openai:test", "Hi")
    assert (ended.code, ended.out) == (1, "")
    assert ended.complaint.startswith("antiphon: ")
    assert says in ended.complaint
    assert ended.err.count("antiphon: ") == 1


@pytest.mark.usefixtures("impatient")
def test_a_server_that_does_not_answer_is_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # the port of `discard`, where nobody listens
    ended = command("ask", "-m", "openai:test", "Hi")
    assert ended.code == 1
    assert ended.complaint.startswith("antiphon: 'http://127.0.0.1:9/v1/chat/completions': nobody answers there;")


@pytest.mark.parametrize("content", [b"no weights", b"GGUF and then no weights"])
def test_a_broken_model_file_is_one_line(command: Command, folder: Path, content: bytes) -> None:
    pytest.importorskip("xllamacpp")
    (folder / "broken.gguf").write_bytes(content)
    ended = command("ask", "-m", "local:broken.gguf", "Hi")
    assert ended.code == 1
    assert ended.complaint.startswith("antiphon: ")
    assert "broken.gguf" in ended.complaint
    assert ended.err.count("\n") == 2


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_a_missing_package_names_the_extra(start: Start, package: str) -> None:
    """The command is installed with the library, what it needs is not."""
    ended = start("models", code=f"import sys; sys.modules[{package!r}] = None; {COMMAND}").end()
    assert (ended.code, ended.out) == (1, "")
    assert (
        ended.err == f"antiphon: the command needs {package!r}, which is not installed; pip install 'antiphon[cli]'\n"
    )


def test_the_version_is_told(command: Command) -> None:
    ended = command("--version")
    assert ended.code == 0
    assert ended.out.startswith("antiphon 0.")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["ask", "--help"], ["chat", "-h"], ["models", "--help"]])
def test_help_is_given(command: Command, arguments: list[str]) -> None:
    ended = command(*arguments)
    assert ended.code == 0
    assert "Usage:" in ended.out
