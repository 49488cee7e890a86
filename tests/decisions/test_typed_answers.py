"""The final answer as a validated value, through a call that every provider has."""

import json
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import pytest
from pydantic import BaseModel, Field

from antiphon import (
    Agent,
    Approve,
    Ask,
    ForcedCall,
    Hooks,
    LimitReached,
    Limits,
    MessageDelivered,
    RunError,
    ToolCall,
    ToolCallDelta,
    ToolFinished,
    UsageError,
    UseArguments,
    UseResult,
    UserMessage,
    validate,
)
from antiphon.agent.output import FINAL
from antiphon.testing import Scripted

from .scenes import Bodies, call, finished, outcome, outcomes, said, texts

pytestmark = pytest.mark.anyio


class City(BaseModel):
    """A city."""

    name: str
    people: int = Field(ge=0)


class Country(BaseModel):
    name: str
    capital: City


@dataclass
class Point:
    x: int
    y: int = 0


class Row(TypedDict):
    key: str
    values: list[int]


def answer(call_id: str = "", /, **arguments: Any) -> ToolCall:
    """The model gives its final answer."""
    return call(FINAL, call_id, **arguments)


OSLO = {"name": "Oslo", "people": 7}

KINDS: list[tuple[Any, dict[str, Any], Any]] = [
    (City, OSLO, City(name="Oslo", people=7)),
    (Country, {"name": "Norway", "capital": OSLO}, Country(name="Norway", capital=City(name="Oslo", people=7))),
    (Point, {"x": 1}, Point(1, 0)),
    (Row, {"key": "a", "values": [1, 2]}, {"key": "a", "values": [1, 2]}),
    (City | Point, {"value": {"x": 3}}, Point(3, 0)),
    (City | Point, {"value": OSLO}, City(name="Oslo", people=7)),
    (int, {"value": 42}, 42),
    (str, {"value": "text"}, "text"),
    (bool, {"value": True}, True),
    (list[City], {"value": [OSLO]}, [City(name="Oslo", people=7)]),
    (tuple[int, str], {"value": [1, "a"]}, (1, "a")),
    (dict[str, int], {"a": 1}, {"a": 1}),
    (Literal["yes", "no"], {"value": "yes"}, "yes"),
    (str | None, {"value": None}, None),
]


@pytest.mark.parametrize(("kind", "arguments", "expected"), KINDS, ids=[str(kind) for kind, _, _ in KINDS])
async def test_the_answer_is_a_value_of_the_type_that_was_asked_for(kind: Any, arguments: Any, expected: Any) -> None:
    """A model, a dataclass, a typed dict, a union, plain types: what is no object travels under `value`."""
    model = Scripted([answer(**arguments)])
    result = await Agent(model).run("go", output_type=kind)
    assert (result.status, result.output) == ("done", expected)
    assert type(result.output) is type(expected)
    assert len(model.requests) == 1, "the answer ends the run"
    assert validate(result.messages) == []


async def test_without_a_type_the_answer_is_the_text_of_the_last_reply() -> None:
    result = await Agent(Scripted(["a", call("a")], "last"), tools=[Bodies().tool("a")]).run("go")
    assert result.output == "last"


async def test_the_tool_for_the_answer_is_advertised_beside_the_others_and_explained() -> None:
    model = Scripted([call("a")], [answer(**OSLO)])
    agent = Agent(model, instructions="Be brief.", tools=[Bodies().tool("a")])
    result = await agent.run("go", output_type=City)
    request = model.requests[0]
    assert [tool.name for tool in request.tools] == ["a", FINAL]
    assert request.instructions.startswith("Be brief.\n\n")
    assert FINAL in request.instructions
    assert request.tools[1].parameters["required"] == ["name", "people"]
    assert (request.tool_choice, result.output.name) == ("auto", "Oslo")


async def test_where_it_is_the_only_tool_the_model_must_call_it_first() -> None:
    model = Scripted("I would say Oslo", [answer(**OSLO)])
    await Agent(model).run("go", output_type=City)
    assert [request.tool_choice for request in model.requests] == [FINAL, "auto"]


# Repair


async def test_an_answer_that_does_not_fit_is_told_and_repaired() -> None:
    model = Scripted([answer("f1", name="Oslo", people=-1)], [answer("f2", town="Oslo")], [answer("f3", **OSLO)])
    result, recording = await outcome(Agent(model), output_type=City)
    recording.check()
    assert result.output == City(name="Oslo", people=7)
    assert outcomes(result.messages) == {"f1": "error", "f2": "error", "f3": "ok"}
    assert "people: " in texts(model.requests[1].messages)["f1"]
    assert [event.outcome for event in recording.of(ToolFinished)] == ["error", "error", "ok"]


async def test_repair_is_bounded_by_the_limit_of_invalid_calls() -> None:
    model = Scripted(*[[answer(f"f{n}", name=n)] for n in range(9)])
    result, recording = await outcome(Agent(model, limits=Limits(invalid_calls=3)), output_type=City)
    assert (result.status, len(model.requests), result.output) == ("limit", 3, None)
    assert recording.one(LimitReached).which == "invalid_calls"


async def test_a_hook_may_refuse_an_answer_and_the_model_tries_again() -> None:
    """What a type cannot say, the application can."""

    def check(context: Any) -> Any:
        if context.call.name == FINAL and context.arguments["name"] != "Oslo":
            return UseResult("name the capital of Norway", is_error=True)
        return None

    model = Scripted([answer("f1", name="Bergen", people=1)], [answer("f2", **OSLO)])
    result, _ = await outcome(Agent(model, hooks=Hooks(after_tool_execute=check)), output_type=City)
    assert (result.output.name, outcomes(result.messages)) == ("Oslo", {"f1": "error", "f2": "ok"})
    assert texts(model.requests[1].messages) == {"f1": "name the capital of Norway"}


async def test_a_hook_that_fails_over_an_answer_does_not_let_it_pass() -> None:
    model = Scripted([answer("f1", **OSLO)], [answer("f2", **OSLO)])
    seen: list[Any] = []

    def check(context: Any) -> None:
        seen.append(context)
        if len(seen) == 1:
            raise RuntimeError("no connection")

    result, _ = await outcome(Agent(model, hooks=Hooks(after_tool_execute=check)), output_type=City)
    assert (result.status, outcomes(result.messages)) == ("done", {"f1": "error", "f2": "ok"})


# Reminders


async def test_a_text_instead_of_an_answer_is_reminded_and_the_reminder_is_bounded() -> None:
    model = Scripted("Oslo", "Oslo!", "OSLO!!", "never")
    result, recording = await outcome(Agent(model), output_type=City)
    recording.check()
    assert (result.status, len(model.requests), result.output) == ("error", 3, None)
    assert "no final answer, and was reminded 2 times" in str(result.error)
    assert said(result.messages) == ["go", "Oslo", REMINDER, "Oslo!", REMINDER, "OSLO!!"]
    assert len(recording.of(MessageDelivered)) == 2
    assert validate(result.messages) == []


REMINDER = f"Give your answer by calling the tool '{FINAL}'."


async def test_a_reminded_model_may_still_answer() -> None:
    model = Scripted("Oslo", [answer(**OSLO)])
    result = await Agent(model).run("go", output_type=City)
    assert result.output.people == 7
    assert said(model.requests[1].messages) == ["go", "Oslo", REMINDER]


async def test_the_caller_gets_an_error_with_everything_that_was_said() -> None:
    with pytest.raises(RunError, match="no final answer") as caught:
        await Agent(Scripted("a", "b", "c")).run("go", output_type=int)
    assert caught.value.result.text == "c"


# Beside other calls


async def test_other_calls_of_the_same_reply_run_and_the_answer_ends_the_run() -> None:
    bodies = Bodies()
    model = Scripted([call("a"), answer(**OSLO), call("a", "a2")])
    result, recording = await outcome(Agent(model, tools=[bodies.tool("a")]), output_type=City)
    recording.check()
    assert (result.output.name, len(bodies.ran), len(model.requests)) == ("Oslo", 2, 1)


async def test_of_several_answers_the_last_that_was_accepted_counts() -> None:
    model = Scripted(
        [answer("f1", name="Bergen", people=1), answer("f2", **OSLO), answer("f3", name="Rome", people=-1)]
    )
    result = await Agent(model).run("go", output_type=City)
    assert result.output == City(name="Oslo", people=7)


async def test_nobody_is_asked_whether_the_model_may_answer() -> None:
    """A policy that asks about everything is about acts."""
    agent = Agent(Scripted([answer(**OSLO)]), policy=lambda _: Ask())
    result = await agent.run("go", output_type=City)
    assert (result.status, result.output.name) == ("done", "Oslo")


async def test_arguments_that_a_hook_changed_are_the_answer() -> None:
    hooks = Hooks(before_tool_execute=lambda context: UseArguments({**context.arguments, "people": 8}))
    result = await Agent(Scripted([answer(**OSLO)]), hooks=hooks).run("go", output_type=City)
    assert result.output.people == 8


async def test_a_paused_run_gives_its_answer_after_it_was_resumed() -> None:
    bodies = Bodies()
    tools = [bodies.tool("a", needs_approval=True)]
    agent = Agent(Scripted([call("a")], [answer(**OSLO)]), tools=tools)
    paused, _ = await outcome(agent, output_type=City)
    assert (paused.status, paused.output) == ("paused", None)
    state = json.loads(json.dumps(paused.state))
    result, _ = await finished(agent.run(resume=state, decisions={"a-1": Approve()}, output_type=City))
    assert (result.status, result.output.name) == ("done", "Oslo")


async def test_a_former_answer_in_the_transcript_is_not_taken_for_this_one() -> None:
    agent = Agent(Scripted([answer(**OSLO)], "no", "no", "no"))
    first = await agent.run("go", output_type=City)
    second, _ = await finished(agent.run("again", messages=first.messages, output_type=City))
    assert (second.status, second.output) == ("error", None)


# What cannot be


async def test_combinations_that_leave_no_way_to_answer_are_refused() -> None:
    agent = Agent(Scripted("never"), tools=[Bodies().tool("a")])
    for choice in ("none", ForcedCall("a")):
        with pytest.raises(UsageError, match="a typed answer comes through a tool call"):
            agent.run("go", output_type=City, tool_choice=choice)
    with pytest.raises(UsageError, match=f"'{FINAL}'"):
        agent.run("go", output_type=City, tools=[Bodies().tool(FINAL)])
    with pytest.raises(UsageError, match="has no JSON Schema"):
        agent.run("go", output_type=object())


# Viewers


async def test_the_value_can_be_watched_while_it_is_streamed() -> None:
    """Best effort, for viewers: what has come so far, never to act on."""
    shown: list[Any] = []
    model = Scripted([answer(name="Oslo", people=700)], piece=6)
    async with Agent(model).run("go", output_type=City) as run:
        async for event in run:
            if isinstance(event, ToolCallDelta) and event.name == FINAL:
                assert run.partial_arguments("nothing") is None
        result = await run
    run = Agent(Scripted([answer(name="Oslo", people=700)], piece=6)).run("go", output_type=City)
    run.subscribe(
        lambda event: shown.append(run.partial_arguments(event.call_id)) if isinstance(event, ToolCallDelta) else None
    )
    await run
    assert shown[0] == {}
    assert {"name": "Os"} in shown
    assert shown[-1] == {"name": "Oslo", "people": 700}
    assert result.output.people == 700


@pytest.mark.parity("A22")
async def test_a_sub_agent_answers_with_its_text_and_the_caller_with_a_value() -> None:
    sub = Agent(Scripted("seven")).as_tool("count", "Counts.")
    model = Scripted([call("count", prompt="how many?")], [answer(value=7)])
    result = await Agent(model, tools=[sub]).run(UserMessage.of("go"), output_type=int)
    assert result.output == 7
