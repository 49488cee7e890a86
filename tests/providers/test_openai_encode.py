"""A request as Chat Completions wants it, and as each server wants it otherwise."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from antiphon.errors import UsageError
from antiphon.providers.openai_chat.encode import ChatEncoder
from antiphon.providers.openai_chat.profiles import PROFILES, Profile
from antiphon.types.content import File, Image, Text, Thinking, Unknown
from antiphon.types.history import History
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    SystemMessage,
    UserMessage,
)
from antiphon.types.request import ModelRequest, ModelSettings, ToolSpec

from .chat_request import GENERIC, OPENAI, PNG, SCHEMA, body, call, reply, result, sent, with_settings

# --- the body


def test_a_request_streams_and_asks_for_its_usage() -> None:
    assert body(UserMessage.of("hi"), instructions="Be brief.") == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}],
    }


def test_settings_that_are_not_set_are_not_sent() -> None:
    assert set(with_settings()) == {"model", "stream", "stream_options", "messages"}


def test_settings_are_sent_under_the_names_of_the_api() -> None:
    given = with_settings(temperature=0.5, top_p=0.9, max_output_tokens=7, stop=("a", "b"), seed=3)
    assert {key: given[key] for key in ("temperature", "top_p", "max_tokens", "stop", "seed")} == {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
        "stop": ["a", "b"],
        "seed": 3,
    }


def test_extra_body_comes_last_and_merges_objects() -> None:
    given = with_settings(
        temperature=0.5, extra_body={"temperature": 1, "stream_options": {"x": 1}, "metadata": {"a": "b"}}
    )
    assert given["temperature"] == 1
    assert given["stream_options"] == {"include_usage": True, "x": 1}
    assert given["metadata"] == {"a": "b"}


def test_extra_body_may_even_replace_the_messages() -> None:
    assert with_settings(extra_body={"messages": []})["messages"] == []


def test_what_json_cannot_say_is_the_callers_error() -> None:
    with pytest.raises(UsageError, match="extra_body"):
        with_settings(extra_body={"x": object()})


def test_the_session_id_goes_where_the_server_takes_one() -> None:
    user = UserMessage.of("hi")
    assert body(user, profile=OPENAI, session_id="s")["prompt_cache_key"] == "s"
    assert "prompt_cache_key" not in body(user, profile=OPENAI, session_id="s", settings=ModelSettings(cache="none"))
    assert "s" not in body(user, session_id="s").values()


def test_a_schema_for_the_answer_is_asked_for_as_far_as_the_server_goes() -> None:
    schema = {**SCHEMA, "title": "Where to go?"}
    assert with_settings(response_schema=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Where_to_go_", "schema": schema},
    }
    assert with_settings(PROFILES["deepseek"], response_schema=schema)["response_format"] == {"type": "json_object"}


# --- tools


def tool_body(choice: str = "auto", profile: Profile = GENERIC, **fields: Any) -> dict[str, Any]:
    tools = (
        ToolSpec(name="look", description="Look.", parameters=SCHEMA, strict=True),
        ToolSpec(name="now", parameters={}),
    )
    return body(UserMessage.of("hi"), profile=profile, tools=tools, tool_choice=choice, **fields)


def test_tools_are_functions_with_their_schema() -> None:
    assert tool_body()["tools"][0] == {
        "type": "function",
        "function": {"name": "look", "description": "Look.", "parameters": SCHEMA},
    }
    assert tool_body()["tool_choice"] == "auto"


def test_k03_strict_is_only_said_where_it_is_known() -> None:
    assert tool_body(profile=OPENAI)["tools"][0]["function"]["strict"] is True
    assert "strict" not in tool_body(profile=OPENAI)["tools"][1]["function"]
    assert "strict" not in tool_body()["tools"][0]["function"]


def test_k05_a_tool_without_parameters_has_an_empty_closed_object() -> None:
    assert tool_body()["tools"][1]["function"]["parameters"] == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_l01_l04_the_same_tools_are_the_same_bytes() -> None:
    """Order and keys as given, in every request, also when the specs were made anew."""
    encoder = ChatEncoder("m", OPENAI)

    def request() -> ModelRequest:
        tools = tuple([ToolSpec(name=name, parameters=json.loads(json.dumps(SCHEMA))) for name in ("b", "a", "c")])
        return ModelRequest(messages=[UserMessage.of("hi")], tools=tools)

    bodies = {encoder.encode(request()) for _ in range(100)}
    assert len(bodies) == 1
    assert [tool["function"]["name"] for tool in json.loads(bodies.pop())["tools"]] == ["b", "a", "c"]


def test_choices_are_words_and_a_tool_is_an_object() -> None:
    assert tool_body("required")["tool_choice"] == "required"
    assert tool_body("now")["tool_choice"] == {"type": "function", "function": {"name": "now"}}


def test_a_server_that_takes_words_only_gets_the_one_tool_alone() -> None:
    given = tool_body("now", PROFILES["lmstudio"])
    assert given["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in given["tools"]] == ["now"]


def test_none_means_no_tools_at_all() -> None:
    assert {"tools", "tool_choice"}.isdisjoint(tool_body("none"))


def test_the_parallel_flag_is_sent_where_it_is_known() -> None:
    off = ModelSettings(parallel_tool_calls=False)
    assert tool_body(profile=OPENAI, settings=off)["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in tool_body(settings=off)
    assert "parallel_tool_calls" not in with_settings(OPENAI, parallel_tool_calls=False)


# --- messages


@pytest.mark.parity("A18")
def test_the_four_roles_and_arguments_as_the_model_wrote_them() -> None:
    """One neutral transcript serves every provider; spaces in the arguments are the model's own."""
    assert sent(
        SystemMessage.of("s"), UserMessage.of("u"), reply(Text("a"), call('{ "x" : 1 }')), result("r"), profile=GENERIC
    ) == [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{ "x" : 1 }'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
    ]


def test_text_is_plain_text_and_texts_given_apart_stay_apart() -> None:
    assert sent(UserMessage.of("a", "b"), SystemMessage.of("s")) == [
        {"role": "user", "content": "a\nb"},
        {"role": "system", "content": "s"},
    ]


@pytest.mark.parametrize(
    ("image", "url"),
    [
        (Image("https://x.org/a.png"), "https://x.org/a.png"),
        (Image("data:image/gif;base64,R0lGOD"), "data:image/gif;base64,R0lGOD"),
        (Image(PNG, "image/webp"), f"data:image/webp;base64,{PNG}"),
        (Image(PNG), f"data:image/png;base64,{PNG}"),
        (Image("/9j/4AAQSkZJRgABAQ"), "data:image/jpeg;base64,/9j/4AAQSkZJRgABAQ"),
        (Image("R0lGODlhAQABAIAAAA"), "data:image/gif;base64,R0lGODlhAQABAIAAAA"),
        (Image("UklGRiIAAABXRUJQVlA4"), "data:image/webp;base64,UklGRiIAAABXRUJQVlA4"),
        (Image("AAAA"), "data:image/png;base64,AAAA"),
        (Image("not base64!"), "data:image/png;base64,not base64!"),
    ],
)
def test_an_image_is_passed_on_as_given_its_type_read_off_the_data(image: Image, url: str) -> None:
    assert sent(UserMessage.of("see", image))[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": url}},
    ]


def test_files_are_data_sounds_are_sounds() -> None:
    [message] = sent(
        UserMessage.of(
            File("JVBERi0x", name="a.pdf"), File("data:audio/wav;base64,UklG", "audio/wav"), File("eA==", "text/csv")
        ),
        profile=OPENAI,
    )
    assert message["content"] == [
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0x"}},
        {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        {"type": "file", "file": {"filename": "file", "file_data": "data:text/csv;base64,eA=="}},
    ]


def test_what_a_server_does_not_take_is_mentioned_rather_than_lost() -> None:
    [message] = sent(
        UserMessage.of("see", Image(PNG, "image/png"), File("eA==", name="x.csv")), profile=PROFILES["deepseek"]
    )
    assert message["content"] == (
        "see\n[image image/png: not shown, deepseek takes none here]\n[file x.csv: not shown, deepseek takes none here]"
    )


@pytest.mark.parametrize(
    ("arguments", "wire"),
    [("", "{}"), ("  ", "{}"), ('{"a": 1}', '{"a": 1}'), ("[1]", "{}"), ('{"a":', "{}"), ("null", "{}"), ("x", "{}")],
)
def test_a16_arguments_that_are_no_object_go_back_as_an_empty_one(arguments: str, wire: str) -> None:
    [message] = sent(reply(call(arguments)))
    assert message["tool_calls"] == [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": wire}}]


@pytest.mark.parametrize(("rule", "content"), [("null", {"content": None}), ("text", {"content": ""}), ("absent", {})])
def test_k07_the_content_of_a_reply_of_calls_alone_follows_the_profile(rule: Any, content: dict[str, Any]) -> None:
    [message] = sent(reply(call()), profile=replace(GENERIC, empty_content=rule))
    assert {key: message[key] for key in ("content",) if key in message} == content


def test_k08_a_message_that_says_nothing_is_not_sent() -> None:
    assert sent(
        UserMessage.of("a"),
        reply(),
        reply(Text("")),
        reply(Thinking(text="only a thought")),
        UserMessage.of(""),
        SystemMessage.of(""),
        UserMessage.of("b"),
    ) == [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]


def test_custom_and_unknown_messages_and_parts_are_never_sent() -> None:
    unknown = Unknown({"type": "hologram"})
    assert sent(CustomMessage(kind="note", data=1), unknown, UserMessage(parts=(Text("a"), unknown))) == [
        {"role": "user", "content": "a"}
    ]


def test_a_result_is_a_tool_message_also_when_it_is_empty() -> None:
    assert sent(result("fine"), result("", call_id="c2")) == [
        {"role": "tool", "tool_call_id": "c1", "content": "fine"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
    ]


def test_pictures_of_tools_follow_after_all_results_of_the_exchange() -> None:
    """Tool messages may have text alone, and nothing may stand between the results of one reply."""
    messages = sent(
        UserMessage.of("a"),
        reply(call(), call(call_id="c2")),
        result("one", Image("https://x.org/1.png")),
        CustomMessage(kind="note"),
        result("two", Image("https://x.org/2.png"), call_id="c2"),
        UserMessage.of("b"),
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [part["type"] for part in messages[4]["content"]] == ["text", "image_url", "text", "image_url"]
    assert "'look'" in messages[4]["content"][0]["text"]
    assert "'c1'" in messages[4]["content"][0]["text"]
    assert messages[2]["content"] == "one"


def test_pictures_of_tools_stand_inline_or_are_mentioned_as_the_profile_says() -> None:
    picture = result("one", Image("https://x.org/1.png"))
    [inline] = sent(picture, profile=replace(GENERIC, tool_images="inline"))
    assert [part["type"] for part in inline["content"]] == ["text", "image_url"]
    [noted] = sent(picture, profile=replace(GENERIC, tool_images="note"))
    assert noted["content"] == "one\n[image: not shown, generic takes none here]"


def test_half_a_character_does_not_stop_a_request() -> None:
    assert sent(UserMessage.of("a\ud83d"), result("b\udc00"))[0]["content"] == "a\ufffd"


# --- what goes back to whom


def test_c04_thinking_is_not_sent_where_nobody_asks_for_it() -> None:
    thought = Thinking(text="hm", signature="s", origin="generic:m")
    assert sent(reply(thought, Text("so"))) == [{"role": "assistant", "content": "so"}]


def test_c03_reasoning_goes_back_to_the_provider_that_needs_it() -> None:
    own = reply(Thinking(text="hm", origin="deepseek:other"), call())
    foreign = reply(Thinking(text="hm", origin="openai:m"), Text("so"))
    messages = sent(own, result("x"), foreign, profile=PROFILES["deepseek"])
    assert messages[0]["reasoning_content"] == "hm"
    assert "reasoning_content" not in messages[2]


def test_c03_the_field_is_there_beside_calls_even_if_nothing_is_known() -> None:
    [message] = sent(reply(call()), profile=PROFILES["deepseek"])
    assert message["reasoning_content"] == ""


def test_c03_nothing_goes_back_when_thinking_is_off() -> None:
    own = reply(Thinking(text="hm", origin="deepseek:m"), call())
    given = body(own, profile=PROFILES["deepseek"], settings=ModelSettings(thinking="off"))
    assert "reasoning_content" not in given["messages"][0]
    assert given["thinking"] == {"type": "disabled"}


def test_c03_c05_details_go_back_as_they_came_and_only_to_their_model() -> None:
    details = [{"type": "reasoning.encrypted", "data": "e", "index": 0}]
    signed = {"signature": json.dumps(details), "redacted": True}
    own = reply(Thinking(origin="openrouter:m", **signed), Text("so"))
    other = reply(Thinking(origin="openrouter:other", **signed), Text("so"))
    broken = reply(Thinking(origin="openrouter:m", signature="opaque of another kind"), Text("so"))
    first, second, third = sent(own, other, broken, profile=PROFILES["openrouter"])
    assert first["reasoning_details"] == details
    assert "reasoning_details" not in second
    assert "reasoning_details" not in third


def test_c07_opaque_data_of_a_call_goes_back_to_its_origin_alone() -> None:
    extra = {"google": {"thought_signature": "s"}}
    marked = call(opaque={"origin": "gemini_openai:m", "extra_content": extra, "private": 1})
    profile = PROFILES["gemini_openai"]
    [home] = sent(reply(marked), profile=profile)
    assert home["tool_calls"][0] == {
        "id": "c1",
        "type": "function",
        "extra_content": extra,
        "function": {"name": "look", "arguments": "{}"},
    }
    for stranger in (PROFILES["openai"], replace(profile, name="elsewhere")):
        [away] = sent(reply(marked), profile=stranger)
        assert "extra_content" not in away["tool_calls"][0]
    unmarked = reply(call(opaque={"extra_content": extra}), provider="gemini_openai", model="m")
    assert sent(unmarked, profile=profile)[0]["tool_calls"][0]["extra_content"] == extra


# --- prefixes


def turns(count: int) -> History:
    history = History([UserMessage.of("go")])
    for number in range(count):
        calls = [call(f'{{"n":{number}}}', call_id=f"c{number}{place}") for place in range(number % 3 + 1)]
        shown = [Image("https://x.org/a.png")] if number % 2 else []
        results = [result("r", *shown, call_id=call.id) for call in calls]
        history = history.extended(reply(Thinking(text="t", origin="deepseek:m"), *calls), *results)
    return history


@pytest.mark.parametrize("name", ["openai", "deepseek", "mistral", "generic"])
def test_each_request_begins_with_the_bytes_of_the_former(name: str) -> None:
    encoder = ChatEncoder("m", PROFILES[name])
    former = b""
    history = History([UserMessage.of("go")])
    for number in range(8):
        now = encoder.encode(ModelRequest(messages=history, instructions="Be brief."))
        assert now.startswith(former)
        assert now == ChatEncoder("m", PROFILES[name]).encode(
            ModelRequest(messages=list(history), instructions="Be brief.")
        )
        former = now.removesuffix(b"]}")
        history = history.extended(reply(call(call_id=f"c{number}")), result("x", Image(PNG), call_id=f"c{number}"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), st.sampled_from(sorted(PROFILES)))
def test_kept_bytes_are_those_of_a_fresh_encoding(lengths: list[int], name: str) -> None:
    """Whatever lengths of one growing transcript are asked for, in any order, with any model."""
    encoder = ChatEncoder("m", PROFILES[name])
    whole = turns(8)
    borders = [0]
    borders += [at for at in range(1, len(whole) + 1) if at == len(whole) or isinstance(whole[at], AssistantMessage)]
    views = {1: History([whole[0]])}
    for number in range(1, 9):
        views[number + 1] = views[number].extended(*whole[borders[number] : borders[number + 1]])
    for length in lengths:
        view = views[length]
        fresh = ChatEncoder("m", PROFILES[name]).encode(ModelRequest(messages=tuple(view)))
        assert encoder.encode(ModelRequest(messages=view)) == fresh
