"""Chat Completions over HTTP: OpenAI and every server that speaks its older API."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from antiphon.errors import Dropped, Garbled, ModelError, Rejected, Stalled, UsageError
from antiphon.providers.keys import ApiKey, find_key, missing_key
from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.providers.openai_chat.encode import ChatEncoder
from antiphon.providers.openai_chat.profiles import PROFILES, Profile, detect, for_model, is_home
from antiphon.providers.payload import seen_body
from antiphon.types.request import Delta, ModelInfo, ModelRequest
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits, fetch_json, open_stream
from antiphon.wire.sse import SseEvent, SseParser

__all__ = ["OpenAIChat", "chat_model"]

_WARM_LIMITS = HttpLimits(connect=5.0, total=10.0)


class OpenAIChat:
    """A model behind an OpenAI-compatible `/chat/completions`.

    `base_url` is what the path is added to, "https://api.openai.com/v1" if neither it nor a profile is given; a query
    (Azure's `api-version`) stays. `api_key` is a key or a function of the provider's name, else the profile's variables
    in the environment are read, at every request. `profile` says what the server accepts; it is found by the address if
    not given. `headers` go with every request, those of the request's settings over them.

    `info` tells what is known of the model; its provider's name is used in errors and as the origin of opaque data.
    Raises `UsageError` for an address or a model that cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey = None,
        profile: Profile | None = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
        info: ModelInfo | None = None,
    ) -> None:
        if not model:
            raise UsageError("a model needs a name; give the one that the server lists")
        address = base_url or (profile.base_url if profile else PROFILES["openai"].base_url) or ""
        self._url = _endpoint(address, "/chat/completions")
        self._models_url = _endpoint(address, "/models")
        profile = profile or detect(address)
        self.info = info or ModelInfo(provider=profile.name, id=model)
        if self.info.provider != profile.name:
            profile = replace(profile, name=self.info.provider)
        self._profile = for_model(profile, self.info)
        self._api_key = api_key
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._limits = limits
        self._encoder = ChatEncoder(model, self._profile, self.info.origin)
        self._needs_key = is_home(profile, address)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply, as it comes. Leaving early closes the connection at once. Raises only `ModelError`."""
        body = await self._body(request)
        headers = await self._all_headers(request.settings.extra_headers)
        async with open_stream(self._url, body, headers, limits=self._limits, provider=self.info.provider) as response:
            decoder = ChatDecoder(self._profile, origin=self.info.origin, request_id=response.request_id)
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
        headers = {"accept": "text/event-stream", **self._headers}
        headers.update((name.lower(), value) for name, value in (extra or {}).items())
        where = self._profile.key_header
        if where in headers or "authorization" in headers:
            return headers
        key = await find_key(self._api_key, self.info.provider, self._profile.keys)
        if key:
            headers[where] = f"Bearer {key}" if where == "authorization" else key
        elif self._needs_key:
            raise missing_key(self.info.provider, self._profile.keys)
        return headers


def chat_model(model: str, *, provider: str, **options: Any) -> OpenAIChat:
    """A model of one of the known providers. `options` are those of `OpenAIChat`.

    At another address than its own, OpenAI's name stands for any compatible server: what that one accepts is found by the
    address, and the key is OpenAI's.
    """
    profile = PROFILES[provider]
    base_url = options.get("base_url")
    if provider == "openai" and base_url and (found := detect(base_url)) is not profile:
        profile = replace(found, name=provider, keys=profile.keys)
    given: dict[str, Any] = {"profile": profile, **options}
    return OpenAIChat(model, **given)


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
        return [event for event in self._parser.finish() if not _is_cut(event.data)]

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


def _is_cut(data: bytes) -> bool:
    try:
        json.loads(data, strict=False)
    except (ValueError, RecursionError):
        return data.lstrip()[:1] in (b"{", b"[") and data.strip() != b"[DONE]"
    return False


def _endpoint(base_url: str, path: str) -> str:
    """The address of an endpoint under a base URL, which may name one already, and may have a query."""
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"no base URL: {base_url!r}; give one as in 'http://127.0.0.1:8000/v1'")
    base = parts.path.rstrip("/").removesuffix("/chat/completions")
    return urlunsplit(parts._replace(path=base + path))
