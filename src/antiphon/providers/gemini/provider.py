"""Google's Gemini API over HTTP."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import suppress
from urllib.parse import quote, urlsplit

import anyio

from antiphon.errors import Dropped, ModelError, Rejected, Stalled, UsageError
from antiphon.providers.gemini._framing import Events, endpoint
from antiphon.providers.gemini.decode import GeminiDecoder
from antiphon.providers.gemini.encode import GeminiEncoder, left_out
from antiphon.providers.keys import ApiKey, find_key, missing_key
from antiphon.providers.payload import seen_body
from antiphon.types.request import Delta, ModelInfo, ModelRequest, WarningChunk
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits, fetch_json, open_stream

__all__ = ["Gemini"]

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_WARM_LIMITS = HttpLimits(connect=5.0, total=10.0)
_REST_SECONDS = 1.0  # a `finishReason` is not always in the last chunk, and some proxies never close
_BASE_URL = "https://generativelanguage.googleapis.com/v1beta"
_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
_KEY_HEADER = "x-goog-api-key"  # ai.google.dev/gemini-api/docs/api-key; ai.google.dev/api, "Authentication"


class Gemini:
    """A model behind `models/{model}:streamGenerateContent`.

    `model` is a name as in "gemini-2.5-flash", or a path as in "tunedModels/mine". `base_url` is what the path is added
    to, "https://generativelanguage.googleapis.com/v1beta" if not given. `api_key` is a key or a function of the
    provider's name, else GEMINI_API_KEY or GOOGLE_API_KEY in the environment is read, at every request. `headers` go with
    every request, those of the request's settings over them; an `authorization` among them takes the place of the key.

    `info` tells what is known of the model; its provider's name is used in errors and as the origin of signatures. Raises
    `UsageError` for an address or a model that cannot be one.
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
    ) -> None:
        name = model.removeprefix("models/")
        if not name:
            raise UsageError("a model needs a name; give one as in 'gemini-2.5-flash'")
        address = base_url or _BASE_URL
        path = quote(name if "/" in name else f"models/{name}", safe="/@:")
        self._url = endpoint(address, f"/{path}:streamGenerateContent", "alt=sse")
        self._models_url = endpoint(address, "/models")
        self.info = info or ModelInfo(provider="gemini", id=name)
        self._api_key = api_key
        self._headers = {key.lower(): value for key, value in (headers or {}).items()}
        self._limits = limits
        self._encoder = GeminiEncoder(name, self.info)
        self._needs_key = urlsplit(address).hostname not in _HERE

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply, as it comes. Leaving early closes the connection at once. Raises only `ModelError`."""
        body = await self._body(request)
        headers = await self._all_headers(request.settings.extra_headers)
        provider = self.info.provider
        async with open_stream(self._url, body, headers, limits=self._limits, provider=provider) as response:
            for name in left_out(request.settings):
                yield WarningChunk("setting_left_out", f"the Gemini API has no {name!r}; it was left out")
            decoder = GeminiDecoder(provider, origin=self.info.origin, request_id=response.request_id)
            events = Events(provider, response.request_id)
            try:
                chunks = response.chunks()
                while (data := await _next(chunks, ending=decoder.terminal)) is not None:
                    for event in events.feed(data):
                        for delta in decoder.feed(event.data, event.event):
                            yield delta
            except (Dropped, Stalled):
                if not decoder.terminal:  # else the reply is whole, and only its envelope is torn
                    raise
            last = _last(events, decoder)
            await response.finish()
            for delta in last:
                yield delta

    async def warm(self) -> None:
        """Open a connection ahead of the first request, by asking for the list of models. Never raises."""
        with suppress(ModelError):
            await fetch_json(self._models_url, await self._all_headers(None), limits=_WARM_LIMITS)

    async def aclose(self) -> None:
        """Nothing to do: connections belong to the event loop, which all models in it share."""

    async def _body(self, request: ModelRequest) -> bytes:
        try:
            return await seen_body(self._encoder.encode(request), request.on_payload)
        except UsageError as error:
            raise Rejected(str(error), provider=self.info.provider) from error

    async def _all_headers(self, extra: Mapping[str, str] | None) -> dict[str, str]:
        headers = {"accept": "text/event-stream", **self._headers}
        headers.update((name.lower(), value) for name, value in (extra or {}).items())
        if _KEY_HEADER in headers or "authorization" in headers:
            return headers
        key = await find_key(self._api_key, self.info.provider, _KEYS)
        if key:
            headers[_KEY_HEADER] = key
        elif self._needs_key:
            raise missing_key(self.info.provider, _KEYS)
        return headers


async def _next(chunks: AsyncIterator[bytes], *, ending: bool) -> bytes | None:
    """The next piece of the body, `None` at its end; `ending`: the reply is whole, so that the rest is not waited for."""
    if not ending:
        return await anext(chunks, None)
    with anyio.move_on_after(_REST_SECONDS):
        return await anext(chunks, None)
    return None


def _last(events: Events, decoder: GeminiDecoder) -> list[Delta]:
    """The stream has ended: what is left of it."""
    deltas = [delta for event in events.finish() for delta in decoder.feed(event.data, event.event)]
    return deltas + decoder.finish()
