"""Which model answers when several could: what a person said first, then what they set up, then what runs here."""

from collections.abc import Sequence

import pytest

from antiphon.cli._embedded import EMBEDDED
from antiphon.cli.choose import USUAL, Choice, choose
from antiphon.errors import UsageError
from antiphon.providers.resolve import PROVIDERS, LocalServer, get_model

from .server import ModelServer

pytestmark = pytest.mark.anyio

OLLAMA = LocalServer(provider="ollama", model="qwen3:4b", base_url="http://127.0.0.1:11434/v1")
KEY = {"OPENAI_API_KEY": "k"}


async def found() -> Sequence[LocalServer]:
    return [OLLAMA]


async def none() -> Sequence[LocalServer]:
    return []


async def unused() -> Sequence[LocalServer]:
    raise AssertionError("nobody may look for servers when the choice is made")


async def test_what_was_asked_for_comes_first() -> None:
    choice = await choose("a:b", environ={"ANTIPHON_MODEL": "c:d", **KEY}, probe=unused)
    assert choice == Choice(name="a:b", reason="asked for with --model")


async def test_then_the_variable() -> None:
    choice = await choose(None, environ={"ANTIPHON_MODEL": "c:d", **KEY}, probe=unused)
    assert choice == Choice(name="c:d", reason="named by ANTIPHON_MODEL")


async def test_then_a_key() -> None:
    choice = await choose(None, environ=KEY, probe=unused)
    assert choice == Choice(name=f"openai:{USUAL['openai']}", reason="OPENAI_API_KEY is set")


async def test_an_address_is_asked_which_models_it_has(server: ModelServer) -> None:
    """A server of one's own has none of the vendor's models."""
    server.models = ["text-embedding-3", "qwen3"]
    choice = await choose(None, environ={**KEY, "OPENAI_BASE_URL": server.url}, probe=unused)
    assert choice.name == "openai:qwen3"
    assert choice.reason == f"OPENAI_API_KEY is set and OPENAI_BASE_URL leads to {server.url}"
    host = server.url.removeprefix("http://").removesuffix("/v1")
    assert (await choose(None, environ={"OLLAMA_HOST": host}, probe=unused)).name == "ollama:qwen3"


async def test_then_a_local_server() -> None:
    choice = await choose(None, environ={}, probe=found)
    assert choice == Choice(
        name="ollama:qwen3:4b", reason=f"a server answers at {OLLAMA.base_url}", base_url=OLLAMA.base_url
    )


async def test_then_the_built_in_one() -> None:
    choice = await choose(None, environ={}, probe=none, embedded=True)
    assert choice.name == EMBEDDED
    assert "built-in" in choice.reason


async def test_without_any_the_ways_out_are_told() -> None:
    with pytest.raises(UsageError) as raised:
        await choose(None, environ={}, probe=none, embedded=False)
    for way in ("OPENAI_API_KEY", "Ollama", "--model", "pip install 'antiphon[local]'"):
        assert way in str(raised.value)


async def test_a_deployment_that_nobody_named_is_not_guessed() -> None:
    """Azure's names are the customer's own."""
    azure = {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "http://127.0.0.1:9"}
    assert (await choose(None, environ=azure, probe=found)).name == "ollama:qwen3:4b"


def test_every_vendor_with_a_key_has_a_usual_model() -> None:
    """A key that leads to no model would be passed over in silence."""
    vendors = {name for name, each in PROVIDERS.items() if each.keys and each.port is None and not each.needs_address}
    assert vendors <= set(USUAL)
    for name in vendors:
        assert get_model(f"{name}:{USUAL[name]}")
