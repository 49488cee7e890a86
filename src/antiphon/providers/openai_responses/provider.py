"""OpenAI's Responses API over HTTP."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from antiphon.errors import Dropped, ModelError, Rejected, Stalled, UsageError
from antiphon.providers.keys import ApiKey, find_key, missing_key
from antiphon.providers.openai_responses._framing import Events, endpoint
from antiphon.providers.openai_responses.decode import ResponsesDecoder
from antiphon.providers.openai_responses.encode import ResponsesEncoder, left_out
from antiphon.providers.payload import seen_body
from antiphon.types.request import Delta, ModelInfo, ModelRequest, WarningChunk
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits, fetch_json, open_stream

__all__ = ["OpenAIResponses", "responses_model"]

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_WARM_LIMITS = HttpLimits(connect=5.0, total=10.0)
_BASE_URL = "https://api.openai.com/v1"


class _Server(Struct, frozen=True, kw_only=True):
    """Who is asked: where it is, where a key is found and goes, and whether prompts can be kept for a day."""

    name: str
    base_url: str | None = None
    hosts: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    key_header: str = "authorization"
    long_cache: bool = False


_SERVERS = (
    # platform.openai.com/docs/api-reference/authentication; docs/guides/prompt-caching, "Prompt cache retention".
    _Server(
        name="openai",
        base_url=_BASE_URL,
        hosts=("api.openai.com",),
        keys=("OPENAI_API_KEY",),
        long_cache=True,
    ),
    # learn.microsoft.com/azure/ai-foundry/openai/how-to/responses: the key in a header of its own.
    _Server(
        name="azure",
        hosts=(".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"),
        keys=("AZURE_OPENAI_API_KEY",),
        key_header="api-key",
    ),
    # openrouter.ai/docs/api-reference/responses-api
    _Server(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        hosts=("openrouter.ai",),
        keys=("OPENROUTER_API_KEY",),
    ),
    # docs.x.ai/docs/api-reference, "Create new response"
    _Server(name="xai", base_url="https://api.x.ai/v1", hosts=("api.x.ai",), keys=("XAI_API_KEY",)),
)
_ANY = _Server(name="generic")


class OpenAIResponses:
    """A model behind `/responses`.

    `base_url` is what the path is added to, "https://api.openai.com/v1" if not given; a query (Azure's `api-version`)
    stays. `api_key` is a key or a function of the provider's name, else the server's variable in the environment is read,
    at every request. `headers` go with every request, those of the request's settings over them.

    `info` tells what is known of the model; its provider's name is used in errors and as the origin of what must go back
    to the server. Raises `UsageError` for an address or a model that cannot be one.
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
        if not model:
            raise UsageError("a model needs a name; give the one that the server lists")
        address = base_url or _BASE_URL
        self._url = endpoint(address, "/responses", suffix="/responses")
        self._models_url = endpoint(address, "/models", suffix="/responses")
        host = (urlsplit(address).hostname or "").lower()
        self._server = next((row for row in _SERVERS if _is_at(row, host)), _ANY)
        self.info = info or ModelInfo(provider=self._server.name, id=model)
        self._api_key = api_key
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._limits = limits
        self._encoder = ResponsesEncoder(model, self.info, long_cache=self._server.long_cache)
        self._needs_key = bool(self._server.keys) and host not in _HERE

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply, as it comes. Leaving early closes the connection at once. Raises only `ModelError`."""
        body = await self._body(request)
        headers = await self._all_headers(request.settings.extra_headers)
        provider = self.info.provider
        async with open_stream(self._url, body, headers, limits=self._limits, provider=provider) as response:
            for name in left_out(request.settings):
                yield WarningChunk("setting_left_out", f"the Responses API has no {name!r}; it was left out")
            decoder = ResponsesDecoder(provider, origin=self.info.origin, request_id=response.request_id)
            events = Events(provider, response.request_id)
            try:
                async for data in response.chunks():
                    for event in events.feed(data):
                        for delta in decoder.feed(event.data, event.event):
                            yield delta
                    if decoder.done:
                        break
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
        where = self._server.key_header
        if where in headers or "authorization" in headers:
            return headers
        key = await find_key(self._api_key, self.info.provider, self._server.keys)
        if key:
            headers[where] = f"Bearer {key}" if where == "authorization" else key
        elif self._needs_key:
            raise missing_key(self.info.provider, self._server.keys)
        return headers


def responses_model(model: str, *, provider: str = "openai", **options: Any) -> OpenAIResponses:
    """A model of one of the known providers (openai, azure, openrouter, xai). `options` are those of `OpenAIResponses`.

    At another address than its own, the provider's name stands for a server in its place: the key is the provider's.
    Raises `UsageError` for a provider that is not known, and for one whose address is missing.
    """
    server = next((row for row in _SERVERS if row.name == provider), None)
    if server is None:
        names = ", ".join([row.name for row in _SERVERS])
        raise UsageError(f"no server with the Responses API is named {provider!r}; known: {names}")
    if not options.get("base_url") and server.base_url is None:
        raise UsageError(f"{provider!r} needs the address of your deployment; pass base_url=")
    given: dict[str, Any] = {"base_url": server.base_url, "info": ModelInfo(provider=provider, id=model), **options}
    given["base_url"] = given["base_url"] or server.base_url
    if given.get("api_key") is None:

        async def from_environment(_: str) -> str | None:
            return await find_key(None, provider, server.keys)

        given["api_key"] = from_environment
    return OpenAIResponses(model, **given)


def _last(events: Events, decoder: ResponsesDecoder) -> list[Delta]:
    """The stream has ended: what is left of it."""
    deltas = [delta for event in events.finish() for delta in decoder.feed(event.data, event.event)]
    return deltas + decoder.finish()


def _is_at(server: _Server, host: str) -> bool:
    return any(host == ending.lstrip(".") or host.endswith("." + ending.lstrip(".")) for ending in server.hosts)
