"""The Messages API over HTTP: Anthropic, and every server that speaks its API."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from urllib.parse import urlsplit, urlunsplit

import msgspec

from antiphon.errors import Dropped, Garbled, ModelError, Rejected, Stalled, UsageError
from antiphon.providers.anthropic.decode import AnthropicDecoder
from antiphon.providers.anthropic.encode import AnthropicEncoder
from antiphon.providers.keys import ApiKey, find_key, missing_key
from antiphon.providers.payload import seen_body
from antiphon.types.request import Delta, ModelInfo, ModelRequest
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits, fetch_json, open_stream
from antiphon.wire.sse import SseEvent, SseParser

__all__ = ["Anthropic"]

_HOME = "api.anthropic.com"
_KEYS = ("ANTHROPIC_API_KEY",)
_TOKENS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN")
_TOKEN_PREFIX = "sk-ant-oat"  # noqa: S105 - of a token, none itself
# platform.claude.com/docs/en/api/versioning. This version is the one that other servers know too, and that still has
# temperature; another may be asked for in `headers`.
_VERSION = "2023-06-01"
_WARM_LIMITS = HttpLimits(connect=5.0, total=10.0)


class Anthropic:
    """A model behind `/v1/messages`.

    `base_url` is what the path is added to, with or without `/v1`; a query stays. `api_key` is a key or a function of the
    provider's name; else, at every request, the environment is read: ANTHROPIC_API_KEY, then ANTHROPIC_AUTH_TOKEN and
    ANTHROPIC_OAUTH_TOKEN. A key goes into `x-api-key`; a token (from the latter, one that begins with "sk-ant-oat" or with
    "Bearer ") into `authorization`. `headers` go with every request, those of the request's settings over them.

    `info` tells what is known of the model. Its provider's name is used in errors and in the origin of thoughts, which go
    back only there; for one other than "anthropic" the environment is not read. Raises `UsageError` for an address or a
    model that cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = f"https://{_HOME}",
        api_key: ApiKey = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
        info: ModelInfo | None = None,
    ) -> None:
        if not model:
            raise UsageError("a model needs a name; give the one that the server lists")
        self.info = info or ModelInfo(provider="anthropic", id=model)
        self._url = _endpoint(base_url, "/messages")
        self._models_url = _endpoint(base_url, "/models")
        home = urlsplit(self._url).hostname == _HOME
        self._api_key = api_key
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._limits = limits
        self._encoder = AnthropicEncoder(model, self.info, eager=home)
        self._needs_key = home

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply, as it comes. Leaving early closes the connection at once. Raises only `ModelError`."""
        body = await self._body(request)
        headers = await self._all_headers(request.settings.extra_headers)
        async with open_stream(self._url, body, headers, limits=self._limits, provider=self.info.provider) as response:
            decoder = AnthropicDecoder(self.info.provider, request_id=response.request_id)
            events = _Events(self.info.provider, response.request_id)
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
            for event in events.finish():
                for delta in decoder.feed(event.data, event.event):
                    yield delta
            last = decoder.finish()
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
        headers = {"accept": "text/event-stream", "anthropic-version": _VERSION, **self._headers}
        headers.update((name.lower(), value) for name, value in (extra or {}).items())
        if "x-api-key" in headers or "authorization" in headers:
            return headers
        provider = self.info.provider
        ours = provider == "anthropic"
        key = await find_key(self._api_key, provider, _KEYS if ours else ())
        if key and not key.startswith((_TOKEN_PREFIX, "Bearer ")):
            headers["x-api-key"] = key
        elif token := key or (await find_key(None, provider, _TOKENS) if ours else None):
            headers["authorization"] = f"Bearer {token.removeprefix('Bearer ')}"
        elif self._needs_key:
            raise missing_key(provider, _KEYS)
        return headers


class _Events:
    """The events of a body: a stream of them, or the one of a server that answers with a whole JSON document."""

    __slots__ = ("_begun", "_body", "_parser", "_provider", "_request_id")

    def __init__(self, provider: str, request_id: str | None) -> None:
        self._provider = provider
        self._request_id = request_id
        self._parser = SseParser()
        self._body: list[bytes] | None = None
        self._begun = False

    def feed(self, data: bytes) -> list[SseEvent]:
        if not self._begun:
            self._begin(data)
        if self._body is None:
            return self._parser.feed(data)
        self._body.append(data)
        return []

    def finish(self) -> list[SseEvent]:
        """What is left at the end. An event that the end cut in two is none: the lack of a marker tells of the loss."""
        if self._body is not None:
            return [SseEvent(b"".join(self._body))]
        return [event for event in self._parser.finish() if event.event == "error" or _is_json(event.data)]

    def _begin(self, data: bytes) -> None:
        """The first byte tells more than the content type, which servers get wrong."""
        first = data.lstrip()[:1]
        if not first:
            return
        self._begun = True
        if first in (b"{", b"["):
            self._body = []
        elif first == b"<":
            raise Garbled(
                f"{self._provider!r} answers with a page of HTML; check the base URL",
                recovery="never",
                provider=self._provider,
                request_id=self._request_id,
            )


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _endpoint(base_url: str, path: str) -> str:
    """The address of an endpoint under a base URL, which may name one already, and may have a query."""
    try:
        parts = urlsplit(base_url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"no base URL: {base_url!r}; give one as in 'https://{_HOME}'")
    base = parts.path.rstrip("/").removesuffix("/messages").removesuffix("/v1")
    return urlunsplit(parts._replace(path=f"{base}/v1{path}"))
