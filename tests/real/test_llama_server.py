"""An agent against a real server: llama.cpp's own, with real weights, over a real socket.

What a fake server cannot show: that text comes while the model is still writing it, that a stop reaches the model, and
that the requests of a growing conversation begin with the very bytes of those before them. A server that keeps the tokens
of its last request tells how many of them it found again (`cache_read`): with every byte as it was, these are all but the
last one, which was said but never read.
"""

from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest

from antiphon import (
    Agent,
    AssistantMessage,
    ContextOverflow,
    Model,
    ModelSettings,
    Recovery,
    RunError,
    RunResult,
    TextDelta,
    ToolCallDelta,
    ToolResult,
    ToolResultMessage,
    Usage,
    get_model,
    tool,
    validate,
)
from antiphon.providers.llama_cpp.weights import assemble
from antiphon.providers.openai_chat.provider import OpenAIChat

from .llama_server import LlamaServer, llama_server

pytestmark = [pytest.mark.anyio, pytest.mark.local, pytest.mark.timeout(180)]

FREED = 1.0
"""Seconds within which a stopped run's slot must be idle."""

SHORT = ModelSettings(temperature=0, seed=1, max_output_tokens=12)
ENDLESS = ModelSettings(temperature=0, seed=1, max_output_tokens=1500, extra_body={"ignore_eos": True})
CUT = Recovery(length_retries=0, on_length="keep", delay=0.01)
"""A base model never ends by itself: the limit does it, and what it cuts off is as good as any reply."""


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    """One server for the module. The weights lie in the cache folder, as they do for everybody who uses the model."""
    with llama_server(assemble()) as started:
        yield started


@pytest.fixture
def model(server: LlamaServer) -> Model:
    """The server as it is reached by name."""
    model = get_model("llamacpp:gemma-3-270m", base_url=server.base_url)
    assert isinstance(model, OpenAIChat)
    return model


def gardener(model: Model, settings: ModelSettings = SHORT) -> Agent:
    return Agent(model, instructions="You are a helpful gardener.", settings=settings, recovery=CUT)


async def idle_within(server: LlamaServer, seconds: float) -> bool:
    """Whether the server has nothing to do before so many seconds are over."""
    with anyio.move_on_after(seconds):
        while await server.is_busy():  # noqa: ASYNC110 - the server tells nobody when it is done
            await anyio.sleep(0.02)
        return True
    return False


def read(result: RunResult[str]) -> Usage:
    """What the last request consumed."""
    assert result.last_usage is not None
    return result.last_usage


def covered(before: Usage) -> int:
    """The tokens that a server has of a request and its reply: the last one it said it has not read."""
    return before.input + before.output - 1


async def test_text_comes_while_the_model_is_still_writing(server: LlamaServer, model: Model) -> None:
    """Whoever buffers a reply shows the same text in the end, and makes everybody wait for it."""
    pieces: list[str] = []
    busy: list[bool] = []
    async with gardener(model, ENDLESS).run("Tell me about roses.") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                pieces.append(event.text)
                if len(pieces) in (1, 8):
                    busy.append(await server.is_busy())
                if len(pieces) == 8:
                    run.stop("enough")
    assert busy == [True, True]
    assert run.result.text.startswith("".join(pieces[:8]))
    assert run.result.text == "".join(pieces)


async def by_stopping(agent: Agent) -> RunResult[str]:
    """A stop from inside the block."""
    async with agent.run("Tell me about roses.") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                run.stop("enough")
    return run.result


async def by_leaving(agent: Agent) -> RunResult[str]:
    """The block is left."""
    async with agent.run("Tell me about roses.") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    return run.result


@pytest.mark.parametrize("end", [by_stopping, by_leaving])
async def test_a_stop_frees_the_slot(
    end: Callable[[Agent], Awaitable[RunResult[str]]], server: LlamaServer, model: Model
) -> None:
    """A run that is over for its user, and goes on in the server, holds up everybody else there."""
    result = await end(gardener(model, ENDLESS))
    assert await idle_within(server, FREED)
    assert result.status == "aborted"
    reply = result.messages[-1]
    assert isinstance(reply, AssistantMessage)
    assert reply.partial
    assert reply.text
    assert not validate(result.messages)


async def test_a_growing_conversation_repeats_itself_to_the_byte(model: Model) -> None:
    """One changed byte near the beginning, and the server reads the whole conversation again in every turn."""
    chat = gardener(model).conversation()
    before = read(await chat.prompt("Tell me about roses and how they grow in spring."))
    for prompt in ("And what about the tulips?", "Name three other flowers that like the sun.", "Thanks."):
        usage = read(await chat.prompt(prompt))
        assert usage.cache_read is not None
        assert usage.cache_read >= covered(before), prompt
        before = usage


@tool
def get_weather(city: str) -> ToolResult:
    """Current weather in a city."""
    return ToolResult(f"6 °C and rain in {city}", end_turn=True)


async def test_calls_and_results_repeat_themselves_to_the_byte_too(model: Model) -> None:
    """The model writes these calls, the server reads them out of its text, and they go back as the same text.

    The tool ends the turn, so that each prompt is one request: a model this small would go on calling.
    """
    settings = ModelSettings(
        temperature=0, seed=1, max_output_tokens=40, parallel_tool_calls=False, stop=("</tool_call>",)
    )
    chat = Agent(model, instructions="You are helpful.", tools=[get_weather], settings=settings).conversation()
    fragments: list[str] = []
    chat.subscribe(lambda event: fragments.append(event.text) if isinstance(event, ToolCallDelta) else None)
    before: Usage | None = None
    for city in ("Oslo", "Paris", "New York"):
        fragments.clear()
        result = await chat.prompt(f"What is the weather in {city}?")
        told = result.messages[-1]
        assert isinstance(told, ToolResultMessage)
        assert (told.outcome, told.text) == ("ok", f"6 °C and rain in {city}")
        assert len(fragments) > 1, "the arguments came in one piece"
        usage = read(result)
        assert usage.cache_read is not None
        assert before is None or usage.cache_read >= covered(before), city
        before = usage


async def test_other_instructions_are_another_beginning(model: Model) -> None:
    """That the measure above can fail at all: what stands first was changed, and next to nothing is found again."""
    chat = gardener(model).conversation()
    before = read(await chat.prompt("Tell me about roses and how they grow in spring."))
    chat.configure(instructions="Answer as a captain would.")
    usage = read(await chat.prompt("And what about the tulips?"))
    assert usage.cache_read is not None
    assert usage.cache_read < before.input / 2


async def test_a_request_beyond_the_window_is_an_overflow(model: Model) -> None:
    """An application shortens the conversation then; no other failure is mended by that."""
    with pytest.raises(RunError) as caught:
        await gardener(model).run("rose " * 2100)
    assert isinstance(caught.value.__cause__, ContextOverflow)
