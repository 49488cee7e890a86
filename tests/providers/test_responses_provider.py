"""The Responses API over a real connection to this machine: what is sent, what comes back, and how it ends."""

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
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Unauthorized,
    Unreachable,
    UsageError,
)
from antiphon.providers.openai_responses.provider import OpenAIResponses, responses_model
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
    WarningChunk,
)

from . import wire_server
from .wire_server import STREAMING, Answer, Server, chunked, whole

pytestmark = pytest.mark.anyio

OPENAI = ModelInfo(provider="openai", id="gpt-5")


def event(kind: str, **fields: Any) -> bytes:
    data = json.dumps({"type": f"response.{kind}", **fields}, ensure_ascii=False)
    return f"event: response.{kind}\ndata: {data}\n\n".encode()


def text(delta: str) -> bytes:
    return event("output_text.delta", item_id="msg_1", output_index=0, content_index=0, delta=delta)


END = event("completed", response={"id": "resp_1", "model": "gpt-5-2025-08-07", "status": "completed", "output": []})
HELLO = text("Hel") + text("lo") + END

# A recorded turn, shortened: a thought, a text, two calls.
TURN = b"".join(
    [
        event("created", response={"id": "resp_1", "status": "in_progress", "output": [], "instructions": "x"}),
        event("output_item.added", output_index=0, item={"id": "rs_1", "type": "reasoning", "summary": []}),
        event("reasoning_summary_text.delta", item_id="rs_1", output_index=0, summary_index=0, delta="**Grüße** 世"),
        event("reasoning_summary_text.delta", item_id="rs_1", output_index=0, summary_index=0, delta="界 😀"),
        event(
            "output_item.done",
            output_index=0,
            item={
                "id": "rs_1",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "**Grüße** 世界 😀"}],
                "encrypted_content": "gAAA",
            },
        ),
        event("output_text.delta", item_id="msg_1", output_index=1, content_index=0, delta="Señor, "),
        event("output_text.delta", item_id="msg_1", output_index=1, content_index=0, delta="un momento."),
        event("output_item.added", output_index=2, item={"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look", "arguments": ""}),
        event("function_call_arguments.delta", item_id="fc_1", output_index=2, delta='{"city":"Mün'),
        event("function_call_arguments.delta", item_id="fc_1", output_index=2, delta='chen"}'),
        event("output_item.done", output_index=2, item={"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"city":"München"}'}),
        event("output_item.done", output_index=3, item={"id": "fc_2", "type": "function_call", "call_id": "call_2", "name": "now", "arguments": "{}"}),
        END,
    ]
)  # fmt: skip


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Server]:
    async with wire_server.serving(Server(answer, "/v1")) as server:
        yield server


async def hang(writer: asyncio.StreamWriter) -> None:
    """Says a first word and no more."""
    first = text("first")
    writer.write(STREAMING + b"%x\r\n%b\r\n" % (len(first), first))


def request(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=[UserMessage.of("hi")], **fields)


async def read_into(said: list[Delta], model: OpenAIResponses, **fields: Any) -> None:
    async for delta in model.stream(request(**fields)):
        said.append(delta)


async def ask(model: OpenAIResponses, **fields: Any) -> AssistantMessage:
    said: list[Delta] = []
    await read_into(said, model, **fields)
    joiner = Joiner()
    for delta in said:
        joiner.add(delta)
    return joiner.message(provider=model.info.provider, model=model.info.id)


# --- the reply


async def test_a_reply_is_streamed_and_the_finish_comes_last() -> None:
    async with serving(chunked(HELLO)) as server:
        model = OpenAIResponses("gpt-5", base_url=server.base_url)
        said: list[Delta] = []
        await read_into(said, model, instructions="Be brief.")
    assert said == [TextChunk("Hel"), TextChunk("lo"), FinishChunk("stop", "completed", "resp_1", "gpt-5-2025-08-07")]
    [asked] = server.asked
    assert (asked.method, asked.path) == ("POST", "/v1/responses")
    assert (asked.headers["content-type"], asked.headers["accept"]) == ("application/json", "text/event-stream")
    assert (asked.json["instructions"], asked.json["store"]) == ("Be brief.", False)


@pytest.mark.parametrize("seed", range(6))
async def test_any_cut_of_the_bytes_gives_the_same_reply(seed: int) -> None:
    """D4: a character, an event and a line end may be cut anywhere."""
    random = Random(seed)
    cuts = sorted(random.sample(range(1, len(TURN)), random.choice([5, 60, 400])))
    pieces = [TURN[start:end] for start, end in zip([0, *cuts], [*cuts, len(TURN)], strict=True)]
    async with serving(chunked(*pieces)) as server:
        message = await ask(OpenAIResponses("gpt-5", base_url=server.base_url, info=OPENAI))
    thought, said, *calls = message.parts
    assert isinstance(thought, Thinking)
    assert isinstance(said, Text)
    assert (thought.text, said.text) == ("**Grüße** 世界 😀", "Señor, un momento.")
    assert [(call.id, call.name, call.arguments) for call in calls if isinstance(call, ToolCall)] == [
        ("call_1", "look", '{"city":"München"}'),
        ("call_2", "now", "{}"),
    ]
    assert message.stop_reason == "tool_calls"


async def test_a_connection_is_used_again_for_the_next_turn() -> None:
    async with serving(chunked(HELLO)) as server:
        model = OpenAIResponses("m", base_url=server.base_url)
        for _ in range(3):
            async with aclosing(model.stream(request())) as stream:
                async for delta in stream:
                    if isinstance(delta, FinishChunk):  # as the engine does: nothing is read behind it
                        break
    assert (len(server.asked), server.connections) == (3, 1)


async def test_a_setting_without_a_field_is_warned_of() -> None:
    async with serving(chunked(HELLO)) as server:
        said: list[Delta] = []
        await read_into(said, OpenAIResponses("m", base_url=server.base_url), settings=ModelSettings(stop=("x",)))
    assert isinstance(said[0], WarningChunk)
    assert (said[0].code, "'stop'" in said[0].text) == ("setting_left_out", True)


async def test_a_whole_answer_in_place_of_a_stream_is_read() -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
    body = json.dumps({"object": "response", "status": "completed", "output": [item]}, indent=1).encode()
    async with serving(whole(body)) as server:
        assert (await ask(OpenAIResponses("m", base_url=server.base_url))).text == "Hi"


# --- keys and headers


async def test_the_key_is_a_bearer_token() -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(OpenAIResponses("m", base_url=server.base_url, api_key="secret"))
    assert server.asked[0].headers["authorization"] == "Bearer secret"


@pytest.mark.parity("C11")
async def test_a_key_function_is_asked_for_every_request_with_the_providers_name() -> None:
    asked: list[str] = []

    async def key(provider: str) -> str:
        asked.append(provider)
        return f"key-{len(asked)}"

    async with serving(chunked(HELLO)) as server:
        model = OpenAIResponses("m", base_url=server.base_url, api_key=key, info=OPENAI)
        await ask(model)
        await ask(model)
    assert asked == ["openai", "openai"]
    assert [one.headers["authorization"] for one in server.asked] == ["Bearer key-1", "Bearer key-2"]


async def test_a_missing_key_is_told_with_its_variable_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(Unauthorized, match="set OPENAI_API_KEY"):
        await ask(OpenAIResponses("gpt-5"))


async def test_no_key_of_another_server_goes_to_an_unknown_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with serving(chunked(HELLO)) as server:
        await ask(OpenAIResponses("m", base_url=server.base_url))
    assert "authorization" not in server.asked[0].headers


async def test_the_requests_headers_come_over_the_models() -> None:
    async with serving(chunked(HELLO)) as server:
        model = OpenAIResponses("m", base_url=server.base_url, api_key="k", headers={"X-Title": "app", "X-A": "1"})
        await ask(model, settings=ModelSettings(extra_headers={"x-title": "turn", "Authorization": "Basic b"}))
    headers = server.asked[0].headers
    assert (headers["x-title"], headers["x-a"], headers["authorization"]) == ("turn", "1", "Basic b")


async def test_the_payload_can_be_seen_and_replaced() -> None:
    async def change(payload: dict[str, Any]) -> dict[str, Any]:
        return payload | {"model": "other"}

    async with serving(chunked(HELLO)) as server:
        await ask(OpenAIResponses("m", base_url=server.base_url), on_payload=change, tools=(ToolSpec(name="look"),))
    assert server.asked[0].json["model"] == "other"
    assert server.asked[0].json["tools"][0]["name"] == "look"


# --- failures


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        ("429 Too Many Requests", {"code": "rate_limit_exceeded", "message": "slow down"}, RateLimited),
        ("401 Unauthorized", {"code": "invalid_api_key", "message": "bad key"}, Unauthorized),
        ("400 Bad Request", {"code": "context_length_exceeded", "message": "too long"}, ContextOverflow),
        ("400 Bad Request", {"code": "unsupported_parameter", "message": "no temperature"}, Rejected),
        ("503 Service Unavailable", {"code": "server_error", "message": "later"}, Overloaded),
    ],
)
async def test_a_refusal_is_classified_with_the_servers_words(status: str, error: Any, kind: type[ModelError]) -> None:
    answer = whole(
        json.dumps({"error": error}).encode(), status=status, more="retry-after: 7\r\nx-request-id: req-9\r\n"
    )
    async with serving(answer) as server:
        with pytest.raises(kind, match=error["message"]) as caught:
            await ask(OpenAIResponses("m", base_url=server.base_url, info=OPENAI))
    known = caught.value
    assert (known.retry_after, known.request_id, known.provider) == (7, "req-9", "openai")
    assert known.code == error["code"]


async def test_an_error_after_the_head_is_raised_behind_what_was_said_before() -> None:
    broken = text("a") + b'event: error\ndata: {"type":"error","code":"server_error","message":"died"}\n\n'
    async with serving(chunked(broken)) as server:
        said: list[Delta] = []
        with pytest.raises(Overloaded, match="died") as caught:
            await read_into(said, OpenAIResponses("m", base_url=server.base_url))
    assert said == [TextChunk("a")]
    assert caught.value.request_id == "req-1"


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("left", [b"", b'data: {"type":"response.output_text.delta","delta":"x'])
async def test_d7_a_stream_without_a_marker_was_dropped_however_it_ends(left: bytes, *, end: bool) -> None:
    async with serving(chunked(text("a"), *([left] if left else []), end=end)) as server:
        said: list[Delta] = []
        with pytest.raises(Dropped):
            await read_into(said, OpenAIResponses("m", base_url=server.base_url))
    assert said == [TextChunk("a")]


async def test_a_reply_with_its_marker_is_whole_though_the_connection_is_torn() -> None:
    async with serving(chunked(HELLO, end=False)) as server:
        assert (await ask(OpenAIResponses("m", base_url=server.base_url))).text == "Hello"


async def test_a_last_event_without_its_blank_line_counts() -> None:
    async with serving(chunked(HELLO.rstrip(b"\n"))) as server:
        assert (await ask(OpenAIResponses("m", base_url=server.base_url))).text == "Hello"


async def test_a_server_that_never_closes_after_the_marker_does_not_hold_the_reply() -> None:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(STREAMING + b"%x\r\n%b\r\n" % (len(HELLO), HELLO))

    async with serving(answer) as server:
        with anyio.fail_after(10):
            assert (await ask(OpenAIResponses("m", base_url=server.base_url))).text == "Hello"


async def test_nobody_there_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        await ask(OpenAIResponses("m", base_url="http://127.0.0.1:9/v1"))


async def test_a_page_of_html_says_that_the_address_is_wrong() -> None:
    async with serving(whole(b"<!doctype html><html>")) as server:
        with pytest.raises(Garbled, match="check the base URL") as caught:
            await ask(OpenAIResponses("m", base_url=server.base_url))
    assert caught.value.recovery == "never"


async def test_settings_that_json_cannot_say_are_a_rejection() -> None:
    model = OpenAIResponses("m", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(Rejected, match="extra_body"):
        await ask(model, settings=ModelSettings(extra_body={"x": object()}))


# --- leaving


async def test_leaving_early_closes_the_connection_at_once() -> None:
    async with serving(hang) as server:
        async with aclosing(OpenAIResponses("m", base_url=server.base_url).stream(request())) as stream:
            assert await anext(stream) == TextChunk("first")
        with anyio.fail_after(5):
            await server.gone.wait()


async def test_a_cancellation_closes_the_connection_and_stays_one() -> None:
    async with serving(hang) as server:
        first = anyio.Event()

        async def read() -> None:
            async for _ in OpenAIResponses("m", base_url=server.base_url).stream(request()):
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
        OpenAIResponses("m", base_url=url)


async def test_a_model_without_a_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="needs a name"):
        OpenAIResponses("")


@pytest.mark.parametrize("tail", ["", "/", "/responses", "/responses/"])
async def test_a_base_url_may_name_the_endpoint_already(tail: str) -> None:
    async with serving(chunked(HELLO)) as server:
        await ask(OpenAIResponses("m", base_url=server.base_url + tail))
    assert server.asked[0].path == "/v1/responses"


async def test_a_query_of_the_base_url_stays() -> None:
    async with serving(chunked(HELLO)) as server:
        url = f"http://127.0.0.1:{server.port}/openai?api-version=2025-04-01-preview"
        await ask(OpenAIResponses("m", base_url=url))
    assert server.asked[0].path == "/openai/responses?api-version=2025-04-01-preview"


async def test_a_server_is_known_by_its_host() -> None:
    assert OpenAIResponses("gpt-5").info == ModelInfo(provider="openai", id="gpt-5")
    azure = OpenAIResponses("d", base_url="https://r.openai.azure.com/openai/v1")
    assert azure.info.provider == "azure"
    assert OpenAIResponses("d", base_url="https://notopenrouter.ai/api/v1").info.provider == "generic"


async def test_azures_key_has_a_header_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_OPENAI_API_KEY", raising=False)
    azure = OpenAIResponses("d", base_url="https://r.openai.azure.com/openai/v1")
    with pytest.raises(Unauthorized, match="AZURE_OPENAI_API_KEY"):
        await ask(azure)
    keyed = OpenAIResponses("d", base_url="https://r.openai.azure.com/openai/v1", api_key="k")
    headers = await keyed._all_headers(None)
    assert headers == {"accept": "text/event-stream", "api-key": "k"}


async def test_a_providers_name_at_another_address_stands_for_a_server_with_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    async with serving(chunked(HELLO)) as server:
        model = responses_model("gpt-5", provider="openai", base_url=server.base_url, api_key=None)
        await ask(model)
    assert model.info == ModelInfo(provider="openai", id="gpt-5")
    assert server.asked[0].headers["authorization"] == "Bearer secret"


async def test_a_provider_is_found_by_its_name() -> None:
    assert responses_model("m", provider="openrouter")._url == "https://openrouter.ai/api/v1/responses"
    assert responses_model("m", base_url=None)._url == "https://api.openai.com/v1/responses"
    with pytest.raises(UsageError, match="known: openai, azure"):
        responses_model("m", provider="groq")
    with pytest.raises(UsageError, match="base_url="):
        responses_model("m", provider="azure")
