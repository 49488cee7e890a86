"""One pool of connections per event loop, and its end."""

import asyncio
import gc
import subprocess
import sys
import threading
import warnings

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from antiphon.errors import Dropped
from antiphon.wire.http import _pools, aclose, open_stream


async def answering(peer) -> None:
    while await peer.request():
        await peer.answer(b"ok")


async def read(url: str) -> bytes:
    async with open_stream(url, b"{}") as response:
        return await response.read()


@pytest.fixture
def quiet(caplog):
    """Fails for what the client or asyncio complain of when a session or a transport was left open."""
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert [record.getMessage() for record in caplog.get_records("call") + caplog.get_records("teardown")] == []


@pytest.mark.usefixtures("quiet")
class TestEndOfALoop:
    def test_a_loop_that_ends_closes_its_connections(self, serve) -> None:
        """A script that forgets `aclose` must not be scolded for it."""
        before = len(_pools)

        async def main() -> None:
            async with serve(answering) as server:
                assert await read(server.url) == b"ok"
                assert len(_pools) == before + 1

        for _ in range(3):
            asyncio.run(main())
        assert len(_pools) == before

    @pytest.mark.usefixtures("trusted")
    @pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
    def test_idle_connections_are_closed_with_the_loop(self, serve, tls) -> None:
        """By TLS too, where a polite farewell takes longer than a loop lives that is about to end."""

        async def main(url: str) -> None:
            assert await read(url) == b"ok"
            assert await read(url) == b"ok"

        with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve(answering, tls=tls)) as server:
            asyncio.run(main(server.url))
            assert server.accepted == 1
            portal.start_task_soon(server.gone.wait).result(timeout=1)

    def test_a_runner_keeps_its_connections_between_its_runs(self, serve) -> None:
        with asyncio.Runner() as runner:
            serving = serve(answering)
            server = runner.run(serving.__aenter__())
            for _ in range(3):
                assert runner.run(read(server.url)) == b"ok"
            assert server.accepted == 1
            runner.run(serving.__aexit__(None, None, None))

    def test_loops_in_threads_have_pools_of_their_own(self, serve) -> None:
        together = threading.Barrier(4)
        accepted = []

        async def main() -> None:
            async with serve(answering) as server:
                assert await read(server.url) == b"ok"
                await asyncio.to_thread(together.wait, 5)
                assert await read(server.url) == b"ok"
                if threading.current_thread().name == "0":
                    await aclose()
                assert await read(server.url) == b"ok"
                accepted.append(server.accepted)

        threads = [threading.Thread(target=lambda: asyncio.run(main()), name=str(n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert sorted(accepted) == [1, 1, 1, 2]

    def test_a_loop_may_end_in_the_middle_of_a_stream(self, serve, ok_chunked) -> None:
        async def endless(peer) -> None:
            await peer.request()
            await peer.send(ok_chunked)
            await peer.until_gone()

        async def stream(started: asyncio.Event) -> None:
            async with serve(endless) as server, open_stream(server.url) as response:
                started.set()
                await anext(response.chunks())

        async def main() -> None:
            started = asyncio.Event()
            task = asyncio.create_task(stream(started))  # left to the end of the loop, as a server's tasks are
            await started.wait()
            assert not task.done()

        asyncio.run(main())

    def test_a_loop_that_did_not_close_its_generators_is_tidied_later(self, serve) -> None:
        async def main() -> None:
            async with serve(answering) as server:
                await read(server.url)
                # An open transport is the business of whoever closes the loop; here only the pool is of interest.
                connector = _pools[asyncio.get_running_loop()].session.connector
                assert connector is not None
                for protocol, _ in (entry for entries in connector._conns.values() for entry in entries):
                    protocol.abort()

        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        loop.close()
        assert loop in _pools
        asyncio.run(main())
        assert loop not in _pools


class TestClosing:
    pytestmark = pytest.mark.anyio

    async def test_closing_is_idempotent_and_a_later_request_opens_anew(self, serve) -> None:
        await aclose()
        await aclose()
        async with serve(answering) as server:
            assert await read(server.url) == b"ok"
            await aclose()
            with anyio.fail_after(1):
                await server.gone.wait()
            await aclose()
            assert await read(server.url) == b"ok"
            assert server.accepted == 2
            await aclose()

    async def test_closing_at_once_from_many_tasks_is_one_closing(self, serve) -> None:
        async with serve(answering) as server:
            await read(server.url)
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(aclose)
            assert asyncio.get_running_loop() not in _pools

    async def test_closing_wakes_a_reader(self, serve, ok_chunked) -> None:
        """Its stream can bring nothing any more; left alone it would wait for ever."""

        async def endless(peer) -> None:
            await peer.request()
            await peer.send(ok_chunked)
            await peer.chunk(b"first")
            await peer.until_gone()

        caught: list[Dropped] = []

        async def reader(url: str) -> None:
            async with open_stream(url) as response:
                chunks = response.chunks()
                await anext(chunks)
                with pytest.raises(Dropped) as raised:
                    await anext(chunks)
                caught.append(raised.value)

        async with serve(endless) as server:
            with anyio.fail_after(2):
                async with anyio.create_task_group() as group:
                    group.start_soon(reader, server.url)
                    await anyio.wait_all_tasks_blocked()
                    await anyio.sleep(0.05)
                    await aclose()
        assert len(caught) == 1

    async def test_closing_wakes_a_request_without_an_answer(self, serve) -> None:
        async def silent(peer) -> None:
            await peer.until_gone()

        async def ask(url: str) -> None:
            with pytest.raises(Dropped):
                await read(url)

        async with serve(silent) as server:
            with anyio.fail_after(2):
                async with anyio.create_task_group() as group:
                    group.start_soon(ask, server.url)
                    await anyio.wait_all_tasks_blocked()
                    await anyio.sleep(0.05)
                    await aclose()

    async def test_a_cancelled_closing_closes_all_the_same(self, serve) -> None:
        async with serve(answering) as server:
            await read(server.url)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await aclose()
            with anyio.fail_after(1):
                await server.gone.wait()


def test_importing_the_module_does_not_load_the_client() -> None:
    """`import antiphon` stays light; the client comes with the first request."""
    script = "import sys, antiphon.wire.http; print('aiohttp' in sys.modules, 'urllib.request' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "False False\n"


def test_a_loop_that_is_never_closed_leaves_no_complaint_at_exit() -> None:
    """A notebook's loop: the client would log an unclosed session when the process ends."""
    script = """
import asyncio
from antiphon.wire.http import open_stream

async def answer(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\n{}")
    await reader.read()
    writer.close()

async def main():
    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with open_stream(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}") as response:
        print(await response.read())

asyncio.new_event_loop().run_until_complete(main())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("b'{}'\n", "")


@pytest.mark.anyio
class TestAKeptConnectionThatWasClosed:
    """A server may close an idle connection in the very moment in which it is used again (RFC 9112, section 9.6)."""

    async def test_the_request_is_sent_once_more_on_a_new_connection(self, serve) -> None:
        """Each turn of a long conversation would else cost a wait and one of its retries."""

        async def closes_after_one(peer) -> None:
            assert await peer.request()
            await peer.answer(b"ok")
            await peer.request()

        async with serve(closes_after_one) as server:
            assert [await read(server.url) for _ in range(3)] == [b"ok"] * 3
            assert server.accepted == 3
            await aclose()

    async def test_a_first_connection_that_is_closed_is_told(self, serve) -> None:
        """Nothing was kept there: the server itself fails, and the layer that owns retries decides."""

        async def never(peer) -> None:
            await peer.request()

        async with serve(never) as server:
            with pytest.raises(Dropped, match="before it answered"):
                await read(server.url)
            assert server.accepted == 1
            await aclose()

    async def test_it_is_sent_once_more_and_no_oftener(self, serve) -> None:
        answers = iter([True, False, False])

        async def dies(peer) -> None:
            while await peer.request():
                if not next(answers):
                    return
                await peer.answer(b"ok")

        async with serve(dies) as server:
            assert await read(server.url) == b"ok"
            with pytest.raises(Dropped):
                await read(server.url)
            assert len(server.seen) == 3
            await aclose()
