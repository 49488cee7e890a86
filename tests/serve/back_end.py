"""A real server on this machine for a proxy app, its client, and one that speaks HTTP by hand."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import uvicorn
from starlette.applications import Starlette

from antiphon.errors import ModelError
from antiphon.providers.proxy import ProxyModel
from antiphon.serve.proxy import fixed_tokens, proxy_app
from antiphon.types.messages import UserMessage
from antiphon.types.request import Delta, Model, ModelInfo, ModelRequest, Prices
from antiphon.wire.http import aclose

INFO = ModelInfo(
    provider="anthropic",
    id="claude-x",
    context_window=1000,
    thinking_levels=("off", "low", "high"),
    prices=Prices(input=1, output=10),
)
HI = ModelRequest(messages=[UserMessage.of("hi")])


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


def app_of(model: Any, **options: Any) -> Starlette:
    return proxy_app({"fast": model}, fixed_tokens("t"), **options)


def client(back: Back, name: str = "fast", **options: Any) -> ProxyModel:
    return ProxyModel(back.url, name, **{"token": "t", **options})


async def deltas_of(model: Model, request: ModelRequest = HI) -> list[Delta]:
    return [delta async for delta in model.stream(request)]


async def failure_of(model: Model, request: ModelRequest = HI) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await deltas_of(model, request)
    return caught.value
