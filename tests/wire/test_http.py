"""Requests with a streamed answer, against a server of raw bytes in the same loop."""

import gzip
import time
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from antiphon.errors import Garbled, Stalled
from antiphon.wire.http import fetch_json, open_stream

pytestmark = pytest.mark.anyio


async def read(url: str, body: bytes | None = b"{}", **options: Any) -> bytes:
    async with open_stream(url, body, **options) as response:
        return await response.read()


class TestStreaming:
    async def test_a_piece_is_read_before_the_next_is_sent(self, serve, ok_chunked) -> None:
        """A client that waited for more would hold every token back."""
        go_on = anyio.Event()

        async def handler(peer) -> None:
            await peer.request()
            await peer.send(ok_chunked)
            await peer.chunk(b"first")
            await go_on.wait()
            await peer.chunk(b"second")
            await peer.send(b"0\r\n\r\n")

        async with serve(handler) as server, open_stream(server.url, b"{}") as response:
            chunks = response.chunks()
            assert await anext(chunks) == b"first"
            go_on.set()
            assert [chunk async for chunk in chunks] == [b"second"]

    async def test_the_head_is_there_before_the_body(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.send(b"HTTP/1.1 201 Created\r\nX-Request-ID: r1\r\ncontent-length: 5\r\n\r\n")
            await peer.until_gone()

        async with serve(handler) as server, open_stream(server.url, b"{}") as response:
            assert (response.status, response.request_id) == (201, "r1")
            assert response.headers["Content-Length"] == "5"

    async def test_the_request_is_sent_as_given(self, serve) -> None:
        async def handler(peer) -> None:
            while await peer.request():
                await peer.answer(b"{}", set_cookie="a=b")

        async with serve(handler) as server:
            await read(server.url + "?alt=sse", b'{"a":1}', headers={"Authorization": "Bearer key"})
            await read(server.url, b"x", headers={"Content-Type": "text/plain", "User-Agent": "mine"})
            await read(server.url, None, method="GET")
        first, second, third = server.seen
        assert (first.line, first.body) == ("POST /v1/chat?alt=sse HTTP/1.1", b'{"a":1}')
        assert first.headers["authorization"] == "Bearer key"
        assert first.headers["content-type"] == "application/json"
        assert first.headers["user-agent"] == "antiphon"
        assert first.headers["accept-encoding"] == "identity"  # a compressor would hold tokens back
        assert (second.headers["content-type"], second.headers["user-agent"]) == ("text/plain", "mine")
        assert "cookie" not in second.headers
        assert (third.line, third.body) == ("GET /v1/chat HTTP/1.1", b"")
        assert "content-type" not in third.headers

    async def test_a_body_of_megabytes_arrives_whole(self, serve) -> None:
        """Pictures make such bodies; the client warns if it gets one in a single piece."""
        body = bytes(range(256)) * 2**14

        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(b"ok")

        async with serve(handler) as server:
            assert await read(server.url, body) == b"ok"
        assert server.seen[0].body == body

    async def test_a_server_that_compresses_anyway_is_understood(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(gzip.compress(b"hello" * 1000), content_encoding="gzip")

        async with serve(handler) as server:
            assert await read(server.url) == b"hello" * 1000

    async def test_a_body_beyond_the_limit_is_garbled(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(b"x" * 1001)

        async with serve(handler) as server, open_stream(server.url) as response:
            with pytest.raises(Garbled, match="more than 1000 bytes"):
                await response.read(limit=1000)


class TestConnections:
    async def test_a_connection_is_used_again(self, serve, ok_chunked) -> None:
        """A new one costs a TCP and a TLS handshake per turn."""

        async def handler(peer) -> None:
            while await peer.request():
                await peer.send(ok_chunked)
                await peer.chunk(b"data: [DONE]\n\n")
                await anyio.lowlevel.checkpoint()
                await peer.send(b"0\r\n\r\n")

        async with serve(handler) as server:
            for _ in range(3):
                assert await read(server.url) == b"data: [DONE]\n\n"
            for _ in range(3):
                async with open_stream(server.url) as response:
                    assert await anext(response.chunks()) == b"data: [DONE]\n\n"
                    await response.finish()
            assert (server.accepted, len(server.seen)) == (1, 6)

    async def test_requests_do_not_wait_for_each_other(self, serve) -> None:
        """No limit on connections: runs at once must not queue behind a pool."""
        everybody = anyio.Event()

        async def handler(peer) -> None:
            await peer.request()
            if len(peer.server.seen) == 150:
                everybody.set()
            await everybody.wait()
            await peer.answer(b"{}")

        async with serve(handler) as server:
            async with anyio.create_task_group() as group:
                for _ in range(150):
                    group.start_soon(read, server.url)
            assert server.accepted == 150

    async def test_a_connection_that_the_server_closed_meanwhile_is_not_used(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(b"one")

        async with serve(handler) as server:
            assert await read(server.url) == b"one"
            await server.gone.wait()
            await anyio.wait_all_tasks_blocked()
            assert await read(server.url) == b"one"
            assert server.accepted == 2

    @pytest.mark.usefixtures("trusted")
    @pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
    async def test_leaving_early_closes_at_once(self, serve, ok_chunked, tls) -> None:
        """What is not read is still paid for: the server must learn at once that nobody listens."""

        async def handler(peer) -> None:
            await peer.request()
            await peer.send(ok_chunked)
            await peer.chunk(b"first")
            await peer.until_gone()

        async with serve(handler, tls=tls) as server:
            async with open_stream(server.url) as response:
                async for _ in response.chunks():
                    break
            with anyio.fail_after(1):
                await server.gone.wait()

    async def test_leaving_early_closes_under_a_flood(self, serve, ok_chunked) -> None:
        """Draining the rest, or a polite farewell, would never end here."""

        async def handler(peer) -> None:
            await peer.request()
            await peer.send(ok_chunked)
            try:
                while True:
                    await peer.chunk(b"x" * 2**16)
            except ConnectionError:
                pass

        async with serve(handler) as server:
            async with open_stream(server.url) as response:
                await anext(response.chunks())
            with anyio.fail_after(1):
                await server.gone.wait()

    async def test_leaving_early_closes_while_the_body_is_still_being_sent(self, serve, ok_chunked) -> None:
        """A polite close would first wait for a server that does not read."""
        left = anyio.Event()

        async def handler(peer) -> None:
            await peer.reader.readuntil(b"\r\n\r\n")
            await peer.send(ok_chunked)
            await left.wait()
            try:
                while True:
                    await peer.chunk(b"x" * 2**16)
            except ConnectionError:
                pass

        async with serve(handler) as server:
            async with open_stream(server.url, b"x" * 2**25) as response:
                transport = response._raw.connection and response._raw.connection.transport
                assert transport is not None
                full = 0
                while full < 5:  # the same backlog five times: everything on the way there is full
                    before = transport.get_write_buffer_size()
                    await anyio.sleep(0.02)
                    full = full + 1 if before and before == transport.get_write_buffer_size() else 0
            left.set()
            with anyio.fail_after(1):
                await server.gone.wait()

    @pytest.mark.parametrize("head_first", [False, True], ids=["before the head", "in the body"])
    async def test_a_cancelled_request_closes_at_once(self, serve, ok_chunked, head_first) -> None:
        waiting = anyio.Event()

        async def handler(peer) -> None:
            await peer.request()
            if head_first:
                await peer.send(ok_chunked)
            waiting.set()
            await peer.until_gone()

        async with serve(handler) as server:
            async with anyio.create_task_group() as group:
                group.start_soon(read, server.url)
                await waiting.wait()
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
            with anyio.fail_after(1):
                await server.gone.wait()

    async def test_finishing_does_not_wait_for_a_server_that_holds_on(self, serve, ok_chunked) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.send(ok_chunked)
            await peer.chunk(b"data: [DONE]\n\n")
            await peer.until_gone()

        async with serve(handler) as server:
            async with open_stream(server.url) as response:
                await anext(response.chunks())
                await response.finish(within=0.02)
            with anyio.fail_after(1):
                await server.gone.wait()


class TestFetch:
    async def test_json_is_fetched(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(b'{"data": [{"id": "m"}]}')

        async with serve(handler) as server:
            assert await fetch_json(server.url, {"X-Key": "k"}) == {"data": [{"id": "m"}]}
        assert server.seen[0].line.startswith("GET ")
        assert server.seen[0].headers["x-key"] == "k"

    @pytest.mark.parametrize("body", [b"<html>", b"", b"[" * 100_000, b'"\xff"'])
    async def test_what_is_not_json_is_garbled(self, serve, body) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(body)

        async with serve(handler) as server:
            with pytest.raises(Garbled, match="does not answer with JSON"):
                await fetch_json(server.url)

    async def test_a_silent_server_holds_a_probe_no_longer_than_its_limit(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.until_gone()

        async with serve(handler) as server:
            start = time.monotonic()
            with pytest.raises(Stalled):
                await fetch_json(server.url)
            assert 0.15 < time.monotonic() - start < 3
