"""HTTP requests with a streamed answer; the one file that knows the HTTP client (aiohttp, loaded at the first request).

Each event loop has one pool of connections, made at its first request, closed when the loop ends or by `aclose`. There
is no limit on connections, no cookie, no redirect (it would carry keys to another host), no compression (it would hold
tokens back). Whatever fails is a `ModelError`; its text never holds a key.
"""

import asyncio
import atexit
import io
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Self
from urllib.parse import urlsplit

import anyio
import msgspec
from msgspec import Struct

from antiphon.errors import Dropped, Garbled, ModelError, Rejected, Unauthorized
from antiphon.wire._address import Proxy, origin_of, proxy_for
from antiphon.wire._failures import failure_for, lost_before_answer
from antiphon.wire._redact import public_url, without_secrets
from antiphon.wire.status import error_for_status, request_id_in

if TYPE_CHECKING:
    import aiohttp

__all__ = ["DEFAULT_LIMITS", "PROBE_LIMITS", "HttpLimits", "Response", "aclose", "fetch_json", "open_stream"]

_READ_BUFFER = 2**18
_KEEP_ALIVE = 60.0  # seconds that an idle connection is kept: a tool may run between two turns
_LARGE_BODY = 2**20  # the client writes a larger body piece by piece, if it gets it as a file
_ERROR_BODY = 2**16
_ERROR_SECONDS = 5.0
_CLOSE_SECONDS = 2.0
_JSON_BODY = 2**23
_BREAK = re.compile(r"[\r\n\0]")


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Limits in seconds; `None` or 0 for none. Silence within an answer is not limited here.

    `connect` runs until the connection stands (name, TCP, TLS, proxy), `total` until the end of the body. The client
    rounds a limit above 5 s up to a full second of its clock.
    """

    connect: float | None = 10.0
    total: float | None = 600.0


DEFAULT_LIMITS = HttpLimits()
PROBE_LIMITS = HttpLimits(connect=None, total=0.2)
"""For asking whether a local server is there."""


class _Exchange(Struct, frozen=True, kw_only=True):
    """What an error needs to know of the request."""

    pool: "_Pool"
    url: str
    headers: Mapping[str, str]
    provider: str | None

    def fail(self, error: Exception) -> NoReturn:
        """Raise what the client's exception means, or the exception itself if it is no failure of the connection."""
        address = public_url(self.url)
        if isinstance(error, RuntimeError) and self.pool.session.closed:
            raise Dropped(f"{address!r}: the connections were closed meanwhile", provider=self.provider) from error
        known = failure_for(error, address, self.provider)
        if known is None:
            raise error
        # The client's texts spell the whole URL out: they are kept as the cause only if nothing in it is secret.
        raise known from (error if address == self.url else None)


class Response:
    """The head of an answer, and its body as it comes. Good until the block of `open_stream` is left."""

    __slots__ = ("_closed", "_exchange", "_raw", "headers", "request_id", "status")

    def __init__(self, raw: "aiohttp.ClientResponse", exchange: _Exchange) -> None:
        self._raw = raw
        self._exchange = exchange
        self.status: int = raw.status
        self.headers: Mapping[str, str] = raw.headers  # finds a name in any case
        self.request_id: str | None = request_id_in(raw.headers)
        protocol = raw.connection and raw.connection.protocol  # None: the whole body is here already
        self._closed: asyncio.Future[None] | None = None if protocol is None else protocol.closed
        if self._closed is not None:
            self._closed.add_done_callback(self._wake)

    def chunks(self) -> AsyncIterator[bytes]:
        """The body in the pieces in which it arrives, never an empty one. Raises `Dropped` or `Stalled`.

        No generator: an iteration that is left half way leaves nothing behind.
        """
        return _Chunks(self._raw, self._exchange)

    async def read(self, limit: int = _JSON_BODY) -> bytes:
        """The whole body. Raises `Garbled` beyond `limit` bytes, else as `chunks`."""
        body = bytearray()
        async for data in self.chunks():
            body += data
            if len(body) > limit:
                address = public_url(self._exchange.url)
                raise Garbled(
                    f"{address!r} answers with more than {limit} bytes; check the address", status=self.status
                )
        return bytes(body)

    async def finish(self, within: float = 0.25) -> None:
        """The last event was seen: read on to the end of the body, so that the connection can be used again.

        Never raises. After `within` seconds it gives up, and leaving the block closes the connection.
        """
        if self._raw.content.at_eof():
            return  # the usual case, and a scope costs more than a look
        with anyio.move_on_after(within), suppress(ModelError):
            async for _ in self.chunks():
                pass

    def close(self) -> None:
        """Give the connection back if the body was read to its end, else close it at once, whatever is on its way."""
        if self._closed is not None:
            self._closed.remove_done_callback(self._wake)
            self._closed.remove_done_callback(_look_at)
            self._closed.add_done_callback(_look_at)
        connection = self._raw.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()  # not `close`: that would wait for the peer's part of the TLS farewell
        self._raw.close()

    def _wake(self, closed: "asyncio.Future[None]") -> None:
        """The connection is gone: a reader must learn it, also where the client forgets to tell (a broken chunk)."""
        import aiohttp

        _look_at(closed)
        content = self._raw.content
        if not content.is_eof() and content.exception() is None:
            content.set_exception(aiohttp.ClientPayloadError("the connection was lost"))


class _Chunks:
    """Iterates over a body without a generator."""

    __slots__ = ("_exchange", "_read")

    def __init__(self, raw: "aiohttp.ClientResponse", exchange: _Exchange) -> None:
        self._exchange = exchange
        self._read = raw.content.readany

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await self._read()
        except Exception as error:  # noqa: BLE001 - the client's classes are not loaded here; a table knows them
            self._exchange.fail(error)
        if not data:
            raise StopAsyncIteration
        return data


@asynccontextmanager
async def open_stream(
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "POST",
    limits: HttpLimits = DEFAULT_LIMITS,
    provider: str | None = None,
) -> AsyncGenerator[Response, None]:
    """Send `body` (JSON, unless `headers` say otherwise) and give the answer once its head is there.

    Leaving the block early closes the connection at once. `provider` is named in errors. Raises `Unreachable`,
    `Dropped` or `Stalled` for the connection, and for an answer other than 2xx what `error_for_status` makes of it.
    """
    exchange = _Exchange(pool=await _pool(), url=url, headers=headers or {}, provider=provider)
    response = Response(await _send(exchange, method, body, limits), exchange)
    try:
        if not 200 <= response.status < 300:
            said = without_secrets(await _error_body(response), exchange.headers, url)
            raise error_for_status(response.status, response.headers, said, provider)
        yield response
    finally:
        response.close()


async def fetch_json(
    url: str,
    headers: Mapping[str, str] | None = None,
    *,
    limits: HttpLimits = PROBE_LIMITS,
    provider: str | None = None,
) -> Any:
    """GET a JSON value, by default within 0.2 s. Raises as `open_stream`, and `Garbled` for what is not JSON."""
    async with open_stream(url, None, headers, method="GET", limits=limits, provider=provider) as response:
        body = await response.read()
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Garbled(f"{public_url(url)!r} does not answer with JSON; check the address", provider=provider) from error


async def aclose() -> None:
    """Close the connections of the running loop. May be called at any time; a later request opens new ones."""
    if pool := _pools.pop(asyncio.get_running_loop(), None):
        await pool.guard.aclose()


async def _send(exchange: _Exchange, method: str, body: bytes | None, limits: HttpLimits) -> "aiohttp.ClientResponse":
    import aiohttp

    origin = origin_of(exchange.url)
    headers = _checked_headers(exchange, body)
    proxy_headers: dict[str, str] | None = None
    proxy = exchange.pool.proxy(origin)
    if proxy and proxy.authorization:
        # A tunnel's proxy reads the CONNECT request; without a tunnel it reads the request itself.
        target = headers if origin.startswith("http:") else (proxy_headers := {})
        target["proxy-authorization"] = proxy.authorization
    timeout = aiohttp.ClientTimeout(total=limits.total or None, connect=limits.connect or None)
    fresh = origin not in exchange.pool.answered
    while True:
        try:
            raw = await exchange.pool.session.request(
                method,
                exchange.url,
                data=io.BytesIO(body) if body and len(body) > _LARGE_BODY else body,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=proxy.url if proxy else None,
                proxy_headers=proxy_headers,
            )
        except Exception as error:  # noqa: BLE001 - as above: the table knows them
            if fresh or not lost_before_answer(error):
                exchange.fail(error)
            # A kept connection may have been closed by the server in the moment it was taken again (RFC 9112, 9.6).
            fresh = True
        else:
            exchange.pool.answered.add(origin)
            return raw


def _checked_headers(exchange: _Exchange, body: bytes | None) -> dict[str, str]:
    headers = {name.lower(): value for name, value in exchange.headers.items()}
    for name, value in headers.items():
        if _BREAK.search(value):
            raise Rejected(
                f"the value of the header {name!r} holds a line break; remove it", provider=exchange.provider
            )
    if "authorization" in headers and "@" in urlsplit(exchange.url).netloc:
        raise Unauthorized(
            "the URL holds a user and there is an 'authorization' header too; give one of them",
            provider=exchange.provider,
        )
    if body is not None:
        headers.setdefault("content-type", "application/json")
    return headers


async def _error_body(response: Response) -> bytes:
    """What comes of it soon, up to a limit: the status is known, the words are a gift."""
    body = bytearray()
    with anyio.move_on_after(_ERROR_SECONDS), suppress(ModelError):
        async for data in response.chunks():
            body += data
            if len(body) >= _ERROR_BODY:
                break
    return bytes(body[:_ERROR_BODY])


class _Pool:
    """The connections of one loop. Made in that loop."""

    __slots__ = ("_proxies", "answered", "guard", "session")

    def __init__(self) -> None:
        import aiohttp

        # The client's own environment handling (`trust_env`) costs two hops to a thread per request, and fails where
        # a netrc entry meets an authorization header: `proxy` below reads the environment instead. HTTPS takes the
        # client's default TLS context, which the whole process shares.
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"accept-encoding": "identity", "user-agent": "antiphon"},
            read_bufsize=_READ_BUFFER,
        )
        self.guard = self._close_at_end()
        self._proxies: dict[str, Proxy | None] = {}
        self.answered: set[str] = set()  # origins to which a connection may have been kept

    def proxy(self, origin: str) -> Proxy | None:
        """The environment's proxy for an origin, asked once."""
        if origin not in self._proxies:
            self._proxies[origin] = proxy_for(origin)
        return self._proxies[origin]

    async def _close_at_end(self) -> AsyncGenerator[None, None]:
        """Sleeps until it is closed, then closes the connections.

        A loop that ends closes its generators (`loop.shutdown_asyncgens`): that is the one hook that `asyncio.run`,
        `asyncio.Runner` and other loops have in common.
        """
        loop = asyncio.get_running_loop()
        try:
            yield
        finally:
            if _pools.get(loop) is self:
                del _pools[loop]
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self.session.close()
            self.session.detach()  # nothing if it is closed; else silences a session whose sockets would not close


# Connections belong to a loop, so the pools are found by it. Not weak: a pool refers to its loop, so no entry would go.
# Loops in many threads share it: each step on it is a single one.
_pools: dict[asyncio.AbstractEventLoop, _Pool] = {}


async def _pool() -> _Pool:
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None:
        pool = _Pool()
        for known in list(_pools):
            if known.is_closed() and (left_over := _pools.pop(known, None)):
                _close_left_over(known, left_over)
        _pools[loop] = pool
        await anext(pool.guard)  # returns without waiting; from here on the loop knows the generator
    return pool


def _close_left_over(loop: asyncio.AbstractEventLoop, pool: _Pool) -> None:
    """Close the pool of a loop that was closed without its generators, or never closed (a notebook's)."""
    if loop.is_closed():
        closing = pool.session.close()
        with suppress(StopIteration):
            closing.send(None)  # on a closed loop there is nothing to wait for
        closing.close()
    elif not loop.is_running():
        loop.run_until_complete(pool.guard.aclose())


@atexit.register
def _close_at_exit() -> None:
    while _pools:
        _close_left_over(*_pools.popitem())


def _look_at(closed: "asyncio.Future[None]") -> None:
    """A failed future that nobody looked at would be logged."""
    if not closed.cancelled():
        closed.exception()
