"""The final answer as the text of a reply, where the model keeps to a schema and has no tool to weigh it with."""

import json
from typing import Any

import pytest
from pydantic import BaseModel, Field

from antiphon import Agent, Hooks, Limits, ListedTools, RunError, ToolCall, UserMessage, tool
from antiphon.agent.output import FINAL
from antiphon.providers.anthropic.provider import Anthropic
from antiphon.providers.gemini.provider import Gemini
from antiphon.providers.openai_chat.profiles import PROFILES
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.providers.openai_responses.provider import OpenAIResponses
from antiphon.testing import Scripted
from antiphon.testing.quirks import Expected, Quirk, serving
from antiphon.types.request import ModelRequest, ModelSettings

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int = Field(default=0, ge=0)
    mayor: str | None = None


class Keeping(Scripted):
    """A model that keeps to a schema."""

    schema_mode = True


def asked(model: Scripted) -> ModelRequest:
    return model.requests[0]


async def test_the_answer_is_the_text_and_the_schema_goes_along() -> None:
    model = Keeping('{"name":"Oslo","people":7}')
    result = await Agent(model=model).run("Which?", output_type=City)
    assert result.output == City(name="Oslo", people=7)
    assert (asked(model).tools, asked(model).tool_choice) == ((), "auto")
    schema = asked(model).settings.response_schema or {}
    assert (list(schema["properties"]), schema["required"]) == (["name", "people", "mayor"], ["name"])
    assert result.status == "done"


async def test_a_value_that_is_no_object_is_wrapped_in_one() -> None:
    """Schema modes want an object at the top."""
    assert (await Agent(model=Keeping('{"value":[1,2]}')).run("Which?", output_type=list[int])).output == [1, 2]


async def test_k06_nulls_that_a_strict_mode_wrote_are_taken_back() -> None:
    text = '{"name":"Oslo","people":null,"mayor":null}'
    assert (await Agent(model=Keeping(text)).run("Which?", output_type=City)).output == City(name="Oslo")


async def test_an_answer_that_does_not_fit_is_told_and_mended() -> None:
    model = Keeping('{"people":-1}', '{"name":"Oslo"}')
    result = await Agent(model=model).run("Which?", output_type=City)
    assert result.output == City(name="Oslo")
    told = model.requests[1].messages[-1]
    assert isinstance(told, UserMessage)
    assert "- name: is missing" in told.text
    assert "- people: " in told.text


async def test_an_answer_that_never_fits_ends_the_run_after_its_reminders() -> None:
    model = Keeping("no", "still no", "never")
    with pytest.raises(RunError, match="no final answer") as caught:
        await Agent(model=model).run("Which?", output_type=City)
    assert len(model.requests) == 3
    assert caught.value.result.output is None


@tool
def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize(
    ("made", "options"),
    [
        pytest.param(Scripted, {}, id="a model that keeps to none"),
        pytest.param(Keeping, {"tools": [look]}, id="tools"),
        pytest.param(Keeping, {"sources": [ListedTools("shelf", [look])]}, id="a source of tools"),
        pytest.param(Keeping, {"fallbacks": [Scripted("x")]}, id="a fallback that keeps to none"),
        pytest.param(Keeping, {"settings": ModelSettings(response_schema={"type": "object"})}, id="another schema"),
    ],
)
async def test_elsewhere_the_answer_is_a_call(made: type[Scripted], options: dict[str, Any]) -> None:
    """With tools, a model that is held to a schema could not call any of them."""
    model = made([ToolCall(id="c", name=FINAL, arguments='{"name":"Oslo"}')])
    agent = Agent(model=model, **options)
    result = await agent.run("Which?", output_type=City)
    assert result.output == City(name="Oslo")
    assert FINAL in [spec.name for spec in asked(model).tools]


async def test_a_run_that_ends_without_an_answer_has_none() -> None:
    result = await Agent(model=Keeping("no"), limits=Limits(turns=1)).run("Which?", output_type=City)
    assert (result.status, result.output) == ("limit", None)


@pytest.mark.parametrize(
    ("model", "keeps"),
    [
        (lambda: OpenAIChat("gpt-5", api_key="k"), True),
        (lambda: OpenAIChat("gpt-4-turbo", api_key="k"), False),
        (lambda: OpenAIChat("m", base_url="http://127.0.0.1:8000/v1"), True),
        (lambda: OpenAIChat("m", profile=PROFILES["deepseek"]), False),
        (lambda: OpenAIChat("m", profile=PROFILES["generic"], base_url="http://127.0.0.1:9/v1"), False),
        (lambda: OpenAIResponses("gpt-5", api_key="k"), True),
        (lambda: OpenAIResponses("gpt-3.5-turbo", api_key="k"), False),
        (lambda: OpenAIResponses("m", base_url="http://127.0.0.1:9/v1"), False),
        (lambda: Anthropic("claude-sonnet-4-5", api_key="k"), True),
        (lambda: Anthropic("claude-opus-4-1", api_key="k"), False),
        (lambda: Gemini("gemini-2.5-flash", api_key="k"), True),
    ],
)
async def test_a_model_says_whether_it_keeps_to_a_schema(model: Any, *, keeps: bool) -> None:
    assert model().schema_mode is keeps


async def test_a_typed_answer_comes_through_a_real_server() -> None:
    """From the request's schema to the value: the whole way."""
    said = {"choices": [{"index": 0, "delta": {"content": '{"name":"Oslo","people":null,"mayor":null}'}}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    pieces = tuple(f"data: {json.dumps(each)}\n\n" for each in (said, end))
    sent: list[dict[str, Any]] = []
    async with serving(Quirk("", "", "", "openai_chat", "", Expected(), pieces=pieces)) as url:
        model = OpenAIChat("gpt-5", base_url=f"{url}/v1", api_key="k", profile=PROFILES["openai"])
        agent = Agent(model=model, hooks=Hooks(on_payload=sent.append))
        assert (await agent.run("Which?", output_type=City)).output == City(name="Oslo")
    wanted = sent[0]["response_format"]["json_schema"]
    assert wanted["strict"] is True
    assert wanted["schema"]["required"] == ["name", "people", "mayor"]
    assert "tools" not in sent[0]
