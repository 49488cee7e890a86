"""A plain function as a model."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon.errors import ModelError, RateLimited, UsageError
from antiphon.providers.function import FunctionModel, as_model
from antiphon.providers.scripted import Scripted
from antiphon.types.messages import UserMessage
from antiphon.types.request import CallChunk, Delta, FinishChunk, ModelRequest, TextChunk, WholeCall

pytestmark = pytest.mark.anyio


async def deltas(function: Any) -> list[Delta]:
    request = ModelRequest(messages=[UserMessage.of("hi")])
    return [delta async for delta in FunctionModel(function).stream(request)]


def sync_text(request: ModelRequest) -> str:
    return "hello"


async def async_text(request: ModelRequest) -> str:
    return "hello"


async def pieces(request: ModelRequest) -> AsyncIterator[str]:
    yield "hel"
    yield "lo"


async def later_pieces(request: ModelRequest) -> AsyncIterator[str]:
    return pieces(request)


@pytest.mark.parity("B10")
@pytest.mark.parametrize("function", [sync_text, async_text])
async def test_a_text_is_one_delta_and_a_normal_end(function: Any) -> None:
    assert await deltas(function) == [TextChunk("hello"), FinishChunk("stop")]


@pytest.mark.parity("B10")
@pytest.mark.parametrize("function", [pieces, later_pieces])
async def test_an_iterable_of_text_is_streamed(function: Any) -> None:
    assert await deltas(function) == [TextChunk("hel"), TextChunk("lo"), FinishChunk("stop")]


@pytest.mark.parity("A16")
async def test_deltas_pass_as_they_are_and_whole_calls_are_calls() -> None:
    async def function(request: ModelRequest) -> AsyncIterator[Delta]:
        yield TextChunk("a")
        yield WholeCall("f", {"x": 1}, "c")

    assert await deltas(function) == [TextChunk("a"), WholeCall("f", {"x": 1}, "c"), FinishChunk("tool_calls")]


async def test_a_finish_of_the_functions_own_ends_the_reply() -> None:
    async def function(request: ModelRequest) -> AsyncIterator[Delta]:
        yield CallChunk(0, "c", "f", "{}")
        yield FinishChunk("length")
        yield TextChunk("never")

    assert await deltas(function) == [CallChunk(0, "c", "f", "{}"), FinishChunk("length")]


async def test_an_empty_text_is_an_end_alone() -> None:
    assert await deltas(lambda _: "") == [FinishChunk("stop")]


async def test_what_a_function_raises_is_the_cause_of_a_model_error() -> None:
    original = LookupError("nothing")

    def at_once(request: ModelRequest) -> str:
        raise original

    async def half_way(request: ModelRequest) -> AsyncIterator[str]:
        yield "a"
        raise original

    for function in (at_once, half_way):
        with pytest.raises(ModelError, match="nothing") as caught:
            await deltas(function)
        assert caught.value.__cause__ is original
        assert caught.value.recovery == "never"


async def test_a_model_error_passes_through() -> None:
    own = RateLimited("slow")

    def function(request: ModelRequest) -> str:
        raise own

    with pytest.raises(RateLimited) as caught:
        await deltas(function)
    assert caught.value is own


@pytest.mark.parametrize("answer", [7, None, b"x", ["a"]])
async def test_another_answer_says_what_to_give(answer: Any) -> None:
    with pytest.raises(ModelError, match="give text, or an async iterable"):
        await deltas(lambda _: answer)


async def test_another_item_says_what_to_give() -> None:
    async def function(request: ModelRequest) -> AsyncIterator[Any]:
        yield 7

    with pytest.raises(ModelError, match="yielded int"):
        await deltas(function)


async def test_leaving_early_closes_the_functions_stream() -> None:
    closed: list[bool] = []

    async def function(request: ModelRequest) -> AsyncIterator[str]:
        try:
            yield "a"
            yield "b"
        finally:
            closed.append(True)

    stream = FunctionModel(function).stream(ModelRequest(messages=[]))
    assert await anext(stream) == TextChunk("a")
    await stream.aclose()
    assert closed == [True]


async def test_a_model_stays_itself_and_a_function_becomes_one() -> None:
    scripted = Scripted("a")
    assert as_model(scripted) is scripted
    made = as_model(sync_text)
    assert isinstance(made, FunctionModel)
    assert made.info.id == "sync_text"


@pytest.mark.parametrize("thing", ["openai:gpt-5", 7, None])
async def test_anything_else_is_no_model(thing: Any) -> None:
    with pytest.raises(UsageError, match="is no model"):
        as_model(thing)


async def test_a_class_is_no_model() -> None:
    with pytest.raises(UsageError, match="give an instance"):
        as_model(Scripted)  # pyright: ignore[reportArgumentType]
