"""The client's side of the proxy against a server that plays bytes: what is sent, what comes back, and how it ends."""

import asyncio
import json
import random
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import errors
from antiphon.agent.agent import Agent
from antiphon.errors import (
    Dropped,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Stalled,
    Unauthorized,
    Unreachable,
    UsageError,
)
from antiphon.loop.spec import Recovery
from antiphon.providers.proxy import ProxyModel
from antiphon.providers.proxy_wire import decode_event, decode_request, encode_delta, encode_error, encode_request
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import join
from antiphon.types.messages import UserMessage
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    ModelInfo,
    ModelRequest,
    ModelSettings,
    TextChunk,
    ThinkingChunk,
    ToolSpec,
    UsageChunk,
    WarningChunk,
    WholeCall,
)
from antiphon.types.usage import Usage
from antiphon.wire.http import HttpLimits

from .anthropic_server import Answer, Server, chunked, serving, whole

pytestmark = [pytest.mark.anyio, pytest.mark.parity("C18")]

often = settings(deadline=None, max_examples=300)

HI = ModelRequest(messages=[UserMessage.of("hi")])
KINDS = [
    kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type) and issubclass(kind, ModelError)
]
FINISH = b'data: {"type":"finish"}\n\n'
HELLO = b'data: {"type":"text","text":"Hel"}\n\ndata: {"type":"text","text":"lo"}\n\n'
# A whole reply as the app sends it.
REPLY = (
    b'data: {"type":"thinking","text":"hm"}\n\n'
    b'data: {"type":"thinking","signature":"sig"}\n\n'
    b": still here\n\n"
    b'data: {"type":"text","text":"\xc3\x89t\xc3\xa9 \xf0\x9f\x8c\xa7"}\n\n'
    b'data: {"type":"call","key":0,"id":"c1","name":"echo","opaque":{"s":1}}\n\n'
    b'data: {"type":"call","key":0,"arguments":"{\\"a\\":"}\n\n'
    b'data: {"type":"call","key":0,"arguments":"1}"}\n\n'
    b'data: {"type":"usage","usage":{"input":3,"output":2,"total":5,"cost":0.5}}\n\n'
    b'data: {"type":"finish","reason":"tool_calls","detail":"tool_use","response_id":"r","model":"m-1"}\n\n'
)


def client(server: Server, **options: Any) -> ProxyModel:
    return ProxyModel(server.url, "fast", **{"token": "secret-token", **options})


async def deltas_of(model: ProxyModel, request: ModelRequest = HI) -> list[Delta]:
    return [delta async for delta in model.stream(request)]


async def failure_of(answer: Answer, before: list[Delta] | None = None) -> ModelError:
    """What the reply fails with; the deltas that came before go into `before`."""
    async with serving(answer) as server:
        with pytest.raises(ModelError) as caught:  # noqa: PT012 - what came before it counts
            async for delta in client(server).stream(HI):
                if before is not None:
                    before.append(delta)
    return caught.value


# --- what is sent


async def test_a_request_is_posted_with_the_token_and_everything_in_it() -> None:
    request = ModelRequest(
        messages=HI.messages,
        instructions="sys",
        tools=(ToolSpec(name="echo", description="Echo", parameters={"type": "object"}),),
        settings=ModelSettings(temperature=0.5, max_output_tokens=77, thinking="low"),
        session_id="s",
        meta=[1],
    )
    async with serving(chunked(FINISH)) as server:
        await deltas_of(
            ProxyModel(f"{server.url}/api/?v=1", "fast", token="secret-token", headers={"X-A": "b"}), request
        )
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/api/stream?v=1")
    assert asked.headers["authorization"] == "Bearer secret-token"
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["x-a"] == "b"
    assert asked.json == {
        "transcript": {"version": 1, "messages": [{"type": "user", "parts": [{"type": "text", "text": "hi"}]}]},
        "version": 1,
        "model": "fast",
        "origin": "proxy:fast",
        "instructions": "sys",
        "tools": [{"name": "echo", "description": "Echo", "parameters": {"type": "object"}}],
        "tool_choice": "auto",
        "settings": {"temperature": 0.5, "max_output_tokens": 77, "thinking": "low"},
        "session_id": "s",
        "meta": [1],
    }


async def test_the_token_is_asked_for_at_every_request() -> None:
    """Tokens of a session expire while a conversation goes on."""
    tokens = iter(["one", "two"])

    async def token(provider: str) -> str:
        return next(tokens)

    async with serving(chunked(FINISH)) as server:
        model = client(server, token=token)
        await deltas_of(model)
        await deltas_of(model)
    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer one", "Bearer two"]


async def test_without_a_token_the_headers_speak() -> None:
    """Some applications know their users by a cookie."""
    async with serving(chunked(FINISH)) as server:
        await deltas_of(client(server, token=None, headers={"cookie": "session=1"}))
    assert "authorization" not in server.asked[0].headers
    assert server.asked[0].headers["cookie"] == "session=1"


async def test_a_token_that_cannot_be_had_is_told() -> None:
    def token(provider: str) -> str:
        raise OSError("keychain is shut")

    async with serving(chunked(FINISH)) as server:
        with pytest.raises(Unauthorized, match="keychain is shut"):
            await deltas_of(client(server, token=token))
    assert server.asked == []


async def test_the_application_may_look_at_the_body_and_change_it() -> None:
    seen: list[Any] = []

    def look(body: dict[str, Any]) -> dict[str, Any]:
        seen.append(body["model"])
        return {**body, "model": "slow"}

    async with serving(chunked(FINISH)) as server:
        await deltas_of(client(server), ModelRequest(messages=HI.messages, on_payload=look))
    assert (seen, server.asked[0].json["model"]) == (["fast"], "slow")


async def test_what_is_no_json_is_refused_before_anything_is_sent() -> None:
    """`meta` is carried untouched, and an object cannot be carried to another machine."""
    async with serving(chunked(FINISH)) as server:
        with pytest.raises(Rejected, match="object is no JSON"):
            await deltas_of(client(server), ModelRequest(messages=HI.messages, meta=object()))
    assert server.asked == []


@pytest.mark.parametrize("address", ["", "example.com", "ftp://x", "http://", "http://[::1"])
def test_an_address_that_is_none_is_told_at_once(address: str) -> None:
    with pytest.raises(UsageError, match="no address of a back end"):
        ProxyModel(address, "fast")


def test_a_model_needs_a_name() -> None:
    with pytest.raises(UsageError, match="a model needs a name"):
        ProxyModel("http://127.0.0.1:1", "")


# --- what comes back


async def test_a_reply_is_rebuilt_with_its_signatures_and_opaque_data() -> None:
    async with serving(chunked(REPLY)) as server:
        message = join(await deltas_of(client(server)))
    assert message.parts == (
        Thinking(text="hm", signature="sig"),
        Text("Été 🌧"),
        ToolCall(id="c1", name="echo", arguments='{"a":1}', opaque={"s": 1}),
    )
    assert message.usage == Usage(input=3, output=2, total=5, cost=0.5)
    assert (message.stop_reason, message.response_id, message.model) == ("tool_calls", "r", "m-1")


@pytest.mark.parametrize("seed", range(8))
async def test_bytes_may_be_cut_anywhere(seed: int) -> None:
    """Lines end in CR, LF or both; comments and other fields are passed over."""
    cut = random.Random(seed)
    data = REPLY if seed % 2 else REPLY.replace(b"\n", b"\r\n").replace(b"data: ", b"event: x\r\ndata:")
    places = sorted(cut.sample(range(1, len(data)), 40))
    pieces = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    async with serving(chunked(*pieces)) as server:
        deltas = await deltas_of(client(server))
    async with serving(chunked(REPLY)) as server:
        assert deltas == await deltas_of(client(server))


async def test_an_unknown_event_is_told_and_passed_over() -> None:
    """A newer back end may say more."""
    async with serving(chunked(HELLO, b'data: {"type":"ping","x":[1]}\n\n', FINISH)) as server:
        deltas = await deltas_of(client(server))
    assert deltas[2] == WarningChunk(
        "unknown_event", "the back end sent an event of the kind 'ping', which is not known here"
    )
    assert deltas[3] == FinishChunk()


async def test_a_field_that_is_not_known_is_passed_over() -> None:
    async with serving(chunked(b'data: {"type":"text","text":"a","mood":"gay"}\n\n', FINISH)) as server:
        assert await deltas_of(client(server)) == [TextChunk("a"), FinishChunk()]


async def test_the_connection_is_used_again() -> None:
    async with serving(chunked(HELLO, FINISH)) as server:
        model = client(server)
        for _ in range(3):
            assert len(await deltas_of(model)) == 3
    assert server.connections == 1


async def test_nothing_is_read_behind_the_end() -> None:
    async with serving(chunked(HELLO, FINISH, b'data: {"type":"text","text":"ghost"}\n\ndata: nonsense\n\n')) as server:
        assert (await deltas_of(client(server)))[2:] == [FinishChunk()]


# --- endings


@pytest.mark.parametrize("end", [True, False])
async def test_a_last_line_without_its_end_counts(end: bool) -> None:
    """The reference loses it, and waits for ever."""
    async with serving(chunked(HELLO, FINISH.rstrip(b"\n"), end=end)) as server:
        assert await deltas_of(client(server)) == [TextChunk("Hel"), TextChunk("lo"), FinishChunk()]


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("last", [b"", b"data: ", b'data: {"type":"fin', b'data: {"type":"text","text":"!"}'])
async def test_a_reply_that_just_stops_was_dropped(end: bool, last: bytes) -> None:
    """The back end died, or somebody in between hung up: asking again may help, and what came is kept."""
    before: list[Delta] = []
    error = await failure_of(chunked(*filter(None, (HELLO, last)), end=end), before)
    assert type(error) is Dropped
    assert error.recovery == "wait"
    assert before == [TextChunk("Hel"), TextChunk("lo")]


@pytest.mark.parametrize("end", [True, False])
async def test_an_error_whose_line_has_no_end_is_that_error(end: bool) -> None:
    said = b'data: {"type":"error","kind":"Overloaded","text":"busy","recovery":"wait"}'
    assert type(await failure_of(chunked(HELLO, said, end=end))) is Overloaded


@pytest.mark.parametrize(
    "said",
    [b"{oops", b"[]", b"7", b'"text"', b"{}", b'{"type":7}', b'{"type":"text"}', b'{"type":"call","key":"a"}', b"\xff"],
)
async def test_what_is_no_event_is_garbled(said: bytes) -> None:
    before: list[Delta] = []
    error = await failure_of(chunked(HELLO, b"data: " + said + b"\n\n", FINISH), before)
    assert type(error) is Garbled
    assert len(before) == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_keeps_its_class_and_all_that_it_knows(kind: type[ModelError]) -> None:
    """What the loop does next depends on nothing else."""
    error = kind(
        "sorry, é", recovery="other_model", retry_after=2.5, status=418, code="c", provider="p", request_id="r"
    )
    before: list[Delta] = []
    found = await failure_of(chunked(HELLO, b"data: " + encode_error(error) + b"\n\n"), before)
    assert type(found) is kind
    assert (str(found), vars(found)) == (str(error), vars(error))
    assert len(before) == 2


async def test_an_error_of_a_kind_that_is_not_known_keeps_its_recovery() -> None:
    said = b'data: {"type":"error","kind":"Melted","text":"hot","recovery":"wait","retry_after":1}\n\n'
    error = await failure_of(chunked(said))
    assert type(error) is ModelError
    assert (error.recovery, error.retry_after, str(error)) == ("wait", 1, "hot")


@pytest.mark.parametrize(
    ("status", "more", "kind", "recovery"),
    [
        ("401 Unauthorized", "", Unauthorized, "never"),
        ("404 Not Found", "", Rejected, "never"),
        ("413 Payload Too Large", "", Rejected, "never"),
        ("429 Too Many Requests", "retry-after: 7\r\n", RateLimited, "wait"),
        ("500 Internal Server Error", "", Overloaded, "wait"),
        ("503 Service Unavailable", "", Overloaded, "wait"),
    ],
)
async def test_a_refusal_is_its_status_and_its_words(
    status: str, more: str, kind: type[ModelError], recovery: str
) -> None:
    said = json.dumps({"error": {"message": "not you", "code": "c"}}).encode()
    error = await failure_of(whole(said, status=status, more=more))
    assert type(error) is kind
    assert (error.status, error.code, error.recovery) == (int(status[:3]), "c", recovery)
    assert "'not you'" in str(error)
    assert error.retry_after == (7 if more else None)


async def test_a_page_is_no_back_end() -> None:
    """The address of the application's own front page answers 200 to everything."""
    error = await failure_of(whole(b"<html>welcome</html>", kind="text/html"))
    assert type(error) is Garbled
    assert error.recovery == "never"
    assert "check its address" in str(error)


async def test_nobody_there_is_told() -> None:
    listener = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    with pytest.raises(Unreachable):
        await deltas_of(ProxyModel(f"http://127.0.0.1:{port}", "fast"))


async def test_a_time_limit_is_kept() -> None:
    async def hanging(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        await anyio.sleep(2)

    async with serving(hanging) as server:
        with pytest.raises(Stalled):
            await deltas_of(client(server, limits=HttpLimits(total=0.1)))


async def test_leaving_early_closes_the_connection() -> None:
    """The back end then ends its own request to the model."""

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + HELLO)

    async with serving(endless) as server:
        async with aclosing(client(server).stream(HI)) as deltas:
            assert await anext(deltas) == TextChunk("Hel")
            assert not server.gone.is_set()
        with anyio.fail_after(10):
            await server.gone.wait()


async def test_a_dropped_reply_is_asked_for_again_by_a_run() -> None:
    """The typed error is all that the loop needs to repair it."""
    answers = iter([chunked(HELLO, end=False), chunked(HELLO, FINISH)])

    async def answer(writer: asyncio.StreamWriter) -> None:
        await next(answers)(writer)

    async with serving(answer) as server:
        result = await Agent(client(server), recovery=Recovery(delay=0)).run("hi")
    assert result.text == "Hello"
    assert len(server.asked) == 2


# --- what the back end knows of its models


async def test_facts_can_be_asked_for() -> None:
    info = {"provider": "anthropic", "id": "claude-x", "context_window": 9, "prices": {"input": 1, "output": 2}}
    body = json.dumps({"models": {"fast": info, "plain": None}}).encode()
    async with serving(whole(body)) as server:
        model = await ProxyModel.connect(server.url, "fast", token="secret-token")
        plain = await ProxyModel.connect(server.url, "plain")
        with pytest.raises(Rejected, match=r"no model named 'other' for this token; it has: fast, plain"):
            await ProxyModel.connect(server.url, "other")
    assert (model.info.origin, model.info.context_window) == ("anthropic:claude-x", 9)
    assert plain.info == ModelInfo(provider="proxy", id="plain")
    assert (server.asked[0].method, server.asked[0].path) == ("GET", "/models")
    assert server.asked[0].headers["authorization"] == "Bearer secret-token"


@pytest.mark.parametrize("body", [b"{}", b"[]", b"7", b'{"models":[]}', b'{"models":{"fast":7}}'])
async def test_a_list_that_is_none_is_garbled(body: bytes) -> None:
    async with serving(whole(body)) as server:
        with pytest.raises(Garbled, match="list of models cannot be read"):
            await ProxyModel.connect(server.url, "fast")


# --- the protocol itself

TEXTS = st.text(max_size=20) | st.sampled_from(["", "\ud83d", "a\ud83d\ude00", "\u2028\r\n"])
MAYBE = st.none() | st.text(max_size=5)
OBJECTS = st.none() | st.dictionaries(st.text(max_size=3), st.integers(-5, 5) | st.text(max_size=3), max_size=3)
DELTAS = st.one_of(
    st.builds(TextChunk, TEXTS, MAYBE),
    st.builds(ThinkingChunk, TEXTS, MAYBE, st.booleans()),
    st.builds(CallChunk, st.integers(0, 99), TEXTS, TEXTS, TEXTS, OBJECTS),
    st.builds(WholeCall, TEXTS, TEXTS | st.just({"a": [1, {"b": None}]}), TEXTS, OBJECTS),
    st.builds(UsageChunk, st.builds(Usage, input=st.integers(0, 9), cost=st.none() | st.floats(0, 9), extra=OBJECTS)),
    st.builds(WarningChunk, TEXTS, TEXTS),
    st.builds(FinishChunk, st.sampled_from(["stop", "length", "refused"]), MAYBE, MAYBE, MAYBE),
)


def mended(delta: Delta) -> str:
    """Half characters cannot travel; everything else must."""
    return (
        repr(delta)
        .encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
        .replace("\\ud83d\\ude00", "😀")
        .replace("\\ud83d", "\ufffd")
    )


@given(DELTAS)
@often
def test_every_delta_comes_out_as_it_went_in(delta: Delta) -> None:
    found = decode_event(encode_delta(delta))
    assert type(found) is type(delta)
    assert mended(found) == mended(delta)


@given(st.binary(max_size=60) | st.text(max_size=30).map(lambda text: json.dumps({"type": text}).encode()))
@often
def test_any_bytes_are_a_delta_or_a_typed_error(data: bytes) -> None:
    try:
        found = decode_event(data)
    except ModelError:
        return
    assert isinstance(found, Delta)


@given(
    st.sampled_from(["text", "thinking", "call", "whole_call", "usage", "warning", "finish", "error"]),
    st.dictionaries(
        st.sampled_from(["text", "key", "id", "name", "arguments", "usage", "code", "reason", "kind", "recovery"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.lists(st.none(), max_size=2),
    ),
)
@often
def test_an_event_with_odd_fields_is_a_delta_or_a_typed_error(kind: str, fields: dict[str, Any]) -> None:
    try:
        found = decode_event(json.dumps({"type": kind, **fields}).encode())
    except ModelError:
        return
    assert isinstance(found, Delta)


@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.text(max_size=5),
        lambda inner: st.dictionaries(st.sampled_from(["version", "model", "transcript", "tools", "settings"]), inner),
    ).map(lambda value: json.dumps(value).encode())
)
@often
def test_any_bytes_are_a_request_or_a_usage_error(data: bytes) -> None:
    """A back end must not fall over what a stranger sends."""
    try:
        asked = decode_request(data)
    except UsageError:
        return
    assert asked.model is not None


def test_a_request_goes_there_and_back() -> None:
    request = ModelRequest(messages=HI.messages, instructions="half \ud83d", meta={"a": 1.5})
    asked = decode_request(encode_request("fast", "proxy:fast", request))
    back = asked.request(None, request.cancel)
    assert (back.instructions, back.meta, back.messages) == ("half \ufffd", {"a": 1.5}, tuple(request.messages))
