"""What each server wants otherwise, and how it is told from the others."""

from typing import Any

import pytest

from antiphon.providers.openai_chat.profiles import PROFILES, detect, for_model
from antiphon.types.content import Image, Text
from antiphon.types.messages import SystemMessage, UserMessage
from antiphon.types.request import ModelInfo, ModelSettings, ToolSpec

from .chat_request import OPENAI, PNG, SCHEMA, body, call, reply, result, sent, with_settings


def test_the_system_role_and_the_output_limit_go_by_the_profile() -> None:
    given = body(SystemMessage.of("s"), profile=OPENAI, instructions="i", settings=ModelSettings(max_output_tokens=5))
    assert [message["role"] for message in given["messages"]] == ["developer", "developer"]
    assert given["max_completion_tokens"] == 5
    assert "max_tokens" not in given


def test_mistral_gets_nothing_that_it_refuses() -> None:
    """Its API answers an unknown field with 422."""
    profile = PROFILES["mistral"]
    given = with_settings(profile, seed=3, max_output_tokens=5, thinking="high")
    assert given["random_seed"] == 3
    assert given["max_tokens"] == 5
    assert {"stream_options", "seed", "reasoning_effort"}.isdisjoint(given)
    first, second = sent(reply(call(call_id="call_abc-1")), result("x", call_id="call_abc-1"), profile=profile)
    wire_id = first["tool_calls"][0]["id"]
    assert wire_id == second["tool_call_id"]
    assert len(wire_id) == 9
    assert wire_id.isalnum()
    assert second["name"] == "look"
    assert sent(reply(call(call_id="AbCdEf123")), profile=profile)[0]["tool_calls"][0]["id"] == "AbCdEf123"


@pytest.mark.parametrize(
    ("name", "level", "said"),
    [
        ("openai", "minimal", {"reasoning_effort": "minimal"}),
        ("openai", "max", {"reasoning_effort": "xhigh"}),
        ("groq", "xhigh", {"reasoning_effort": "high"}),
        ("openrouter", "high", {"reasoning": {"effort": "high"}}),
        ("deepseek", "max", {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("vllm", "off", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("llamacpp", "high", {"chat_template_kwargs": {"reasoning_effort": "high"}}),
        ("lmstudio", "high", {}),
    ],
)
def test_a_thinking_level_is_said_in_the_servers_words(name: str, level: Any, said: dict[str, Any]) -> None:
    profile = PROFILES[name]
    extra = set(with_settings(profile, thinking=level)) - set(with_settings(profile))
    given = with_settings(profile, thinking=level)
    assert {key: given[key] for key in extra} == said


@pytest.mark.parametrize(
    ("levels", "off", "high"),
    [(None, {}, {"reasoning_effort": "high"}), ((), {}, {}), (("off", "low"), {"reasoning_effort": "none"}, {})],
)
def test_only_levels_that_the_model_has_are_said(levels: Any, off: dict[str, Any], high: dict[str, Any]) -> None:
    """A model that does not think refuses the field, "none" included."""
    profile = for_model(OPENAI, ModelInfo(provider="openai", id="m", thinking_levels=levels))
    plain = with_settings(profile)
    for level, said in (("off", off), ("high", high)):
        given = with_settings(profile, thinking=level)
        assert {key: given[key] for key in set(given) - set(plain)} == said


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "openai"),
        ("https://team.openai.azure.com/openai/v1", "azure"),
        ("https://openrouter.ai/api/v1", "openrouter"),
        ("https://api.groq.com/openai/v1", "groq"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini_openai"),
        ("http://127.0.0.1:11434/v1", "ollama"),
        ("http://box.lan:1234/v1", "lmstudio"),
        ("http://localhost:8080/v1", "llamacpp"),
        ("http://localhost:8000/v1", "vllm"),
        ("http://example.org:8000/v1", "generic"),
        ("https://notopenai.com/v1", "generic"),
        ("https://api.openai.com.evil.example/v1", "generic"),
        ("http://localhost:99999/v1", "generic"),
    ],
)
def test_a_server_is_known_by_its_address(url: str, name: str) -> None:
    assert detect(url).name == name


def test_every_profile_makes_a_request() -> None:
    messages = (UserMessage.of("a", Image(PNG)), reply(Text("b"), call()), result("c", Image(PNG)))
    for profile in PROFILES.values():
        tools = (ToolSpec(name="look", parameters=SCHEMA),)
        given = body(*messages, profile=profile, tools=tools, settings=ModelSettings(thinking="low"))
        assert [message["role"] for message in given["messages"]][:3] == ["user", "assistant", "tool"]
