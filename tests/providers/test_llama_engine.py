"""llama.cpp in a thread of its own: what it says reaches the event loop, and leaving, failing and closing end well.

The server is a stand-in that behaves as xllamacpp's does: it blocks, calls back with each chunk, stops when the callback
says so, and swallows what a callback raises. The real one is asked in `test_llama_local.py`.
"""

import gc
import json
import threading
import weakref
from collections.abc import Callable
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from antiphon.errors import ContextOverflow, Dropped, ModelError, Overloaded, Rejected
from antiphon.providers.llama_cpp import engine as engine_module
from antiphon.providers.llama_cpp.engine import Engine, EngineOptions, _Server, require_engine

pytestmark = pytest.mark.anyio

Put = Callable[[dict[str, Any]], bool]


class Server:
    """Answers with the chunks of a script; `endless` goes on until it is told to stop."""

    listening_address = "http://127.0.0.1:1"

    def __init__(self, script: list[dict[str, Any]] | None = None) -> None:
        self.script = script or [text("a"), text("b"), usage()]
        self.bodies: list[dict[str, Any]] = []
        self.stops = 0
        self.raises: Exception | None = None
        self.endless = False

    def handle_completions(self, body: dict[str, Any], put: Put) -> None:
        self.bodies.append(body)
        if self.raises:
            raise self.raises
        for chunk in self.script:
            if put(chunk):
                self.stops += 1
                return
        while self.endless and body["prompt"] == "go on":
            if put(text("more")):
                self.stops += 1
                return
            threading.Event().wait(0.001)

    handle_chat_completions = handle_completions


def text(said: str) -> dict[str, Any]:
    return {"choices": [{"text": said}]}


def usage() -> dict[str, Any]:
    return {"choices": [{"text": "", "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(engine_module, "_load", lambda _: engine_module._Server(made, "key"))
    return made


@pytest.fixture
def engine(server: Server) -> Engine:
    return Engine(EngineOptions("little.gguf"))


async def said(engine: Engine, prompt: str = "hi", **more: Any) -> list[str]:
    async with aclosing(engine.completions({"prompt": prompt}, **more)) as chunks:
        return [chunk["choices"][0]["text"] async for chunk in chunks]


async def test_chunks_come_in_order(engine: Engine, server: Server) -> None:
    assert await said(engine) == ["a", "b", ""]
    assert server.bodies[0]["stream"] is True
    await engine.aclose()


async def test_progress_in_the_prompt_is_not_passed_on(engine: Engine, server: Server) -> None:
    """It is asked for so that a request can be left while the prompt is still read, and is nothing for readers."""
    server.script = [{"prompt_progress": {"processed": 1}, "choices": [{"text": ""}]}, text("a")]
    assert await said(engine) == ["a"]
    assert server.bodies[0]["return_progress"] is True
    await engine.aclose()


async def test_many_chunks_wake_the_loop_few_times(engine: Engine, server: Server) -> None:
    """One call into the loop for each token would cost more than the token's own way."""
    server.script = [text(str(i)) for i in range(2000)]
    woken: list[None] = []
    job = engine_module.Job
    original = job._woken

    def count(self: Any) -> None:
        woken.append(None)
        original(self)

    job._woken = count  # type: ignore[method-assign]
    try:
        assert len(await said(engine)) == 2000
    finally:
        job._woken = original  # type: ignore[method-assign]
    assert len(woken) < 1000
    await engine.aclose()


async def test_leaving_stops_the_model_and_the_next_request_is_served(engine: Engine, server: Server) -> None:
    server.endless = True
    async with aclosing(engine.completions({"prompt": "go on"})) as chunks:
        async for chunk in chunks:
            if chunk == text("more"):
                break
    assert server.stops == 1  # and it has stopped before the block was left
    assert await said(engine, "hi") == ["a", "b", ""]
    await engine.aclose()


async def test_cancelling_stops_the_model(engine: Engine, server: Server) -> None:
    server.endless = True
    with anyio.move_on_after(0.05) as scope:
        await said(engine, "go on")
    assert scope.cancelled_caught
    assert server.stops == 1
    await engine.aclose()


async def test_a_request_that_waits_can_be_left(engine: Engine, server: Server) -> None:
    """A request behind another one must not be answered for nobody."""
    server.endless = True
    async with anyio.create_task_group() as group:
        group.start_soon(said, engine, "go on")
        await anyio.wait_all_tasks_blocked()
        with anyio.move_on_after(0.05):
            await said(engine, "never begun")
        group.cancel_scope.cancel()
    assert await said(engine, "hi") == ["a", "b", ""]
    assert [body["prompt"] for body in server.bodies] == ["go on", "hi"]
    await engine.aclose()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 400, "message": "no", "type": "exceed_context_size_error"}, ContextOverflow),
        ({"code": 400, "message": "no", "type": "invalid_request_error"}, Rejected),
        ({"code": 503, "message": "no", "type": "unavailable_error"}, Overloaded),
    ],
)
async def test_what_llama_cpp_refuses_is_a_model_error(
    engine: Engine, server: Server, error: dict[str, Any], kind: type[ModelError]
) -> None:
    server.script = [{"error": error}]
    with pytest.raises(kind, match=r"llama\.cpp refused the request: no") as caught:
        await said(engine)
    assert (caught.value.status, caught.value.code) == (error["code"], error["type"])
    await engine.aclose()


async def test_what_is_raised_in_the_thread_reaches_the_one_who_asked(engine: Engine, server: Server) -> None:
    """llama.cpp swallows what a callback raises, so errors must be carried; and the thread must live on."""
    server.raises = RuntimeError("out of tensors")
    with pytest.raises(Rejected, match=r"llama\.cpp failed: out of tensors") as caught:
        await said(engine)
    assert caught.value.__cause__ is server.raises
    server.raises = None
    assert await said(engine) == ["a", "b", ""]
    await engine.aclose()


async def test_a_loop_that_is_gone_stops_the_model(engine: Engine, server: Server) -> None:
    """`asyncio.run` may end while the thread is in the middle of an answer."""
    server.endless = True
    begun = threading.Event()

    async def begin() -> None:
        chunks = engine.completions({"prompt": "go on"})
        await anext(chunks)
        begun.set()

    thread = threading.Thread(target=anyio.run, args=(begin,))
    thread.start()
    assert begun.wait(5)
    await anyio.to_thread.run_sync(thread.join, 5)
    assert await said(engine, "hi") == ["a", "b", ""]
    await engine.aclose()


async def test_closing_frees_the_model_and_a_later_request_loads_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[weakref.ref[Server]] = []

    def load(_: EngineOptions) -> Any:
        server = Server()
        made.append(weakref.ref(server))
        return engine_module._Server(server, "key")

    monkeypatch.setattr(engine_module, "_load", load)
    engine = Engine(EngineOptions("little.gguf"))
    await said(engine)
    await engine.aclose()
    gc.collect()
    assert made[0]() is None
    assert await said(engine) == ["a", "b", ""]
    assert len(made) == 2
    await engine.aclose()


async def test_closing_cuts_a_running_request_off(engine: Engine, server: Server) -> None:
    """Its reader must not take half an answer for a whole one."""
    server.endless = True
    async with aclosing(engine.completions({"prompt": "go on"})) as chunks:
        await anext(chunks)
        await engine.aclose()
        with pytest.raises(Dropped, match="closed while it answered"):
            async for _ in chunks:
                pass


async def test_an_engine_that_nobody_holds_ends_its_thread(server: Server) -> None:
    engine = Engine(EngineOptions("little.gguf"))
    await said(engine)
    thread = engine._thread
    assert thread is not None
    del engine
    gc.collect()
    await anyio.to_thread.run_sync(thread.join, 5)
    assert not thread.is_alive()


async def test_models_of_one_file_share_it_until_the_last_is_closed(server: Server) -> None:
    """Two agents with the same model must not hold its weights twice."""
    options = EngineOptions("little.gguf", slots=2)
    one, two = Engine.shared(options), Engine.shared(EngineOptions("little.gguf", slots=2))
    assert one is two
    assert Engine.shared(EngineOptions("other.gguf")) is not one
    await said(one)
    await one.aclose()
    thread = one._thread
    assert thread is not None
    assert thread.is_alive()
    await two.aclose()
    assert not thread.is_alive()


async def test_what_is_kept_is_read_once_and_restored_each_time(engine: Engine, server: Server) -> None:
    """Rounding depends on how many tokens are read at once: from the same state the same answer comes."""
    for prompt in ("AB", "AC"):
        await said(engine, prompt, keep="A")
    await said(engine, "BC", keep="B")
    await said(engine, "AD", keep="A")
    asked = [(body["prompt"], body.get("cache_prompt")) for body in server.bodies]
    settle_anew = [("A", False), ("A", True)]
    assert asked[:3] == [*settle_anew, ("AB", None)]
    assert asked[3:5] == [("A", True), ("AC", None)]
    assert asked[5:8] == [("B", False), ("B", True), ("BC", None)]
    assert asked[8:] == [*settle_anew, ("AD", None)]
    await engine.aclose()


async def test_the_template_is_looked_at_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp always opens a port of 127.0.0.1; nobody else on the machine may use it."""
    seen: list[str | None] = []

    class Props(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            body = json.dumps({"chat_template_caps": {"supports_tools": self.path == "/props"}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
            pass

    with HTTPServer(("127.0.0.1", 0), Props) as http:
        thread = threading.Thread(target=http.handle_request)
        thread.start()
        server = Server()
        server.listening_address = f"http://127.0.0.1:{http.server_port}"
        monkeypatch.setattr(engine_module, "_load", lambda _: engine_module._Server(server, "secret"))
        engine = Engine(EngineOptions("little.gguf"))
        assert await engine.template_supports_tools() is True
        assert await engine.template_supports_tools() is True  # asked once
        thread.join(5)
        await engine.aclose()
    assert seen == ["Bearer secret"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is not a GGUF file"),
        (b"PK\x03\x04 a zip", "is not a GGUF file"),
        (b"GGUF\x03\x00\x00\x00" + bytes(64), "cannot be loaded; it is broken"),
    ],
)
async def test_a_file_that_cannot_be_loaded_is_one_sentence(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    engine = Engine(EngineOptions(str(path)))
    with pytest.raises(Rejected, match=sentence):
        await said(engine)
    await engine.aclose()


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "find_spec", lambda _: None)
    with pytest.raises(Exception, match=r"not installed; pip install 'antiphon\[local\]'"):
        require_engine()


class Silent:
    """A server that notes what it is asked, and says one chunk."""

    listening_address = "http://127.0.0.1:1"

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def handle_completions(self, body: dict[str, Any], put: Callable[[dict[str, Any]], bool]) -> None:
        self.asked.append(body)
        put({"choices": []})

    handle_chat_completions = handle_completions


def test_a_server_that_never_said_anything_is_heard_before_it_is_freed() -> None:
    """Its loop may not have begun: freed then, it waits for the loop for ever, and the whole process with it."""
    silent = Silent()
    server = _Server(silent, "key")
    server.let_begin()
    server.let_begin()
    assert [body["max_tokens"] for body in silent.asked] == [1]


def test_a_server_that_has_answered_is_freed_at_once() -> None:
    silent = Silent()
    server = _Server(silent, "key")
    server.handle_chat_completions({"max_tokens": 5}, lambda _: False)
    server.let_begin()
    assert [body["max_tokens"] for body in silent.asked] == [5]
