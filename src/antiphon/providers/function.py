"""A plain function as a model."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any, cast

from antiphon.errors import ModelError, UsageError
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    Model,
    ModelFunction,
    ModelInfo,
    ModelRequest,
    TextChunk,
    WholeCall,
)

__all__ = ["FunctionModel", "as_model"]


class FunctionModel:
    """A model that asks a function: it is given the request, and answers with text or an async iterable.

    The iterable yields text or deltas; its end is the end of the reply, a `FinishChunk` is only needed to say more. The
    function runs in the event loop: one that takes long must be async. What it raises becomes a `ModelError`.
    """

    def __init__(self, function: ModelFunction, *, info: ModelInfo | None = None) -> None:
        self._function = function
        self.info = info or ModelInfo(provider="function", id=getattr(function, "__name__", "function"))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The function's answer as deltas. Raises only `ModelError`."""
        answer = await self._answer(request)
        if isinstance(answer, str):
            if answer:
                yield TextChunk(answer)
            yield FinishChunk()
            return
        calls = False
        items = aiter(answer)
        try:
            while (item := await self._item(items)) is not None:
                yield item
                if isinstance(item, FinishChunk):
                    return
                calls = calls or isinstance(item, CallChunk | WholeCall)
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()
        yield FinishChunk("tool_calls" if calls else "stop")

    async def _answer(self, request: ModelRequest) -> str | AsyncIterable[object]:
        try:
            answer: Any = self._function(request)
            if inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            raise self._translated(error) from error
        if isinstance(answer, str | AsyncIterable):
            return cast("str | AsyncIterable[object]", answer)
        raise self._wrong(f"answered with {type(answer).__name__}")

    async def _item(self, items: Any) -> Delta | None:
        """The next delta, `None` at the end."""
        try:
            item: object = await anext(items)
        except StopAsyncIteration:
            return None
        except Exception as error:
            raise self._translated(error) from error
        if isinstance(item, str):
            return TextChunk(item)
        if isinstance(item, Delta):
            return item
        raise self._wrong(f"yielded {type(item).__name__}")

    def _translated(self, error: Exception) -> ModelError:
        if isinstance(error, ModelError):
            return error
        return ModelError(f"the model function {self.info.id!r} failed: {error!r}", provider=self.info.provider)

    def _wrong(self, what: str) -> ModelError:
        return ModelError(
            f"the model function {self.info.id!r} {what}; give text, or an async iterable of text and deltas",
            provider=self.info.provider,
        )


def as_model(model: Model | ModelFunction) -> Model:
    """A model as it is, a function as a model. Raises `UsageError` for anything else."""
    given: Any = model
    if isinstance(given, type):
        raise UsageError(f"{given.__name__} is a class, not a model; give an instance of it")
    if callable(getattr(given, "stream", None)):
        return given
    if callable(given):
        return FunctionModel(cast("ModelFunction", given))
    raise UsageError(
        f"{given!r} is no model; give one as text ('openai:gpt-5'), an object with `stream`, or a function of the request"
    )
