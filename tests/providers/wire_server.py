"""A server on this machine that plays answers byte for byte, and keeps what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from antiphon.wire.http import aclose

__all__ = ["HEAD", "STREAMING", "Answer", "Asked", "Server", "chunked", "serving", "whole"]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: req-1\r\n"
STREAMING = HEAD + b"transfer-encoding: chunked\r\n\r\n"


class Asked:
    """A request as the server got it."""

    def __init__(self, head: bytes, body: bytes) -> None:
        line, *fields = head.decode().split("\r\n")
        self.method, self.path, _ = line.split(" ")
        self.headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        self.body = body

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)


Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Plays one answer for every request. `path` is what a base URL has behind the host."""

    def __init__(self, answer: Answer, path: str = "") -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.connections = 0
        self.gone = anyio.Event()  # a client has closed its connection
        self.port = 0
        self._path = path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return self.url + self._path

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.lower().split(b"\r\n")
                length = next((int(line[15:]) for line in lines if line[:15] == b"content-length:"), 0)
                self.asked.append(Asked(head[:-4], await reader.readexactly(length)))
                await self.answer(writer)
                await writer.drain()
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.gone.set()
            writer.close()


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Server]:
    """Let it serve, on a port of its own."""
    listener = await asyncio.start_server(server.accept, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        await aclose()
        listener.close()
        await listener.wait_closed()


def chunked(*pieces: bytes, end: bool = True, head: bytes = HEAD) -> Answer:
    """An answer in HTTP chunks; without an end, the connection is closed in the middle of the body."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head + b"transfer-encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        if end:
            writer.write(b"0\r\n\r\n")
        else:
            writer.close()

    return answer


def whole(body: bytes, *, status: str = "200 OK", kind: str = "application/json", more: str = "") -> Answer:
    """An answer in one piece, with its length."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}\r\n"
        writer.write(head.encode() + body)

    return answer
