"""A model behind the application's own back end, which holds the keys. What they say to each other: `proxy_wire`."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from antiphon.errors import Dropped, Garbled, Rejected, UsageError
from antiphon.providers.keys import ApiKey, find_key
from antiphon.providers.payload import seen_body
from antiphon.providers.proxy_wire import decode_event, encode_request
from antiphon.types.request import Delta, FinishChunk, ModelInfo, ModelRequest
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits, Response, fetch_json, open_stream
from antiphon.wire.sse import SseEvent, SseParser

__all__ = ["ProxyModel"]

_CALLED = "proxy"
_ASK_LIMITS = HttpLimits(connect=10.0, total=30.0)
_NO_END = "the back end's reply ended without its last event: the connection was lost, or the back end died; ask again"


class ProxyModel:
    """The model that a back end knows as `model`.

    `base_url` is where the back end's proxy app is mounted; a query stays. `token` is the application's own token, or a
    function that gives one, asked for every request; it goes out as a bearer token. `headers` go with every request.
    Everything that a request has reaches the model, but for `settings.extra_headers` and `extra_body` if the back end does
    not take them; then it says so.

    `info` tells what is known of the model, its prices and window for instance; `await ProxyModel.connect(…)` asks the
    back end for it. Raises `UsageError` for an address that cannot be one.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        token: ApiKey = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
        info: ModelInfo | None = None,
    ) -> None:
        if not model:
            raise UsageError("a model needs a name; give one that the back end knows")
        self.info = info or ModelInfo(provider=_CALLED, id=model)
        self._model = model
        self._url = _endpoint(base_url, "/stream")
        self._token = token
        self._headers = {name.lower(): value for name, value in (headers or {}).items()}
        self._limits = limits

    @classmethod
    async def connect(
        cls,
        base_url: str,
        model: str,
        *,
        token: ApiKey = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
    ) -> "ProxyModel":
        """The model with what the back end knows of it.

        Raises `Rejected` when the back end does not have it for this token, and whatever a connection may fail with.
        """
        made = cls(base_url, model, token=token, headers=headers, limits=limits)
        listed: Any = await fetch_json(
            _endpoint(base_url, "/models"), await made._all_headers(), limits=_ASK_LIMITS, provider=_CALLED
        )
        try:
            models = msgspec.convert(listed, dict[str, dict[str, ModelInfo | None]])["models"]
        except (msgspec.ValidationError, KeyError) as error:
            raise Garbled(
                "the back end's list of models cannot be read; check its address", provider=_CALLED
            ) from error
        if model not in models:
            known = ", ".join(sorted(models)) or "none"
            raise Rejected(
                f"the back end has no model named {model!r} for this token; it has: {known}", provider=_CALLED
            )
        return cls(base_url, model, token=token, headers=headers, limits=limits, info=models[model])

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply, as it comes. Leaving early closes the connection at once. Raises only `ModelError`."""
        body = await self._body(request)
        headers = await self._all_headers()
        async with open_stream(self._url, body, headers, limits=self._limits, provider=self.info.provider) as response:
            _check_kind(response, self.info.provider)
            parser, last, lost = SseParser(), None, None
            try:
                async for data in response.chunks():
                    for delta in _deltas(parser.feed(data)):
                        if type(delta) is FinishChunk:
                            last = delta
                            break
                        yield delta
                    if last is not None:
                        break
            except Dropped as error:
                lost = error
            if last is None:  # perhaps the end came, only its line did not
                last = _end_in(parser.finish())
            if last is None:
                raise lost or Dropped(_NO_END, provider=self.info.provider, request_id=response.request_id)
            await response.finish()
            yield last

    async def aclose(self) -> None:
        """Nothing to do: connections belong to the event loop, which all models in it share."""

    async def _body(self, request: ModelRequest) -> bytes:
        try:
            return await seen_body(encode_request(self._model, self.info.origin, request), request.on_payload)
        except UsageError as error:
            raise Rejected(str(error), provider=self.info.provider) from error

    async def _all_headers(self) -> dict[str, str]:
        headers = {"accept": "text/event-stream", **self._headers}
        token = await find_key(self._token, _CALLED, ())
        if token:
            headers["authorization"] = f"Bearer {token}"
        return headers


def _deltas(events: Sequence[SseEvent]) -> Iterator[Delta]:
    for event in events:
        yield decode_event(event.data)


def _end_in(left: Sequence[SseEvent]) -> FinishChunk | None:
    """The last event, if it is whole: its line's end may be missing. Raises the error that it may be instead."""
    for event in left:
        if _is_json(event.data):
            delta = decode_event(event.data)
            if isinstance(delta, FinishChunk):
                return delta
    return None


def _is_json(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _check_kind(response: Response, provider: str) -> None:
    """Anything else is no proxy: a page of the application, say, where the address is wrong."""
    kind = response.headers.get("content-type", "")
    if not kind.startswith("text/event-stream"):
        raise Garbled(
            f"the back end answers with {kind!r}, not with events; check its address",
            recovery="never",
            provider=provider,
            request_id=response.request_id,
        )


def _endpoint(base_url: str, path: str) -> str:
    """The address of `path` under the back end's, whose query stays."""
    try:
        parts = urlsplit(base_url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"no address of a back end: {base_url!r}; give one as in 'https://example.com/api/models'")
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))
