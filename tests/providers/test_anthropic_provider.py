"""The Messages API over a real connection to this machine: what is sent, what comes back, and how it ends."""

import asyncio
import json
import random
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from antiphon.errors import (
    ContextOverflow,
    Dropped,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Unauthorized,
    Unreachable,
    UsageError,
)
from antiphon.providers.anthropic.provider import Anthropic
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import Joiner, join
from antiphon.types.messages import AssistantMessage, UserMessage
from antiphon.types.request import Delta, FinishChunk, ModelInfo, ModelRequest, ModelSettings, TextChunk, ToolSpec
from antiphon.types.usage import Usage

from .anthropic_server import HEAD, MODEL, Server, chunked, serving, whole
from .anthropic_stream import begin, change, in_bytes, reply, start, text

pytestmark = pytest.mark.anyio

# As the API writes it, down to the spaces: a thought, text and a call.
RECORDED = (
    "event: message_start\n"
    'data: {"type":"message_start","message":{"model":"claude-sonnet-4-5-20250929","id":"msg_01A","type":"message",'
    '"role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":472,'
    '"cache_creation_input_tokens":0,"cache_read_input_tokens":1024,"cache_creation":{"ephemeral_5m_input_tokens":0,'
    '"ephemeral_1h_input_tokens":0},"output_tokens":2,"service_tier":"standard"}}      }\n\n'
    "event: content_block_start\n"
    'data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}   }\n\n'
    "event: ping\n"
    'data: {"type": "ping"}\n\n'
    "event: content_block_delta\n"
    'data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Oslo, 雨?"}        }\n\n'
    "event: content_block_delta\n"
    'data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqoBCkgIARABGAIi=="} }\n\n'
    "event: content_block_stop\n"
    'data: {"type":"content_block_stop","index":0           }\n\n'
    "event: content_block_start\n"
    'data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}     }\n\n'
    "event: content_block_delta\n"
    'data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Ich schaue nach"}   }\n\n'
    "event: content_block_delta\n"
    'data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" für Sie 🌧."}    }\n\n'
    "event: content_block_stop\n"
    'data: {"type":"content_block_stop","index":1 }\n\n'
    "event: content_block_start\n"
    'data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_01T1x","name":"weather",'
    '"input":{}}  }\n\n'
    "event: content_block_delta\n"
    'data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}\n\n'
    "event: content_block_delta\n"
    'data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"city\\": \\"Os"}}\n\n'
    "event: content_block_delta\n"
    'data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"lo\\"}"}      }\n\n'
    "event: content_block_stop\n"
    'data: {"type":"content_block_stop","index":2              }\n\n'
    "event: message_delta\n"
    'data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":472,'
    '"cache_creation_input_tokens":0,"cache_read_input_tokens":1024,"output_tokens":89}  }\n\n'
    "event: message_stop\n"
    'data: {"type":"message_stop"          }\n\n'
).encode()
HELLO = in_bytes(reply(text(0, "Hel", "lo")))


def request(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=[UserMessage.of("hi")], **fields)


async def read_into(said: list[Delta], model: Anthropic) -> None:
    """Keeps what was said, also when the reply fails."""
    async for delta in model.stream(request()):
        said.append(delta)


async def ask(model: Anthropic, **fields: Any) -> AssistantMessage:
    return join([delta async for delta in model.stream(request(**fields))])


def headers_of(server: Server) -> dict[str, str]:
    return server.asked[-1].headers


# --- replies


async def test_a_reply_is_streamed_and_the_finish_comes_last() -> None:
    async with serving(chunked(HELLO)) as server:
        deltas = [delta async for delta in server.model().stream(request(instructions="Be brief."))]
    assert [delta for delta in deltas if isinstance(delta, TextChunk)] == [TextChunk("Hel"), TextChunk("lo")]
    assert isinstance(deltas[-1], FinishChunk)
    [asked] = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/messages")
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["anthropic-version"] == "2023-06-01"
    assert (asked.json["model"], asked.json["stream"]) == (MODEL, True)


@pytest.mark.parametrize("seed", range(12))
async def test_d04_recorded_bytes_in_any_pieces_give_the_same_reply(seed: int) -> None:
    """A network cuts where it likes: within events, within characters, within line ends."""
    chance = random.Random(seed)
    most = chance.choice([1, 3, 40, 600])
    pieces, rest = [], RECORDED
    while rest:
        size = chance.randint(1, most)
        pieces.append(rest[:size])
        rest = rest[size:]
    async with serving(chunked(*pieces)) as server:
        made = await ask(server.model())
    assert made.parts == (
        Thinking(text="Oslo, 雨?", signature="EqoBCkgIARABGAIi=="),
        Text("Ich schaue nach für Sie 🌧."),
        ToolCall(id="toolu_01T1x", name="weather", arguments='{"city": "Oslo"}'),
    )
    assert (made.stop_reason, made.response_id, made.model) == ("tool_calls", "msg_01A", "claude-sonnet-4-5-20250929")
    assert made.usage is not None
    assert (made.usage.input, made.usage.output, made.usage.cache_read) == (1496, 89, 1024)


async def test_a_thought_that_came_in_a_reply_goes_back_in_the_next_request() -> None:
    """The origin that the engine writes into a message is the one that the encoder looks for."""
    async with serving(chunked(RECORDED)) as server:
        model = server.model()
        deltas = [delta async for delta in model.stream(request())]
        joiner = Joiner()
        for delta in deltas:
            joiner.add(delta)
        made = joiner.message(provider=model.info.provider, model=model.info.id)
        messages = [UserMessage.of("hi"), made, UserMessage.of("and?")]
        async for _ in model.stream(ModelRequest(messages=messages)):
            pass
    sent = server.asked[1].json["messages"][1]["content"][0]
    assert sent == {"type": "thinking", "thinking": "Oslo, 雨?", "signature": "EqoBCkgIARABGAIi=="}


async def test_d01_d02_d03_comments_heartbeats_and_bare_names_are_nothing() -> None:
    noise = b": keep-alive\n\n" + b"data:\n\n" + b"event: ping\n\n" + b"event: ping\ndata: \n\n"
    first, _, rest = HELLO.partition(b"\n\n")
    async with serving(chunked(noise + first + b"\n\n" + noise + rest + noise)) as server:
        assert (await ask(server.model())).text == "Hello"


async def test_a_connection_is_used_again_for_the_next_turn() -> None:
    async with serving(chunked(HELLO)) as server:
        model = server.model()
        for _ in range(3):
            async with aclosing(model.stream(request())) as stream:
                async for delta in stream:
                    if isinstance(delta, FinishChunk):  # as the engine does: nothing is read behind it
                        break
    assert (len(server.asked), server.connections) == (3, 1)


async def test_f01_leaving_a_stream_closes_the_connection_at_once() -> None:
    """What is not read would be written, and paid, to its end."""

    async def hang(writer: asyncio.StreamWriter) -> None:
        first = in_bytes([start(), begin(0, "text", text="first")])
        writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(first), first))

    async with serving(hang) as server:
        async with aclosing(server.model().stream(request())) as stream:
            async for delta in stream:
                if delta == TextChunk("first"):
                    break
        with anyio.fail_after(10):
            await server.gone.wait()


async def test_a_server_that_does_not_stream_is_understood() -> None:
    body = {
        "id": "msg_9", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "a"}],
        "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 4},
    }  # fmt: skip
    async with serving(whole(json.dumps(body).encode())) as server:
        made = await ask(server.model())
    assert (made.text, made.usage) == ("a", Usage(input=3, output=4))


async def test_the_connection_can_be_opened_ahead_of_the_first_request() -> None:
    async with serving(whole(b'{"data":[]}')) as server:
        await server.model().warm()
        assert [(asked.method, asked.path) for asked in server.asked] == [("GET", "/v1/models")]
    await Anthropic(MODEL, base_url=server.url, api_key="k").warm()  # nobody is there any more: never raises


# --- keys, headers and addresses


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [
        ("sk-ant-api03-x", "x-api-key", "sk-ant-api03-x"),
        ("other", "x-api-key", "other"),
        ("sk-ant-oat01-x", "authorization", "Bearer sk-ant-oat01-x"),
        ("Bearer x", "authorization", "Bearer x"),
    ],
)
async def test_a_key_has_a_header_of_its_own_and_a_token_is_a_bearers(key: str, name: str, value: str) -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(server.model(api_key=key))
    headers = headers_of(server)
    assert headers[name] == value
    assert len({"x-api-key", "authorization"} & headers.keys()) == 1


async def test_a_key_function_is_asked_for_every_request_with_the_providers_name() -> None:
    asked: list[str] = []

    async def key(provider: str) -> str:
        asked.append(provider)
        return f"key-{len(asked)}"

    async with serving(chunked(HELLO)) as server:
        model = server.model(api_key=key)
        await ask(model)
        await ask(model)
    assert asked == ["anthropic", "anthropic"]
    assert [one.headers["x-api-key"] for one in server.asked] == ["key-1", "key-2"]


@pytest.mark.parametrize(
    ("variables", "name", "value"),
    [
        ({"ANTHROPIC_API_KEY": " key\n", "ANTHROPIC_AUTH_TOKEN": "token"}, "x-api-key", "key"),
        ({"ANTHROPIC_AUTH_TOKEN": "token"}, "authorization", "Bearer token"),
        ({"ANTHROPIC_OAUTH_TOKEN": "token"}, "authorization", "Bearer token"),
    ],
)
async def test_the_environment_is_read_at_the_request(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], name: str, value: str
) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    async with serving(chunked(HELLO)) as server:
        model = server.model(api_key=None)
        for variable, content in variables.items():
            monkeypatch.setenv(variable, content)
        await ask(model)
    assert headers_of(server)[name] == value


async def test_a_missing_key_is_told_with_its_variable_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(Unauthorized, match="set ANTHROPIC_API_KEY"):
        await ask(Anthropic(MODEL))


async def test_anthropics_key_does_not_go_to_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    async with serving(chunked(HELLO)) as server:
        await ask(server.model(api_key=None, info=ModelInfo(provider="minimax", id="M2")))
    assert "x-api-key" not in headers_of(server)


async def test_the_requests_headers_come_over_the_models_and_those_over_the_usual_ones() -> None:
    async with serving(chunked(HELLO)) as server:
        model = server.model(headers={"Anthropic-Beta": "a", "Anthropic-Version": "2026-10-21", "X-A": "1"})
        await ask(model, settings=ModelSettings(extra_headers={"anthropic-beta": "b", "X-Api-Key": "turn"}))
    headers = headers_of(server)
    assert (headers["anthropic-beta"], headers["anthropic-version"], headers["x-a"]) == ("b", "2026-10-21", "1")
    assert headers["x-api-key"] == "turn"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/messages"])
async def test_the_base_url_may_be_written_in_any_of_the_usual_ways(ending: str) -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(server.model(base_url=f"{server.url}/anthropic{ending}?tenant=a"))
    assert server.asked[0].path == "/anthropic/v1/messages?tenant=a"


@pytest.mark.parametrize("base_url", ["api.anthropic.com", "ftp://x", "", "http://", "http://[x"])
def test_what_is_no_address_is_told_at_once(base_url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        Anthropic(MODEL, base_url=base_url)


def test_a_model_needs_a_name() -> None:
    with pytest.raises(UsageError, match="name"):
        Anthropic("")


async def test_the_payload_can_be_seen_and_replaced() -> None:
    seen: list[dict[str, Any]] = []

    def look(payload: dict[str, Any]) -> None:
        seen.append(payload)

    async def change_model(payload: dict[str, Any]) -> dict[str, Any]:
        return payload | {"model": "other"}

    async with serving(chunked(HELLO)) as server:
        model = server.model()
        await ask(model, on_payload=look)
        await ask(model, on_payload=change_model)
    assert seen == [server.asked[0].json]
    assert [asked.json["model"] for asked in server.asked] == [MODEL, "other"]


async def test_another_server_is_not_asked_for_what_only_anthropic_knows() -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(server.model(), tools=(ToolSpec(name="now"),))
    assert "eager_input_streaming" not in server.asked[0].json["tools"][0]


# --- failures


@pytest.mark.parametrize(
    ("status", "kind", "words", "error", "recovery"),
    [
        ("400 Bad Request", "invalid_request_error", "max_tokens: required", Rejected, "never"),
        (
            "400 Bad Request",
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
            ContextOverflow,
            "never",
        ),
        ("401 Unauthorized", "authentication_error", "invalid x-api-key", Unauthorized, "never"),
        ("403 Forbidden", "permission_error", "not yours", Unauthorized, "never"),
        ("404 Not Found", "not_found_error", "model: x", Rejected, "never"),
        ("413 Content Too Large", "request_too_large", "too many bytes", Rejected, "never"),
        ("429 Too Many Requests", "rate_limit_error", "slow down", RateLimited, "wait"),
        ("500 Internal Server Error", "api_error", "oh", Overloaded, "wait"),
        ("504 Gateway Timeout", "timeout_error", "oh", Overloaded, "wait"),
        ("529 Overloaded", "overloaded_error", "Overloaded", Overloaded, "wait"),
    ],
)
async def test_a_refusal_is_classified_with_the_servers_words_and_wait(
    status: str, kind: str, words: str, error: type[ModelError], recovery: str
) -> None:
    body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_2"}
    answer = whole(json.dumps(body).encode(), status=status, more="retry-after: 7\r\nrequest-id: req_2\r\n")
    async with serving(answer) as server:
        with pytest.raises(error, match=words[:9]) as caught:
            await ask(server.model())
    failure = caught.value
    assert (failure.status, failure.code, failure.recovery) == (int(status[:3]), kind, recovery)
    assert (failure.retry_after, failure.request_id, failure.provider) == (7, "req_2", "anthropic")


async def test_d06_an_error_after_the_head_is_raised_behind_what_was_said_before() -> None:
    error = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
    first = in_bytes([start(), begin(0, "text", text=""), change(0, "text_delta", text="a")])
    async with serving(chunked(first + error)) as server:
        said: list[Delta] = []
        with pytest.raises(Overloaded, match="Overloaded") as caught:
            await read_into(said, server.model())
    assert said[-1] == TextChunk("a")
    assert caught.value.request_id == "req_1"


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize(
    "left", [b"", b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"de']
)
async def test_d07_a_stream_without_a_marker_was_dropped_however_it_ends(left: bytes, end: bool) -> None:
    """The call that was being written must not be run, nor half an answer be kept as whole."""
    pieces = [in_bytes([start(), begin(0, "text", text="a")]), *([left] if left else [])]
    async with serving(chunked(*pieces, end=end)) as server:
        said: list[Delta] = []
        with pytest.raises(Dropped):
            await read_into(said, server.model())
    assert said[-1] == TextChunk("a")


async def test_a_reply_with_its_marker_is_whole_though_the_connection_is_torn() -> None:
    async with serving(chunked(HELLO, end=False)) as server:
        assert (await ask(server.model())).text == "Hello"


async def test_a_last_event_without_its_blank_line_counts() -> None:
    async with serving(chunked(HELLO.removesuffix(b"\n\n"))) as server:
        assert (await ask(server.model())).text == "Hello"


async def test_a_server_that_never_closes_after_the_marker_does_not_hold_the_reply() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(HELLO), HELLO))

    async with serving(answer) as server:
        with anyio.fail_after(10):
            assert (await ask(server.model())).text == "Hello"


async def test_a_page_of_html_is_the_wrong_address() -> None:
    async with serving(whole(b"<html>Welcome</html>", kind="text/html")) as server:
        with pytest.raises(Garbled, match="base URL") as caught:
            await ask(server.model())
    assert caught.value.recovery == "never"


async def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        await ask(Anthropic(MODEL, base_url="http://127.0.0.1:9", api_key="k"))


async def test_settings_that_are_no_json_are_rejected_before_anything_is_sent() -> None:
    async with serving(chunked(HELLO)) as server:
        with pytest.raises(Rejected, match="extra_body"):
            await ask(server.model(), settings=ModelSettings(extra_body={"x": object()}))
    assert not server.asked
