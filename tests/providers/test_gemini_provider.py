"""The Gemini API over a real connection to this machine: what is sent, what comes back, and how it ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import Any

import anyio
import pytest

from antiphon.errors import (
    ContextOverflow,
    Dropped,
    Filtered,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Unauthorized,
    Unreachable,
    UsageError,
)
from antiphon.providers.gemini.provider import Gemini
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import Joiner
from antiphon.types.messages import AssistantMessage, UserMessage
from antiphon.types.request import (
    Delta,
    FinishChunk,
    ModelInfo,
    ModelRequest,
    ModelSettings,
    TextChunk,
    ToolSpec,
    UsageChunk,
    WarningChunk,
)
from antiphon.types.usage import Usage

from . import wire_server
from .wire_server import STREAMING, Answer, Server, chunked, whole

pytestmark = pytest.mark.anyio

MODEL = "gemini-2.5-flash"


def event(*parts: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    """A chunk as the server frames it: data lines that end in CR LF."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    data = {"candidates": [candidate], "modelVersion": MODEL, "responseId": "r1", **fields}
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\r\n\r\n"


USAGE = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}
HELLO = event({"text": "Hel"}) + event({"text": "lo"}, finish="STOP", usageMetadata=USAGE)

# A recorded turn, shortened: a thought, a text, two calls.
TURN = b"".join(
    [
        event({"text": "**Grüße** 世", "thought": True}, usageMetadata={"promptTokenCount": 3}),
        event({"text": "界 😀", "thought": True}),
        event({"text": "Señor, "}),
        event({"text": "un momento."}),
        event(
            {"functionCall": {"name": "look", "args": {"city": "München"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"name": "now", "args": {}}},
        ),
        event({"text": ""}, finish="STOP", usageMetadata=USAGE),
    ]
)


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Server]:
    async with wire_server.serving(Server(answer, "/v1beta")) as server:
        yield server


async def hang(writer: asyncio.StreamWriter) -> None:
    """Says a first word and no more."""
    first = event({"text": "first"})
    writer.write(STREAMING + b"%x\r\n%b\r\n" % (len(first), first))


def request(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=[UserMessage.of("hi")], **fields)


async def read_into(said: list[Delta], model: Gemini, **fields: Any) -> None:
    async for delta in model.stream(request(**fields)):
        said.append(delta)


async def ask(model: Gemini, **fields: Any) -> AssistantMessage:
    said: list[Delta] = []
    await read_into(said, model, **fields)
    joiner = Joiner()
    for delta in said:
        joiner.add(delta)
    return joiner.message(provider=model.info.provider, model=model.info.id)


# --- the reply


async def test_a_reply_is_streamed_and_the_finish_comes_last() -> None:
    async with serving(chunked(HELLO)) as server:
        said: list[Delta] = []
        await read_into(said, Gemini(MODEL, base_url=server.base_url), instructions="Be brief.")
    assert said == [
        TextChunk("Hel"),
        TextChunk("lo"),
        UsageChunk(Usage(input=3, output=2, total=5)),
        FinishChunk("stop", "STOP", "r1", MODEL),
    ]
    [asked] = server.asked
    assert (asked.method, asked.path) == ("POST", f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse")
    assert asked.headers["content-type"] == "application/json"
    assert asked.json == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }


@pytest.mark.parametrize("seed", range(6))
async def test_any_cut_of_the_bytes_gives_the_same_reply(seed: int) -> None:
    """D4: a character, an event and a line end may be cut anywhere."""
    random = Random(seed)
    cuts = sorted(random.sample(range(1, len(TURN)), random.choice([5, 60, 400])))
    pieces = [TURN[start:end] for start, end in zip([0, *cuts], [*cuts, len(TURN)], strict=True)]
    async with serving(chunked(*pieces)) as server:
        message = await ask(Gemini(MODEL, base_url=server.base_url))
    thought, said, *calls = message.parts
    assert isinstance(thought, Thinking)
    assert isinstance(said, Text)
    assert (thought.text, said.text) == ("**Grüße** 世界 😀", "Señor, un momento.")
    assert [(call.name, call.arguments) for call in calls if isinstance(call, ToolCall)] == [
        ("look", '{"city": "München"}'),
        ("now", "{}"),
    ]
    assert (message.stop_reason, message.usage) == ("tool_calls", Usage(input=3, output=2, total=5))


async def test_a_connection_is_used_again_for_the_next_turn() -> None:
    async with serving(chunked(HELLO)) as server:
        model = Gemini(MODEL, base_url=server.base_url)
        for _ in range(3):
            async with aclosing(model.stream(request())) as stream:
                async for delta in stream:
                    if isinstance(delta, FinishChunk):  # as the engine does: nothing is read behind it
                        break
    assert (len(server.asked), server.connections) == (3, 1)


async def test_a_setting_without_a_field_is_warned_of() -> None:
    async with serving(chunked(HELLO)) as server:
        said: list[Delta] = []
        wish = ModelSettings(parallel_tool_calls=False)
        await read_into(said, Gemini(MODEL, base_url=server.base_url), settings=wish)
    assert isinstance(said[0], WarningChunk)
    assert (said[0].code, "'parallel_tool_calls'" in said[0].text) == ("setting_left_out", True)


@pytest.mark.parametrize("as_list", [True, False])
async def test_a_whole_answer_in_place_of_events_is_read(*, as_list: bool) -> None:
    chunk = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    async with serving(whole(json.dumps([chunk] if as_list else chunk, indent=1).encode())) as server:
        assert (await ask(Gemini(MODEL, base_url=server.base_url))).text == "Hi"


# --- keys and headers


async def test_the_key_has_a_header_of_its_own_and_is_not_in_the_address() -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(Gemini(MODEL, base_url=server.base_url, api_key="secret"))
    assert server.asked[0].headers["x-goog-api-key"] == "secret"
    assert "secret" not in server.asked[0].path


async def test_a_token_takes_the_place_of_the_key() -> None:
    async with serving(chunked(HELLO)) as server:
        model = Gemini(MODEL, base_url=server.base_url, api_key="k", headers={"Authorization": "Bearer t", "X-A": "1"})
        await ask(model, settings=ModelSettings(extra_headers={"x-a": "2"}))
    headers = server.asked[0].headers
    assert (headers["authorization"], headers["x-a"]) == ("Bearer t", "2")
    assert "x-goog-api-key" not in headers


@pytest.mark.parity("C11")
async def test_a_key_function_is_asked_for_every_request_with_the_providers_name() -> None:
    asked: list[str] = []

    async def key(provider: str) -> str:
        asked.append(provider)
        return f"key-{len(asked)}"

    async with serving(chunked(HELLO)) as server:
        model = Gemini(MODEL, base_url=server.base_url, api_key=key)
        await ask(model)
        await ask(model)
    assert asked == ["gemini", "gemini"]
    assert [one.headers["x-goog-api-key"] for one in server.asked] == ["key-1", "key-2"]


@pytest.mark.parametrize("variable", ["GEMINI_API_KEY", "GOOGLE_API_KEY"])
async def test_the_environments_key_is_read_at_the_request(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with serving(chunked(HELLO)) as server:
        model = Gemini(MODEL, base_url=server.base_url)
        monkeypatch.setenv(variable, " from-env\n")
        await ask(model)
    assert server.asked[0].headers["x-goog-api-key"] == "from-env"


async def test_a_missing_key_is_told_with_its_variable_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Unauthorized, match="set GEMINI_API_KEY or GOOGLE_API_KEY"):
        await ask(Gemini(MODEL))


async def test_the_payload_can_be_seen_and_replaced() -> None:
    def change(payload: dict[str, Any]) -> dict[str, Any]:
        return payload | {"labels": {"a": "b"}}

    async with serving(chunked(HELLO)) as server:
        await ask(Gemini(MODEL, base_url=server.base_url), on_payload=change, tools=(ToolSpec(name="look"),))
    assert server.asked[0].json["labels"] == {"a": "b"}
    assert server.asked[0].json["tools"] == [{"functionDeclarations": [{"name": "look"}]}]


# --- failures


INVALID_KEY = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        ("429 Too Many Requests", {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "slow down"}, RateLimited),
        ("400 Bad Request", {"code": 400, "message": "API key not valid", "details": INVALID_KEY}, Unauthorized),
        ("400 Bad Request", {"code": 400, "status": "INVALID_ARGUMENT", "message": "bad field"}, Rejected),
        (
            "400 Bad Request",
            {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens allowed"},
            ContextOverflow,
        ),
        ("503 Service Unavailable", {"code": 503, "status": "UNAVAILABLE", "message": "later"}, Overloaded),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_refusal_is_classified_with_the_servers_words(
    status: str, error: dict[str, Any], kind: type[ModelError], *, wrapped: bool
) -> None:
    body = json.dumps([{"error": error}] if wrapped else {"error": error}).encode()
    async with serving(whole(body, status=status, more="x-request-id: req-9\r\n")) as server:
        with pytest.raises(kind) as caught:
            await ask(Gemini(MODEL, base_url=server.base_url))
    assert error["message"] in str(caught.value)
    assert (caught.value.request_id, caught.value.provider) == ("req-9", "gemini")


async def test_an_error_after_the_head_is_raised_behind_what_was_said_before() -> None:
    broken = event({"text": "a"}) + b'data: {"error":{"code":503,"status":"UNAVAILABLE","message":"died"}}\r\n\r\n'
    async with serving(chunked(broken)) as server:
        said: list[Delta] = []
        with pytest.raises(Overloaded, match="died") as caught:
            await read_into(said, Gemini(MODEL, base_url=server.base_url))
    assert said == [TextChunk("a")]
    assert caught.value.request_id == "req-1"


async def test_a_blocked_prompt_is_filtered() -> None:
    blocked = b'data: {"promptFeedback":{"blockReason":"SAFETY"}}\r\n\r\n'
    async with serving(chunked(blocked)) as server:
        with pytest.raises(Filtered, match="SAFETY"):
            await ask(Gemini(MODEL, base_url=server.base_url))


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("left", [b"", b'data: {"candidates":[{"content":{"parts":[{"text":"x'])
async def test_d7_a_stream_without_a_marker_was_dropped_however_it_ends(left: bytes, *, end: bool) -> None:
    async with serving(chunked(event({"text": "a"}), *([left] if left else []), end=end)) as server:
        said: list[Delta] = []
        with pytest.raises(Dropped):
            await read_into(said, Gemini(MODEL, base_url=server.base_url))
    assert said == [TextChunk("a")]


async def test_a_reply_with_its_marker_is_whole_though_the_connection_is_torn() -> None:
    async with serving(chunked(HELLO, end=False)) as server:
        assert (await ask(Gemini(MODEL, base_url=server.base_url))).text == "Hello"


async def test_a_last_event_without_its_blank_line_counts() -> None:
    async with serving(chunked(HELLO.rstrip(b"\r\n"))) as server:
        assert (await ask(Gemini(MODEL, base_url=server.base_url))).text == "Hello"


async def test_what_comes_behind_the_marker_counts_too() -> None:
    """Older models finish in every chunk, and gateways send the usage last."""
    usage = b'data: {"usageMetadata":{"promptTokenCount":7}}\n\n'
    pieces = (event({"text": "Hel"}, finish="STOP"), event({"text": "lo"}, finish="STOP"), usage)
    async with serving(chunked(*pieces)) as server:
        message = await ask(Gemini(MODEL, base_url=server.base_url))
    assert (message.text, message.usage) == ("Hello", Usage(input=7))


async def test_a_server_that_never_closes_after_the_marker_does_not_hold_the_reply() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAMING + b"%x\r\n%b\r\n" % (len(HELLO), HELLO))

    async with serving(answer) as server:
        with anyio.fail_after(10):
            assert (await ask(Gemini(MODEL, base_url=server.base_url))).text == "Hello"


async def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        await ask(Gemini(MODEL, base_url="http://127.0.0.1:9/v1beta"))


async def test_a_page_of_html_says_that_the_address_is_wrong() -> None:
    async with serving(whole(b"<!doctype html><html>")) as server:
        with pytest.raises(Garbled, match="check the base URL") as caught:
            await ask(Gemini(MODEL, base_url=server.base_url))
    assert caught.value.recovery == "never"


async def test_settings_that_json_cannot_say_are_a_rejection() -> None:
    model = Gemini(MODEL, base_url="http://127.0.0.1:9/v1beta")
    with pytest.raises(Rejected, match="extra_body"):
        await ask(model, settings=ModelSettings(extra_body={"x": object()}))


# --- leaving


async def test_leaving_early_closes_the_connection_at_once() -> None:
    async with serving(hang) as server:
        async with aclosing(Gemini(MODEL, base_url=server.base_url).stream(request())) as stream:
            assert await anext(stream) == TextChunk("first")
        with anyio.fail_after(5):
            await server.gone.wait()


async def test_a_cancellation_closes_the_connection_and_stays_one() -> None:
    async with serving(hang) as server:
        first = anyio.Event()

        async def read() -> None:
            async for _ in Gemini(MODEL, base_url=server.base_url).stream(request()):
                first.set()

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await first.wait()
                group.cancel_scope.cancel()
            await server.gone.wait()


# --- construction


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http://", "//host", "http://[::1"])
async def test_an_address_that_is_none_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="no base URL"):
        Gemini(MODEL, base_url=url)


@pytest.mark.parametrize("name", ["", "models/"])
async def test_a_model_without_a_name_is_a_usage_error(name: str) -> None:
    with pytest.raises(UsageError, match="needs a name"):
        Gemini(name)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("models/gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro"),
        ("tunedModels/mine", "/v1beta/tunedModels/mine"),
        ("a b?c", "/v1beta/models/a%20b%3Fc"),
    ],
)
async def test_a_model_may_be_a_path_and_is_quoted(name: str, path: str) -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(Gemini(name, base_url=server.base_url + "/"))
    assert server.asked[0].path == f"{path}:streamGenerateContent?alt=sse"


async def test_a_query_of_the_base_url_stays() -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(Gemini(MODEL, base_url=server.base_url + "?tenant=a"))
    assert server.asked[0].path == f"/v1beta/models/{MODEL}:streamGenerateContent?tenant=a&alt=sse"


async def test_a_model_says_who_it_is() -> None:
    assert Gemini("models/gemini-2.5-pro").info == ModelInfo(provider="gemini", id="gemini-2.5-pro")
