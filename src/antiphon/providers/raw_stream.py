"""Chat Completions over the application's own connection: address, key and transport stay with it."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from antiphon.errors import Dropped, ModelError, Rejected, UsageError
from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.providers.openai_chat.encode import ChatEncoder
from antiphon.providers.openai_chat.profiles import PROFILES, Profile, for_model
from antiphon.providers.openai_chat.shapes import ChatChunk, ChatRequest
from antiphon.providers.payload import seen_payload
from antiphon.types.cancel import CancelSignal
from antiphon.types.request import Delta, ModelInfo, ModelRequest

__all__ = ["RawChunk", "RawStream", "RawStreamModel"]

RawChunk: TypeAlias = ChatChunk | dict[str, Any] | str | bytes
"""A chunk as an object, or as the JSON text of one event's data."""

RawStream: TypeAlias = Callable[
    [ChatRequest, CancelSignal], AsyncIterable[RawChunk] | Awaitable[AsyncIterable[RawChunk]]
]
"""Sends a request and yields chunks as they come. It raises what it likes, and should end when the signal says so."""


class RawStreamModel:
    """A model behind a function that sends Chat Completions requests.

    The function gets the body's messages, tools, choice and settings as an object; `model` is in it if it is given
    here, the stream flag is not. What it raises becomes a `ModelError` with the original as its cause.
    """

    def __init__(
        self,
        raw: RawStream,
        *,
        model: str = "",
        profile: Profile | None = None,
        info: ModelInfo | None = None,
    ) -> None:
        self._raw = raw
        profile = profile or PROFILES["generic"]
        self.info = info or ModelInfo(provider=profile.name, id=model or "raw_stream")
        self._profile = for_model(replace(profile, name=self.info.provider, stream_options=False), self.info)
        self._encoder = ChatEncoder(model, self._profile, self.info)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply, as the function yields it. Raises only `ModelError`."""
        decoder = ChatDecoder(self._profile, origin=self.info.origin, tools=request.tools)
        chunks = await self._open(request)
        try:
            while not decoder.done:
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    break
                except ModelError:
                    raise
                except Exception as error:
                    raise self._translated(error) from error
                for delta in decoder.feed_object(chunk):
                    yield delta
        finally:
            if isinstance(chunks, AsyncGenerator):
                with suppress(Exception):  # its farewell changes nothing of what it said
                    await chunks.aclose()
        for delta in decoder.finish():
            yield delta

    async def _open(self, request: ModelRequest) -> AsyncIterator[RawChunk]:
        try:
            body: dict[str, Any] = msgspec.json.decode(self._encoder.encode(request))
        except UsageError as error:
            raise Rejected(str(error), provider=self.info.provider) from error
        body.pop("stream", None)
        if request.on_payload:
            body = await seen_payload(body, request.on_payload)
        try:
            opened = self._raw(cast("ChatRequest", body), request.cancel)
            return aiter(await opened if inspect.isawaitable(opened) else opened)
        except ModelError:
            raise
        except Exception as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> ModelError:
        """A lost connection may come back; whatever else an application raises is its own affair."""
        kind = Dropped if isinstance(error, OSError) else ModelError
        text = str(error) or type(error).__name__
        return kind(f"the raw stream of {self.info.provider!r} failed: {text}", provider=self.info.provider)
