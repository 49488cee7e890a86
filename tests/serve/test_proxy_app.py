"""The back end's side of the proxy behind a real server: who may ask, what reaches the model, and how it ends."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from antiphon.agent.agent import Agent
from antiphon.errors import (
    Rejected,
    Unauthorized,
    UsageError,
)
from antiphon.providers.proxy import ProxyModel
from antiphon.providers.scripted import Scripted
from antiphon.serve.proxy import fixed_tokens, proxy_app
from antiphon.tools.function import tool
from antiphon.types.content import Image, Text, Thinking, ToolCall, Unknown
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from antiphon.types.request import (
    FinishChunk,
    Model,
    ModelInfo,
    ModelRequest,
    ModelSettings,
    TextChunk,
    ToolSpec,
    UsageChunk,
    WarningChunk,
)
from antiphon.types.usage import Usage

from .back_end import HI, INFO, app_of, body_of, client, deltas_of, failure_of, post, raw, serving

pytestmark = [pytest.mark.anyio, pytest.mark.parity("C18")]


@tool
def weather(city: str) -> str:
    """Current weather in a city."""
    return f"{city}: 6 °C"


# --- everything passes


def song(**options: Any) -> Scripted:
    """A thought that is signed, two calls, an answer."""
    return Scripted(
        [
            Thinking(text="two cities", signature="sig-1"),
            Thinking(signature="sealed", redacted=True),
            Text("I look it up.", signature="text-sig"),
            ToolCall(id="c1", name="weather", arguments='{"city": "Oslo"}', opaque={"thoughtSignature": "call-sig"}),
            ToolCall(id="c2", name="weather", arguments='{"city": "Rom"}'),
            Usage(input=100, output=20, cache_read=50, reasoning=5, extra={"tier": "standard"}),
            FinishChunk("tool_calls", "tool_use", "resp-1", "claude-x-2026"),
        ],
        [Text("Cold and warm."), Usage(input=150, output=5), FinishChunk("stop", None, "resp-2", "claude-x-2026")],
        info=INFO,
        **options,
    )


def told(messages: Sequence[Message]) -> list[Any]:
    """The transcript without what is stamped anew in every run."""
    return [
        message if isinstance(message, Unknown) else replace(message, id="", created_at=None) for message in messages
    ]


@pytest.mark.parametrize("piece", [None, 1])
async def test_a_run_through_the_proxy_is_the_run_itself(piece: int | None) -> None:
    """Tools, thinking, signatures, opaque data, usage and its cost: nobody can tell the two apart."""
    direct_model, far_model = song(piece=piece), song(piece=piece)
    given: dict[str, Any] = {
        "instructions": "Be brief.",
        "tools": [weather],
        "settings": ModelSettings(thinking="high"),
    }
    direct = await Agent(direct_model, **given).run("Oslo and Rome?")
    async with serving(app_of(far_model)) as back:
        near = await ProxyModel.connect(back.url, "fast", token="t")
        assert near.info == INFO
        far = await Agent(near, **given).run("Oslo and Rome?")
    assert told(far.messages) == told(direct.messages)
    assert far.usage == direct.usage
    assert direct.usage.cost == pytest.approx((250 * 1 + 25 * 10) / 1e6)
    assert [request.tools for request in far_model.requests] == [request.tools for request in direct_model.requests]
    assert [told(each.messages) for each in far_model.requests] == [
        told(each.messages) for each in direct_model.requests
    ]


async def test_every_field_of_a_request_reaches_the_model() -> None:
    """The reference sends three settings on and drops the rest in silence."""
    model = Scripted("hi", info=ModelInfo(provider="p", id="m"))
    request = ModelRequest(
        messages=[
            UserMessage(parts=(Text("see"), Image("aGk=", "image/png")), id="m1", created_at=1.5),
            AssistantMessage(
                parts=(ToolCall(id="c", name="look", arguments="{broken"),), stop_reason="tool_calls", partial=True
            ),
            ToolResultMessage(call_id="c", tool_name="look", parts=(Text("no"),), is_error=True, details={"a": [1]}),
            Unknown({"type": "from_tomorrow", "x": 1}),
        ],
        instructions="Sing. \ud83d\ude00",
        tools=(ToolSpec(name="look", description="d", parameters={"type": "object"}, strict=True),),
        tool_choice="look",
        settings=ModelSettings(
            temperature=0.5, top_p=0.9, max_output_tokens=7, thinking="max", thinking_budgets={"max": 9},
            thinking_display="omitted", stop=("x",), seed=3, parallel_tool_calls=False, cache="long",
            response_schema={"type": "object"}, extra_body={"a": 1}, extra_headers={"b": "c"},
        ),
        session_id="s",
        meta={"tenant": 7},
    )  # fmt: skip
    async with serving(app_of(model, allow_extras=True)) as back:
        await deltas_of(client(back), request)
    (arrived,) = model.requests
    for name in ("tools", "tool_choice", "settings", "session_id", "meta"):
        assert getattr(arrived, name) == getattr(request, name), name
    assert tuple(arrived.messages) == tuple(request.messages)
    assert arrived.instructions == "Sing. 😀"
    assert not arrived.cancel.cancelled


async def test_signatures_come_home() -> None:
    """A thought goes back only to the model it came from; to the client that model is called otherwise."""
    model = song()
    async with serving(app_of(model)) as back:
        result = await Agent(client(back), tools=[weather]).run("Oslo and Rome?")
    reply = result.messages[1]
    assert isinstance(reply, AssistantMessage)
    assert [part.origin for part in reply.parts if isinstance(part, Thinking)] == ["proxy:fast", "proxy:fast"]
    again = model.requests[1].messages[1]
    assert isinstance(again, AssistantMessage)
    assert [part.origin for part in again.parts if isinstance(part, Thinking)] == [INFO.origin, INFO.origin]
    assert (again.provider, again.model) == ("anthropic", "claude-x-2026")


async def test_what_another_model_said_keeps_its_name() -> None:
    """Else a signature of one vendor would be sent to another."""
    model = Scripted("hi", info=INFO)
    said = AssistantMessage(
        parts=(Thinking(text="t", signature="s", origin="openai:o3"),), provider="openai", model="o3"
    )
    async with serving(app_of(model)) as back:
        await deltas_of(client(back), ModelRequest(messages=[UserMessage.of("a"), said, UserMessage.of("b")]))
    assert model.requests[0].messages[1] == said


async def test_warnings_pass_and_half_a_character_does_not_break_the_stream() -> None:
    async with serving(app_of(Scripted([WarningChunk("odd", "so odd"), TextChunk("a\ud83d"), FinishChunk()]))) as back:
        deltas = await deltas_of(client(back))
    assert deltas == [WarningChunk("odd", "so odd"), TextChunk("a\ufffd"), FinishChunk()]


async def test_the_thinking_level_is_one_that_the_model_has() -> None:
    """The client may not know the model; the back end does."""
    model = Scripted("a", info=INFO)
    async with serving(app_of(model)) as back:
        await deltas_of(client(back), ModelRequest(messages=HI.messages, settings=ModelSettings(thinking="medium")))
    assert model.requests[0].settings.thinking == "low"


async def test_usage_comes_with_its_cost() -> None:
    """The client need not know the prices, and need not be told them. What the provider itself reports stays."""
    model = Scripted([Usage(input=10, output=1)], [Usage(input=10, output=1, cost=7.0)], info=INFO)
    async with serving(app_of(model)) as back:
        first, second = [(await deltas_of(client(back)))[0] for _ in range(2)]
    assert first == UsageChunk(Usage(input=10, output=1, cost=20e-6))
    assert second == UsageChunk(Usage(input=10, output=1, cost=7.0))


# --- who may ask


@pytest.mark.parametrize("token", [None, "", "wrong", "t\u00e9", "tt"])
async def test_without_the_right_token_nothing_happens(token: str | None) -> None:
    model = Scripted("hi")
    async with serving(app_of(model)) as back:
        error = await failure_of(client(back, token=token))
        with pytest.raises(Unauthorized):
            await ProxyModel.connect(back.url, "fast", token=token)
    assert isinstance(error, Unauthorized)
    assert (error.status, error.code, error.recovery) == (401, "invalid_token", "never")
    assert model.requests == []


@pytest.mark.parametrize("scheme", ["Basic", "t", ""])
async def test_only_a_bearer_token_counts(scheme: str) -> None:
    async with serving(app_of(Scripted("hi"))) as back:
        error = await failure_of(client(back, token=None, headers={"authorization": f"{scheme} t"}))
    assert isinstance(error, Unauthorized)


async def test_a_token_is_somebody_and_each_has_their_models() -> None:
    """The application's own session store decides, with a look into its database."""
    models = {"anna": Scripted("for anna", info=INFO), "ben": Scripted("for ben")}
    seen: list[str] = []

    async def check(token: str) -> dict[str, str] | None:
        await anyio.lowlevel.checkpoint()
        seen.append(token)
        return {"name": token.removeprefix("token-")} if token.startswith("token-") else None

    async def find(name: str, user: dict[str, str]) -> Model | None:
        return models.get(user["name"]) if name == "mine" else None

    async with serving(proxy_app(find, check, allow=["mine", "other"])) as back:
        texts = [await deltas_of(client(back, "mine", token=f"token-{name}")) for name in ("anna", "ben")]
        assert isinstance(await failure_of(client(back, "mine", token="token-carl")), Rejected)
        assert isinstance(await failure_of(client(back, "mine", token="carl")), Unauthorized)
        assert (await ProxyModel.connect(back.url, "mine", token="token-anna")).info == INFO
        unknown = (await ProxyModel.connect(back.url, "mine", token="token-ben")).info
    assert texts == [[TextChunk(f"for {name}"), FinishChunk()] for name in ("anna", "ben")]
    assert seen[0] == "token-anna"
    assert unknown == ModelInfo(provider="scripted", id="scripted")


async def test_a_model_is_a_name_that_was_allowed() -> None:
    refused, allowed = Scripted("no"), Scripted("yes")
    calls: list[str] = []

    def find(name: str, user: Any) -> Model:
        calls.append(name)
        return allowed

    for models in ({"fast": allowed, "secret": refused}, find):
        async with serving(proxy_app(models, fixed_tokens("t"), allow={"fast"})) as back:
            error = await failure_of(client(back, "secret"))
            with pytest.raises(Rejected, match=r"no model named 'secret' for this token; it has: fast"):
                await ProxyModel.connect(back.url, "secret", token="t")
        assert isinstance(error, Rejected)
        assert (error.status, error.code) == (404, "model_not_found")
    assert refused.requests == []
    assert set(calls) <= {"fast"}


async def test_a_model_may_be_a_name_or_a_function() -> None:
    """What an agent takes for a model, the back end takes too; a wrong name is told at its start."""
    async with serving(proxy_app({"fast": lambda _: "hello", "slow": "openai:gpt-5"}, fixed_tokens("t"))) as back:
        assert await deltas_of(client(back)) == [TextChunk("hello"), FinishChunk()]
        slow = await ProxyModel.connect(back.url, "slow", token="t")
    assert (slow.info.origin, slow.info.context_window) == ("openai:gpt-5", 400_000)
    with pytest.raises(UsageError, match="no provider named 'opnai'; did you mean 'openai'"):
        proxy_app({"fast": "opnai:gpt-5"}, fixed_tokens("t"))


@pytest.mark.parametrize("extra", [{"extra_body": {"model": "expensive"}}, {"extra_headers": {"authorization": "x"}}])
async def test_a_client_cannot_change_the_request_to_the_provider(extra: dict[str, Any]) -> None:
    """A field of the body can name another model, a header another key."""
    model = Scripted("hi")
    async with serving(app_of(model)) as back:
        request = ModelRequest(messages=HI.messages, settings=ModelSettings(**extra))
        error = await failure_of(client(back), request)
    assert isinstance(error, Rejected)
    assert f"passes no {next(iter(extra))} on" in str(error)
    assert model.requests == []


async def test_a_client_s_address_for_the_model_is_not_even_read() -> None:
    """A back end that asks the address a client gives sends its keys there."""
    model = Scripted("hi", "hi")
    async with serving(app_of(model)) as back:
        asked = body_of("fast", base_url="http://127.0.0.1:1", api_key="x")
        async with raw(back, post("/stream", asked)) as (reader, _):
            assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
        stranger = body_of("fast") | {"model": {"id": "fast", "baseUrl": "http://127.0.0.1:1"}}
        async with raw(back, post("/stream", stranger)) as (reader, _):
            assert b"400 Bad Request" in await reader.readuntil(b"\r\n\r\n")
    assert len(model.requests) == 1


# --- what is no request


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "no request for a model"),
        (b"{", "no request for a model"),
        (b"\xff\xfe", "no request for a model"),
        (b"[" * 100_000, "no request for a model"),
        (b'{"version":1}', "missing required field"),
        (json.dumps(body_of("fast") | {"version": 2}).encode(), "no such version: 2"),
        (json.dumps(body_of("fast") | {"transcript": 7}).encode(), "stored data does not fit"),
        (json.dumps(body_of("fast", settings={"temperature": "hot"})).encode(), "settings.temperature"),
        (json.dumps(body_of("fast", transcript={"version": 1, "messages": [{"type": "user"}]})).encode(), "parts"),
    ],
)
async def test_a_body_that_is_no_request_is_refused_with_its_fault(body: bytes, said: str) -> None:
    model = Scripted("hi")
    async with serving(app_of(model)) as back, raw(back, post("/stream", body)) as (reader, _):
        assert b"400 Bad Request" in await reader.readuntil(b"\r\n\r\n")
        assert said in (await reader.read(4096)).decode()
    assert model.requests == []


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_only_what_is_asked_for_is_there(method: str) -> None:
    async with serving(app_of(Scripted("hi"))) as back:
        async with raw(back, f"{method} /stream HTTP/1.1\r\nhost: x\r\n\r\n".encode()) as (reader, _):
            assert b"405 " in await reader.readuntil(b"\r\n\r\n")
        async with raw(back, post("/elsewhere", b"{}")) as (reader, _):
            assert b"404 " in await reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize("over", [1, 100_000])
async def test_a_body_has_a_limit_and_the_client_hears_of_it(over: int) -> None:
    """Pictures make requests large; one that is too large is the client's to shorten, and no drop to repeat."""
    model = Scripted("hi")
    async with serving(app_of(model, max_body=50_000)) as back:
        request = ModelRequest(messages=[UserMessage.of("x" * (50_000 + over))])
        error = await failure_of(client(back), request)
    assert isinstance(error, Rejected)
    assert (error.status, error.code, error.recovery) == (413, "too_large", "never")
    assert "up to 50000 bytes" in str(error)
    assert model.requests == []


async def test_a_body_far_beyond_the_limit_is_not_even_read() -> None:
    async with serving(app_of(Scripted("hi"), max_body=1000)) as back:
        async with raw(back, post("/stream", b"", length=10**12)) as (reader, _):
            assert b"413 " in await reader.readuntil(b"\r\n\r\n")
        endless = post("/stream", b"").replace(b"content-length: 0", b"transfer-encoding: chunked")
        async with raw(back, endless + b"3e8\r\n" + b"x" * 1000 + b"\r\n" + b"fa0\r\n" + b"x" * 4000 + b"\r\n") as (
            reader,
            _,
        ):
            assert b"413 " in await reader.readuntil(b"\r\n\r\n")


@pytest.mark.parametrize("limits", [{"max_body": 0}, {"keep_alive": 0}])
async def test_a_limit_that_lets_nothing_pass_is_a_slip(limits: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="limits above 0"):
        app_of(Scripted(), **limits)


# --- tokens


def test_fixed_tokens_are_all_compared_to_the_end() -> None:
    check: Callable[[str], bool] = fixed_tokens("one", "two-é")
    assert [check(token) for token in ("one", "two-é", "on", "onee", "", "\ud800")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("tokens", [(), ("",), ("a", " ")])
def test_an_empty_token_would_open_the_door_to_all(tokens: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="no token to check against"):
        fixed_tokens(*tokens)
