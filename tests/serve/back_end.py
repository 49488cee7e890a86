"""A real server on this machine for an ASGI app, and a client that speaks HTTP by hand."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn

from antiphon.wire.http import aclose


class Back:
    """Where the app is."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[Back]:
    """The app behind uvicorn, on a port that the system chose."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            try:
                yield Back(listener.getsockname()[1])
            finally:
                with anyio.CancelScope(shield=True):
                    await aclose()
                server.should_exit = True
    finally:
        listener.close()


def post(path: str, body: Any, *, token: str = "t", length: int | None = None) -> bytes:
    """The bytes of a request; `length` may promise another body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: "
    return head.encode() + str(len(data) if length is None else length).encode() + b"\r\n\r\n" + data


@asynccontextmanager
async def raw(back: Back, data: bytes) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection on which these bytes were sent. Leaving the block drops it without a word."""
    reader, writer = await asyncio.open_connection("127.0.0.1", back.port)
    try:
        writer.write(data)
        await writer.drain()
        yield reader, writer
    finally:
        writer.transport.abort()


def body_of(model: str, **more: Any) -> dict[str, Any]:
    """A request that says hello."""
    hello = {"type": "user", "parts": [{"type": "text", "text": "hi"}]}
    return {"version": 1, "model": model, "transcript": {"version": 1, "messages": [hello]}, **more}
