"""What goes to the model and what comes back, seen from an application: content, calls, tools' own words, ids."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon import (
    Agent,
    File,
    Hooks,
    Image,
    MessageFinished,
    MessageStarted,
    ModelRequest,
    Text,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolRequested,
    ToolResult,
    ToolStarted,
    TurnFinished,
    Usage,
    UseRequest,
    UserMessage,
    UseTools,
    Warned,
)
from antiphon.testing import Scripted, record
from antiphon.types.request import FinishChunk, TextChunk, WholeCall

from .scenes import CITY, Bodies, call, outcome, replies, results, said

pytestmark = pytest.mark.anyio


# Tools' own words


@pytest.mark.parity("B2")
async def test_a_tools_own_text_follows_the_instructions_while_it_is_offered() -> None:
    """In the order of registration, always with the same bytes."""
    bodies = Bodies()
    tools = [
        bodies.tool("a", instructions="Use a for x."),
        bodies.tool("b"),
        bodies.tool("c", instructions="Use c last."),
    ]
    model = Scripted([call("a")], [call("b")], "ok")
    hide = Hooks(before_model_request=lambda c: UseRequest(tools=[tools[0], tools[1]]) if c.step == 2 else None)
    await Agent(model, instructions="Be brief.", tools=tools, hooks=hide).run("go")
    whole = "Be brief.\n\nUse a for x.\n\nUse c last."
    assert [request.instructions for request in model.requests] == [whole, "Be brief.\n\nUse a for x.", whole]


@pytest.mark.parity("B2")
async def test_tools_text_stands_alone_where_there_are_no_instructions() -> None:
    model = Scripted("ok")
    await Agent(model, tools=[Bodies().tool("a", instructions="Use a for x.")]).run("go")
    assert model.requests[0].instructions == "Use a for x."


# Content


@pytest.mark.parity("B3")
@pytest.mark.parametrize(
    "image",
    [
        Image("https://example.org/x.png"),
        Image("data:image/png;base64,AAAA"),
        Image("AAAA"),
        Image("AAAA", "image/png"),
        Image("no url, no base64, no business of the loop"),
    ],
)
async def test_content_is_carried_and_never_looked_into(image: Image) -> None:
    """The media type may be absent, and what an image's text is, its provider knows."""
    model = Scripted([call("camera")], "ok")
    file = File("https://example.org/a.pdf", name="a.pdf")
    agent = Agent(model, tools=[Bodies().tool("camera", ["a picture", image])])
    result = await agent.run(["look:", image, file])
    sent = model.requests[0].messages[0]
    assert sent is result.messages[0]
    assert isinstance(sent, UserMessage)
    assert sent.parts == (Text("look:"), image, file)
    assert results(model.requests[1].messages)[0].parts[1] is image


@pytest.mark.parity("B4")
@pytest.mark.parity("A18")
async def test_a_reply_holds_the_calls_of_its_turn_with_the_text_before_them() -> None:
    """And a result names its call and its tool."""
    model = Scripted(["first ", "this:", call("a"), call("b")], "ok")
    result = await Agent(model, tools=[Bodies().tool("a"), Bodies().tool("b")]).run("go")
    reply = replies(result.messages)[0]
    assert reply.text == "first this:"
    assert [each.name for each in reply.calls] == ["a", "b"]
    assert [(message.call_id, message.tool_name) for message in results(result.messages)] == [
        ("a-1", "a"),
        ("b-1", "b"),
    ]


# Models


@pytest.mark.parity("A16")
async def test_a_model_may_give_whole_calls_with_text_or_an_object() -> None:
    """Encoded once; consumers get both: the raw text in the request for the call, the object where it is used."""

    async def model(request: ModelRequest) -> AsyncIterator[Any]:
        if len(request.messages) == 1:
            yield WholeCall("weather", {"city": "Oslo"}, id="w1")
            yield WholeCall("weather", '{"city":  "Rome"}', id="w2")
        else:
            yield TextChunk("ok")

    result, recording = await outcome(Agent(model, tools=[Bodies().tool("weather", None, CITY)]))
    recording.check()
    assert result.status == "done"
    assert [event.call.arguments for event in recording.of(ToolRequested)] == ['{"city":"Oslo"}', '{"city":  "Rome"}']
    assert [event.arguments["city"] for event in recording.of(ToolStarted)] == ["Oslo", "Rome"]


@pytest.mark.parity("A16")
@pytest.mark.parity("A4")
async def test_a_model_is_given_messages_tools_and_the_cancel_signal() -> None:
    seen: list[ModelRequest] = []

    def model(request: ModelRequest) -> str:
        seen.append(request)
        run.stop("enough")
        assert request.cancel.cancelled
        return "late"

    run = Agent(model, tools=[Bodies().tool("a")]).run("go")
    result = await run
    assert (result.status, result.reason) == ("aborted", "enough")
    assert ([tool.name for tool in seen[0].tools], said(seen[0].messages)) == (["a"], ["go"])


@pytest.mark.parity("B10")
async def test_a_plain_text_is_a_whole_reply() -> None:
    """One delta and a normal end; also where the function waits for it."""

    async def later(_request: ModelRequest) -> str:
        return "hello"

    for model in (lambda _: "hello", later):
        result, recording = await outcome(Agent(model))
        assert recording.kinds(TextDelta, TurnFinished) == ["text_delta", "turn_finished"]
        assert (result.status, result.text) == ("done", "hello")


@pytest.mark.parity("B18")
async def test_a_kind_of_delta_that_is_not_known_is_warned_about_once() -> None:
    """A newer provider sends it with every token."""

    class Tick:
        """Something from the future."""

    class Tock(Tick):
        pass

    class Model:
        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            for piece in ("a", Tick(), "b", Tick(), Tock(), "c", Tick()):
                yield TextChunk(piece) if isinstance(piece, str) else piece
            yield FinishChunk()

    result, recording = await outcome(Agent(Model()))
    assert result.text == "abc"
    assert [event.text for event in recording.of(Warned)] == [
        "the model sent a Tick, which is no delta",
        "the model sent a Tock, which is no delta",
    ]


# Usage


@pytest.mark.parity("B1")
@pytest.mark.parity("B17")
async def test_usage_is_summed_and_the_last_requests_stands_beside_it() -> None:
    """What a provider did not report is absent, never 0; what else it says is carried as it is."""
    first = Usage(input=10, output=2, cache_read=4, extra={"queue": 1})
    last = Usage(input=20, output=3, extra={"queue": 7})
    model = Scripted([call("a"), first], ["ok", last])
    result = await Agent(model, tools=[Bodies().tool("a")]).run("go")
    assert (result.usage.input, result.usage.output, result.usage.cache_read) == (30, 5, 4)
    assert (result.usage.cache_write, result.usage.reasoning, result.usage.cost, result.usage.duration) == (None,) * 4
    assert result.last_usage == last
    assert [reply.usage for reply in replies(result.messages)] == [first, last]


# Events and ids


@pytest.mark.parity("B12")
async def test_every_event_of_a_reply_can_be_tied_to_it() -> None:
    """The application may give the ids; a viewer finds the bubble that a delta or a result belongs to."""
    numbers = iter(range(100))
    agent = Agent(
        Scripted(["hm", call("a")], "ok"),
        tools=[Bodies().tool("a")],
        id_generator=lambda prefix: f"{prefix.rpartition('-')[2]}:{next(numbers)}",
    )
    result, recording = await outcome(agent)
    reply = replies(result.messages)[0].id
    assert reply.startswith("message:")
    deltas = [*recording.of(TextDelta), *recording.of(ToolCallDelta)]
    assert {event.message_id for event in deltas if event.turn == 1} == {reply}
    assert reply in [event.message_id for event in recording.of(MessageStarted)]
    finished = recording.one(ToolFinished)
    assert (finished.result.id, recording.one(ToolRequested).turn) == (f"{reply}/a-1", 1)


@pytest.mark.parity("B12")
@pytest.mark.parity("A17")
async def test_a_reply_is_finished_once_after_its_last_delta_and_before_its_tools() -> None:
    agent = Agent(Scripted(["hm", call("a"), " and"], "ok"), tools=[Bodies().tool("a")])
    _, recording = await outcome(agent)
    own = [event for event in recording if getattr(event, "turn", 1) == 1]
    ends = [event for event in own if isinstance(event, MessageFinished) and replies([event.message])]
    assert len(ends) == 1
    place = own.index(ends[0])
    kinds = [type(event) for event in own]
    assert TextDelta not in kinds[place:]
    assert ToolRequested not in kinds[:place]


@pytest.mark.parity("B12")
async def test_details_of_a_result_stand_in_the_message_and_in_the_event() -> None:
    model = Scripted([call("a")], "ok")
    agent = Agent(model, tools=[Bodies().tool("a", ToolResult("short", details={"rows": [1, 2]}))])
    result, recording = await outcome(agent)
    assert results(result.messages)[0].details == {"rows": [1, 2]}
    assert recording.one(ToolFinished).result.details == {"rows": [1, 2]}
    assert said(model.requests[1].messages)[-1] == "short"


# Agents


@pytest.mark.parity("A1")
@pytest.mark.parity("A2")
async def test_agents_and_runs_share_nothing() -> None:
    """Two agents with tools of one name, two runs of one agent: what is done to one is not seen by the other."""
    bodies = Bodies()
    first = Agent(Scripted([call("same")], "ok"), tools=[bodies.tool("same", "first")])
    second = Agent(Scripted([call("same")], "ok"), tools=[bodies.tool("same", "second")])
    assert said((await first.run("go")).messages)[2] == "first"
    assert said((await second.run("go")).messages)[2] == "second"
    stopped, going = first.but(model=Scripted("a")).run("go"), first.but(model=Scripted("b")).run("go")
    stopped.stop("enough")
    assert ((await stopped).status, (await going).status) == ("aborted", "done")


@pytest.mark.parity("A6")
@pytest.mark.parity("A3")
async def test_tools_that_a_hook_put_in_place_are_the_runs_not_the_agents() -> None:
    bodies = Bodies()
    agent = Agent(Scripted("ok", "ok"), tools=[bodies.tool("a")])
    hooks = Hooks(after_tools_resolved=lambda _: UseTools([bodies.tool("b")]))
    first = agent.run("go", hooks=hooks)
    recording = record(first)
    await first
    await agent.run("go")
    recording.check()
    assert [tool.name for tool in agent.tools] == ["a"]
