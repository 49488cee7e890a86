"""Names, facts and providers of an application: what `get_model` makes of a catalogue."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from antiphon.errors import ModelError, Rejected, Unauthorized, UsageError
from antiphon.providers.anthropic.provider import Anthropic
from antiphon.providers.catalogue import builtin_catalogue
from antiphon.providers.gemini.provider import Gemini
from antiphon.providers.hints import Hinted
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.providers.openai_responses.provider import OpenAIResponses
from antiphon.providers.resolve import PROVIDERS, get_model, list_models, list_providers
from antiphon.types.messages import UserMessage
from antiphon.types.request import ModelInfo, ModelRequest

from .anthropic_server import Asked, Server, serving, whole

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(messages=[UserMessage.of("hi")])
WIRES = {
    "openai_chat": (OpenAIChat, "/chat/completions"),
    "openai_responses": (OpenAIResponses, "/responses"),
    "anthropic": (Anthropic, "/v1/messages"),
    "gemini": (Gemini, "/models/m:streamGenerateContent?alt=sse"),
}


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in PROVIDERS.values():
        for variable in (*provider.keys, *provider.addresses):
            monkeypatch.delenv(variable, raising=False)


@asynccontextmanager
async def refusing(status: str = "404 Not Found", said: str = "no such model") -> AsyncIterator[Server]:
    async with serving(whole(json.dumps({"error": {"message": said}}).encode(), status=status)) as server:
        yield server


async def asked_of(model: Any, server: Server) -> tuple[Asked, ModelError]:
    """The request that reached the server, and what became of it."""
    with pytest.raises(ModelError) as caught:
        async for _ in model.stream(REQUEST):
            pass
    return server.asked[-1], caught.value


# --- the built-in providers


@pytest.mark.parity("C20")
@pytest.mark.parametrize(
    ("name", "kind", "provider", "window"),
    [
        ("anthropic:claude-sonnet-4-5", Anthropic, "anthropic", 200_000),
        ("openai:gpt-5", OpenAIChat, "openai", 400_000),
        ("openai_responses:gpt-5", OpenAIResponses, "openai", 400_000),
        ("gemini:gemini-2.5-flash", Gemini, "gemini", 1_048_576),
        ("gemini:models/gemini-2.5-flash", Gemini, "gemini", 1_048_576),
        ("gemini_openai:gemini-2.5-flash", OpenAIChat, "gemini_openai", 1_048_576),
        ("openrouter:anthropic/claude-opus-5", OpenAIChat, "openrouter", 1_000_000),
        ("openai:gpt-5-2025-08-07", OpenAIChat, "openai", 400_000),
    ],
)
async def test_a_name_gives_a_provider_that_knows_its_model(name: str, kind: type, provider: str, window: int) -> None:
    model: Any = get_model(name)
    assert isinstance(model, kind)
    assert model.info.provider == provider
    assert model.info.id == name.partition(":")[2].removeprefix("models/")
    assert model.info.context_window == window
    assert model.info.prices.known


async def test_a_model_that_nobody_knows_can_be_used_without_facts() -> None:
    """New ones appear every day, and a library is updated less often."""
    model: Any = get_model("groq:brand-new-thing")
    assert model.info == ModelInfo(provider="groq", id="brand-new-thing")
    azure: Any = get_model("azure:our-deployment", base_url="https://x.openai.azure.com/openai/v1")
    assert azure.info == ModelInfo(provider="azure", id="our-deployment")


async def test_facts_that_are_given_come_before_those_that_are_known() -> None:
    info = ModelInfo(provider="openai", id="gpt-5", context_window=8)
    assert getattr(get_model("openai:gpt-5", info=info), "info", None) is info


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("anthropic:claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("openai_responses:gpt-5", "OPENAI_API_KEY"),
        ("gemini:gemini-2.5-flash", "GEMINI_API_KEY"),
    ],
)
async def test_a_missing_key_names_its_variable(name: str, variable: str) -> None:
    with pytest.raises(Unauthorized, match=variable):
        async for _ in get_model(name).stream(REQUEST):
            pass


@pytest.mark.parametrize(
    ("name", "variable", "path"),
    [
        ("anthropic:m", "ANTHROPIC_BASE_URL", "/v1/messages"),
        ("openai_responses:m", "OPENAI_BASE_URL", "/responses"),
        ("gemini:m", "GEMINI_BASE_URL", "/models/m:streamGenerateContent?alt=sse"),
        ("gemini:m", "GOOGLE_GEMINI_BASE_URL", "/models/m:streamGenerateContent?alt=sse"),
    ],
)
async def test_an_address_may_come_from_the_environment(
    name: str, variable: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with refusing() as server:
        monkeypatch.setenv(variable, server.url)
        asked, _ = await asked_of(get_model(name, api_key="k"), server)
    assert asked.path == path


async def test_a_name_without_a_provider_is_answered_with_whose_it_is() -> None:
    with pytest.raises(UsageError, match=r"did you mean 'anthropic:claude-sonnet-4-5'\? write 'provider:name'"):
        get_model("claude-sonnet-4-5")


# --- a name that is nearly right


async def test_a_refusal_of_a_slip_says_what_was_meant() -> None:
    """The server's own words are only that it does not exist."""
    async with refusing() as server:
        model = Hinted(get_model("anthropic:m", base_url=server.url, api_key="k"), "claude-sonnet-4-5")
        _, error = await asked_of(model, server)
    assert isinstance(error, Rejected)
    assert str(error).endswith("; did you mean the model 'claude-sonnet-4-5'?")
    assert (error.status, error.provider, error.recovery) == (404, "anthropic", "never")


@pytest.mark.parametrize(
    ("status", "said", "suggests"),
    [
        ("400 Bad Request", "Model Not Exist", True),
        ("400 Bad Request", "temperature is too high", False),
        ("401 Unauthorized", "who are you?", False),
        ("503 Service Unavailable", "the model is down", False),
    ],
)
async def test_only_an_unknown_model_is_answered_with_another(status: str, said: str, suggests: bool) -> None:
    async with refusing(status, said) as server:
        model = Hinted(get_model("anthropic:m", base_url=server.url, api_key="k"), "claude-sonnet-4-5")
        _, error = await asked_of(model, server)
    assert ("did you mean" in str(error)) is suggests


async def test_a_slip_is_still_the_model_that_was_asked_for() -> None:
    """Who wants a model of tomorrow must get it."""
    model: Any = get_model("anthropic:claude-sonet-4-5", api_key="k")
    assert isinstance(model, Hinted)
    assert model.info == ModelInfo(provider="anthropic", id="claude-sonet-4-5")
    await model.aclose()
    with pytest.raises(AttributeError):
        _ = model.nothing_like_it


@pytest.mark.parametrize("name", ["groq:brand-new-thing", "anthropic:claude-sonnet-4-5", "ollama:qwen3"])
async def test_a_name_that_resembles_none_or_is_right_gets_no_hint(name: str) -> None:
    assert not isinstance(get_model(name), Hinted)


async def test_a_server_of_ones_own_has_names_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not isinstance(get_model("openai:gpt-5-mine", base_url="http://127.0.0.1:9/v1"), Hinted)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert not isinstance(get_model("openai:gpt-5-mine"), Hinted)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
    assert isinstance(get_model("openai:gpt-5-mine"), Hinted)


async def test_a_reply_passes_through_and_leaving_it_closes_it() -> None:
    """The hint must not cost the reply, nor keep its connection."""
    closed: list[bool] = []

    class Talking:
        info = ModelInfo(provider="p", id="m")

        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            try:
                yield "a"
                yield "b"
            finally:
                closed.append(True)

    assert [delta async for delta in Hinted(Talking(), "x").stream(REQUEST)] == ["a", "b"]
    deltas: Any = Hinted(Talking(), "x").stream(REQUEST)
    assert await anext(deltas) == "a"
    await deltas.aclose()
    assert closed == [True, True]


# --- providers of an application


@pytest.mark.parametrize("wire", WIRES)
async def test_a_provider_is_added_by_plain_data(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS_KEY", "secret-key")
    async with refusing() as server:
        mine = builtin_catalogue().with_providers([
            {
                "name": "ours", "base_url": server.url, "wire": wire, "keys": ["OURS_KEY"], "headers": {"x-team": "blue"},
                "models": [{"id": "m", "context_window": 9}],
            }
        ])  # fmt: skip
        model: Any = get_model("ours:m", catalogue=mine)
        assert isinstance(model, WIRES[wire][0])
        assert model.info == ModelInfo(provider="ours", id="m", context_window=9)
        asked, error = await asked_of(model, server)
    assert asked.path == WIRES[wire][1]
    assert asked.headers["x-team"] == "blue"
    assert any("secret-key" in asked.headers.get(name, "") for name in ("authorization", "x-api-key", "x-goog-api-key"))
    assert error.provider == "ours"


@pytest.mark.parametrize("wire", WIRES)
async def test_its_missing_key_is_told_before_anything_is_sent(wire: str) -> None:
    async with refusing() as server:
        spec = {"name": "ours", "base_url": server.url, "wire": wire, "keys": ["OURS_KEY", "OURS_TOKEN"]}
        model = get_model("ours:m", catalogue=builtin_catalogue().with_providers([spec]))
        with pytest.raises(Unauthorized, match="no API key for 'ours'; set OURS_KEY or OURS_TOKEN"):
            async for _ in model.stream(REQUEST):
                pass
        assert server.asked == []


async def test_what_is_passed_comes_before_its_data() -> None:
    async with refusing() as server:
        spec = {"name": "ours", "base_url": "http://127.0.0.1:1", "keys": ["OURS_KEY"], "headers": {"a": "1", "b": "1"}}
        options: dict[str, Any] = {"base_url": server.url, "api_key": "mine", "headers": {"b": "2"}}
        model = get_model("ours:m", catalogue=builtin_catalogue().with_providers([spec]), **options)
        asked, _ = await asked_of(model, server)
    assert asked.headers["authorization"] == "Bearer mine"
    assert (asked.headers["a"], asked.headers["b"]) == ("1", "2")


async def test_it_may_stand_in_the_place_of_a_built_in_one() -> None:
    async with refusing() as server:
        mine = builtin_catalogue().with_providers([{"name": "openai", "base_url": server.url, "wire": "anthropic"}])
        assert isinstance(get_model("openai:gpt-5", catalogue=mine), Anthropic)
    assert isinstance(get_model("openai:gpt-5"), OpenAIChat)


async def test_added_facts_reach_the_model() -> None:
    mine = builtin_catalogue().with_models([{"provider": "ollama", "id": "qwen3", "context_window": 4096}])
    assert getattr(get_model("ollama:qwen3", catalogue=mine), "info", None) == ModelInfo(
        provider="ollama", id="qwen3", context_window=4096
    )


async def test_a_wrong_name_is_answered_with_added_ones_too() -> None:
    mine = builtin_catalogue().with_providers([{"name": "ours", "base_url": "http://127.0.0.1:1"}])
    with pytest.raises(UsageError, match=r"no provider named 'our'; did you mean 'ours'\? providers: .*ours"):
        get_model("our:m", catalogue=mine)


# --- lists


@pytest.mark.parity("C20")
async def test_providers_and_their_models_are_listed() -> None:
    assert list_providers() == list(PROVIDERS)
    models = list_models("anthropic")
    assert [info.id for info in models] == sorted(info.id for info in models)
    assert "claude-sonnet-4-5" in [info.id for info in models]
    assert {info.provider for info in list_models("openai_responses")} == {"openai"}
    assert {info.provider for info in list_models("gemini_openai")} == {"gemini_openai"}
    assert list_models("ollama") == []


async def test_added_providers_are_listed_last() -> None:
    spec = {"name": "ours", "base_url": "http://127.0.0.1:1", "models": [{"id": "m"}]}
    mine = builtin_catalogue().with_providers([spec])
    assert list_providers(mine) == [*PROVIDERS, "ours"]
    assert list_models("ours", mine) == [ModelInfo(provider="ours", id="m")]
    with pytest.raises(UsageError, match="no provider named 'ours'"):
        list_models("ours")
