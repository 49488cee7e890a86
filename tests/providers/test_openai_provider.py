"""Chat Completions over a real connection to this machine: what is sent, what comes back, and how it ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from antiphon.errors import Dropped, Garbled, ModelError, RateLimited, Rejected, Unauthorized, Unreachable, UsageError
from antiphon.providers.openai_chat.profiles import PROFILES
from antiphon.providers.openai_chat.provider import OpenAIChat, chat_model
from antiphon.types.joiner import join
from antiphon.types.messages import AssistantMessage, UserMessage
from antiphon.types.request import Delta, FinishChunk, ModelInfo, ModelRequest, ModelSettings, TextChunk
from antiphon.types.usage import Usage

from . import wire_server
from .wire_server import STREAMING, Answer, Server, chunked, whole

pytestmark = pytest.mark.anyio


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    body = {"id": "r1", "model": "m1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}\n\n'
DONE = b"data: [DONE]\n\n"
HELLO = event({"content": "Hel"}) + event({"content": "lo"}) + event({}, "stop") + USAGE + DONE


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Server]:
    async with wire_server.serving(Server(answer, "/v1")) as server:
        yield server


async def hang(writer: asyncio.StreamWriter) -> None:
    """Says a first word and no more."""
    first = event({"content": "first"})
    writer.write(STREAMING + b"%x\r\n%b\r\n" % (len(first), first))


def request(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=[UserMessage.of("hi")], **fields)


async def read_into(said: list[Delta], model: OpenAIChat) -> None:
    """Keeps what was said, also when the reply fails."""
    async for delta in model.stream(request()):
        said.append(delta)


async def ask(model: OpenAIChat, **fields: Any) -> AssistantMessage:
    return join([delta async for delta in model.stream(request(**fields))])


async def test_a_reply_is_streamed_and_the_finish_comes_last() -> None:
    async with serving(chunked(HELLO)) as server:
        model = OpenAIChat("m", base_url=server.base_url)
        deltas = [delta async for delta in model.stream(request(instructions="Be brief."))]
    assert deltas[:2] == [TextChunk("Hel"), TextChunk("lo")]
    assert isinstance(deltas[-1], FinishChunk)
    reply = join(deltas)
    assert (reply.text, reply.usage, reply.model) == ("Hello", Usage(input=3, output=2), "m1")
    [asked] = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
    assert asked.headers["content-type"] == "application/json"
    assert asked.json["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
async def test_any_cut_of_the_bytes_gives_the_same_reply(size: int) -> None:
    stream = event({"content": "Grüße, 世界 😀"}) + event({}, "stop") + DONE
    async with serving(chunked(*(stream[at : at + size] for at in range(0, len(stream), size)))) as server:
        assert (await ask(OpenAIChat("m", base_url=server.base_url))).text == "Grüße, 世界 😀"


async def test_d01_d02_d03_comments_heartbeats_and_bare_names_are_nothing() -> None:
    noise = b": OPENROUTER PROCESSING\n\n" + b"data:\n\n" + b"event: ping\n\n" + b"data: \n\n"
    stream = noise + event({"content": "a"}) + noise + event({}, "stop") + noise + DONE
    async with serving(chunked(stream)) as server:
        assert (await ask(OpenAIChat("m", base_url=server.base_url))).text == "a"


async def test_a_connection_is_used_again_for_the_next_turn() -> None:
    async with serving(chunked(HELLO)) as server:
        model = OpenAIChat("m", base_url=server.base_url)
        for _ in range(3):
            async with aclosing(model.stream(request())) as stream:
                async for delta in stream:
                    if isinstance(delta, FinishChunk):  # as the engine does: nothing is read behind it
                        break
    assert (len(server.asked), server.connections) == (3, 1)


# --- keys and headers


async def test_the_key_is_a_bearer_token() -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(OpenAIChat("m", base_url=server.base_url, api_key="secret"))
    assert server.asked[0].headers["authorization"] == "Bearer secret"


async def test_azure_has_a_header_and_a_query_of_its_own() -> None:
    async with serving(chunked(HELLO)) as server:
        url = f"http://127.0.0.1:{server.port}/openai/deployments/d?api-version=2024-10-21"
        await ask(OpenAIChat("m", base_url=url, api_key="secret", profile=PROFILES["azure"]))
    asked = server.asked[0]
    assert asked.path == "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    assert asked.headers["api-key"] == "secret"
    assert "authorization" not in asked.headers


async def test_a_key_function_is_asked_for_every_request_with_the_providers_name() -> None:
    asked: list[str] = []

    async def key(provider: str) -> str:
        asked.append(provider)
        return f"key-{len(asked)}"

    async with serving(chunked(HELLO)) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key=key, profile=PROFILES["groq"])
        await ask(model)
        await ask(model)
    assert asked == ["groq", "groq"]
    assert [one.headers["authorization"] for one in server.asked] == ["Bearer key-1", "Bearer key-2"]


async def test_a_key_function_that_fails_is_told_as_such() -> None:
    def key(provider: str) -> str:
        raise KeyError("vault")

    with pytest.raises(Unauthorized, match="vault") as caught:
        await ask(OpenAIChat("m", base_url="http://127.0.0.1:9/v1", api_key=key))
    assert isinstance(caught.value.__cause__, KeyError)


async def test_the_environments_key_is_read_at_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(chunked(HELLO)) as server:
        model = OpenAIChat("m", base_url=server.base_url, profile=PROFILES["groq"])
        monkeypatch.setenv("GROQ_API_KEY", " from-env\n")
        await ask(model)
    assert server.asked[0].headers["authorization"] == "Bearer from-env"


async def test_a_missing_key_is_told_with_its_variable_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(Unauthorized, match="set OPENAI_API_KEY"):
        await ask(OpenAIChat("m"))


async def test_no_key_of_another_server_goes_to_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with serving(chunked(HELLO)) as server:
        await ask(OpenAIChat("m", base_url=server.base_url))
    assert "authorization" not in server.asked[0].headers


async def test_the_requests_headers_come_over_the_models() -> None:
    async with serving(chunked(HELLO)) as server:
        model = OpenAIChat("m", base_url=server.base_url, api_key="k", headers={"X-Title": "app", "X-A": "1"})
        await ask(model, settings=ModelSettings(extra_headers={"x-title": "turn", "Authorization": "Basic b"}))
    headers = server.asked[0].headers
    assert (headers["x-title"], headers["x-a"], headers["authorization"]) == ("turn", "1", "Basic b")


async def test_the_payload_can_be_seen_and_replaced() -> None:
    seen: list[dict[str, Any]] = []

    def look(payload: dict[str, Any]) -> None:
        seen.append(payload)

    async def change(payload: dict[str, Any]) -> dict[str, Any]:
        return payload | {"model": "other"}

    async with serving(chunked(HELLO)) as server:
        model = OpenAIChat("m", base_url=server.base_url)
        await ask(model, on_payload=look)
        await ask(model, on_payload=change)
    assert seen == [server.asked[0].json]
    assert [asked.json["model"] for asked in server.asked] == ["m", "other"]


# --- failures


async def test_a_refusal_is_classified_with_the_servers_words_and_wait() -> None:
    body = b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}'
    answer = whole(body, status="429 Too Many Requests", more="retry-after: 7\r\nx-request-id: req-9\r\n")
    async with serving(answer) as server:
        with pytest.raises(RateLimited, match="slow down") as caught:
            await ask(OpenAIChat("m", base_url=server.base_url))
    assert (caught.value.retry_after, caught.value.status, caught.value.request_id) == (7, 429, "req-9")
    assert caught.value.provider == "generic"


async def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        await ask(OpenAIChat("m", base_url="http://127.0.0.1:9/v1"))


async def test_d06_an_error_after_the_head_is_raised_behind_what_was_said_before() -> None:
    broken = event({"content": "a"}) + b'data: {"error":{"message":"died","code":502}}\n\n' + DONE
    async with serving(chunked(broken)) as server:
        said: list[Delta] = []
        with pytest.raises(ModelError, match="died") as caught:
            await read_into(said, OpenAIChat("m", base_url=server.base_url))
    assert said == [TextChunk("a")]
    assert caught.value.request_id == "req-1"


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("left", [b"", b'data: {"choices":[{"delta":{"content":"x'])
async def test_d07_a_stream_without_a_marker_was_dropped_however_it_ends(left: bytes, end: bool) -> None:
    pieces = [event({"content": "a"}), *([left] if left else [])]
    async with serving(chunked(*pieces, end=end)) as server:
        said: list[Delta] = []
        with pytest.raises(Dropped):
            await read_into(said, OpenAIChat("m", base_url=server.base_url))
    assert said == [TextChunk("a")]


async def test_a_reply_with_its_marker_is_whole_though_the_connection_is_torn() -> None:
    async with serving(chunked(event({"content": "a"}), event({}, "stop"), end=False)) as server:
        assert (await ask(OpenAIChat("m", base_url=server.base_url))).text == "a"


async def test_a_last_event_without_its_blank_line_counts() -> None:
    async with serving(chunked(event({"content": "a"}), b"data: [DONE]")) as server:
        assert (await ask(OpenAIChat("m", base_url=server.base_url))).text == "a"


async def test_a_server_that_never_closes_after_the_marker_does_not_hold_the_reply() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAMING + b"%x\r\n%b\r\n" % (len(HELLO), HELLO))

    async with serving(answer) as server:
        with anyio.fail_after(10):
            assert (await ask(OpenAIChat("m", base_url=server.base_url))).text == "Hello"


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_whole_answer_in_place_of_a_stream_is_read_whatever_it_is_called(kind: str) -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
    async with serving(whole(json.dumps(body, indent=1).encode(), kind=kind)) as server:
        assert (await ask(OpenAIChat("m", base_url=server.base_url))).text == "Hi"


async def test_events_under_another_content_type_are_read_too() -> None:
    async with serving(whole(HELLO, kind="application/json")) as server:
        assert (await ask(OpenAIChat("m", base_url=server.base_url))).text == "Hello"


async def test_a_page_of_html_says_that_the_address_is_wrong() -> None:
    async with serving(whole(b"<!doctype html><html>", kind="text/html")) as server:
        with pytest.raises(Garbled, match="check the base URL") as caught:
            await ask(OpenAIChat("m", base_url=server.base_url))
    assert caught.value.recovery == "never"


async def test_settings_that_json_cannot_say_are_a_rejection() -> None:
    with pytest.raises(Rejected, match="extra_body"):
        await ask(OpenAIChat("m", base_url="http://127.0.0.1:9/v1"), settings=ModelSettings(extra_body={"x": object()}))


# --- leaving


async def test_leaving_early_closes_the_connection_at_once() -> None:
    async with serving(hang) as server:
        async with aclosing(OpenAIChat("m", base_url=server.base_url).stream(request())) as stream:
            assert await anext(stream) == TextChunk("first")
        with anyio.fail_after(5):
            await server.gone.wait()


async def test_a_cancellation_closes_the_connection_and_stays_one() -> None:
    async with serving(hang) as server:
        first = anyio.Event()

        async def read() -> None:
            async for _ in OpenAIChat("m", base_url=server.base_url).stream(request()):
                first.set()

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await first.wait()
                group.cancel_scope.cancel()
            await server.gone.wait()


# --- construction


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "//host"])
async def test_an_address_that_is_none_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="no base URL"):
        OpenAIChat("m", base_url=url, profile=replace(PROFILES["generic"], base_url=url))


async def test_a_model_without_a_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="needs a name"):
        OpenAIChat("")


@pytest.mark.parametrize("tail", ["", "/", "/chat/completions", "/chat/completions/"])
async def test_a_base_url_may_name_the_endpoint_already(tail: str) -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(OpenAIChat("m", base_url=server.base_url + tail))
    assert server.asked[0].path == "/v1/chat/completions"


async def test_a_model_says_who_it_is() -> None:
    assert OpenAIChat("gpt-5").info == ModelInfo(provider="openai", id="gpt-5")
    assert OpenAIChat("x", base_url="http://localhost:11434/v1").info.provider == "ollama"
    named = ModelInfo(provider="team", id="x")
    with pytest.raises(Unreachable) as caught:
        await ask(OpenAIChat("x", base_url="http://127.0.0.1:9/v1", info=named))
    assert caught.value.provider == "team"


async def test_openais_name_at_another_address_means_a_compatible_server_with_openais_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with serving(chunked(HELLO)) as server:
        model = chat_model("m", provider="openai", base_url=server.base_url)
        await ask(model, instructions="i", settings=ModelSettings(max_output_tokens=5))
    assert model.info.provider == "openai"
    assert server.asked[0].headers["authorization"] == "Bearer secret"
    assert server.asked[0].json["max_tokens"] == 5
    assert server.asked[0].json["messages"][0]["role"] == "system"


async def test_warming_opens_the_connection_and_never_fails() -> None:
    async with serving(whole(b"{}")) as server:
        model = OpenAIChat("m", base_url=server.base_url)
        await model.warm()
        server.answer = chunked(HELLO)
        await ask(model)
    assert [asked.path for asked in server.asked] == ["/v1/models", "/v1/chat/completions"]
    assert server.connections == 1
    await OpenAIChat("m", base_url="http://127.0.0.1:9/v1").warm()
