"""Google's Gemini API over HTTP."""

from collections.abc import AsyncIterator, Mapping
from typing import Self
from urllib.parse import quote, urlsplit

import anyio

from antiphon.errors import UsageError
from antiphon.providers.framing import endpoint
from antiphon.providers.gemini.decode import GeminiDecoder
from antiphon.providers.gemini.encode import GeminiEncoder
from antiphon.providers.history import ForeignThinking
from antiphon.providers.http_model import Address, Decoder, HttpModel
from antiphon.providers.keys import ApiKey
from antiphon.types.request import ModelInfo, ModelRequest
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits, Response

__all__ = ["Gemini"]

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_REST_SECONDS = 1.0  # a `finishReason` is not always in the last chunk, and some proxies never close
_BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_KEY_HEADER = "x-goog-api-key"  # ai.google.dev/gemini-api/docs/api-key; ai.google.dev/api, "Authentication"


class Gemini(HttpModel):
    """A model behind `models/{model}:streamGenerateContent`.

    `model` is a name as in "gemini-2.5-flash", or a path as in "tunedModels/mine". `base_url` is what the path is added
    to, "https://generativelanguage.googleapis.com/v1beta" if not given. `api_key` is a key or a function of the
    provider's name, else GEMINI_API_KEY or GOOGLE_API_KEY in the environment is read, at every request. `headers` go with
    every request, those of the request's settings over them; an `authorization` among them takes the place of the key.

    `info` tells what is known of the model; its provider's name is used in errors and as the origin of signatures.
    `foreign_thinking` says what the model sees of other models' thoughts: nothing, or their text. Raises `UsageError` for an address or a model that cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
        info: ModelInfo | None = None,
        foreign_thinking: ForeignThinking = "omit",
    ) -> None:
        name = model.removeprefix("models/")
        if not name:
            raise UsageError("a model needs a name; give one as in 'gemini-2.5-flash'")
        base = base_url or _BASE_URL
        path = quote(name if "/" in name else f"models/{name}", safe="/@:")
        info = info or ModelInfo(provider="gemini", id=name)
        address = Address(
            url=endpoint(base, f"/{path}:streamGenerateContent", query="alt=sse", example=_BASE_URL),
            models_url=endpoint(base, "/models", example=_BASE_URL),
            key_header=_KEY_HEADER,
            key_names=_KEYS,
            needs_key=urlsplit(base).hostname not in _HERE,
        )
        encoder = GeminiEncoder(name, info, foreign_thinking=foreign_thinking)
        super().__init__(address, info, encoder, api_key=api_key, headers=headers, limits=limits)

    schema_mode = True

    def _decoder(self, request: ModelRequest, request_id: str | None) -> GeminiDecoder:  # noqa: ARG002 - the reply tells all
        return GeminiDecoder(self.info.provider, origin=self.info.origin, request_id=request_id)

    def _chunks(self, response: Response, decoder: Decoder) -> AsyncIterator[bytes]:
        return _Rest(response.chunks(), decoder)


class _Rest:
    """The pieces of a body. Once the reply is whole, the rest of it is waited for no longer than a moment."""

    __slots__ = ("_chunks", "_decoder")

    def __init__(self, chunks: AsyncIterator[bytes], decoder: Decoder) -> None:
        self._chunks = chunks
        self._decoder = decoder

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if not self._decoder.terminal:
            return await anext(self._chunks)
        with anyio.move_on_after(_REST_SECONDS):
            return await anext(self._chunks)
        raise StopAsyncIteration
