"""`antiphon models`: what can be used here, told honestly."""

import pytest

from .conftest import Command
from .server import ModelServer


def test_keys_are_told_of_and_never_shown(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output ends in bug reports."""
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-this-is-secret")
    ended = command("models")
    assert ended.code == 0
    lines = {line.split()[0]: line for line in ended.out.splitlines() if line.strip()}
    assert "MISTRAL_API_KEY is set" in lines["mistral"]
    assert "https://api.mistral.ai/v1" in lines["mistral"]
    assert "no key: set OPENAI_API_KEY" in lines["openai"]
    assert "sk-this-is-secret" not in ended.out + ended.err
    assert "taken when nobody chooses: mistral:" in ended.out


def test_a_server_that_answers_is_told_of(
    command: Command, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OLLAMA_HOST", server.url.removesuffix("/v1"))
    ended = command("models")
    lines = {line.split()[0]: line for line in ended.out.splitlines() if line.strip()}
    assert "answers with test" in lines["ollama"]
    assert server.url in lines["ollama"]
    assert "does not answer" in lines["vllm"]
    assert "taken when nobody chooses: ollama:test" in ended.out


def test_the_built_in_model_is_not_praised(command: Command) -> None:
    """Who takes it for a real model turns away from the engine."""
    text = " ".join(command("models").out.split())
    assert "It is there to try the engine out" in text
    assert "cannot follow instructions" in text
    assert "To use a real model" in text
    assert "antiphon ask --model" in text


def test_a_providers_models_are_listed_with_their_prices(command: Command) -> None:
    """What a question costs is asked before the model is chosen."""
    ended = command("models", "anthropic")
    assert ended.code == 0
    (line,) = [line for line in ended.out.splitlines() if line.split()[:1] == ["claude-sonnet-4-5"]]
    assert line.split()[1:6] == ["200000", "64000", "3", "0.3", "15"]


def test_unknown_prices_are_no_zeros(command: Command) -> None:
    rows = [line.split() for line in command("models", "openai").out.splitlines()[2:-1]]
    assert rows
    assert all(len(row) >= 6 for row in rows)
    assert not any("0" in row[3:6] for row in rows)


def test_a_server_of_your_own_has_no_list(command: Command) -> None:
    assert "its models are its own" in command("models", "ollama").out


def test_a_wrong_provider_is_told_with_a_guess(command: Command) -> None:
    ended = command("models", "antropic")
    assert ended.code == 2
    assert "no provider named 'antropic'" in ended.err
    assert "did you mean 'anthropic'?" in ended.err
