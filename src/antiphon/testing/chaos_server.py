"""A Chat Completions server on this machine that misbehaves byte by byte: client, parser and decoder are under test."""

import json
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from random import Random
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from msgspec import Struct

from antiphon.testing.chaos import MARKER, Chaos, Rolled

__all__ = ["ChaosServer", "Served", "ServedReply", "chaos_server"]

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LOST = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead)
REFUSALS = (
    ("429 Too Many Requests", "retry-after: 0\r\n", b'{"error": {"message": "too many requests"}}'),
    ("500 Internal Server Error", "", b"<html>oops</html>"),
    ("503 Service Unavailable", "", b""),
    ("529 Overloaded", "", b'{"error": {"type": "overloaded_error", "message": "overloaded"}}'),
    ("200 OK", "", b'{"error": {"message": "the server broke", "code": "server_error"}}'),
    ("200 OK", "", b""),
)


class ServedReply(Struct, frozen=True, kw_only=True):
    """What the server answers: text, and calls as (id, name, arguments). They come in pieces of `piece` characters."""

    text: str = ""
    calls: Sequence[tuple[str, str, dict[str, Any]]] = ()
    piece: int = 4

    def events(self) -> list[bytes]:
        """The body of the answer, as the server-sent events of an OpenAI-compatible server."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": piece} for piece in self._pieces(self.text)]
        for index, (call_id, name, arguments) in enumerate(self.calls):
            named = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
            deltas.append({"tool_calls": [named]})
            for piece in self._pieces(json.dumps(arguments)):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if self.calls else "stop"})
        chunks: list[dict[str, Any]] = [{"object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
        chunks.append({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}})
        return [*[b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks], MARKER]

    def _pieces(self, text: str) -> list[str]:
        return [text[at : at + self.piece] for at in range(0, len(text), self.piece)]


class Served(Struct, frozen=True):
    """A request as it came: `path` is what stands before `/chat/completions`."""

    path: str
    body: bytes
    fault: str | None


class ChaosServer:
    """Answers as `answer` says, if `chaos` lets it. A client's base URL is `url`, or `url` and a path of its own, which
    is the key that its faults are rolled under.
    """

    def __init__(self, answer: Callable[[str, dict[str, Any]], ServedReply], chaos: Chaos) -> None:
        self.url = ""
        self.served: list[Served] = []
        self._answer = answer
        self._chaos = chaos

    async def accept(self, stream: SocketStream) -> None:
        """Serve one connection until either side has had enough."""
        async with stream:
            with suppress(*LOST):
                while await self._serve(stream):
                    pass

    async def _serve(self, stream: SocketStream) -> bool:
        """One request; whether the connection can take another."""
        head, body = await read_request(stream)
        path = head.split(" ")[1].partition("/chat/completions")[0]
        rolled = self._chaos.roll(path)
        self.served.append(Served(path, body, rolled.fault))
        if rolled.fault == "status":
            return await refuse(stream, rolled.random)
        if rolled.fault == "drop" and rolled.random.random() < 0.2:  # it hangs up without a word
            return False
        reply = self._answer(path, json.loads(body))
        try:
            await stream.send(HEAD)
            async with aclosing(self._chaos.body(reply.events(), rolled)) as pieces:
                async for piece in pieces:
                    if piece:
                        await stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            await stream.send(b"0\r\n\r\n")
        except ConnectionResetError:
            hang_up(stream, rolled)
            return False
        return True


async def read_request(stream: SocketStream) -> tuple[str, bytes]:
    """Head and body of the next request. Raises one of `LOST` when there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    fields = [line.partition(":") for line in head.decode().lower().split("\r\n")[1:]]
    length = next((int(value) for name, _, value in fields if name == "content-length"), 0)
    while len(body) < length:
        body += await stream.receive()
    return head.decode(), body


async def refuse(stream: SocketStream, random: Random) -> bool:
    status, fields, body = random.choice(REFUSALS)
    await stream.send(f"HTTP/1.1 {status}\r\n{fields}content-length: {len(body)}\r\n\r\n".encode() + body)
    return True


def hang_up(stream: SocketStream, rolled: Rolled) -> None:
    """Close without the farewell of HTTP, and half of the times without that of TCP (RST)."""
    if rolled.random.random() < 0.5:
        raw = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - a socket's, no database's
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@asynccontextmanager
async def chaos_server(
    answer: Callable[[str, dict[str, Any]], ServedReply], chaos: Chaos
) -> AsyncGenerator[ChaosServer, None]:
    """A server for the time of the block, on a free port of 127.0.0.1."""
    server = ChaosServer(answer, chaos)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port: int = listener.extra(SocketAttribute.local_port)  # noqa: S610 - as above
        server.url = f"http://127.0.0.1:{port}"
        group = anyio.create_task_group()
        await group.__aenter__()
        group.start_soon(listener.serve, server.accept)
        try:
            yield server
        finally:  # what the block raises is the block's own, not an error of the group
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)
