"""How a reply through the proxy ends: the client goes, the model fails, or all is well."""

from collections.abc import AsyncIterator

import anyio
import anyio.lowlevel
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from antiphon.agent.agent import Agent
from antiphon.errors import (
    ContextOverflow,
    Dropped,
    ModelError,
    Overloaded,
    RateLimited,
)
from antiphon.providers.function import FunctionModel
from antiphon.providers.proxy import ProxyModel
from antiphon.providers.scripted import Scripted
from antiphon.serve.proxy import proxy_app
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    ModelRequest,
    TextChunk,
)

from .back_end import HI, INFO, app_of, body_of, client, deltas_of, failure_of, post, raw, serving

pytestmark = [pytest.mark.anyio, pytest.mark.parity("C18")]


class Waiting:
    """A model that says one word, then nothing; it tells when it was asked and when it was left."""

    info = INFO

    def __init__(self, *, first: bool = True) -> None:
        self.asked = anyio.Event()
        self.left = anyio.Event()
        self.request: ModelRequest | None = None
        self._first = first

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        self.request = request
        self.asked.set()
        try:
            if self._first:
                yield TextChunk("so")
            await anyio.sleep_forever()
        finally:
            self.left.set()


@pytest.mark.parametrize("first", [True, False])
async def test_when_the_client_goes_the_request_to_the_model_ends(first: bool) -> None:
    """Tokens that nobody reads are paid all the same. A model that listens to the signal learns it too."""
    model = Waiting(first=first)
    async with serving(app_of(model)) as back:
        async with raw(back, post("/stream", body_of("fast"))):
            with anyio.fail_after(10):
                await model.asked.wait()
            assert not model.left.is_set()
        with anyio.fail_after(10):
            await model.left.wait()
    assert model.request
    assert model.request.cancel.cancelled
    assert model.request.cancel.reason == "the client went away"


async def test_a_run_that_is_left_ends_the_request_to_the_model() -> None:
    model = Waiting()
    async with serving(app_of(model)) as back:
        async with Agent(client(back)).run("hi") as run:
            async for event in run:
                if type(event).__name__ == "TextDelta":
                    break
        with anyio.fail_after(10):
            await model.left.wait()


async def test_a_client_that_goes_while_it_sends_is_no_event() -> None:
    model = Scripted("hi")
    async with serving(app_of(model)) as back:
        async with raw(back, post("/stream", b"{", length=100)):
            await anyio.lowlevel.checkpoint()
        assert await deltas_of(client(back)) == [TextChunk("hi"), FinishChunk()]


async def test_silence_is_filled_with_comments() -> None:
    """Servers in between close a connection on which nothing moves; a thinking model is silent for minutes."""
    app = app_of(Waiting(first=False), keep_alive=0.01)
    async with serving(app) as back, raw(back, post("/stream", body_of("fast"))) as (reader, _):
        with anyio.fail_after(10):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readuntil(b": still here\n\n")
            await reader.readuntil(b": still here\n\n")
    assert b"content-type: text/event-stream" in head
    assert b"x-accel-buffering: no" in head


async def test_comments_do_not_disturb_a_reply() -> None:
    gate = anyio.Event()
    model = Scripted(["a", gate, "b"])
    async with serving(app_of(model, keep_alive=0.001)) as back:
        deltas: list[Delta] = []
        async for delta in client(back).stream(HI):
            deltas.append(delta)
            if len(deltas) == 1:
                await anyio.sleep(0.02)
                gate.set()
    assert deltas == [TextChunk("a"), TextChunk("b"), FinishChunk()]


@pytest.mark.parametrize("after", [0, 2])
async def test_a_failure_of_the_model_is_the_client_s_failure(after: int) -> None:
    """Class, recovery, wait, status, code, provider, request id: what decides about another attempt."""
    error = RateLimited(
        "too many, é", recovery="never", retry_after=7.5, status=429, code="slow", provider="anthropic", request_id="r1"
    )
    async with serving(app_of(Scripted([*(["a"] * after), error]))) as back:
        deltas: list[Delta] = []
        with pytest.raises(RateLimited) as caught:  # noqa: PT012 - what came before it counts
            async for delta in client(back).stream(HI):
                deltas.append(delta)
    assert deltas == [TextChunk("a")] * after
    assert vars(caught.value) == vars(error)
    assert str(caught.value) == "too many, é"


async def test_an_application_s_own_error_travels_as_the_nearest_kind() -> None:
    class QuotaOfOurs(ContextOverflow):
        """A kind that the client does not know."""

    async with serving(app_of(Scripted(QuotaOfOurs("full")))) as back:
        assert type(await failure_of(client(back))) is ContextOverflow


async def test_what_else_goes_wrong_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """The text of a stranger's exception may hold anything: an address, a key."""
    async with serving(app_of(Scripted(ValueError("secret in here")))) as back:
        error = await failure_of(client(back))
    assert type(error) is ModelError
    assert str(error) == "the back end failed; its log says why"
    assert "secret in here" in caplog.text


async def test_a_reply_without_an_end_is_a_drop() -> None:
    class Cut:
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            yield TextChunk("so")

    async with serving(app_of(Cut())) as back:
        error = await failure_of(client(back))
    assert isinstance(error, Dropped)
    assert error.recovery == "wait"


async def test_nothing_is_said_after_the_end() -> None:
    """A model that fails while it is closed has answered all the same."""

    class Clumsy:
        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            try:
                yield FinishChunk()
            finally:
                raise Overloaded("on the way out")

    async with serving(app_of(Clumsy())) as back:
        assert await deltas_of(client(back)) == [FinishChunk()]


async def test_a_token_check_that_fails_is_the_back_end_s_fault() -> None:
    """Nobody gets in, and the client may come again."""

    def check(token: str) -> bool:
        raise OSError("the session store is down")

    async with serving(proxy_app({"fast": Scripted("hi")}, check)) as back:
        error = await failure_of(client(back))
    assert isinstance(error, Overloaded)
    assert "session store" not in str(error)


async def test_it_can_be_mounted_in_an_application() -> None:
    app = Starlette(routes=[Mount("/api/models", app_of(Scripted("hi", info=INFO)))])
    async with serving(app) as back:
        near = await ProxyModel.connect(f"{back.url}/api/models/", "fast", token="t")
        assert await deltas_of(near) == [TextChunk("hi"), FinishChunk()]


async def test_many_clients_are_served_at_once() -> None:
    gate = anyio.Event()
    asked = 0

    async def answer(request: ModelRequest) -> str:
        nonlocal asked
        asked += 1
        if asked == 20:
            gate.set()
        await gate.wait()
        return request.instructions

    said: dict[int, list[Delta]] = {}
    async with serving(app_of(FunctionModel(answer))) as back:

        async def ask(number: int) -> None:
            said[number] = await deltas_of(
                client(back), ModelRequest(messages=HI.messages, instructions=f"number {number}")
            )

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(ask, number)
    assert said == {number: [TextChunk(f"number {number}"), FinishChunk()] for number in range(20)}


async def test_a_reply_s_fragments_come_as_they_were_sent() -> None:
    calls = [CallChunk(0, "c1", "weather", '{"ci'), CallChunk(0, arguments='ty":'), CallChunk(0, arguments='"Oslo"}')]
    async with serving(app_of(Scripted([*calls, FinishChunk("tool_calls")]))) as back:
        assert await deltas_of(client(back)) == [*calls, FinishChunk("tool_calls")]
