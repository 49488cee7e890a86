"""What goes wrong with a request: broken connections, limits, refusals, proxies; and that no error tells a key."""

import base64
import traceback
from typing import Any

import anyio
import pytest

from antiphon.errors import Dropped, Garbled, ModelError, Overloaded, Rejected, Stalled, Unauthorized, Unreachable
from antiphon.wire import http
from antiphon.wire.http import HttpLimits, aclose, open_stream

pytestmark = pytest.mark.anyio


async def read(url: str, body: bytes | None = b"{}", **options: Any) -> bytes:
    async with open_stream(url, body, **options) as response:
        return await response.read()


async def failure(url: str, body: bytes | None = b"{}", **options: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await read(url, body, **options)
    return caught.value


async def refused_url() -> str:
    """An address where nobody listens."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    await listener.aclose()
    return f"http://127.0.0.1:{port}/v1"


class TestBroken:
    @pytest.mark.parametrize("how", ["chunked", "length", "reset", "bad chunk"])
    async def test_a_body_cut_in_the_middle_is_dropped(self, serve, ok_chunked, how) -> None:
        """What came before is read; then the end is an error and never looks like the end of the reply."""
        go_on = anyio.Event()

        async def handler(peer) -> None:
            await peer.request()
            if how == "length":
                await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello")
            else:
                await peer.send(ok_chunked)
                await peer.chunk(b"hello")
            await go_on.wait()
            if how == "reset":
                peer.reset()
            elif how == "bad chunk":
                await peer.send(b"ZZZ\r\nhello\r\n")
                await peer.until_gone()

        async with serve(handler) as server, open_stream(server.url, provider="acme") as response:
            chunks = response.chunks()
            assert await anext(chunks) == b"hello"
            go_on.set()
            with anyio.fail_after(1), pytest.raises(Dropped, match="cut off in the middle") as caught:
                await anext(chunks)
        assert repr(server.url) in str(caught.value)
        assert (caught.value.recovery, caught.value.provider) == ("wait", "acme")

    @pytest.mark.parametrize("how", ["close", "reset"])
    async def test_a_connection_lost_before_the_head_is_dropped(self, serve, how) -> None:
        async def handler(peer) -> None:
            await peer.request()
            if how == "reset":
                peer.reset()

        async with serve(handler) as server:
            assert isinstance(await failure(server.url), Dropped)

    async def test_an_answer_that_is_not_http_is_garbled(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.send(b"SSH-2.0-server\r\n")
            await peer.until_gone()

        async with serve(handler) as server:
            error = await failure(server.url)
        assert isinstance(error, Garbled)
        assert "not HTTP; check the address and the port" in str(error)

    async def test_a_port_where_nobody_listens_is_unreachable(self) -> None:
        url = await refused_url()
        error = await failure(url)
        assert isinstance(error, Unreachable)
        assert str(error) == f"{url!r}: nobody answers there; is the server running?"
        assert (error.recovery, isinstance(error.__cause__, OSError)) == ("wait", True)

    async def test_https_to_a_server_without_it_is_unreachable(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await peer.until_gone()

        async with serve(handler) as server:
            error = await failure(server.url.replace("http:", "https:"))
        assert isinstance(error, Unreachable)
        assert (error.recovery, "http:// or https://" in str(error)) == ("never", True)

    async def test_a_certificate_that_nobody_trusts_is_unreachable(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.until_gone()

        async with serve(handler, tls=True) as server:
            error = await failure(server.url)
        assert isinstance(error, Unreachable)
        assert (error.recovery, "name the CA's file in SSL_CERT_FILE" in str(error)) == ("never", True)

    @pytest.mark.parametrize("url", ["localhost:8080/v1", "http://..example/"])
    async def test_a_text_that_is_no_url_is_unreachable(self, url) -> None:
        error = await failure(url)
        assert isinstance(error, Unreachable)
        assert "give one like 'https://host/v1'" in str(error)

    async def test_an_early_refusal_of_a_large_body_is_told(self, serve) -> None:
        """The server answers and closes while the body is still on its way."""

        async def handler(peer) -> None:
            await peer.reader.readuntil(b"\r\n\r\n")
            await peer.answer(b"too big", "413 Too Large", connection="close")
            await peer.until_gone()

        async with serve(handler) as server:
            error = await failure(server.url, b"x" * 2**23)
        assert (type(error), error.status) == (Rejected, 413)


class TestLimits:
    async def test_a_handshake_beyond_the_connect_limit_is_unreachable(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.until_gone()

        async with serve(handler) as server:
            url = server.url.replace("http:", "https:")
            error = await failure(url, limits=HttpLimits(connect=0.05))
        assert isinstance(error, Unreachable)
        assert "raise the `connect` limit" in str(error)

    @pytest.mark.parametrize("head_first", [False, True], ids=["before the head", "in the body"])
    async def test_an_exchange_beyond_the_total_limit_is_stalled(self, serve, ok_chunked, head_first) -> None:
        async def handler(peer) -> None:
            await peer.request()
            if head_first:
                await peer.send(ok_chunked)
                await peer.chunk(b"x")
            await peer.until_gone()

        async with serve(handler) as server:
            error = await failure(server.url, limits=HttpLimits(total=0.05))
            assert isinstance(error, Stalled)
            assert "raise the `total` limit" in str(error)
            with anyio.fail_after(1):
                await server.gone.wait()

    @pytest.mark.parametrize("off", [None, 0])
    async def test_limits_can_be_turned_off(self, serve, off) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(b"ok")

        async with serve(handler) as server:
            assert await read(server.url, limits=HttpLimits(connect=off, total=off)) == b"ok"

    async def test_a_limit_does_not_turn_a_cancellation_into_an_error(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.until_gone()

        async with serve(handler) as server:
            with anyio.move_on_after(0.02) as scope:
                await read(server.url, limits=HttpLimits(total=5))
            assert scope.cancelled_caught


class TestRefusals:
    async def test_a_status_is_an_error_with_the_servers_words(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.request()
            body = b'{"error": {"message": "slow down", "code": "rpm"}}'
            await peer.answer(body, "503 Busy", request_id="r7", retry_after="7")

        async with serve(handler) as server:
            error = await failure(server.url, provider="acme")
        assert type(error) is Overloaded
        assert (error.status, error.code, error.request_id, error.retry_after) == (503, "rpm", "r7", 7.0)
        assert str(error).startswith("'acme' answered 503: 'slow down'; ")

    async def test_a_connection_survives_a_refusal(self, serve) -> None:
        async def handler(peer) -> None:
            while await peer.request():
                await peer.answer(b"no", "400 Bad Request")

        async with serve(handler) as server:
            for _ in range(3):
                await failure(server.url)
            assert server.accepted == 1

    @pytest.mark.parametrize("how", ["endless", "silent", "cut"])
    async def test_the_body_of_a_refusal_is_read_within_bounds(self, serve, monkeypatch, how) -> None:
        """The status is known; its words are not worth memory, time, or another error."""
        monkeypatch.setattr(http, "_ERROR_SECONDS", 0.05)

        async def handler(peer) -> None:
            await peer.request()
            await peer.send(b"HTTP/1.1 500 Oops\r\ncontent-length: 9999999999\r\n\r\nsome words")
            try:
                while how == "endless":
                    await peer.send(b" and more" * 10_000)
            except ConnectionError:
                return
            if how == "silent":
                await peer.until_gone()

        async with serve(handler) as server:
            with anyio.fail_after(2):
                error = await failure(server.url)
                await server.gone.wait()
        assert (type(error), error.status) == (Overloaded, 500)
        assert "some words" in str(error)

    async def test_a_redirect_is_not_followed(self, serve) -> None:
        """The key would go to whatever host the answer names."""

        async def handler(peer) -> None:
            while await peer.request():
                await peer.answer(b"", "307 Temporary Redirect", location="/elsewhere?key=secret")

        async with serve(handler) as server:
            error = await failure(server.url)
        assert (type(error), len(server.seen)) == (Rejected, 1)
        assert "it points to '/elsewhere'" in str(error)


class TestSecrets:
    HEADERS = {"Authorization": "Bearer s3cret-key"}  # noqa: RUF012 - read only

    @staticmethod
    def told(error: BaseException) -> str:
        return "".join(traceback.format_exception(error)) + repr(error)

    async def test_no_failure_tells_a_key(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(b'{"error": "bad keys s3cret-key and s3cret-query"}', "401 Unauthorized")

        async with serve(handler) as server:
            places = (server.url, await refused_url(), "http://[bad/")
            for place in places:
                error = await failure(f"{place}?key=s3cret-query", headers=self.HEADERS)
                assert "s3cret" not in self.told(error)
                assert str(error)

    async def test_a_limit_does_not_tell_a_key(self, serve) -> None:
        """The client's own text spells the whole URL."""

        async def handler(peer) -> None:
            await peer.until_gone()

        async with serve(handler) as server:
            url = server.url.replace("http://", "https://user:s3cret@") + "?key=s3cret"
            assert "s3cret" not in self.told(await failure(url, limits=HttpLimits(connect=0.02)))

    async def test_a_header_with_a_line_break_is_refused_by_name(self) -> None:
        """A key read from a file ends in one."""
        error = await failure("http://127.0.0.1:9/", headers={"X-Api-Key": "s3cret\n"})
        assert "header 'x-api-key' holds a line break; remove it" in str(error)
        assert "s3cret" not in self.told(error)

    async def test_a_user_in_the_url_is_sent_as_a_header(self, serve) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(b"ok")

        async with serve(handler) as server:
            url = server.url.replace("http://", "http://user:s3cret@")
            assert await read(url) == b"ok"
            assert server.seen[0].headers["authorization"] == "Basic " + base64.b64encode(b"user:s3cret").decode()
            error = await failure(url, headers=self.HEADERS)
        assert isinstance(error, Unauthorized)
        assert "give one of them" in str(error)
        assert "s3cret" not in self.told(error)


class TestProxy:
    @pytest.fixture(autouse=True)
    async def fresh_pool(self, monkeypatch) -> None:
        """A pool asks the environment once for each origin."""
        for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        await aclose()

    async def test_a_plain_request_goes_through_the_proxy_of_the_environment(self, serve, monkeypatch) -> None:
        async def proxy(peer) -> None:
            while await peer.request():
                await peer.answer(b"by proxy")

        async with serve(proxy) as server:
            monkeypatch.setenv("HTTP_PROXY", f"http://user:pass@127.0.0.1:{server.port}")
            for _ in range(2):
                assert await read("http://model.invalid/v1") == b"by proxy"
        assert server.accepted == 1
        assert server.seen[0].line == "POST http://model.invalid/v1 HTTP/1.1"
        assert server.seen[0].headers["proxy-authorization"] == "Basic " + base64.b64encode(b"user:pass").decode()

    async def test_https_goes_through_a_tunnel_and_a_refused_one_is_told(self, serve, monkeypatch) -> None:
        async def proxy(peer) -> None:
            await peer.request()
            await peer.answer(b"", "407 Proxy Authentication Required")

        async with serve(proxy) as server:
            monkeypatch.setenv("HTTPS_PROXY", f"http://user:p4ss@127.0.0.1:{server.port}")
            error = await failure("https://model.invalid/v1", headers={"authorization": "Bearer key"})
        assert server.seen[0].line == "CONNECT model.invalid:443 HTTP/1.1"
        assert server.seen[0].headers["proxy-authorization"] == "Basic " + base64.b64encode(b"user:p4ss").decode()
        assert "authorization" not in server.seen[0].headers
        assert isinstance(error, Unreachable)
        assert "refuses to connect; check its address and its credentials" in str(error)
        assert "p4ss" not in TestSecrets.told(error)

    async def test_a_proxy_that_is_not_there_is_told(self, monkeypatch) -> None:
        monkeypatch.setenv("HTTP_PROXY", await refused_url())
        error = await failure("http://model.invalid/v1")
        assert isinstance(error, Unreachable)
        assert "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY" in str(error)

    async def test_the_machine_itself_is_reached_without_the_proxy(self, serve, monkeypatch) -> None:
        async def handler(peer) -> None:
            await peer.request()
            await peer.answer(b"direct")

        monkeypatch.setenv("HTTP_PROXY", await refused_url())
        async with serve(handler) as server:
            assert await read(server.url) == b"direct"
