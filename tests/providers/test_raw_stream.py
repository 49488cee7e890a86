"""Chat Completions over a stream that the application supplies."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon.errors import Dropped, ModelError, RateLimited
from antiphon.providers.openai_chat.profiles import PROFILES
from antiphon.providers.raw_stream import RawStreamModel
from antiphon.types.cancel import CancelSignal, CancelToken
from antiphon.types.content import Text, ToolCall
from antiphon.types.joiner import join
from antiphon.types.messages import AssistantMessage, ToolResultMessage, UserMessage
from antiphon.types.request import CallChunk, FinishChunk, ModelRequest, TextChunk, ThinkingChunk, ToolSpec

pytestmark = pytest.mark.anyio


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


class Raw:
    """Plays chunks, raises exceptions among them, and keeps what it was called with."""

    def __init__(self, *chunks: Any) -> None:
        self.chunks = chunks
        self.called: list[tuple[Any, CancelSignal]] = []
        self.closed = False

    async def __call__(self, request: Any, cancel: CancelSignal) -> AsyncIterator[Any]:
        self.called.append((request, cancel))
        return self.play()

    async def play(self) -> AsyncIterator[Any]:
        try:
            for item in self.chunks:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed = True


def request(**fields: Any) -> ModelRequest:
    return ModelRequest(messages=[UserMessage.of("hi")], **fields)


async def ask(model: RawStreamModel, **fields: Any) -> AssistantMessage:
    return join([delta async for delta in model.stream(request(**fields))])


@pytest.mark.parity("A14")
async def test_fragments_become_calls_and_reasoning_becomes_thinking() -> None:
    raw = Raw(
        chunk({"reasoning_content": "hm"}),
        chunk({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
        chunk({}, "tool_calls"),
    )
    deltas = [delta async for delta in RawStreamModel(raw).stream(request())]
    assert deltas == [
        ThinkingChunk("hm"),
        CallChunk(0, "a", "f", '{"x"'),
        CallChunk(0, arguments=":1}"),
        FinishChunk("tool_calls", "tool_calls"),
    ]


@pytest.mark.parity("A14")
async def test_the_function_gets_messages_tools_choice_and_the_cancel_token() -> None:
    raw = Raw(chunk({"content": "a"}, "stop"))
    token = CancelToken()
    messages = [
        UserMessage.of("hi"),
        AssistantMessage(parts=(ToolCall(id="c", name="f", arguments=""),)),
        ToolResultMessage(call_id="c", tool_name="f", parts=(Text("r"),)),
    ]
    tools = (ToolSpec(name="f", parameters={"type": "object", "properties": {}}),)
    async for _ in RawStreamModel(raw).stream(ModelRequest(messages=messages, tools=tools, cancel=token)):
        pass
    [(body, cancel)] = raw.called
    assert cancel is token
    assert body == {
        "messages": [
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "parameters": tools[0].parameters}}],
        "tool_choice": "auto",
    }


async def test_the_model_and_the_profile_can_be_given() -> None:
    raw = Raw(chunk({"content": "a"}, "stop"))
    model = RawStreamModel(raw, model="gpt", profile=PROFILES["openai"])
    await ask(model, instructions="i")
    assert model.info.origin == "openai:gpt"
    assert raw.called[0][0] == {
        "model": "gpt",
        "messages": [{"role": "developer", "content": "i"}, {"role": "user", "content": "hi"}],
    }


@pytest.mark.parity("A14")
async def test_what_the_function_raises_is_the_cause_of_a_model_error() -> None:
    original = LookupError("no token")
    with pytest.raises(ModelError, match="no token") as caught:
        await ask(RawStreamModel(Raw(chunk({"content": "a"}), original)))
    assert caught.value.__cause__ is original
    assert caught.value.recovery == "never"


async def test_a_function_that_raises_before_its_stream_is_translated_too() -> None:
    original = LookupError("no token")

    def raw(body: Any, cancel: CancelSignal) -> AsyncIterator[Any]:
        raise original

    with pytest.raises(ModelError) as caught:
        await ask(RawStreamModel(raw))
    assert caught.value.__cause__ is original


async def test_a_lost_connection_may_be_tried_again() -> None:
    with pytest.raises(Dropped) as caught:
        await ask(RawStreamModel(Raw(ConnectionResetError("reset"))))
    assert caught.value.recovery == "wait"


async def test_a_model_error_of_the_functions_own_passes_through() -> None:
    own = RateLimited("slow", retry_after=3)
    with pytest.raises(RateLimited) as caught:
        await ask(RawStreamModel(Raw(own)))
    assert caught.value is own


async def test_an_end_without_a_finish_reason_is_a_drop() -> None:
    with pytest.raises(Dropped):
        await ask(RawStreamModel(Raw(chunk({"content": "a"}))))


@pytest.mark.parametrize("form", [str, str.encode])
async def test_chunks_may_be_the_text_of_events(form: Any) -> None:
    raw = Raw(form('{"choices":[{"delta":{"content":"a"}}]}'), form("[DONE]"))
    assert (await ask(RawStreamModel(raw))).text == "a"
    assert raw.closed


async def test_leaving_early_closes_the_functions_stream() -> None:
    raw = Raw(chunk({"content": "a"}), chunk({"content": "b"}, "stop"))
    stream = RawStreamModel(raw).stream(request())
    assert await anext(stream) == TextChunk("a")
    await stream.aclose()
    assert raw.closed
