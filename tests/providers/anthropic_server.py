"""A server on this machine that plays answers of the Messages API, byte for byte."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from antiphon.providers.anthropic.provider import Anthropic

from . import wire_server
from .wire_server import Answer, Asked, whole

__all__ = ["HEAD", "MODEL", "Answer", "Asked", "Server", "chunked", "serving", "whole"]

MODEL = "claude-sonnet-4-5"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nrequest-id: req_1\r\n"


class Server(wire_server.Server):
    def model(self, model: str = MODEL, **options: Any) -> Anthropic:
        return Anthropic(model, **{"base_url": self.url, "api_key": "key", **options})


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Server]:
    server = Server(answer)
    async with wire_server.serving(server):
        yield server


def chunked(*pieces: bytes, end: bool = True) -> Answer:
    return wire_server.chunked(*pieces, end=end, head=HEAD)
