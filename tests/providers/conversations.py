"""Conversations that every provider must be able to say: one list, in the library's own words."""

from collections.abc import Callable
from typing import Any

from antiphon.types.content import File, Image, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from antiphon.types.request import ModelRequest, ModelSettings, ToolSpec

__all__ = ["CONVERSATIONS", "REPLY", "Conversation"]

PNG = "iVBORw0KGgo="
PDF = "JVBERi0xLjQK"
WEATHER = ToolSpec(
    name="weather",
    description="The weather in a city.",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
        "additionalProperties": False,
    },
    strict=True,
)
NOW = ToolSpec(name="now")
TOOLS = (WEATHER, NOW)
HI = UserMessage.of("Weather in Oslo?")

REPLY = {
    "thinking": "Look it up.",
    "text": "One moment: 世界 😀",
    "calls": [("weather", {"city": "Oslo"}), ("now", {})],
    "stop": "tool_calls",
}
"""What the recorded reply of every provider says, in each vendor's own way."""

Conversation = Callable[[AssistantMessage], ModelRequest]
"""A request, given the provider's own recorded reply, which some go on from."""


def request(*messages: Message, **fields: Any) -> ModelRequest:
    return ModelRequest(messages=messages, **fields)


def result(call: ToolCall, *parts: Any, **more: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id=call.id, tool_name=call.name, parts=tuple(parts), **more)


def text(_: AssistantMessage) -> ModelRequest:
    return request(
        HI, AssistantMessage(parts=(Text("Rain."),)), UserMessage.of("And ", "Rome?"), instructions="Be brief."
    )


def settings(_: AssistantMessage) -> ModelRequest:
    given = ModelSettings(
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=2_000,
        stop=("END",),
        seed=7,
        thinking="low",
        cache="long",
        extra_body={"metadata": {"user_id": "u"}},
    )
    return request(HI, settings=given, session_id="s-1")


def pictures(_: AssistantMessage) -> ModelRequest:
    return request(UserMessage.of("What is this?", Image(PNG), Image("https://example.org/a.jpg", "image/jpeg")))


def files(_: AssistantMessage) -> ModelRequest:
    return request(
        UserMessage.of(
            "Sum up.", File(PDF, "application/pdf", "a.pdf"), File("https://example.org/b.pdf", name="b.pdf")
        )
    )


def calls(_: AssistantMessage) -> ModelRequest:
    """Two calls at once; one fails, the other has a picture. The arguments are as the model wrote them."""
    one, two = ToolCall(id="c1", name="weather", arguments='{ "city": "Oslo" }'), ToolCall(id="c2", name="now")
    return request(
        HI,
        AssistantMessage(parts=(Text("One moment."), one, two), provider="elsewhere", model="x"),
        result(one, Text("no such city"), is_error=True),
        result(two, Text("noon"), Image(PNG)),
        UserMessage.of("And?"),
        tools=TOOLS,
        settings=ModelSettings(parallel_tool_calls=False),
    )


def choice_required(_: AssistantMessage) -> ModelRequest:
    return request(HI, tools=(NOW,), tool_choice="required")


def choice_named(_: AssistantMessage) -> ModelRequest:
    return request(HI, tools=TOOLS, tool_choice="now")


def choice_none(_: AssistantMessage) -> ModelRequest:
    return request(HI, tools=(NOW,), tool_choice="none")


def own_turn(reply: AssistantMessage) -> ModelRequest:
    """The provider's own reply goes back: what it signed is there, byte for byte."""
    one, two = reply.calls
    return request(HI, reply, result(one, Text("6 °C")), result(two, Text("noon")), tools=TOOLS)


def other_models_turn(_: AssistantMessage) -> ModelRequest:
    """Nothing that another vendor attached goes along, and ids and names that might be refused are rewritten."""
    call = ToolCall(
        id="functions.look:0",
        name="fs.look",
        arguments="{broken",
        opaque={"origin": "other:m", "thoughtSignature": "s"},
    )
    thought = Thinking(text="Look it up.", signature="sig", origin="other:m")
    sealed = Thinking(signature="sealed", redacted=True, origin="other:m")
    reply = AssistantMessage(parts=(thought, sealed, Text("Hm.", "mark"), call), provider="other", model="m")
    return request(HI, reply, result(call, Text("fine")))


def aborted_turn(_: AssistantMessage) -> ModelRequest:
    """What came until a person stopped it, without the thought that was never signed; then they go on."""
    half = AssistantMessage(parts=(Thinking(text="Hm"), Text("It is")), stop_reason="aborted", partial=True)
    return request(HI, half, UserMessage.of("Go on."))


def system_message(_: AssistantMessage) -> ModelRequest:
    return request(
        HI, AssistantMessage(parts=(Text("Rain."),)), SystemMessage.of("It is noon now."), UserMessage.of("So?")
    )


def typed_answer(_: AssistantMessage) -> ModelRequest:
    schema = {
        "title": "Forecast",
        "type": "object",
        "properties": {"sky": {"enum": ["clear", "rain"]}, "note": {"type": "string", "maxLength": 9}},
        "required": ["sky"],
        "additionalProperties": False,
    }
    return request(HI, settings=ModelSettings(response_schema=schema))


CONVERSATIONS: dict[str, Conversation] = {
    made.__name__: made
    for made in (
        text, settings, pictures, files, calls, choice_required, choice_named, choice_none, own_turn, other_models_turn,
        aborted_turn, system_message, typed_answer,
    )
}  # fmt: skip
"""The list."""
