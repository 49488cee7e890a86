"""From a name to a model, and which providers can be used here."""

import asyncio
import json
import sys
import types
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.errors import Unauthorized, UsageError
from antiphon.providers import resolve
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.providers.resolve import PROVIDERS, Provider, configured, get_model, probe_local, resolve_model
from antiphon.providers.scripted import Scripted
from antiphon.types.messages import UserMessage
from antiphon.types.request import ModelInfo, ModelRequest
from antiphon.wire.http import aclose

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in (*provider.keys, *provider.addresses):
            monkeypatch.delenv(variable, raising=False)


def url(model: Any) -> str:
    return model._url


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("openai:gpt-5", "https://api.openai.com/v1/chat/completions"),
        ("groq:llama", "https://api.groq.com/openai/v1/chat/completions"),
        ("ollama:llama3.2:3b", "http://127.0.0.1:11434/v1/chat/completions"),
        ("llamacpp:any", "http://127.0.0.1:8080/v1/chat/completions"),
        ("lmstudio:any", "http://127.0.0.1:1234/v1/chat/completions"),
        ("vllm:any", "http://127.0.0.1:8000/v1/chat/completions"),
        ("openrouter:anthropic/claude-sonnet-4.5", "https://openrouter.ai/api/v1/chat/completions"),
        (" xai:grok-4.5 ", "https://api.x.ai/v1/chat/completions"),
    ],
)
async def test_a_name_is_a_provider_and_its_model(name: str, address: str) -> None:
    model = get_model(name)
    assert isinstance(model, OpenAIChat)
    prefix, _, wanted = name.strip().partition(":")
    assert (model.info.provider, model.info.id) == (prefix, wanted)
    assert url(model) == address


async def test_every_chat_provider_resolves_without_a_key() -> None:
    """A name can be written down anywhere; the key is needed where the request is made."""
    for name, provider in PROVIDERS.items():
        if provider.factory.endswith(":chat_model"):
            address = "https://x.openai.azure.com/openai/v1" if provider.needs_address else None
            assert isinstance(get_model(f"{name}:m", base_url=address), OpenAIChat)


async def test_a_missing_key_is_told_at_the_request() -> None:
    with pytest.raises(Unauthorized, match="set MISTRAL_API_KEY"):
        async for _ in get_model("mistral:m").stream(ModelRequest(messages=[UserMessage.of("hi")])):
            pass


@pytest.mark.parametrize("name", ["gpt-5", "", "openai"])
async def test_a_name_without_a_provider_shows_how_to_write_one(name: str) -> None:
    with pytest.raises(UsageError, match=r"write 'provider:name', as in 'openai:gpt-5'; providers: .*openai"):
        get_model(name)


async def test_an_unknown_provider_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no provider named 'OpenAi'; did you mean 'openai'\? providers: "):
        get_model("OpenAi:gpt-5")
    with pytest.raises(UsageError, match="no provider named 'zzz'; providers: "):
        get_model("zzz:m")


async def test_a_provider_without_a_model_says_so() -> None:
    with pytest.raises(UsageError, match="no model in 'openai:'"):
        get_model("openai:")


async def test_an_address_comes_from_the_argument_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/")
    assert url(get_model("openai:m")) == "http://127.0.0.1:9/v1/chat/completions"
    assert url(get_model("openai:m", base_url="http://127.0.0.1:7/v1")) == "http://127.0.0.1:7/v1/chat/completions"


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("0.0.0.0", "http://127.0.0.1/v1"),
        ("box:11434", "http://box:11434/v1"),
        ("0.0.0.0:11435", "http://127.0.0.1:11435/v1"),
        ("https://box/", "https://box/v1"),
    ],
)
async def test_ollamas_own_variable_is_understood(monkeypatch: pytest.MonkeyPatch, value: str, address: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", value)
    assert url(get_model("ollama:m")) == f"{address}/chat/completions"


async def test_azure_needs_the_address_of_a_deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="AZURE_OPENAI_ENDPOINT"):
        get_model("azure:m")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com/")
    assert url(get_model("azure:m")) == "https://x.openai.azure.com/openai/v1/chat/completions"


async def test_options_reach_the_provider() -> None:
    info = ModelInfo(provider="openai", id="m", context_window=8)
    model = get_model("openai:m", api_key="k", info=info)
    assert isinstance(model, OpenAIChat)
    assert model.info is info


async def test_a_provider_of_another_kind_is_loaded_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("a_provider_of_its_own")
    module.make = lambda name, **options: Scripted(f"{name} {options}")  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "a_provider_of_its_own", module)
    own = Provider(factory="a_provider_of_its_own:make", options={"a": 1}, any_name=True)
    monkeypatch.setitem(resolve.PROVIDERS, "own", own)
    made = get_model("own:", b=2)
    assert isinstance(made, Scripted)
    assert made._replies == (" {'a': 1, 'b': 2}",)


async def test_whatever_stands_for_a_model_is_made_one() -> None:
    scripted = Scripted("a")
    assert resolve_model(scripted) is scripted
    assert isinstance(resolve_model("openai:m"), OpenAIChat)
    assert callable(resolve_model(lambda _: "hi").stream)


async def test_loading_the_table_loads_no_client() -> None:
    program = "import sys, antiphon.providers.resolve; print({'aiohttp', 'xllamacpp'} & set(sys.modules))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    assert told.strip() == b"set()"


# --- which providers can be used here


async def test_providers_with_a_key_are_configured_in_the_order_of_the_table() -> None:
    environ = {
        "XAI_API_KEY": "k",
        "OPENAI_API_KEY": "k",
        "GROQ_API_KEY": "",
        "OLLAMA_API_KEY": "k",
        "AZURE_OPENAI_API_KEY": "k",
    }
    assert configured(environ) == ["openai", "openai_responses", "xai"]
    environ |= {"VLLM_BASE_URL": "http://box/v1", "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}
    assert configured(environ) == ["openai", "openai_responses", "azure", "xai", "vllm"]
    assert configured({}) == []


@asynccontextmanager
async def listing(body: bytes) -> AsyncIterator[int]:
    """A server that answers every request with this body; its port."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"GET /v1/models ")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        await aclose()
        listener.close()
        await listener.wait_closed()


def models(*ids: str, owner: str = "someone") -> bytes:
    return json.dumps({"object": "list", "data": [{"id": name, "owned_by": owner} for name in ids]}).encode()


async def test_servers_on_this_machine_are_found_with_their_first_model() -> None:
    async with listing(models("llama3", "other")) as one, listing(models("qwen", owner="vllm")) as two:
        found = await probe_local(5, environ={}, ports={"ollama": one, "lmstudio": 9, "llamacpp": two})
    assert [(server.name, server.base_url) for server in found] == [
        ("ollama:llama3", f"http://127.0.0.1:{one}/v1"),
        ("vllm:qwen", f"http://127.0.0.1:{two}/v1"),
    ]


@pytest.mark.parametrize("body", [b"{}", b"[]", b"hello", b'{"data":[]}', b'{"data":[7]}', b'{"data":[{"id":7}]}'])
async def test_something_else_on_a_port_is_no_model_server(body: bytes) -> None:
    async with listing(body) as port:
        assert await probe_local(5, environ={}, ports={"vllm": port}) == []


async def test_a_port_that_stays_silent_does_not_hold_the_probe() -> None:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert await probe_local(0.1, environ={}, ports={"vllm": port, "ollama": port}) == []
    assert loop.time() - begun < 5
    await aclose()
    listener.close()
    await listener.wait_closed()


async def test_probing_can_be_turned_off() -> None:
    async with listing(models("llama3")) as port:
        assert await probe_local(5, environ={"ANTIPHON_PROBE": "0"}, ports={"ollama": port}) == []
