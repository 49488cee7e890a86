"""A server of raw bytes: it can do what no HTTP library would let it do."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

OK_CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n"

CERTIFICATE = Path(__file__).with_name("localhost.pem")


@dataclass
class Seen:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Peer:
    """One accepted connection, from the server's side."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server: "RawServer"

    async def request(self) -> Seen | None:
        """The next request, `None` when the client has closed."""
        try:
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        line, *fields = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (text.partition(": ") for text in fields)}
        seen = Seen(line, headers, await self.reader.readexactly(int(headers.get("content-length", 0))))
        self.server.seen.append(seen)
        return seen

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        await self.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def answer(self, body: bytes, status: str = "200 OK", **headers: str) -> None:
        """A whole answer with its length."""
        fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await self.send(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{fields}\r\n".encode() + body)

    async def until_gone(self) -> None:
        """Returns once the client has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(2**16):
                pass

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@dataclass
class RawServer:
    port: int
    scheme: str = "http"
    accepted: int = 0
    seen: list[Seen] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1/chat"


Handler = Callable[[Peer], Awaitable[None]]
Serve = Callable[..., AbstractAsyncContextManager[RawServer]]


@asynccontextmanager
async def serving(handler: Handler, *, tls: bool = False) -> AsyncIterator[RawServer]:
    """Call `handler` for each connection; close what is left when the block ends. `gone` is set after a handler ended."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if tls else None
    if context:
        context.load_cert_chain(CERTIFICATE)
    server = RawServer(port=0, scheme="https" if tls else "http")
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        server.accepted += 1
        # The end of the block cancels; asyncio of 3.11 would log a connection task that ends cancelled.
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await handler(Peer(reader, writer, server))
            server.gone.set()
        writer.close()
        tasks.discard(task)

    listener = await asyncio.start_server(accept, "127.0.0.1", 0, backlog=512, ssl=context)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks)
        await asyncio.sleep(0)  # the transports' own callbacks


@pytest.fixture
def serve() -> Serve:
    return serving


@pytest.fixture
def ok_chunked() -> bytes:
    """The head of an event stream."""
    return OK_CHUNKED


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the client trust the certificate of `serve(…, tls=True)`."""
    import aiohttp.connector

    context = ssl.create_default_context(cafile=CERTIFICATE)
    monkeypatch.setattr(aiohttp.connector, "_SSL_CONTEXT_VERIFIED", context)
