"""A model behind an HTTP endpoint that streams events: what all formats have in common."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Protocol

from msgspec import Struct

from antiphon.errors import Dropped, ModelError, Rejected, Stalled, UsageError
from antiphon.providers.dialects import Schemas
from antiphon.providers.framing import Events
from antiphon.providers.keys import ApiKey, find_key, missing_key
from antiphon.providers.payload import seen_body
from antiphon.providers.prefix_watch import PrefixReport, PrefixWatch
from antiphon.types.request import Delta, ModelInfo, ModelRequest, ToolSpec, WarningChunk
from antiphon.wire.http import HttpLimits, Response, fetch_json, open_stream

__all__ = ["Address", "Decoder", "Encoder", "HttpModel"]

_WARM_LIMITS = HttpLimits(connect=5.0, total=10.0)


class Decoder(Protocol):
    """One reply. `terminal`: it is whole. `done`: nothing that matters will follow."""

    @property
    def terminal(self) -> bool: ...
    @property
    def done(self) -> bool: ...
    def feed(self, payload: bytes, event: str = "message", /) -> list[Delta]: ...
    def finish(self) -> list[Delta]: ...


class Encoder(Protocol):
    """Makes bodies of requests, and says once what a body cannot say of its request."""

    @property
    def watch(self) -> PrefixWatch: ...
    @property
    def schemas(self) -> Schemas: ...
    def encode(self, request: ModelRequest, /) -> bytes: ...
    def remarks(self, request: ModelRequest, /) -> Sequence[WarningChunk]: ...


class Address(Struct, frozen=True, kw_only=True):
    """Where a model is, and how one is let in.

    `key_names` are the environment variables that may hold the key, `key_header` where it goes (`authorization` as a
    bearer token, another header as it is). `needs_key`: no request is answered without one.
    """

    url: str
    models_url: str
    key_header: str = "authorization"
    key_names: tuple[str, ...] = ()
    needs_key: bool = False


class HttpModel(ABC):
    """A model behind an address. What goes out and what comes back is its `Encoder`'s and its `Decoder`'s affair.

    `schema_mode` says whether a request's `response_schema` is kept to: a typed answer can then be the reply's text.
    """

    schema_mode: bool = False
    _standing_headers: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        address: Address,
        info: ModelInfo,
        encoder: Encoder,
        *,
        api_key: ApiKey,
        headers: Mapping[str, str] | None,
        limits: HttpLimits,
    ) -> None:
        self.info = info
        self._address = address
        self._url = address.url
        self._encoder = encoder
        self._api_key = api_key
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._limits = limits

    @property
    def prefix_report(self) -> PrefixReport:
        """How often a request did not begin with the messages of the one before it: what a server's cache lost."""
        return self._encoder.watch.report

    def schema_notes(self, *tools: ToolSpec) -> dict[str, tuple[str, ...]]:
        """What this server cannot be told of the tools' schemas, by tool: places, and what became of them there.

        The arguments of every call are checked against the original all the same.
        """
        return self._encoder.schemas.notes(tools)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply, as it comes. Leaving early closes the connection at once. Raises only `ModelError`."""
        body = await self._body(request)
        headers = await self._all_headers(request.settings.extra_headers)
        provider = self.info.provider
        async with open_stream(self._url, body, headers, limits=self._limits, provider=provider) as response:
            for remark in self._encoder.remarks(request):
                yield remark
            decoder = self._decoder(request, response.request_id)
            events = Events(provider, response.request_id)
            try:
                async for data in self._chunks(response, decoder):
                    for event in events.feed(data):
                        for delta in decoder.feed(event.data, event.event):
                            yield delta
                    if decoder.done:
                        break
            except (Dropped, Stalled):
                if not decoder.terminal:  # else the reply is whole, and only its envelope is torn
                    raise
            last = [delta for event in events.finish() for delta in decoder.feed(event.data, event.event)]
            last += decoder.finish()
            await response.finish()
            for delta in last:
                yield delta

    async def warm(self) -> None:
        """Open a connection ahead of the first request, by asking for the list of models. Never raises."""
        with suppress(ModelError):
            await fetch_json(self._address.models_url, await self._all_headers(None), limits=_WARM_LIMITS)

    async def aclose(self) -> None:  # noqa: B027 - a model has it, and here there is nothing to do
        """Nothing to do: connections belong to the event loop, which all models in it share."""

    @abstractmethod
    def _decoder(self, request: ModelRequest, request_id: str | None) -> Decoder:
        """What reads the reply to this request."""

    def _chunks(self, response: Response, decoder: Decoder) -> AsyncIterator[bytes]:  # noqa: ARG002 - for those who need it
        """The pieces of the body."""
        return response.chunks()

    async def _body(self, request: ModelRequest) -> bytes:
        try:
            return await seen_body(self._encoder.encode(request), request.on_payload)
        except UsageError as error:
            raise Rejected(str(error), provider=self.info.provider) from error

    async def _all_headers(self, extra: Mapping[str, str] | None) -> dict[str, str]:
        headers = {"accept": "text/event-stream", **self._standing_headers, **self._headers}
        headers.update((name.lower(), value) for name, value in (extra or {}).items())
        if self._address.key_header not in headers and "authorization" not in headers:
            await self._add_key(headers)
        return headers

    async def _add_key(self, headers: dict[str, str]) -> None:
        """Put the key where it belongs. Raises `Unauthorized` when there must be one and there is none."""
        address = self._address
        key = await find_key(self._api_key, self.info.provider, address.key_names)
        if key:
            headers[address.key_header] = f"Bearer {key}" if address.key_header == "authorization" else key
        elif address.needs_key:
            raise missing_key(self.info.provider, address.key_names)
