"""A request as OpenAI's Responses API wants it, and what goes back to the model that it came from."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import UsageError
from antiphon.providers.openai_responses.encode import ResponsesEncoder, encode, left_out
from antiphon.types.content import File, Image, Part, Text, Thinking, ToolCall, Unknown
from antiphon.types.history import History
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from antiphon.types.request import ModelInfo, ModelRequest, ModelSettings, ThinkingLevel, ToolSpec

ORIGIN = "openai:gpt-5.1"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


def body(*messages: Message, model: str = "gpt-5.1", info: ModelInfo | None = None, **fields: Any) -> dict[str, Any]:
    """The encoded request, read back."""
    return json.loads(encode(ModelRequest(messages=messages, **fields), model, info))


def sent(*messages: Message, **fields: Any) -> list[dict[str, Any]]:
    return body(*messages, **fields)["input"]


def with_settings(*, info: ModelInfo | None = None, model: str = "gpt-5.1", **given: Any) -> dict[str, Any]:
    return body(UserMessage.of("hi"), model=model, info=info, settings=ModelSettings(**given))


def known(*levels: ThinkingLevel) -> ModelInfo:
    return ModelInfo(provider="openai", id="gpt-5.1", thinking_levels=levels)


def reply(*parts: Part, **fields: Any) -> AssistantMessage:
    return AssistantMessage(parts=parts, provider="openai", model="gpt-5.1", **fields)


def result(*parts: Part, call_id: str = "c1", **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, tool_name="look", parts=parts, **fields)


def call(arguments: str = "{}", call_id: str = "c1", **fields: Any) -> ToolCall:
    return ToolCall(id=call_id, name="look", arguments=arguments, **fields)


def thought(origin: str | None = ORIGIN, **changes: Any) -> Thinking:
    return Thinking(text="Hm.", signature=json.dumps({**REASONING, **changes}), origin=origin)


def marked(text: str, origin: str = ORIGIN, **mark: str) -> Text:
    return Text(text, json.dumps({"origin": origin, **mark}))


# --- the body


def test_a_request_streams_and_nothing_is_stored_at_the_server() -> None:
    assert body(UserMessage.of("hi"), model="gpt-4.1", instructions="Be brief.") == {
        "model": "gpt-4.1",
        "stream": True,
        "store": False,
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}],
    }


def test_settings_are_sent_under_the_names_of_the_api() -> None:
    given = with_settings(temperature=0.5, top_p=0.9, max_output_tokens=7)
    assert (given["temperature"], given["top_p"], given["max_output_tokens"]) == (0.5, 0.9, 7)


def test_settings_without_a_field_are_named_so_that_the_caller_can_be_told() -> None:
    given = ModelSettings(stop=("a",), seed=1, top_p=0.5)
    assert left_out(given) == ["stop", "seed"]
    assert left_out(ModelSettings(top_p=0.5)) == []
    assert not {"stop", "seed"} & set(with_settings(stop=("a",), seed=1))


def test_the_input_stands_last_so_that_requests_share_their_beginning() -> None:
    raw = encode(ModelRequest(messages=[UserMessage.of("hi")], instructions="x"), "m")
    assert raw.endswith(
        b',"input":[' + json.dumps(sent(UserMessage.of("hi"))[0], separators=(",", ":")).encode() + b"]}"
    )


def test_a_schema_for_the_answer_is_a_text_format_that_the_model_is_held_to() -> None:
    """Without `strict` a schema is no more than advice; one that is free somewhere can be no more."""
    closed = {"title": "My answer!", **SCHEMA, "additionalProperties": False}
    assert with_settings(response_schema={"title": "My answer!", **SCHEMA})["text"] == {
        "format": {"type": "json_schema", "name": "My_answer_", "schema": closed, "strict": True}
    }
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    assert with_settings(response_schema=free)["text"] == {
        "format": {"type": "json_schema", "name": "answer", "schema": free}
    }


@pytest.mark.parity("C11")
def test_the_session_finds_its_prompt_cache_by_a_key() -> None:
    """Keys longer than 64 characters are refused."""
    assert body(UserMessage.of("x"), session_id="s1")["prompt_cache_key"] == "s1"
    long = body(UserMessage.of("x"), session_id="s" * 65)["prompt_cache_key"]
    assert len(long) == 64
    assert long == body(UserMessage.of("x"), session_id="s" * 65)["prompt_cache_key"]
    assert "prompt_cache_key" not in body(UserMessage.of("x"), session_id="s1", settings=ModelSettings(cache="none"))


def test_a_long_cache_is_asked_for_only_where_it_is_known() -> None:
    request = ModelRequest(messages=[UserMessage.of("x")], settings=ModelSettings(cache="long"))
    assert json.loads(ResponsesEncoder("m", long_cache=True).encode(request))["prompt_cache_retention"] == "24h"
    assert "prompt_cache_retention" not in json.loads(ResponsesEncoder("m").encode(request))


def test_the_extra_body_has_the_last_word_and_adds_to_lists_that_may_grow() -> None:
    """Hosted tools come in this way: they stand beside the functions, not in their place."""
    tools = (ToolSpec(name="look"),)
    extra = {
        "reasoning": {"summary": "detailed"},
        "include": ["web_search_call.action.sources"],
        "tools": [{"type": "web_search"}],
        "service_tier": "flex",
        "store": True,
    }
    given = body(UserMessage.of("x"), tools=tools, settings=ModelSettings(thinking="low", extra_body=extra))
    assert given["reasoning"] == {"effort": "low", "summary": "detailed"}
    assert given["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]
    assert [tool["type"] for tool in given["tools"]] == ["function", "web_search"]
    assert (given["service_tier"], given["store"]) == ("flex", True)


def test_an_extra_input_takes_the_place_of_the_messages() -> None:
    given = body(UserMessage.of("x"), settings=ModelSettings(extra_body={"input": "other"}))
    assert given["input"] == "other"


def test_what_json_cannot_hold_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="extra_body"):
        with_settings(extra_body={"x": object()})


# --- tools


def test_a_tool_is_flat_and_says_that_it_is_not_strict() -> None:
    """K3, K4: what is not said counts as strict in this API, and an open schema is then refused."""
    assert body(UserMessage.of("x"), tools=(ToolSpec(name="look", description="Looks.", parameters=SCHEMA),))[
        "tools"
    ] == [{"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": False}]
    strict = body(UserMessage.of("x"), tools=(ToolSpec(name="look", parameters=SCHEMA, strict=True),))["tools"]
    assert strict[0]["strict"] is True


def test_k5_a_tool_without_parameters_has_an_empty_closed_object() -> None:
    tool = body(UserMessage.of("x"), tools=(ToolSpec(name="now"),))["tools"][0]
    assert tool["parameters"] == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("choice", "said"),
    [("auto", "auto"), ("required", "required"), ("look", {"type": "function", "name": "look"})],
)
def test_the_choice_of_a_tool(choice: str, said: Any) -> None:
    assert body(UserMessage.of("x"), tools=(ToolSpec(name="look"),), tool_choice=choice)["tool_choice"] == said


def test_with_the_choice_none_no_tool_is_sent() -> None:
    given = body(UserMessage.of("x"), tools=(ToolSpec(name="look"),), tool_choice="none")
    assert not {"tools", "tool_choice"} & set(given)


def test_parallel_calls_are_said_beside_tools_only() -> None:
    wish = ModelSettings(parallel_tool_calls=False)
    assert body(UserMessage.of("x"), tools=(ToolSpec(name="look"),), settings=wish)["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body(UserMessage.of("x"), settings=wish)


# --- reasoning


@pytest.mark.parity("C10")
@pytest.mark.parametrize("level", ["minimal", "low", "medium", "high", "xhigh", "max"])
def test_a_level_is_an_effort_with_a_summary_and_encrypted_items(level: ThinkingLevel) -> None:
    given = with_settings(thinking=level)
    assert given["reasoning"] == {"effort": level, "summary": "auto"}
    assert given["include"] == ["reasoning.encrypted_content"]


def test_a_level_that_the_model_lacks_is_the_nearest_below() -> None:
    assert with_settings(thinking="max", info=known("low", "medium", "high"))["reasoning"]["effort"] == "high"


def test_off_is_said_to_a_model_that_is_known_to_take_it() -> None:
    """Most models that reason cannot be told not to, and answer 400."""
    off = with_settings(thinking="off", info=known("off", "low"))
    assert off["reasoning"] == {"effort": "none"}
    assert "include" not in off
    assert "reasoning" not in with_settings(thinking="off")
    assert with_settings(thinking="off", info=known("low", "high"))["reasoning"]["effort"] == "low"


def test_a_model_that_does_not_reason_is_told_nothing_of_it() -> None:
    given = with_settings(thinking="high", info=known())
    assert not {"reasoning", "include"} & set(given)


@pytest.mark.parametrize(
    ("model", "reasons"),
    [("gpt-5", True), ("o3-mini", True), ("openai/o4-mini", True), ("gpt-4.1", False), ("gpt-5-chat-latest", False)],
)
def test_without_a_level_a_model_that_reasons_still_gives_its_items(model: str, *, reasons: bool) -> None:
    """Without them its second request of a turn lacks what it thought; a model without reasoning refuses the wish."""
    assert ("include" in with_settings(model=model)) is reasons
    assert "reasoning" not in with_settings(model=model)


@pytest.mark.parity("C10")
def test_summaries_can_be_left_out() -> None:
    assert with_settings(thinking="low", thinking_display="omitted")["reasoning"] == {"effort": "low"}
    assert with_settings(thinking_display="summarized")["reasoning"] == {"summary": "auto"}


# --- messages


def test_pictures_and_files_of_a_user() -> None:
    parts = (
        Text("see"),
        Image(PNG),
        Image("https://x/y.jpg"),
        File("JVBERi0xLjQK", name="a.pdf"),
        File("https://x/b.pdf", name="b.pdf"),
    )
    assert sent(UserMessage(parts=parts))[0]["content"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
        {"type": "input_image", "image_url": "https://x/y.jpg", "detail": "auto"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"},
        {"type": "input_file", "file_url": "https://x/b.pdf"},
    ]


def test_a_system_message_speaks_as_the_developer() -> None:
    assert sent(SystemMessage.of("Mind the gap.")) == [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Mind the gap."}]}
    ]


def test_a_reply_of_another_model_is_sent_in_the_short_form() -> None:
    """The long form needs an id, and an id of another provider is refused."""
    foreign = AssistantMessage(parts=(Text("Yes.", "sig"), call('{"a":1}', opaque={"origin": "x:y", "id": "fc_9"})))
    assert sent(foreign) == [
        {"type": "message", "role": "assistant", "content": "Yes."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"a":1}'},
    ]


def test_k8_messages_that_say_nothing_are_not_sent() -> None:
    silent = (
        UserMessage.of(""),
        reply(),
        reply(Text("")),
        reply(Thinking(text="Hm.", origin=ORIGIN)),
        CustomMessage(kind="note"),
        Unknown({"type": "later"}),
    )
    assert sent(*silent) == []


@pytest.mark.parametrize("arguments", ["", " ", '{"a":', "[1]", "null", '"x"'])
def test_arguments_that_are_no_object_go_back_as_an_empty_one(arguments: str) -> None:
    assert sent(reply(call(arguments)))[0]["arguments"] == "{}"


def test_arguments_go_back_as_the_model_wrote_them() -> None:
    assert sent(reply(call('{ "a" : 1.0 }')))[0]["arguments"] == '{ "a" : 1.0 }'


def test_a_result_is_text_or_a_list_with_what_it_shows() -> None:
    assert sent(result(Text("a"), Text("b"))) == [{"type": "function_call_output", "call_id": "c1", "output": "a\nb"}]
    assert sent(result(Text("a"), Image("https://x/y.png")))[0]["output"] == [
        {"type": "input_text", "text": "a"},
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"},
    ]
    assert sent(result())[0]["output"] == ""


def test_ids_of_calls_that_the_server_would_refuse_are_rewritten_alike_for_call_and_result() -> None:
    odd = "functions.look:0" + "x" * 90
    asked, answered = sent(reply(call(call_id=odd)), result(Text("ok"), call_id=odd))
    assert asked["call_id"] == answered["call_id"]
    assert len(asked["call_id"]) <= 64
    assert asked["call_id"] != sent(reply(call(call_id=odd + "y")))[0]["call_id"]


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_half_characters_never_reach_the_wire(text: str) -> None:
    broken = "\ud83d" + text + "\ude00"
    raw = encode(ModelRequest(messages=[UserMessage.of(broken), reply(call(json.dumps({"a": broken})))]), "m")
    raw.decode()


# --- what goes back to its origin


def test_c3_reasoning_goes_back_whole_with_the_ids_it_was_paired_with() -> None:
    message = reply(
        thought(), marked("Let me look.", id="msg_1", phase="commentary"), call(opaque={"origin": ORIGIN, "id": "fc_1"})
    )
    assert sent(message) == [
        REASONING,
        {
            "type": "message",
            "role": "assistant",
            "phase": "commentary",
            "id": "msg_1",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"},
    ]


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(thought(origin="openai:gpt-5"), id="another model"),
        pytest.param(thought(origin=None), id="nobody"),
        pytest.param(Thinking(text="Hm.", origin=ORIGIN), id="unsigned"),
        pytest.param(Thinking(text="Hm.", signature="c2ln", origin=ORIGIN), id="another kind of signature"),
        pytest.param(Thinking(text="Hm.", signature='[{"type":"reasoning.text"}]', origin=ORIGIN), id="another list"),
    ],
)
def test_c4_c6_reasoning_that_is_not_this_models_stays_here_and_so_do_its_ids(part: Thinking) -> None:
    """An id without the reasoning that it was paired with is refused."""
    message = reply(part, marked("Yes.", id="msg_1"), call(opaque={"origin": ORIGIN, "id": "fc_1"}))
    assert sent(message) == [
        {"type": "message", "role": "assistant", "content": "Yes."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    ]


def test_c3_with_thinking_off_no_reasoning_goes_back() -> None:
    given = body(
        reply(thought(), Text("Yes.")),
        UserMessage.of("x"),
        info=known("off", "low"),
        settings=ModelSettings(thinking="off"),
    )
    assert [item["type"] for item in given["input"]] == ["message", "message"]


def test_reasoning_that_led_nowhere_is_not_sent() -> None:
    """A reasoning item without the item that followed it is refused."""
    assert sent(reply(Text("Yes."), thought())) == [{"type": "message", "role": "assistant", "content": "Yes."}]


def test_the_phase_of_a_text_goes_back_to_its_origin_alone() -> None:
    assert sent(reply(marked("Yes.", phase="final_answer")))[0]["phase"] == "final_answer"
    assert "phase" not in sent(reply(marked("Yes.", origin="openai:o3", phase="final_answer")))[0]


def test_a_hosted_tools_item_goes_back_as_it_came() -> None:
    """Reasoning refers to it: the one without the other is refused."""
    searched = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "x"},
    }
    step = Thinking(redacted=True, signature=json.dumps(searched), origin=ORIGIN)
    assert sent(reply(thought(), step, Text("Yes.")))[:2] == [REASONING, searched]


def test_a_calls_namespace_goes_back_even_without_its_id() -> None:
    [item] = sent(reply(call(opaque={"origin": ORIGIN, "id": "fc_1", "namespace": "crm"})))
    assert item == {"type": "function_call", "namespace": "crm", "call_id": "c1", "name": "look", "arguments": "{}"}


# --- the same bytes again


def exchange(number: int) -> tuple[Message, ...]:
    """A user's turn with a call and its result."""
    return (
        UserMessage.of(f"turn {number}"),
        reply(thought(id=f"rs_{number}"), call(json.dumps({"n": number}), call_id=f"c{number}")),
        result(Text("ok"), Image(PNG), call_id=f"c{number}"),
        reply(marked(f"done {number}", id=f"msg_{number}")),
    )


def test_l4_each_request_begins_with_the_bytes_of_the_one_before() -> None:
    """Over 50 turns: a prompt cache lives from it."""
    encoder = ResponsesEncoder("gpt-5.1")
    tools = (ToolSpec(name="look", parameters=SCHEMA),)
    history, before = History(), b""
    for number in range(50):
        history = history.extended(*exchange(number))
        raw = encoder.encode(ModelRequest(messages=history, tools=tools, instructions="x"))
        assert raw == encode(ModelRequest(messages=tuple(history), tools=tools, instructions="x"), "gpt-5.1")
        assert raw.startswith(before)
        before = raw[:-2]


def test_the_callers_messages_are_not_changed() -> None:
    messages = list(exchange(1))
    before = [repr(message) for message in messages]
    encode(ModelRequest(messages=messages), "gpt-5.1")
    assert [repr(message) for message in messages] == before
