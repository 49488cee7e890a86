"""Messages and their parts."""

import base64
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from antiphon.errors import UsageError
from antiphon.types.content import File, Image, Text, Thinking, ToolCall, Unknown, as_parts, text_of
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from antiphon.types.request import ModelInfo, ModelSettings

from .strategies import OBJECTS, members

often = settings(deadline=None, max_examples=100)

PICTURE = Image.from_bytes(b"\x89PNG", "image/png")


@pytest.mark.parametrize("kind", [UserMessage, SystemMessage])
def test_strings_and_parts_make_a_message(kind: type[UserMessage] | type[SystemMessage]) -> None:
    """Plain text is what most messages are."""
    message = kind.of("see ", PICTURE, "this", id="m", created_at=1.5)
    assert message.parts == (Text("see "), PICTURE, Text("this"))
    assert (message.text, message.id, message.created_at) == ("see this", "m", 1.5)


@pytest.mark.parametrize("content", [1, None, b"bytes", {"type": "text"}, ["a"], UserMessage.of("a")])
def test_anything_else_is_refused(content: Any) -> None:
    """Found where it is written, not when a provider refuses the request."""
    with pytest.raises(UsageError, match=f"not {type(content).__name__}: give Text, Image, File"):
        UserMessage.of(content)


def test_parts_pass_as_they_are() -> None:
    parts = (Text("a"), Thinking(text="b"), PICTURE, File("u"), ToolCall(id="c", name="n"), Unknown({}))
    assert as_parts(parts) == parts
    assert as_parts(()) == ()


def test_the_text_of_a_message_is_its_text_parts() -> None:
    """What was thought, asked or shown is not what was said."""
    parts = (Thinking(text="hm"), Text("a"), ToolCall(id="c", name="n"), Text("b"), PICTURE, Unknown({"text": "x"}))
    assert text_of(parts) == "ab"
    for message in (AssistantMessage(parts=parts), ToolResultMessage(call_id="c", tool_name="n", parts=parts)):
        assert message.text == "ab"


def test_the_calls_of_a_reply_are_in_order() -> None:
    first, second = ToolCall(id="a", name="n"), ToolCall(id="b", name="n")
    assert AssistantMessage(parts=(first, Text("and"), second)).calls == (first, second)


def test_bytes_are_kept_as_base64_text() -> None:
    """JSON has no bytes."""
    assert Image.from_bytes(b"\x00\xff") == Image(base64.b64encode(b"\x00\xff").decode(), None)
    assert File.from_bytes(b"a", "text/plain", "a.txt") == File("YQ==", "text/plain", "a.txt")


@pytest.mark.parametrize("kind", members(Message))
def test_messages_do_not_change(kind: Any) -> None:
    """Requests, events and histories share them."""
    message = {
        UserMessage: UserMessage.of("a"),
        SystemMessage: SystemMessage.of("a"),
        AssistantMessage: AssistantMessage(parts=()),
        ToolResultMessage: ToolResultMessage(call_id="c", tool_name="n", parts=()),
        CustomMessage: CustomMessage(kind="k"),
    }[kind]
    with pytest.raises(AttributeError):
        message.id = "x"


# Arguments of a call


@given(OBJECTS)
@often
def test_arguments_are_parsed_as_an_object(arguments: dict[str, Any]) -> None:
    assert ToolCall(id="c", name="n", arguments=msgspec.json.encode(arguments).decode()).parse() == arguments


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_blank_arguments_are_an_empty_object(blank: str) -> None:
    """Some models write nothing for a tool without parameters."""
    assert ToolCall(id="c", name="n", arguments=blank).parse() == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"a":', "arguments are not valid JSON"),
        ('{"a":1} x', "arguments are not valid JSON"),
        ('{"a":NaN}', "arguments are not valid JSON"),
        ('{"a":"\\ud800"}', "arguments are not valid JSON"),
        ('{"a":"\ud800"}', "arguments are not valid JSON"),
        ('{"a":' + "[" * 5000, "arguments are not valid JSON"),
        ("[1]", "arguments must be a JSON object, not list"),
        ('"a"', "arguments must be a JSON object, not str"),
        ("null", "arguments must be a JSON object, not NoneType"),
    ],
)
def test_arguments_that_are_no_object_are_a_value_error(arguments: str, said: str) -> None:
    """The sentence goes to the model, which writes the call again."""
    with pytest.raises(ValueError, match=said):
        ToolCall(id="c", name="n", arguments=arguments).parse()


# Settings


def test_settings_for_a_request_go_over_those_of_the_agent() -> None:
    """Only what is set counts; falsy values are set too."""
    base = ModelSettings(temperature=0.7, stop=("a",), seed=1, parallel_tool_calls=True)
    over = ModelSettings(temperature=0.0, stop=(), parallel_tool_calls=False, max_output_tokens=5)
    assert base.merged(over) == ModelSettings(
        temperature=0.0, stop=(), seed=1, parallel_tool_calls=False, max_output_tokens=5
    )
    assert base.merged(None) is base


def test_a_models_origin_is_provider_and_id() -> None:
    """Signatures go back only there."""
    assert ModelInfo(provider="p", id="m:x").origin == "p:m:x"
