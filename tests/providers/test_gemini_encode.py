"""A request as the Gemini API wants it, and what goes back to the model that it came from."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import UsageError
from antiphon.providers.gemini.encode import GeminiEncoder, encode, left_out
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

OLDER, NEWER = "gemini-2.5-flash", "gemini-3-pro-preview"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def body(*messages: Message, model: str = OLDER, info: ModelInfo | None = None, **fields: Any) -> dict[str, Any]:
    """The encoded request, read back."""
    return json.loads(encode(ModelRequest(messages=messages, **fields), model, info))


def sent(*messages: Message, **fields: Any) -> list[dict[str, Any]]:
    return body(*messages, **fields)["contents"]


def generation(model: str = OLDER, info: ModelInfo | None = None, **given: Any) -> dict[str, Any]:
    return body(UserMessage.of("hi"), model=model, info=info, settings=ModelSettings(**given)).get(
        "generationConfig", {}
    )


def thinking(model: str, level: ThinkingLevel | None = None, **given: Any) -> dict[str, Any] | None:
    return generation(model, thinking=level, **given).get("thinkingConfig")


def reply(*parts: Part) -> AssistantMessage:
    return AssistantMessage(parts=parts)


def call(arguments: str = "{}", call_id: str = "c1", name: str = "look", **opaque: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments, opaque=opaque or None)


def result(*parts: Part, call_id: str = "c1", **fields: Any) -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, tool_name="look", parts=parts, **fields)


def mark(signature: str, length: int, model: str = NEWER) -> str:
    return json.dumps({"origin": f"gemini:{model}", "signature": signature, "length": length})


# --- the body


def test_a_request_has_instructions_and_contents() -> None:
    assert body(UserMessage.of("hi"), instructions="Be brief.") == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }
    assert body(UserMessage.of("hi")) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def test_settings_are_sent_under_the_names_of_the_api() -> None:
    given = generation(temperature=0.5, top_p=0.9, max_output_tokens=7, stop=("a", "b"), seed=3, response_schema=SCHEMA)
    assert given == {
        "temperature": 0.5,
        "topP": 0.9,
        "maxOutputTokens": 7,
        "stopSequences": ["a", "b"],
        "seed": 3,
        "responseJsonSchema": SCHEMA,
        "responseMimeType": "application/json",
    }


def test_settings_without_a_field_are_named_so_that_the_caller_can_be_told() -> None:
    assert left_out(ModelSettings(parallel_tool_calls=False)) == ["parallel_tool_calls"]
    assert left_out(ModelSettings(parallel_tool_calls=True, seed=1)) == []


def test_the_contents_stand_last_so_that_requests_share_their_beginning() -> None:
    raw = encode(ModelRequest(messages=[UserMessage.of("hi")], instructions="x"), OLDER)
    assert raw.endswith(b',"contents":[{"role":"user","parts":[{"text":"hi"}]}]}')


def test_the_extra_body_has_the_last_word_and_adds_to_the_tools() -> None:
    """The server's own tools come in this way: they stand beside the functions, not in their place."""
    extra = {
        "generationConfig": {"temperature": 1, "mediaResolution": "MEDIA_RESOLUTION_LOW"},
        "tools": [{"googleSearch": {}}],
        "cachedContent": "cachedContents/1",
    }
    wish = ModelSettings(temperature=0.5, seed=1, extra_body=extra)
    given = body(UserMessage.of("x"), tools=(ToolSpec(name="look"),), settings=wish)
    assert given["generationConfig"] == {"temperature": 1, "seed": 1, "mediaResolution": "MEDIA_RESOLUTION_LOW"}
    assert [next(iter(tool)) for tool in given["tools"]] == ["functionDeclarations", "googleSearch"]
    assert given["cachedContent"] == "cachedContents/1"
    assert body(UserMessage.of("x"), settings=ModelSettings(extra_body={"contents": []}))["contents"] == []


def test_what_json_cannot_hold_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="extra_body"):
        generation(extra_body={"x": object()})


# --- tools


def test_tools_are_declarations_with_their_json_schema() -> None:
    tools = (ToolSpec(name="look", description="Looks.", parameters=SCHEMA, strict=True), ToolSpec(name="see"))
    assert body(UserMessage.of("x"), tools=tools)["tools"] == [
        {
            "functionDeclarations": [
                {"name": "look", "description": "Looks.", "parametersJsonSchema": SCHEMA},
                {"name": "see"},
            ]
        }
    ]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, False),
        ({"type": "object"}, False),
        ({"type": "object", "properties": {}, "required": [], "additionalProperties": False}, False),
        ({"type": "object", "additionalProperties": True}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": SCHEMA}}, True),
    ],
)
def test_k5_a_tool_without_parameters_has_no_schema(schema: dict[str, Any], *, said: bool) -> None:
    tools = (ToolSpec(name="now", parameters=schema),)
    declared = body(UserMessage.of("x"), tools=tools)["tools"][0]["functionDeclarations"][0]
    assert declared.get("parametersJsonSchema") == (schema if said else None)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("auto", {"mode": "AUTO"}),
        ("required", {"mode": "ANY"}),
        ("look", {"mode": "ANY", "allowedFunctionNames": ["look"]}),
    ],
)
def test_the_choice_of_a_tool(choice: str, said: dict[str, Any]) -> None:
    given = body(UserMessage.of("x"), tools=(ToolSpec(name="look"),), tool_choice=choice)
    assert given["toolConfig"] == {"functionCallingConfig": said}


def test_with_the_choice_none_no_tool_is_sent() -> None:
    given = body(UserMessage.of("x"), tools=(ToolSpec(name="look"),), tool_choice="none")
    assert not {"tools", "toolConfig"} & set(given)


# --- thinking


@pytest.mark.parity("C10")
@pytest.mark.parametrize(
    ("model", "level", "said"),
    [
        ("gemini-2.5-pro", "minimal", {"thinkingBudget": 128}),
        ("gemini-2.5-pro", "high", {"thinkingBudget": 32768}),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 2048}),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 8192}),
        ("gemini-2.5-flash", "max", {"thinkingBudget": 24576}),
        ("gemini-2.5-flash-lite", "minimal", {"thinkingBudget": 512}),
        ("gemini-3-pro-preview", "minimal", {"thinkingLevel": "LOW"}),
        ("gemini-3-pro-preview", "medium", {"thinkingLevel": "HIGH"}),
        ("gemini-3.1-pro-preview", "medium", {"thinkingLevel": "MEDIUM"}),
        ("gemini-3-flash-preview", "minimal", {"thinkingLevel": "MINIMAL"}),
        ("gemini-3.5-flash", "xhigh", {"thinkingLevel": "HIGH"}),
        ("gemini-flash-latest", "low", {"thinkingBudget": -1}),
    ],
)
def test_a_level_is_a_budget_or_a_word_by_the_models_generation(
    model: str, level: ThinkingLevel, said: dict[str, Any]
) -> None:
    assert thinking(model, level) == {**said, "includeThoughts": True}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("gemini-2.5-flash", {"thinkingBudget": 0}),
        ("gemini-2.5-pro", {"thinkingBudget": 128}),
        ("gemini-3-pro-preview", {"thinkingLevel": "LOW"}),
        ("gemini-3-flash-preview", {"thinkingLevel": "MINIMAL"}),
    ],
)
def test_off_is_as_little_as_the_model_can_and_hides_it(model: str, said: dict[str, Any]) -> None:
    assert thinking(model, "off") == {**said, "includeThoughts": False}


def test_off_is_not_said_where_it_may_be_refused() -> None:
    assert thinking("gemini-pro-latest", "off") is None
    assert thinking("gemini-2.0-flash", "off") is None


def test_what_is_known_of_a_model_decides_its_levels() -> None:
    """Later models have levels that their name does not tell."""
    info = ModelInfo(provider="gemini", id="gemini-4-pro", thinking_levels=("low", "xhigh"))
    assert thinking("gemini-4-pro", "xhigh", info=info) == {"thinkingLevel": "XHIGH", "includeThoughts": True}
    assert thinking("gemini-4-pro", "high", info=info) == {"thinkingLevel": "LOW", "includeThoughts": True}
    none = ModelInfo(provider="gemini", id="gemini-4-pro", thinking_levels=())
    assert thinking("gemini-4-pro", "high", info=none) is None


@pytest.mark.parity("C10")
def test_a_budget_of_the_caller_wins_where_there_are_budgets() -> None:
    budgets: dict[ThinkingLevel, int] = {"low": 99}
    assert thinking(OLDER, "low", thinking_budgets=budgets) == {"thinkingBudget": 99, "includeThoughts": True}
    assert thinking(NEWER, "low", thinking_budgets=budgets) == {"thinkingLevel": "LOW", "includeThoughts": True}


@pytest.mark.parity("C10")
def test_thoughts_can_be_left_out() -> None:
    hidden = thinking(OLDER, "low", thinking_display="omitted")
    assert hidden == {"thinkingBudget": 2048, "includeThoughts": False}
    assert thinking(OLDER, thinking_display="summarized") == {"includeThoughts": True}
    assert thinking(OLDER) is None


# --- messages


def test_pictures_and_files_of_a_user() -> None:
    parts = (
        Text("see"),
        Image(PNG),
        Image("data:image/webp;base64,AAAA"),
        Image("https://x/y.jpg?size=1"),
        File("aGVsbG8=", name="a.md"),
        File("gs://bucket/c", "video/mp4"),
        File("https://generativelanguage.googleapis.com/v1beta/files/abc"),
    )
    assert sent(UserMessage(parts=parts))[0]["parts"] == [
        {"text": "see"},
        {"inlineData": {"mimeType": "image/png", "data": PNG}},
        {"inlineData": {"mimeType": "image/webp", "data": "AAAA"}},
        {"fileData": {"fileUri": "https://x/y.jpg?size=1", "mimeType": "image/jpeg"}},
        {"inlineData": {"mimeType": "text/markdown", "data": "aGVsbG8="}},
        {"fileData": {"fileUri": "gs://bucket/c", "mimeType": "video/mp4"}},
        {"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/abc"}},
    ]


def test_a_data_url_that_is_not_base64_becomes_it() -> None:
    [part] = sent(UserMessage.of(File("data:text/plain,a%20b")))[0]["parts"]
    assert part == {"inlineData": {"mimeType": "text/plain", "data": "YSBi"}}


def test_a_system_message_is_said_by_the_user_since_there_is_no_other_role() -> None:
    assert sent(SystemMessage.of("Mind the gap.")) == [{"role": "user", "parts": [{"text": "Mind the gap."}]}]


def test_k8_messages_that_say_nothing_are_not_sent() -> None:
    silent = (
        UserMessage.of(""),
        reply(),
        reply(Text("")),
        reply(Thinking(text="Hm.", origin=f"gemini:{OLDER}")),
        CustomMessage(kind="note"),
        Unknown({"type": "later"}),
    )
    assert sent(*silent) == []


def test_i11_all_results_of_a_reply_stand_in_one_content() -> None:
    """The API counts them: one for each call, right behind the calls."""
    contents = sent(
        UserMessage.of("look"),
        reply(Text("Yes."), call('{"a": 1}'), call(call_id="c2", name="see")),
        result(Text("one")),
        result(Text("two"), call_id="c2", is_error=True),
        UserMessage.of("and?"),
    )
    assert contents == [
        {"role": "user", "parts": [{"text": "look"}]},
        {
            "role": "model",
            "parts": [
                {"text": "Yes."},
                {"functionCall": {"name": "look", "args": {"a": 1}}},
                {"functionCall": {"name": "see", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "look", "response": {"output": "one"}}},
                {"functionResponse": {"name": "see", "response": {"error": "two"}}},
            ],
        },
        {"role": "user", "parts": [{"text": "and?"}]},
    ]


@pytest.mark.parametrize("arguments", ["", " ", '{"a":', "[1]", "null", '"x"'])
def test_arguments_that_are_no_object_go_back_as_an_empty_one(arguments: str) -> None:
    assert sent(reply(call(arguments)))[0]["parts"][0]["functionCall"]["args"] == {}


def test_arguments_go_back_as_the_model_wrote_them() -> None:
    raw = encode(ModelRequest(messages=[reply(call('{ "a" : 1.0 }'))]), OLDER)
    assert b'"args":{ "a" : 1.0 }' in raw


def test_ids_go_back_where_the_server_gave_them() -> None:
    """Elsewhere the ids are the library's own, and order tells what belongs together."""
    own = call(origin=f"gemini:{NEWER}", id="fc-1", call_id="fc-1")
    asked, answered = sent(reply(own), result(Text("ok"), call_id="fc-1"), model=NEWER)
    assert asked["parts"][0]["functionCall"]["id"] == "fc-1"
    assert answered["parts"][0]["functionResponse"]["id"] == "fc-1"
    foreign = call(origin="openai:gpt-5", id="fc-1", call_id="fc-1")
    asked, answered = sent(reply(foreign), result(Text("ok"), call_id="fc-1"), model=NEWER)
    assert "id" not in asked["parts"][0]["functionCall"]
    assert "id" not in answered["parts"][0]["functionResponse"]


def test_pictures_of_a_tool_are_in_its_response_where_the_model_takes_them() -> None:
    shown = (Text("see"), Image(PNG), Image("https://x/y.png"), File("AAAA", "video/mp4"))
    asked = reply(call())
    held, apart = sent(asked, result(*shown), model=NEWER)[1:]
    response = held["parts"][0]["functionResponse"]
    assert response["response"] == {"output": "see"}
    assert response["parts"] == [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
    assert [next(iter(part)) for part in apart["parts"]] == ["text", "fileData", "inlineData"]
    older = sent(asked, result(*shown), model=OLDER)[1:]
    assert "parts" not in older[0]["parts"][0]["functionResponse"]
    assert [next(iter(part)) for part in older[1]["parts"]] == ["text", "inlineData", "fileData", "inlineData"]


def test_what_tools_show_comes_after_all_results_of_their_exchange() -> None:
    contents = sent(
        reply(call(), call(call_id="c2")), result(Image(PNG)), result(Text("two"), call_id="c2"), UserMessage.of("and?")
    )
    kinds = [[next(iter(part)) for part in content["parts"]] for content in contents]
    assert kinds[1:] == [["functionResponse", "functionResponse"], ["text", "inlineData"], ["text"]]


@settings(max_examples=50, deadline=None)
@given(st.text())
def test_half_characters_never_reach_the_wire(text: str) -> None:
    broken = "\ud83d" + text + "\ude00"
    raw = encode(ModelRequest(messages=[UserMessage.of(broken), reply(call(json.dumps({"a": broken})))]), OLDER)
    raw.decode()


# --- what goes back to its origin


def test_c7_a_calls_signature_goes_back_in_its_part() -> None:
    own = call(origin=f"gemini:{NEWER}", thoughtSignature="c2ln")
    parts = sent(reply(own, call(call_id="c2")), model=NEWER)[0]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["c2ln", None]
    assert "thoughtSignature" not in sent(reply(own), model=OLDER)[0]["parts"][0]


def test_a_call_of_nobodys_says_so_where_signatures_are_demanded() -> None:
    """The API's own word for it; a request with a call that has none would be refused."""
    foreign = reply(call(origin="anthropic:claude", thoughtSignature="x"), call(call_id="c2"))
    parts = sent(foreign, model=NEWER)[0]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]
    assert [part.get("thoughtSignature") for part in sent(foreign, model=OLDER)[0]["parts"]] == [None, None]


@pytest.mark.parametrize(
    ("length", "parts"),
    [
        (0, [{"text": "Hello"}, {"text": "", "thoughtSignature": "c2ln"}]),
        (2, [{"text": "Hel"}, {"text": "lo", "thoughtSignature": "c2ln"}]),
        (5, [{"text": "Hello", "thoughtSignature": "c2ln"}]),
        (9, [{"text": "Hello", "thoughtSignature": "c2ln"}]),
    ],
)
def test_a_texts_signature_goes_back_in_a_part_as_long_as_its_own(length: int, parts: list[dict[str, Any]]) -> None:
    """A signed part must not be merged with the ones before it."""
    assert sent(reply(Text("Hello", mark("c2ln", length))), model=NEWER)[0]["parts"] == parts
    assert sent(reply(Text("Hello", mark("c2ln", length))), model=OLDER)[0]["parts"] == [{"text": "Hello"}]


def test_c4_only_signed_thoughts_go_back_and_only_to_their_model() -> None:
    signed = Thinking(text="Hm. So.", signature=mark("c2ln", 3), origin=f"gemini:{NEWER}")
    assert sent(reply(signed), model=NEWER)[0]["parts"] == [
        {"text": "So.", "thought": True, "thoughtSignature": "c2ln"}
    ]
    assert sent(reply(signed), model=OLDER) == []
    assert sent(reply(Thinking(text="Hm.", origin=f"gemini:{NEWER}")), model=NEWER) == []
    assert sent(reply(Thinking(text="Hm.", signature="raw", origin=f"gemini:{NEWER}")), model=NEWER) == []


def test_a_step_of_the_servers_own_tool_goes_back_as_it_came() -> None:
    part = {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "c2ln"}
    signature = json.dumps({"origin": f"gemini:{NEWER}", "part": part})
    step = Thinking(redacted=True, signature=signature, origin=f"gemini:{NEWER}")
    assert sent(reply(step, Text("1")), model=NEWER)[0]["parts"] == [part, {"text": "1"}]
    assert sent(reply(step, Text("1")), model=OLDER)[0]["parts"] == [{"text": "1"}]


# --- the same bytes again


def exchange(number: int) -> tuple[Message, ...]:
    """A user's turn with two calls and their results."""
    one, two = f"a{number}", f"b{number}"
    return (
        UserMessage.of(f"turn {number}"),
        reply(call(json.dumps({"n": number}), one, origin=f"gemini:{NEWER}", thoughtSignature="s"), call("{}", two)),
        result(Text("ok"), Image("https://x/y.png"), call_id=one),
        result(Text("ok"), call_id=two),
        reply(Text(f"done {number}", mark("s", 0))),
    )


@pytest.mark.parametrize("model", [OLDER, NEWER])
def test_l4_each_request_begins_with_the_bytes_of_the_one_before(model: str) -> None:
    """Within a turn too: its results come in one request, and the next adds to them."""
    encoder = GeminiEncoder(model)
    tools = (ToolSpec(name="look", parameters=SCHEMA),)
    history, before = History(), b""
    for number in range(30):
        messages = exchange(number)
        for group in (messages[:1], messages[1:4], messages[4:]):
            history = history.extended(*group)
            raw = encoder.encode(ModelRequest(messages=history, tools=tools))
            assert raw == encode(ModelRequest(messages=tuple(history), tools=tools), model)
            assert raw.startswith(before)
            before = raw[:-2]


def test_the_callers_messages_are_not_changed() -> None:
    messages = list(exchange(1))
    before = [repr(message) for message in messages]
    encode(ModelRequest(messages=messages), NEWER)
    assert [repr(message) for message in messages] == before
