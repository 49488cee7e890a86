"""A function in a provider's place: it gets all that the provider would get, and answers as it likes."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import TypeAlias

from msgspec import Struct

from antiphon.providers.function import FunctionModel
from antiphon.providers.keys import ApiKey, find_key
from antiphon.types.request import Delta, ModelInfo, ModelRequest

__all__ = ["ProviderCall", "ProviderFunction", "StandIn"]


class ProviderCall(Struct, frozen=True, kw_only=True):
    """One request on its way to a provider: what is known of the model, the request, and the key, if there is one."""

    info: ModelInfo
    request: ModelRequest
    api_key: str | None = None


ProviderFunction: TypeAlias = Callable[
    [ProviderCall],
    Awaitable[str | AsyncIterator[Delta] | AsyncIterator[str]] | AsyncIterator[Delta] | AsyncIterator[str] | str,
]
"""Answers with text, or with an async iterable of text or deltas. What it raises becomes a `ModelError`."""


class StandIn:
    """A model that asks a function; the key is looked up for every request, as the provider would do it."""

    def __init__(
        self, function: ProviderFunction, *, info: ModelInfo, api_key: ApiKey = None, keys: Sequence[str] = ()
    ) -> None:
        self.info = info
        self._function = function
        self._api_key = api_key
        self._keys = keys

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The function's answer as deltas. Raises only `ModelError`."""
        call = ProviderCall(
            info=self.info, request=request, api_key=await find_key(self._api_key, self.info.provider, self._keys)
        )
        async with aclosing(FunctionModel(lambda _: self._function(call), info=self.info).stream(request)) as deltas:
            async for delta in deltas:
                yield delta
