"""A function in the place of a provider, for an agent and for a conversation."""

from collections.abc import AsyncIterator

import pytest

from antiphon.agent.agent import Agent
from antiphon.errors import ModelError, RateLimited, Unauthorized, UsageError
from antiphon.providers.resolve import get_model
from antiphon.providers.stand_in import ProviderCall
from antiphon.tools.function import tool
from antiphon.types.messages import UserMessage
from antiphon.types.request import (
    Delta,
    FinishChunk,
    ModelRequest,
    ModelSettings,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WholeCall,
)
from antiphon.types.result import RunError
from antiphon.types.usage import Usage

pytestmark = pytest.mark.anyio


@tool
def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


class Answering:
    """Thinks, calls a tool, then answers; keeps what it was given."""

    def __init__(self) -> None:
        self.calls: list[ProviderCall] = []

    async def __call__(self, call: ProviderCall) -> AsyncIterator[Delta]:
        self.calls.append(call)
        return self.deltas(first=len(self.calls) == 1)

    async def deltas(self, *, first: bool) -> AsyncIterator[Delta]:
        if first:
            yield ThinkingChunk("twice?", signature="sig")
            yield WholeCall("double", {"number": 21}, id="c1")
        else:
            yield TextChunk("42")
        yield UsageChunk(Usage(input=1_000_000, output=100_000, cache_read=500_000))
        yield FinishChunk("tool_calls" if first else "stop")


@pytest.mark.parity("C18")
async def test_one_callable_can_replace_the_provider() -> None:
    """It receives the facts of the model, the context with every option, the session's id, and the resolved key."""
    answering = Answering()

    async def key_of(provider: str) -> str:
        return f"key of {provider}"

    model = get_model("anthropic:claude-sonnet-4-5", via=answering, api_key=key_of)
    settings = ModelSettings(temperature=0.5, max_output_tokens=77, thinking="low", cache="long", seed=3)
    agent = Agent(model, instructions="Be brief.", tools=[double], settings=settings)
    result = await agent.run("Twice 21?", session_id="s-1")
    assert result.text == "42"
    first, second = answering.calls
    assert (first.info.context_window, first.info.thinking_levels) == (
        200_000,
        ("off", "minimal", "low", "medium", "high"),
    )
    assert first.info.prices
    assert first.api_key == "key of anthropic"
    assert first.request.instructions == "Be brief."
    assert [spec.name for spec in first.request.tools] == ["double"]
    assert first.request.settings == settings
    assert first.request.session_id == "s-1"
    assert [type(message).__name__ for message in second.request.messages] == [
        "UserMessage",
        "AssistantMessage",
        "ToolResultMessage",
    ]
    assert result.usage.cost == pytest.approx(2 * (0.5 * 3 + 0.5 * 0.3 + 0.1 * 15))
    assert result.messages[1].provider == "anthropic"  # pyright: ignore[reportAttributeAccessIssue] - it is the reply


@pytest.mark.parity("C18")
async def test_it_serves_a_conversation_too() -> None:
    answering = Answering()
    chat = Agent(get_model("openai:gpt-5", via=answering, api_key="k"), tools=[double]).conversation()
    result = await chat.prompt("Twice 21?")
    assert result.text == "42"
    assert [call.api_key for call in answering.calls] == ["k", "k"]


async def test_its_key_comes_from_the_environment_of_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from outside")
    seen: list[str | None] = []

    def answer(call: ProviderCall) -> str:
        seen.append(call.api_key)
        return "hi"

    model = get_model("anthropic:claude-sonnet-4-5", via=answer)
    assert (await Agent(model).run("hi")).text == "hi"
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("ANTHROPIC_OAUTH_TOKEN", raising=False)
    assert (await Agent(model).run("hi")).text == "hi"
    assert seen == ["from outside", None], "no key is no error here: the function may not need one"


async def test_a_key_that_cannot_be_had_is_told() -> None:
    def broken(provider: str) -> str:
        raise OSError("vault is shut")

    model = get_model("anthropic:claude-sonnet-4-5", via=lambda _: "hi", api_key=broken)
    with pytest.raises(Unauthorized, match="vault is shut"):
        async for _ in model.stream(ModelRequest(messages=[UserMessage.of("hi")])):
            pass


async def test_what_it_raises_is_the_run_s_error() -> None:
    """A typed one as it is, with its recovery; any other as the failure of the function."""

    def limited(call: ProviderCall) -> str:
        raise RateLimited("slow down", recovery="never")

    def broken(call: ProviderCall) -> str:
        raise KeyError("oops")

    with pytest.raises(RunError, match="slow down"):
        await Agent(get_model("openai:gpt-5", via=limited)).run("hi")
    with pytest.raises(ModelError, match=r"the model function 'gpt-5' failed: KeyError\('oops'\)"):
        async for _ in get_model("openai:gpt-5", via=broken).stream(ModelRequest(messages=[UserMessage.of("hi")])):
            pass


async def test_options_of_the_provider_have_no_place_beside_it() -> None:
    """An address that nobody reads looks as if it were asked."""
    with pytest.raises(UsageError, match="base_url= is for the provider itself, and via= stands in its place"):
        get_model("openai:gpt-5", via=lambda _: "hi", base_url="http://127.0.0.1:1")
