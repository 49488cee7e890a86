"""`antiphon chat` with a tool that changes something: a person is asked where they type."""

import json
from typing import Any

import pytest

from antiphon.cli import _setup
from antiphon.tools.function import tool

from .conftest import COMMAND, Command
from .server import ModelServer, called, said
from .terminal import opened

CHAT = ("chat", "-m", "openai:test")
WITH_PAY = (
    "from antiphon import tool\nfrom antiphon.cli import _setup\nread_only = _setup.workspace\n"
    "def pay(amount: int) -> str:\n    'Pay some money.'\n    return f'paid {amount}'\n"
    f"_setup.workspace = lambda root: (*read_only(root), tool(pay, kind='write'))\n{COMMAND}"
)


@pytest.fixture
def paid(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the tool of the chats in this process has paid."""
    amounts: list[int] = []
    read_only = _setup.workspace

    def pay(amount: int) -> str:
        """Pay some money."""
        amounts.append(amount)
        return f"paid {amount}"

    monkeypatch.setattr(_setup, "workspace", lambda root: (*read_only(root), tool(pay, kind="write")))  # pyright: ignore[reportUnknownLambdaType] - the folder
    return amounts


def results_of(request: dict[str, Any]) -> list[str]:
    """What the model was told about its calls."""
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


def test_a_person_is_asked_in_the_terminal(server: ModelServer) -> None:
    """Yes, no with a reason, and edited arguments, which begin as the model gave them."""
    server.script(
        called("pay", {"amount": 5}, "a"), said("First."), called("pay", {"amount": 6}, "b"), said("Second."),
        called("pay", {"amount": 7}, "c"), said("Third."),
    )  # fmt: skip
    with opened(*CHAT, code=WITH_PAY) as terminal:
        terminal.wait_for_prompt()
        terminal.type("Pay 5\r")
        terminal.wait_for("? pay(amount=5): waits for a decision")
        terminal.wait_for("y/n/e> ")
        terminal.type("y\r")
        terminal.wait_for_end("First.")
        terminal.type("Pay 6\r")
        terminal.wait_for("? pay(amount=6): waits for a decision")
        terminal.type("n too much\r")
        terminal.wait_for_end("Second.")
        terminal.type("Pay 7\r")
        terminal.wait_for("? pay(amount=7): waits for a decision")
        terminal.type("e\r")
        terminal.wait_for('arguments> {"amount": 7}')
        terminal.type("\x7f\x7f!\r")
        terminal.wait_for("antiphon: these arguments are not JSON")
        terminal.wait_for('arguments> {"amount": 7}', 2)
        terminal.type("\x7f\x7f8}\r")
        terminal.wait_for_end("Third.")
        terminal.type("\x04")
        assert terminal.end() == 0
    results = results_of(server.requests[5])
    assert (results[0], results[2]) == ("paid 5", "paid 8")
    assert "too much" in results[1]
    assert "? refused: too much" in terminal.screen


def test_ctrl_c_at_a_question_stops_the_answer_and_nothing_runs(server: ModelServer) -> None:
    server.script(called("pay", {"amount": 5}), said("Still here."))
    with opened(*CHAT, code=WITH_PAY) as terminal:
        terminal.wait_for_prompt()
        terminal.type("Pay 5\r")
        terminal.wait_for("waits for a decision")
        terminal.type("\x03")
        terminal.wait_for_end("aborted: interrupted")
        terminal.type("y\r")
        terminal.wait_for_end("Still here.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "paid 5" not in json.dumps(server.requests[1])
    assert server.requests[1]["messages"][-1]["content"] == "y"


def test_in_a_pipe_the_next_line_decides(talk: Command, server: ModelServer, paid: list[int]) -> None:
    server.script(called("pay", {"amount": 5}), said("Paid."), said("And?"))
    ended = talk("Pay 5", 'e {"amount": 4}', "Thanks")
    assert (ended.code, ended.out, paid) == (0, "Paid.\nAnd?\n", [4])


def test_at_the_end_of_a_pipe_nobody_says_yes(talk: Command, server: ModelServer, paid: list[int]) -> None:
    server.script(called("pay", {"amount": 5}), said("Not paid."))
    ended = talk("Pay 5")
    assert (ended.code, ended.out, paid) == (0, "Not paid.\n", [])
    assert "nobody is there to decide" in results_of(server.requests[1])[0]


@pytest.mark.parametrize(("mode", "expected"), [("auto", [5]), ("auto_edit", [5]), ("plan", [])])
def test_a_mode_that_asks_nothing(
    talk: Command, server: ModelServer, paid: list[int], mode: str, expected: list[int]
) -> None:
    server.script(called("pay", {"amount": 5}), said("Next."), said("Done."))
    ended = talk(f"/approve {mode}", "Pay 5", "Thanks")
    assert (ended.out, paid) == ("Next.\nDone.\n", expected)
    assert f"approval: {mode}" in ended.err.splitlines()


def test_the_mode_is_an_option_too(command: Command, server: ModelServer) -> None:
    with opened(*CHAT, "--approve", "auto", code=WITH_PAY) as terminal:
        server.script(called("pay", {"amount": 5}), said("Paid."))
        terminal.wait_for_prompt()
        terminal.type("Pay 5\r")
        terminal.wait_for_end("Paid.")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert results_of(server.requests[1]) == ["paid 5"]
    ended = command(*CHAT, "--approve", "never")
    assert ended.code == 2
    assert ended.complaint == "antiphon: there is no approval mode 'never'; the modes are: plan, ask, auto_edit, auto"
