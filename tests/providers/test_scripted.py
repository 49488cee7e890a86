"""The model for tests: it says what its script says, when the test lets it."""

from typing import Any

import anyio
import pytest

from antiphon.errors import Dropped, ModelError, Rejected, UsageError
from antiphon.providers.scripted import Scripted
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import join
from antiphon.types.messages import AssistantMessage, UserMessage
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    ModelRequest,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WholeCall,
)
from antiphon.types.usage import Usage

pytestmark = pytest.mark.anyio


def request(text: str = "hi") -> ModelRequest:
    return ModelRequest(messages=[UserMessage.of(text)])


async def deltas(model: Scripted, text: str = "hi") -> list[Delta]:
    return [delta async for delta in model.stream(request(text))]


async def test_a_text_is_a_reply() -> None:
    assert await deltas(Scripted("Hello")) == [TextChunk("Hello"), FinishChunk("stop")]


async def test_an_empty_text_is_an_empty_reply() -> None:
    assert await deltas(Scripted("")) == [FinishChunk("stop")]


async def test_replies_come_in_order_and_requests_are_kept() -> None:
    model = Scripted("one", "two")
    assert join(await deltas(model, "a")).text == "one"
    assert model.remaining == 1
    assert join(await deltas(model, "b")).text == "two"
    assert [asked.messages[0].text for asked in model.requests] == ["a", "b"]  # pyright: ignore[reportAttributeAccessIssue]


async def test_a_script_that_runs_out_says_how_long_it_was() -> None:
    model = Scripted("one")
    await deltas(model)
    with pytest.raises(Rejected, match="1 replies, and this is request 2"):
        await deltas(model)


async def test_a_message_is_played_part_by_part() -> None:
    message = AssistantMessage(
        parts=(
            Thinking(text="hm", signature="s"),
            Thinking(signature="e", redacted=True),
            Text("so", "mark"),
            ToolCall(id="a", name="f", arguments='{"x":1}', opaque={"k": 1}),
            ToolCall(id="b", name="g"),
        ),
        stop_reason="length",
        usage=Usage(input=1, output=2),
        response_id="r",
        model="m",
    )
    played = join(await deltas(Scripted(message)))
    assert (played.parts, played.stop_reason, played.usage) == (message.parts, "length", message.usage)
    assert (played.response_id, played.model) == ("r", "m")


async def test_steps_are_played_as_they_stand() -> None:
    model = Scripted(
        [
            "Hel",
            ThinkingChunk("hm"),
            ToolCall(id="a", name="f"),
            WholeCall("g", {"y": 2}, "b"),
            Usage(input=1, output=1),
        ]
    )
    assert await deltas(model) == [
        TextChunk("Hel"),
        ThinkingChunk("hm"),
        CallChunk(0, "a", "f", "{}"),
        WholeCall("g", {"y": 2}, "b"),
        UsageChunk(Usage(input=1, output=1)),
        FinishChunk("tool_calls"),
    ]


async def test_calls_of_one_reply_get_places_of_their_own() -> None:
    steps = [
        ToolCall(id="a", name="f"),
        WholeCall("g", "{}", "b"),
        CallChunk(5, "c", "h", "{}"),
        ToolCall(id="d", name="i"),
    ]
    assert [call.id for call in join(await deltas(Scripted(steps))).calls] == ["a", "b", "c", "d"]


async def test_a_finish_of_the_scripts_own_is_the_only_one() -> None:
    assert await deltas(Scripted(["a", FinishChunk("length")])) == [TextChunk("a"), FinishChunk("length")]


async def test_pieces_cut_text_thinking_and_arguments() -> None:
    model = Scripted([Thinking(text="abc"), "defgh", ToolCall(id="a", name="f", arguments="{  }")], piece=2)
    assert await deltas(model) == [
        ThinkingChunk("ab"),
        ThinkingChunk("c"),
        TextChunk("de"),
        TextChunk("fg"),
        TextChunk("h"),
        CallChunk(0, "a", "f", "{ "),
        CallChunk(0, arguments=" }"),
        FinishChunk("tool_calls"),
    ]


@pytest.mark.parametrize("failure", [Dropped("cut"), [Dropped("cut")], Dropped])
async def test_an_exception_is_raised_where_it_stands(failure: Any) -> None:
    with pytest.raises(Dropped):
        await deltas(Scripted(failure))


async def test_what_came_before_an_exception_is_said() -> None:
    stream = Scripted(["a", Dropped("cut"), "b"]).stream(request())
    assert await anext(stream) == TextChunk("a")
    with pytest.raises(Dropped):
        await anext(stream)


async def test_a_failed_message_fails_with_its_sentence() -> None:
    with pytest.raises(ModelError, match="no luck"):
        await deltas(Scripted(AssistantMessage(parts=(), stop_reason="error", error="no luck")))


async def test_a_function_of_the_request_makes_the_reply() -> None:
    def echo(asked: ModelRequest) -> str:
        return asked.messages[0].text.upper()  # pyright: ignore[reportAttributeAccessIssue]

    async def later(asked: ModelRequest) -> list[Any]:
        return [echo, "x"][1:]

    model = Scripted(echo, later, lambda _: echo)
    assert [join(await deltas(model, "hi")).text for _ in range(3)] == ["HI", "x", "HI"]


async def test_a_reply_waits_for_what_the_script_waits_for() -> None:
    """So a test drives time without sleeping."""
    gate, said = anyio.Event(), list[Delta]()

    async def read() -> None:
        async for delta in Scripted(["a", gate, "b"]).stream(request()):
            said.append(delta)

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert said == [TextChunk("a")]
        gate.set()
    assert said == [TextChunk("a"), TextChunk("b"), FinishChunk("stop")]


async def test_runs_at_the_same_time_share_the_script() -> None:
    model = Scripted(*(f"reply {number}" for number in range(20)))
    texts: list[str] = []

    async def read() -> None:
        texts.append(join(await deltas(model)).text)

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(read)
    assert sorted(texts) == sorted(f"reply {number}" for number in range(20))


async def test_a_step_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="not 7"):
        await deltas(Scripted([7]))  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="at least one character"):
        Scripted("a", piece=0)
