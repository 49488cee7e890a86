"""Plays the proxy scenarios with `ProxyModel` and a server of our protocol that does what the recorded one did."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any

from antiphon import (
    Agent,
    AssistantMessage,
    CancelToken,
    Event,
    Hooks,
    ModelInfo,
    Recovery,
    RunError,
    Stop,
    Tool,
    aclose,
)
from antiphon.providers.proxy import ProxyModel

from .projection import Projection
from .proxy_wire import chunks_in_ours
from .stage import Stage
from .words import Json, message_out, messages_in, model_in, settings_in

__all__ = ["play_proxy"]

ONCE = Recovery(retries=0, length_retries=0, empty_retries=0, on_length="keep", on_empty="keep", first_token=None)


def play_proxy(given: Json) -> Json:
    """What the client makes of the server, in the shape of `observed`. These have a real clock, and real bytes."""
    return ProxyPlayer(given).run()


class ProxyPlayer:
    """One scenario: a server, and a client of it. `failure` is what ended the reply, if anything did."""

    def __init__(self, given: Json) -> None:
        self.given = given
        self.request: Json | None = None
        self.cancel = CancelToken()
        self.info: ModelInfo = model_in(given.get("model"))
        self.projection = Projection(Stage(), self.info, [])
        self.events: list[Json] = []
        self.failure: BaseException | None = None
        self._seen = 0
        self._answers: list[asyncio.Future[None]] = []
        self._blocks: set[tuple[str, int]] = set()

    def run(self) -> Json:
        """The scenario in a loop of its own."""
        return asyncio.run(self.play())

    async def play(self) -> Json:
        if self.given.get("abort_first"):
            self.cancel.cancel()
        async with self._server() as port:
            reply = await self._ask(f"http://127.0.0.1:{port}/api")
            await aclose()
        return {"request": self.request, "iteration": "iteration finished", "events": self.events, "result": reply}

    async def _ask(self, address: str) -> Json:
        given = self.given
        context: Json = given.get("context") or {}
        model = ProxyModel(address, self.info.id, token="secret-token", info=self.info)
        agent = Agent(
            model,
            instructions=context.get("systemPrompt") or "",
            tools=[tool_of(tool) for tool in context.get("tools") or ()],
            settings=settings_in(given.get("options") or {}),
            recovery=ONCE,
            hooks=Hooks(after_model_response=lambda _: Stop()),  # one reply is all
        )
        session_id = (given.get("options") or {}).get("sessionId")
        messages = messages_in(context.get("messages") or ())
        run = agent.run(messages=messages, cancel=self.cancel, session_id=session_id)
        run.subscribe(self._listen)
        try:
            await run
        except RunError as error:
            self.failure = error.__cause__
        replies = [message for message in run.result.new_messages if isinstance(message, AssistantMessage)]
        nothing = AssistantMessage(parts=(), stop_reason="aborted", partial=True)  # stopped before a word came
        reply = message_out(replies[0] if replies else nothing, self.info)
        kind = "error" if reply["stopReason"] in ("error", "aborted") else "done"
        self.events.append({"type": kind, "reason": reply["stopReason"]})
        return reply

    def _listen(self, event: Event) -> None:
        for told in self.projection.told(event):
            if told["type"] == "message_start" and told["message"]["role"] == "assistant":
                self._count({"type": "start"})
            elif told["type"] == "message_update":
                inner = told["assistantMessageEvent"]
                block = (inner["type"], len(told["message"]["content"]))
                if block not in self._blocks:
                    self._blocks.add(block)
                    self._count({"type": inner["type"].replace("_delta", "_start")})
                self._count(inner)

    def _count(self, event: Json) -> None:
        """An event of theirs; the caller may abort after so many."""
        self._seen += 1
        self.events.append(event)
        if self._seen == self.given.get("abort_after_events"):
            self.cancel.cancel()

    # The server

    @asynccontextmanager
    async def _server(self) -> AsyncGenerator[int]:
        """The port at which the server of the scenario is, or at which nobody is any more."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        if self.given["server"] is None:
            server.close()
            await server.wait_closed()
        try:
            yield port
        finally:
            server.close()
            await server.wait_closed()
            if self._answers:
                await asyncio.wait(self._answers)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._answers.append(asyncio.ensure_future(self._answer(reader, writer)))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server: Json = self.given["server"]
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            self.request = await read_request(reader)
            if "chunks" in server:
                await self._stream(server["chunks"], reader, writer)
            else:
                body = str(server.get("body", "")).encode()
                writer.write(head(server["status"], "application/json", f"content-length: {len(body)}") + body)
                await writer.drain()
        writer.close()

    async def _stream(self, chunks: list[str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head(200, "text/event-stream", "transfer-encoding: chunked"))
        for chunk in chunks_in_ours(chunks):
            if chunk == "WAIT":
                await reader.read()  # until the client goes away
                return
            if chunk == "cut":
                writer.transport.abort()
                return
            assert isinstance(chunk, bytes)
            if chunk:
                writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        await writer.drain()


async def read_request(reader: asyncio.StreamReader) -> Json:
    """The request as the recorder wrote it down."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return {
        "method": method,
        "path": path,
        "authorization": headers.get("authorization"),
        "content_type": headers.get("content-type"),
        "body": json.loads(body),
    }


def head(status: int, kind: str, more: str) -> bytes:
    phrase = HTTPStatus(status).phrase
    return f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {kind}\r\nconnection: close\r\n{more}\r\n\r\n".encode()


def tool_of(declared: Json) -> Tool:
    def body(arguments: Any) -> None:
        raise AssertionError(f"nobody calls it: {arguments}")

    return Tool.from_schema(declared["name"], declared.get("description", ""), declared["parameters"], body)
