"""Calls that fail: the model reads what went wrong and may repair it; the caller hears only what is for the caller."""

import asyncio
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.errors import FatalToolError, ToolError
from antiphon.loop.hooks import Hooks
from antiphon.loop.limits import Limits
from antiphon.loop.spec import ToolOptions
from antiphon.providers.scripted import Scripted
from antiphon.tools.hooks import ToolHooks
from antiphon.tools.tool import Tool
from antiphon.types.content import ToolCall
from antiphon.types.events import LimitReached, MessageFinished, RunFinished, ToolCallDelta, ToolFinished, ToolRequested
from antiphon.types.messages import AssistantMessage, ToolResultMessage
from antiphon.types.request import CallChunk, WholeCall
from antiphon.types.result import RunError

from .scenarios import Heard, call, faults, outcomes, results_of, tool

pytestmark = pytest.mark.anyio

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
    "required": ["city"],
    "additionalProperties": False,
}


def raising(error: BaseException, name: str = "broken", **traits: Any) -> Tool:
    async def body() -> str:
        raise error

    return tool(name, body, **traits)


async def read_by_model(*replies: Any, tools: list[Tool], **options: Any) -> dict[str, ToolResultMessage]:
    """The results of the first reply's calls, of a run that is sound and goes on after them."""
    run = Agent(Scripted(*replies, "done"), tools=tools).run("hi", **options)
    heard = Heard(run)
    result = await run
    assert (result.status, result.text) == ("done", "done")
    assert faults(heard.events, result) == []
    finished = {event.call_id: event.result for event in heard.of(ToolFinished)}
    assert finished == results_of(result.messages)
    return finished


@pytest.mark.parity("A12")
async def test_what_a_tool_raises_is_told_to_the_model_with_its_kind() -> None:
    results = await read_by_model([call("broken")], tools=[raising(ZeroDivisionError("division by zero"))])
    result = results["broken-1"]
    assert result.text == '<tool_error name="broken">ZeroDivisionError: division by zero</tool_error>'
    assert (result.is_error, result.outcome) == (True, "error")


async def test_a_tool_error_is_told_in_its_own_words() -> None:
    """`ToolError` is written for the model; a class name in front of it helps nobody."""
    results = await read_by_model([call("broken")], tools=[raising(ToolError("give a city in <Norway> & try again"))])
    assert results["broken-1"].text == (
        '<tool_error name="broken">give a city in &lt;Norway&gt; &amp; try again</tool_error>'
    )


async def test_an_error_whose_text_no_json_can_carry_is_mended() -> None:
    """One lone surrogate in a transcript makes every later request fail."""
    results = await read_by_model([call("broken")], tools=[raising(ToolError("bad \ud800 text"))])
    assert results["broken-1"].text == '<tool_error name="broken">bad \ufffd text</tool_error>'


async def test_an_error_that_cannot_be_told_is_an_error_all_the_same() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    results = await read_by_model([call("broken")], tools=[raising(Silent())])
    assert "Silent" in results["broken-1"].text


async def test_an_error_longer_than_a_result_may_be_is_cut() -> None:
    """A server's error page of a megabyte is not for the model."""
    options = ToolOptions(result_limit=1000)
    results = await read_by_model([call("broken")], tools=[raising(ToolError("x" * 5000))], tool_options=options)
    result = results["broken-1"]
    assert len(result.text) <= 1100
    assert "[cut: " in result.text
    assert (result.is_error, "x" * 5000 in str(result.details)) == (True, True)


async def test_a_name_that_does_not_exist_is_answered_with_those_that_do() -> None:
    """I7: an invented name is repaired in the next turn, if the model knows the real ones."""
    results = await read_by_model([call("serach")], tools=[tool("search"), tool("look")])
    assert results["serach-1"].text == (
        "<tool_error name=\"serach\">no tool named 'serach'; did you mean 'search'? the tools are: search, look</tool_error>"
    )


async def test_arguments_that_do_not_fit_are_answered_with_all_that_is_wrong() -> None:
    """One round of repair, not one for each mistake."""
    seen: list[Any] = []
    weather = tool("weather", lambda: seen.append(1), parameters=CITY)
    results = await read_by_model([call("weather", days="two", town="Oslo")], tools=[weather])
    text = results["weather-1"].text
    assert seen == []
    assert "city" in text
    assert "days" in text
    assert "town" in text


@pytest.mark.parametrize("text", ["[1, 2]", '"Oslo"', '{"city": "Os', "null"])
async def test_arguments_that_are_no_object_are_quoted_back(text: str) -> None:
    asked = ToolCall(id="c1", name="weather", arguments=text)
    results = await read_by_model([asked], tools=[tool("weather", parameters=CITY)])
    assert text.replace('"', "").replace("{", "")[:8].strip() in results["c1"].text.replace('"', "").replace("\\", "")
    assert results["c1"].outcome == "error"


@pytest.mark.parametrize("text", ["", "   ", "\n"])
async def test_blank_arguments_are_an_empty_object(text: str) -> None:
    """Servers leave them out for tools without parameters."""
    results = await read_by_model([ToolCall(id="c1", name="look", arguments=text)], tools=[tool("look")])
    assert results["c1"].outcome == "ok"


async def test_the_transcript_keeps_what_the_model_wrote_and_the_result_says_what_was_used() -> None:
    asked = ToolCall(id="c1", name="weather", arguments='{"city":"Oslo"}')
    results = await read_by_model([asked], tools=[tool("weather", parameters=CITY)])
    assert results["c1"].used_arguments == '{"city":"Oslo","days":3}'


async def test_calls_that_are_wrong_again_and_again_end_the_run_at_a_limit() -> None:
    """I8: a model that invents names for ever, or the same wrong arguments under many, is stopped after so many in a row."""
    replies = [[call("nobody")], [call("weather", "w1")], [call("nothing")], [call("weather", "w2")], "unheard"]
    run = Agent(Scripted(*replies), tools=[tool("weather", parameters=CITY)]).run("hi", limits=Limits(invalid_calls=4))
    heard = Heard(run)
    result = await run
    assert (result.status, result.turns) == ("limit", 4)
    assert [(event.which, event.limit) for event in heard.of(LimitReached)] == [("invalid_calls", 4)]
    assert faults(heard.events, result) == []


async def test_a_good_call_starts_the_count_of_bad_ones_again() -> None:
    replies = [[call("nobody")], [call("look")], [call("nobody", "n2")], "done"]
    result = await Agent(Scripted(*replies), tools=[tool("look")]).run("hi", limits=Limits(invalid_calls=2))
    assert result.status == "done"


# What is for the caller


async def test_a_fatal_tool_error_ends_the_run_after_the_calls_own_end() -> None:
    """I10: a database that is gone is no matter for the model."""
    failure = FatalToolError("the database is gone")
    run = Agent(Scripted([call("broken"), call("fine")], "unheard"), tools=[raising(failure), tool("fine")]).run("hi")
    heard = Heard(run)
    with pytest.raises(RunError, match="the database is gone") as caught:
        await run
    assert caught.value.__cause__ is failure
    assert faults(heard.events, run.result) == []
    assert heard.kinds.index("ToolFinished") < heard.kinds.index("RunFinished")
    assert outcomes(run.result)["broken-1"] == "error"
    assert "the database is gone" in results_of(run.result.messages)["broken-1"].text


@pytest.mark.parity("B17")
@pytest.mark.parametrize("where", ["agent", "tool"])
async def test_on_error_raise_ends_the_run_for_what_a_tool_raises(where: str) -> None:
    failure = ZeroDivisionError("1/0")
    broken = raising(failure, on_error="raise" if where == "tool" else None)
    options = ToolOptions(on_error="raise" if where == "agent" else "tell")
    run = Agent(Scripted([call("broken")], "unheard"), tools=[broken], tool_options=options).run("hi")
    heard = Heard(run)
    with pytest.raises(RunError, match="1/0") as caught:
        await run
    assert caught.value.__cause__ is failure
    assert [type(event) for event in heard.events if isinstance(event, ToolFinished | RunFinished)] == [
        ToolFinished,
        RunFinished,
    ]
    assert faults(heard.events, run.result) == []


@pytest.mark.parity("B17")
async def test_on_error_raise_is_not_for_unknown_tools_bad_arguments_and_timeouts() -> None:
    """Those are the model's mistakes, or nobody's."""

    async def slow() -> str:
        await asyncio.Event().wait()
        return "never"

    tools = [tool("weather", parameters=CITY), tool("slow", slow, timeout=0.001)]
    replies = [[call("nobody"), call("weather"), call("slow")], "done"]
    options = ToolOptions(on_error="raise")
    result = await Agent(Scripted(*replies), tools=tools, tool_options=options).run("hi")
    assert result.status == "done"
    assert outcomes(result) == {"nobody-1": "error", "weather-1": "error", "slow-1": "timeout"}


async def test_a_tool_says_itself_that_it_is_only_told() -> None:
    broken = raising(ZeroDivisionError("1/0"), on_error="tell")
    options = ToolOptions(on_error="raise")
    result = await Agent(Scripted([call("broken")], "done"), tools=[broken], tool_options=options).run("hi")
    assert result.status == "done"


@pytest.mark.parity("A11")
async def test_a_tools_own_hook_that_fails_is_that_calls_error() -> None:
    def broken(_context: object) -> None:
        raise ValueError("hook")

    for hooks in (ToolHooks[Any](before_execute=broken), ToolHooks[Any](after_execute=broken)):
        results = await read_by_model([call("look"), call("fine")], tools=[tool("look", hooks=hooks), tool("fine")])
        assert (results["look-1"].outcome, results["fine-1"].outcome) == ("error", "ok")
        assert "hook" in results["look-1"].text


# Ids


@pytest.mark.parametrize(
    "script",
    [
        [WholeCall("a"), WholeCall("b"), WholeCall("a")],
        [WholeCall("a", id="x"), WholeCall("b", id="x"), WholeCall("a", id="x")],
        [CallChunk(0, "", "a"), CallChunk(0, arguments="{}"), CallChunk(1, "", "b"), CallChunk(2, "", "a", "{}")],
        [WholeCall("a", id="call-0"), WholeCall("b"), WholeCall("a")],
    ],
    ids=["empty", "repeated", "in pieces", "taken by another"],
)
async def test_empty_and_repeated_ids_are_replaced_once_for_all(script: list[Any]) -> None:
    """Call, events and result must speak of the same thing, or an answer goes to the wrong call."""
    run = Agent(Scripted(script, "done"), tools=[tool("a"), tool("b")]).run("hi")
    heard = Heard(run)
    result = await run
    (reply,) = [message for message in result.messages if isinstance(message, AssistantMessage) and message.calls]
    ids = [asked.id for asked in reply.calls]
    assert len(set(ids)) == 3
    assert "" not in ids
    assert [event.call.id for event in heard.of(ToolRequested)] == ids
    assert list(results_of(result.messages)) == ids
    assert list(dict.fromkeys(event.call_id for event in heard.of(ToolCallDelta))) == ids
    assert [result.text for result in results_of(result.messages).values()] == ["a", "b", "a"]
    assert faults(heard.events, result) == []


async def test_equal_inputs_give_equal_ids_and_an_application_may_make_its_own() -> None:
    """B7: a recording compares; a store may want ids of its own."""

    async def ids(**options: Any) -> list[str]:
        run = Agent(Scripted([WholeCall("a"), WholeCall("a")], "done"), tools=[tool("a")], **options)
        result = await run.run("hi", run_id="r1")
        return [
            message.id for message in result.messages if isinstance(message, MessageFinished | AssistantMessage)
        ] + [*results_of(result.messages)]

    assert await ids() == await ids()
    count = iter(range(100))
    own = await ids(id_generator=lambda prefix: f"mine-{prefix}-{next(count)}")
    assert all(id_.startswith("mine-") for id_ in own)


async def test_a_call_when_tools_are_switched_off_is_not_run() -> None:
    """B6: `none` holds for the whole run, also for a model that does not listen."""
    ran: list[int] = []
    model = Scripted([call("a")], "done")
    agent = Agent(model, tools=[tool("a", lambda: ran.append(1))], hooks=Hooks())
    result = await agent.run("hi", tool_choice="none")
    assert (ran, outcomes(result)) == ([], {"a-1": "not_run"})
    assert [request.tools for request in model.requests] == [(), ()]
