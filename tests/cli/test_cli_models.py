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
