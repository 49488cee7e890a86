"""Requests as the JSON of the Messages API: messages, tools and fields."""

import base64
import json
import re
from typing import Any

import pytest

from antiphon.errors import UsageError
from antiphon.providers.anthropic.encode import AnthropicEncoder, encode
from antiphon.types.content import File, Image, Part, Text, Thinking, Unknown
from antiphon.types.history import History
from antiphon.types.messages import (
    CustomMessage,
    SystemMessage,
    UserMessage,
)
from antiphon.types.request import ModelInfo, ModelRequest, ModelSettings, ToolSpec

from .anthropic_request import (
    HI,
    MODEL,
    ORIGIN,
    SHORT,
    WEATHER,
    blocks,
    body,
    calling,
    result,
    said,
    signed,
    turns,
)

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and so on").decode()
PDF = base64.b64encode(b"%PDF-1.7 and so on").decode()


def test_a_request_in_full() -> None:
    chosen = ModelSettings(temperature=0.5, max_output_tokens=100, stop=("END", " "), parallel_tool_calls=False)
    assert body(instructions="Be brief.", tools=(WEATHER,), settings=chosen) == {
        "model": MODEL,
        "max_tokens": 100,
        "stream": True,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "tools": [
            {
                "name": "weather",
                "description": "Says it.",
                "input_schema": {"type": "object", "properties": {}},
                "cache_control": SHORT,
            }
        ],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": SHORT}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": SHORT}]}],
    }


class TestExchanges:
    def test_the_results_of_a_reply_are_one_message_in_the_order_of_its_calls(self) -> None:
        """A result in a message of its own is refused: each call must have its result in the next message."""
        [_, _, answers, more] = turns(
            HI, said(calling("a"), calling("b")), result("b", Text("2")), result("a", Text("1")), UserMessage.of("and?")
        )
        assert answers == {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "1"}]},
                {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "2"}]},
            ],
        }
        assert more["content"] == [{"type": "text", "text": "and?"}]

    def test_a_failure_is_marked_and_never_silent(self) -> None:
        """The API refuses a failure without content."""
        [_, _, answers] = turns(
            HI, said(calling("a"), calling("b")), result("a", Text(" "), is_error=True), result("b")
        )
        failed, fine = answers["content"]
        assert failed["is_error"] is True
        assert failed["content"] == [{"type": "text", "text": "the tool failed and said nothing"}]
        assert "is_error" not in fine

    def test_a_result_without_anything_in_it_has_no_content(self) -> None:
        [_, _, answers] = turns(HI, said(calling()), result("c1", Text("")))
        assert answers["content"] == [{"type": "tool_result", "tool_use_id": "c1"}]

    def test_a_result_may_hold_pictures(self) -> None:
        [_, _, answers] = turns(HI, said(calling()), result("c1", Text("see"), Image(PNG)))
        assert [block["type"] for block in answers["content"][0]["content"]] == ["text", "image"]

    @pytest.mark.parametrize("arguments", ["", "  ", "{", "[1]", '"x"', '{"a": 1e999}', '{"a":"\\ud800"}'])
    def test_arguments_that_are_no_object_are_sent_as_an_empty_one(self, arguments: str) -> None:
        [_, reply, _] = turns(HI, said(calling(arguments=arguments)), result())
        assert reply["content"][0]["input"] == {}

    def test_arguments_are_sent_as_the_model_wrote_them(self) -> None:
        """Thoughts are bound to what was said around them; a number written otherwise would be another word."""
        written = '{"b": 1.10, "a": 12345678901234567890123, "ß": "1\\n2"}'
        encoded = encode(ModelRequest(messages=[HI, said(calling(arguments=f"\n{written}\n")), result()]), MODEL)
        assert b'"input":' + written.encode() in encoded

    def test_deeply_nested_arguments_are_no_object(self) -> None:
        [_, reply, _] = turns(HI, said(calling(arguments='{"a":' + "[" * 100_000)), result())
        assert reply["content"][0]["input"] == {}


class TestIds:
    @pytest.mark.parametrize("call_id", ["", "functions.weather:0", "call|fc_1", "ü", "x" * 65, "\ud800"])
    def test_an_id_that_is_refused_becomes_one_that_is_not_for_call_and_result_alike(self, call_id: str) -> None:
        first = turns(HI, said(calling(call_id)), result(call_id))
        own = first[1]["content"][0]["id"]
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", own)
        assert first[2]["content"][0]["tool_use_id"] == own
        assert turns(HI, said(calling(call_id)), result(call_id)) == first

    def test_ids_that_differ_stay_apart(self) -> None:
        sent = [turns(HI, said(calling(call_id)), result(call_id))[1] for call_id in ("a.b", "a:b", "a_b")]
        assert len({turn["content"][0]["id"] for turn in sent}) == 3

    def test_an_id_of_an_earlier_reply_is_replaced(self) -> None:
        """A transcript keeps ids apart within a reply; the API wants them unique in a request."""
        sent = turns(HI, said(calling("call_0")), result("call_0"), said(calling("call_0")), result("call_0"))
        first, second = sent[1]["content"][0]["id"], sent[3]["content"][0]["id"]
        assert first == "call_0" != second
        assert [sent[2]["content"][0]["tool_use_id"], sent[4]["content"][0]["tool_use_id"]] == [first, second]

    @pytest.mark.parametrize(
        ("name", "sent"), [("weather", "weather"), ("functions.weather", "functions_weather"), ("", "_")]
    )
    def test_a_made_up_tool_name_does_not_spoil_the_request(self, name: str, sent: str) -> None:
        assert turns(HI, said(calling(name=name)), result())[1]["content"][0]["name"] == sent


class TestThoughts:
    def test_a_thought_goes_back_unchanged_to_the_model_that_signed_it(self) -> None:
        thoughts = (signed(), signed(""), Thinking(signature="enc", redacted=True, origin=ORIGIN))
        assert turns(HI, said(*thoughts, "a"))[1]["content"] == [
            {"type": "thinking", "thinking": "Hm", "signature": "sig"},
            {"type": "thinking", "thinking": "", "signature": "sig"},
            {"type": "redacted_thinking", "data": "enc"},
            {"type": "text", "text": "a"},
        ]

    @pytest.mark.parametrize(
        "thought",
        [
            signed(origin="anthropic:claude-opus-4-1"),
            signed(origin="minimax:claude-sonnet-4-5"),
            signed(origin=None),
            Thinking(text="Hm", origin=ORIGIN),
            Thinking(text="Hm", signature="", origin=ORIGIN),
            Thinking(redacted=True, origin=ORIGIN),
        ],
    )
    def test_c04_c05_c06_another_models_or_an_unsigned_thought_does_not(self, thought: Thinking) -> None:
        """It would be refused, in this request and in every later one."""
        assert turns(HI, said(thought, "a"))[1]["content"] == [{"type": "text", "text": "a"}]

    def test_thoughts_of_a_partial_reply_do_not_go_back(self) -> None:
        assert turns(HI, said(signed(), "a", partial=True))[1]["content"] == [{"type": "text", "text": "a"}]

    def test_a_reply_never_ends_in_a_thought(self) -> None:
        """ "The final block in an assistant message cannot be `thinking`"; one of thoughts alone is left out."""
        sent = turns(HI, said(signed(), "a", signed("more")), HI, said(signed()), HI)
        assert [[block["type"] for block in turn["content"]] for turn in sent] == [
            ["text"], ["thinking", "text"], ["text"], ["text"],
        ]  # fmt: skip


class TestContent:
    @pytest.mark.parametrize("blank", ["", " ", "\n\n\t"])
    def test_text_without_anything_in_it_is_never_sent(self, blank: str) -> None:
        sent = turns(UserMessage.of(blank), UserMessage.of("a", blank), said(blank), said(blank, calling()), result())
        assert [[block["type"] for block in turn["content"]] for turn in sent] == [
            ["text"],
            ["tool_use"],
            ["tool_result"],
        ]
        assert "system" not in body(HI, instructions=blank)

    @pytest.mark.parametrize(
        ("image", "source"),
        [
            (Image("https://x.org/a.png"), {"type": "url", "url": "https://x.org/a.png"}),
            (Image(PNG), {"type": "base64", "media_type": "image/png", "data": PNG}),
            (Image(PNG, "image/jpeg"), {"type": "base64", "media_type": "image/png", "data": PNG}),
            (Image(f"data:image/gif;base64,{PNG}"), {"type": "base64", "media_type": "image/png", "data": PNG}),
            (Image(PNG[:20] + "\n" + PNG[20:]), {"type": "base64", "media_type": "image/png", "data": PNG}),
            (Image("AAAA", "image/jpg"), {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}),
            (Image("data:image/webp;base64,AAAA"), {"type": "base64", "media_type": "image/webp", "data": "AAAA"}),
            (Image("AAAA"), {"type": "base64", "media_type": "image/png", "data": "AAAA"}),
        ],
    )
    def test_a_picture_is_a_url_or_base64_under_the_type_that_it_really_has(
        self, image: Image, source: dict[str, Any]
    ) -> None:
        """A picture under another type than its bytes show is refused."""
        assert blocks(UserMessage.of(image)) == [{"type": "image", "source": source}]

    @pytest.mark.parametrize(
        ("file", "block"),
        [
            (
                File(PDF),
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
            ),
            (
                File("https://x.org/a.pdf?v=1", name="a"),
                {"type": "document", "source": {"type": "url", "url": "https://x.org/a.pdf?v=1"}, "title": "a"},
            ),
            (
                File.from_bytes("Grüße".encode(), "text/plain", "a.txt"),
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "Grüße"},
                    "title": "a.txt",
                },
            ),
            (
                File("data:text/csv,a%2Cb"),
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
            ),
            (File(PNG), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}),
            (
                File("https://x.org/a", "image/png"),
                {"type": "image", "source": {"type": "url", "url": "https://x.org/a"}},
            ),
        ],
    )
    def test_a_file_is_a_document_or_a_picture(self, file: File, block: dict[str, Any]) -> None:
        assert blocks(UserMessage.of(file)) == [block]

    @pytest.mark.parametrize(
        ("part", "note"),
        [
            (File.from_bytes(b"PK\x03\x04\xff", "application/zip", "a.zip"), "file a.zip application/zip"),
            (Image.from_bytes(b"BM and so on"), "image image/bmp"),
            (File("https://x.org/a.docx", name="a.docx"), "file a.docx at https://x.org/a.docx"),
            (File("no base64!"), "file"),
        ],
    )
    def test_a_note_stands_for_what_the_api_does_not_take(self, part: Part, note: str) -> None:
        """The model is told that there is something it does not see, rather than nothing, or the request refused."""
        [block] = blocks(UserMessage.of(part))
        assert block["text"].startswith(f"[{note}")

    def test_what_is_not_for_models_is_left_out(self) -> None:
        custom = CustomMessage(kind="note", data={"a": 1})
        sent = turns(UserMessage.of("a", Unknown({"type": "x"})), custom, said("b", Image(PNG)), Unknown({"type": "y"}))
        assert [turn["content"] for turn in sent] == [[{"type": "text", "text": "a"}], [{"type": "text", "text": "b"}]]

    def test_half_characters_are_replaced(self) -> None:
        assert blocks(UserMessage.of("a\ud800b")) == [{"type": "text", "text": "a\ufffdb"}]

    def test_a_conversation_that_the_assistant_begins_is_opened_for_it(self) -> None:
        """Some servers insist that the first message is a user's."""
        sent = turns(said("Welcome!"), HI)
        assert [turn["role"] for turn in sent] == ["user", "assistant", "user"]


class TestSystem:
    def test_system_messages_at_the_beginning_join_the_instructions(self) -> None:
        sent = body(SystemMessage.of("One.", "Two."), SystemMessage.of("Three."), HI, instructions="Zero.")
        assert [block["text"] for block in sent["system"]] == ["Zero.", "One.\nTwo.", "Three."]
        assert len(sent["messages"]) == 1

    def test_a_system_message_further_on_is_told_where_it_stands(self) -> None:
        """Moved to the top, it would change the beginning of a prompt that the server has read already."""
        sent = turns(HI, said("a"), SystemMessage.of("Now be kind."), HI)
        assert sent[2] == {
            "role": "user",
            "content": [{"type": "text", "text": "<system>\nNow be kind.\n</system>"}],
        }

    def test_a_history_that_begins_with_system_messages_grows_like_any_other(self) -> None:
        encoder = AnthropicEncoder(MODEL)
        history = History([SystemMessage.of("One.")])
        for more in (SystemMessage.of("Two."), HI, said("a"), HI):
            encoder.encode(ModelRequest(messages=history))
            history = history.extended(more)
        assert encoder.encode(ModelRequest(messages=history)) == encode(ModelRequest(messages=tuple(history)), MODEL)


class TestTools:
    @pytest.mark.parametrize(
        ("choice", "sent"),
        [
            ("auto", {"type": "auto"}),
            ("none", {"type": "none"}),
            ("required", {"type": "any"}),
            ("weather", {"type": "tool", "name": "weather"}),
        ],
    )
    def test_the_choice_is_told_and_the_tools_stay(self, choice: str, sent: dict[str, Any]) -> None:
        """Tools stand at the beginning of the prompt: without them, nothing of it would be found in the cache."""
        made = body(tools=(WEATHER,), tool_choice=choice)
        assert made["tool_choice"] == sent
        assert len(made["tools"]) == 1

    @pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-5-5", "claude-fable-5-1"])
    def test_a_model_that_cannot_be_forced_is_left_to_decide(self, model: str) -> None:
        for choice in ("required", "weather"):
            assert body(model=model, tools=(WEATHER,), tool_choice=choice)["tool_choice"] == {"type": "auto"}

    @pytest.mark.parametrize(("parallel", "disabled"), [(True, False), (False, True)])
    def test_parallel_calls_can_be_allowed_and_forbidden(self, parallel: bool, disabled: bool) -> None:
        chosen = ModelSettings(parallel_tool_calls=parallel)
        for choice in ("auto", "required", "weather"):
            made = body(tools=(WEATHER,), tool_choice=choice, settings=chosen)
            assert made["tool_choice"]["disable_parallel_tool_use"] is disabled
        assert body(tools=(WEATHER,), tool_choice="none", settings=chosen)["tool_choice"] == {"type": "none"}

    def test_a_tool_without_parameters_takes_an_empty_object(self) -> None:
        [tool] = body(tools=(ToolSpec(name="now"),), settings=ModelSettings(cache="none"))["tools"]
        schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        assert tool == {"name": "now", "input_schema": schema}

    def test_the_schemas_type_is_always_there(self) -> None:
        [tool] = body(tools=(ToolSpec(name="now", parameters={"properties": {"a": {}}}),))["tools"]
        assert tool["input_schema"] == {"type": "object", "properties": {"a": {}}}

    def test_strictness_is_told_to_models_that_know_it(self) -> None:
        tool = ToolSpec(name="now", strict=True)
        assert body(tools=(tool,), model="claude-haiku-4-5")["tools"][0]["strict"] is True
        assert "strict" not in body(tools=(tool,), model="claude-opus-4-1")["tools"][0]

    def test_a20_arguments_are_asked_for_as_they_are_written_where_the_server_knows_the_wish(self) -> None:
        """Held back until they are whole, large arguments look like a stream that hangs. Other servers refuse the field."""
        request = ModelRequest(messages=[HI], tools=(WEATHER, ToolSpec(name="now", strict=True)))
        eager = json.loads(AnthropicEncoder(MODEL, eager=True).encode(request))["tools"]
        assert [tool.get("eager_input_streaming") for tool in eager] == [True, None]
        assert b"eager" not in encode(request, MODEL)

    def test_a_request_with_calls_in_it_always_defines_a_tool(self) -> None:
        """ "Requests which include `tool_use` or `tool_result` blocks must define tools", also where none are left."""
        made = body(HI, said(calling()), result())
        assert [tool["name"] for tool in made["tools"]] == ["none"]
        assert made["tool_choice"] == {"type": "none"}
        assert "tools" not in body()

    def test_l04_the_same_tools_are_the_same_bytes(self) -> None:
        encoder = AnthropicEncoder(MODEL)
        made = {encoder.encode(ModelRequest(messages=[HI], tools=(WEATHER, ToolSpec(name="now")))) for _ in range(100)}
        assert len(made) == 1


class TestLimits:
    def test_the_output_limit_is_the_settings_then_the_models_then_a_default(self) -> None:
        """The API wants a number in every request."""
        info = ModelInfo(provider="anthropic", id=MODEL, output_limit=64_000)
        assert body(info=info, settings=ModelSettings(max_output_tokens=10))["max_tokens"] == 10
        assert body(info=info)["max_tokens"] == 64_000
        assert body()["max_tokens"] == 32_000
        assert body(model="some-model")["max_tokens"] == 8_192


class TestSchemasAndExtras:
    def test_a_schema_for_the_reply_goes_to_models_that_keep_to_it_beside_the_effort(self) -> None:
        chosen = ModelSettings(response_schema={"type": "object"}, thinking="low")
        made = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
        assert body(model="claude-opus-4-8", settings=chosen)["output_config"] == {"effort": "low", **made}
        assert "output_config" not in body(model="claude-opus-4-1", settings=chosen)

    def test_extra_fields_come_last_and_are_merged_into_objects(self) -> None:
        chosen = ModelSettings(
            thinking="low", extra_body={"max_tokens": 5, "output_config": {"effort": "max"}, "x": [1]}
        )
        made = body(model="claude-opus-4-8", settings=chosen)
        assert (made["max_tokens"], made["output_config"], made["x"]) == (5, {"effort": "max"}, [1])
        assert made["messages"]

    def test_extra_messages_replace_the_transcript(self) -> None:
        assert body(settings=ModelSettings(extra_body={"messages": []}))["messages"] == []

    def test_extras_that_are_no_json_are_told_as_such(self) -> None:
        with pytest.raises(UsageError, match="extra_body"):
            body(settings=ModelSettings(extra_body={"x": object()}))
