"""What a tool gives back becomes one result: text as it is, everything else as JSON, and what is only for the application."""

import json
import math
from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.loop.hooks import Hooks
from antiphon.loop.spec import ToolOptions
from antiphon.providers.scripted import Scripted
from antiphon.tools.hooks import UseResult
from antiphon.tools.result import ToolResult
from antiphon.types.content import Image, Text
from antiphon.types.events import MessageDelivered, ToolFinished, TurnStarted
from antiphon.types.messages import ToolResultMessage, UserMessage
from antiphon.types.result import RunResult

from .scenarios import Heard, call, faults, outcomes, results_of, tool

pytestmark = pytest.mark.anyio


async def ran(value: Any, **options: Any) -> tuple[ToolResultMessage, RunResult[str], Heard]:
    """One call of a tool that returns `value`."""

    async def give() -> Any:
        return value

    run = Agent(Scripted([call("give")], "done"), tools=[tool("give", give)]).run("hi", **options)
    heard = Heard(run)
    result = await run
    assert faults(heard.events, result) == []
    return results_of(result.messages)["give-1"], result, heard


@pytest.mark.parity("A19")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain\n text ", "plain\n text "),
        ("", ""),
        (None, "null"),
        (True, "true"),
        (12.5, "12.5"),
        ({"a": [1, "ø"]}, '{"a":[1,"ø"]}'),
        ([1, 2], "[1,2]"),
        ({3, 1, 2}, "[1,2,3]"),
    ],
)
async def test_text_stays_and_everything_else_is_json(value: Any, text: str) -> None:
    message, result, _ = await ran(value)
    assert (message.text, message.is_error, message.outcome) == (text, False, "ok")
    assert result.warnings == ()


async def test_parts_stay_parts() -> None:
    image = Image.from_bytes(b"\x89PNG", "image/png")
    message, _, _ = await ran(["here:", image])
    assert message.parts == (Text("here:"), image)


async def test_a_number_that_is_no_json_is_null_and_told_of() -> None:
    """A provider refuses the whole request for one NaN."""
    message, result, heard = await ran({"mean": math.nan, "max": math.inf})
    assert json.loads(message.text) == {"mean": None, "max": None}
    assert [code for code, _ in result.warnings] == ["result_not_finite"]
    assert heard.kinds.count("Warned") == 1


async def test_text_that_utf8_cannot_carry_is_mended_and_told_of() -> None:
    message, result, _ = await ran("half \ud83d of it")
    assert message.text == "half \ufffd of it"
    assert [code for code, _ in result.warnings] == ["result_surrogates"]


async def test_what_cannot_be_told_is_an_error_for_the_model() -> None:
    loop: list[Any] = []
    loop.append(loop)
    message, _, _ = await ran(loop)
    assert (message.is_error, message.outcome) == (True, "error")
    assert "what it returned cannot be told" in message.text


@pytest.mark.parity("B12")
async def test_a_tool_result_has_details_for_the_application_alone() -> None:
    """A viewer shows the table, the model reads the sentence."""
    message, _, heard = await ran(ToolResult("2 rows", details={"rows": [[1], [2]]}))
    assert (message.text, message.details) == ("2 rows", {"rows": [[1], [2]]})
    (finished,) = heard.of(ToolFinished)
    assert finished.result is message
    assert finished.arguments == {}
    assert finished.seconds >= 0


async def test_details_that_are_no_json_are_kept_as_their_repr_and_told_of() -> None:
    message, result, _ = await ran(ToolResult("x", details={"handle": object}))
    assert message.details == {"handle": repr(object)}
    assert [code for code, _ in result.warnings] == ["details_not_json"]


async def test_a_tool_can_say_word_for_word_what_went_wrong() -> None:
    message, _, heard = await ran(ToolResult("no such row", is_error=True))
    assert (message.text, message.is_error, message.outcome) == ("no such row", True, "error")
    assert heard.of(ToolFinished)[0].outcome == "error"


async def test_a_result_longer_than_the_limit_is_cut_with_a_mark_and_kept_whole_in_the_details() -> None:
    """One careless `cat` must not fill the context; the application still has it."""
    whole = "ø" * 2000
    message, result, _ = await ran(whole, tool_options=ToolOptions(result_limit=1000))
    assert len(message.text.encode()) <= 1000
    assert "[cut: " in message.text
    assert message.details == {"whole_text": whole}
    assert [code for code, _ in result.warnings] == ["result_cut"]


async def test_without_a_limit_nothing_is_cut() -> None:
    message, result, _ = await ran("x" * 300_000, tool_options=ToolOptions(result_limit=None))
    assert (len(message.text), result.warnings) == (300_000, ())
    message, result, _ = await ran("x" * 300_000)
    assert len(message.text) <= 256 * 1024


async def test_a_hooks_result_is_shaped_like_a_tools() -> None:
    """It goes into the same transcript."""

    def filtered(_context: object) -> UseResult:
        return UseResult(content={"n": math.nan}, details={"o": object})

    message, result, _ = await ran("secret", hooks=Hooks[Any](after_tool_execute=filtered))
    assert (message.text, message.details) == ('{"n":null}', {"o": repr(object)})
    assert "secret" not in str(result.state)


# Ending the turn


@pytest.mark.parity("C21")
async def test_a_result_can_end_the_run_without_asking_the_model_again() -> None:
    message, result, _ = await ran(ToolResult("handed over", end_turn=True))
    assert (result.status, result.reason, result.turns) == ("done", None, 1)
    assert result.messages[-1] is message


async def test_the_other_calls_of_the_reply_still_run_to_their_end() -> None:
    """The turn ends, not the work that was asked for in it."""

    async def last() -> ToolResult:
        return ToolResult("bye", end_turn=True)

    run = Agent(Scripted([call("last"), call("longer")]), tools=[tool("last", last), tool("longer")]).run("hi")
    result = await run
    assert outcomes(result) == {"last-1": "ok", "longer-1": "ok"}
    assert result.status == "done"


async def test_after_an_end_of_turn_what_was_said_meanwhile_opens_another() -> None:
    """A queued message is never lost to a tool that thought it was the last word."""

    async def last() -> ToolResult:
        run.follow_up("one more thing")
        return ToolResult("bye", end_turn=True)

    model = Scripted([call("last")], "gladly")
    run = Agent(model, tools=[tool("last", last)]).run("hi")
    heard = Heard(run)
    result = await run
    assert (result.status, result.text) == ("done", "gladly")
    assert [event.turn for event in heard.of(TurnStarted)] == [1, 2]
    assert len(heard.of(MessageDelivered)) == 1
    sent = model.requests[1].messages[-1]
    assert isinstance(sent, UserMessage)
    assert sent.text == "one more thing"
    assert faults(heard.events, result) == []
