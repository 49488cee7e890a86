"""Thoughts and calls that a server left in the text: found by profile, and by nobody who did not ask for it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from antiphon.errors import Garbled
from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.providers.openai_chat.profiles import PROFILES, Profile, ThinkTags
from antiphon.types.content import Text, Thinking
from antiphon.types.joiner import join
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import Delta, TextChunk, ToolSpec, WarningChunk

from .chat_stream import DONE, calls, chunk, fragment

GENERIC = PROFILES["generic"]
THINKS = replace(GENERIC, think_tags=ThinkTags())
OPENED = replace(GENERIC, think_tags=ThinkTags(opened=True))
RESCUES = replace(GENERIC, rescue=("json", "tool_call", "mistral"))
NUMBERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS = (ToolSpec(name="weather", parameters=NUMBERS), ToolSpec(name="now"))
CALL = '{"name": "weather", "arguments": {"city": "Oslo"}}'


def deltas(profile: Profile, *pieces: Any, tools: tuple[ToolSpec, ...] = TOOLS) -> list[Delta]:
    """A reply whose content comes in these pieces; what is no text is a chunk of its own."""
    from json import dumps

    decoder = ChatDecoder(profile, origin="o:m", tools=tools)
    told: list[Delta] = []
    for piece in pieces:
        told += decoder.feed(dumps(chunk({"content": piece}) if isinstance(piece, str) else piece).encode())
    return told + decoder.feed(dumps(chunk({}, "stop")).encode()) + decoder.feed(DONE) + decoder.finish()


def reply(profile: Profile, *pieces: Any, **fields: Any) -> AssistantMessage:
    return join(deltas(profile, *pieces, **fields))


def said(profile: Profile, *pieces: Any) -> tuple[str, str]:
    """What was thought and what was said."""
    message = reply(profile, *pieces)
    return "".join(part.text for part in message.parts if isinstance(part, Thinking)), message.text


class TestThoughts:
    @pytest.mark.parametrize(
        ("profile", "content", "thought", "text"),
        [
            pytest.param(THINKS, "<think>\nhm\n</think>\n\nso", "hm\n", "so", id="a block, then the answer"),
            pytest.param(THINKS, " \n<think>hm</think>so", "hm", "so", id="white space ahead"),
            pytest.param(THINKS, "<think></think>so", "", "so", id="an empty block"),
            pytest.param(THINKS, "<think>hm", "hm", "", id="a block that never closes"),
            pytest.param(THINKS, "<think>a </thin b</think>so", "a </thin b", "so", id="half a tag in the thought"),
            pytest.param(THINKS, "so <think>x</think>", "", "so <think>x</think>", id="tags further on are text"),
            pytest.param(THINKS, "<thinking>x", "", "<thinking>x", id="another tag"),
            pytest.param(THINKS, "<thi", "", "<thi", id="half a tag at the end"),
            pytest.param(THINKS, "<think>a</think>b</think>c", "a", "b</think>c", id="c02: the first one closes"),
            pytest.param(OPENED, "hm\n</think>\nso", "hm\n", "so", id="opened by the prompt"),
            pytest.param(OPENED, "hm", "hm", "", id="opened and never closed"),
            pytest.param(GENERIC, "<think>hm</think>so", "", "<think>hm</think>so", id="c02: off unless asked for"),
        ],
    )
    def test_c01_c02_the_block_at_the_beginning_is_the_thought(
        self, profile: Profile, content: str, thought: str, text: str
    ) -> None:
        assert said(profile, content) == (thought, text)
        assert said(profile, *content) == (thought, text)

    def test_c01_a_server_that_does_not_stream_gives_the_same(self) -> None:
        """One model must not think in one mode and babble in the other."""
        whole = {"choices": [{"index": 0, "message": {"content": "<think>hm</think>so"}, "finish_reason": "stop"}]}
        assert said(THINKS, whole) == said(THINKS, "<think>hm", "</think>so") == ("hm", "so")

    @settings(max_examples=200, deadline=None)
    @given(st.text(alphabet="<>/think ab\n", max_size=40), st.data())
    def test_the_same_however_it_is_cut(self, content: str, data: st.DataObject) -> None:
        pieces: list[str] = []
        rest = content
        while rest:
            size = data.draw(st.integers(1, 5))
            pieces.append(rest[:size])
            rest = rest[size:]
        assert said(THINKS, *pieces) == said(THINKS, content)


class TestCalls:
    @pytest.mark.parametrize(
        "content",
        [
            CALL,
            f"\n{CALL}\n",
            f"```json\n{CALL}\n```",
            f"[{CALL}]",
            '{"type": "function", "function": {"name": "weather", "parameters": {"city": "Oslo"}}}',
            '{"name": "weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
            f"<tool_call>\n{CALL}\n</tool_call>",
            "<tool_call>\n<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>",
            f"[TOOL_CALLS][{CALL}]",
        ],
    )
    def test_b01_b02_a_text_that_is_nothing_but_a_call_is_one(self, content: str) -> None:
        """Wherever the pieces are cut, in the middle of a tag too."""
        for pieces in ([content], list(content)):
            message = reply(RESCUES, *pieces)
            [call] = message.calls
            assert (call.name, call.parse(), message.text) == ("weather", {"city": "Oslo"}, "")
            assert message.stop_reason == "tool_calls"

    def test_several_calls_come_out_in_their_order(self) -> None:
        message = reply(
            RESCUES, f"<tool_call>{CALL}</tool_call>\n", '<tool_call>{"name":"now","arguments":{}}</tool_call>'
        )
        assert [call.name for call in message.calls] == ["weather", "now"]

    def test_values_between_tags_have_the_type_of_the_schema(self) -> None:
        xml = "<tool_call><function=weather><parameter=city>12</parameter><parameter=days>3</parameter></function></tool_call>"
        assert reply(RESCUES, xml).calls[0].parse() == {"city": "12", "days": 3}

    @pytest.mark.parametrize(
        "content",
        [
            '{"name": "delete_all", "arguments": {}}',
            f'[{CALL}, {{"name": "delete_all", "arguments": {{}}}}]',
            '<tool_call>{"name": "delete_all", "arguments": {}}</tool_call>',
            f"Sure: {CALL}",
            f"{CALL} I will look.",
            f"<tool_call>{CALL}</tool_call> there",
            '{"temperature": 6}',
            '{"name": "weather"',
            "[1, 2]",
            "```\ncode\n```",
            "<tool",
        ],
    )
    def test_b01_b04_whatever_else_it_is_is_text(self, content: str) -> None:
        """A made-up name, a call that is only mentioned, an answer in JSON: never run, never lost."""
        for pieces in ([content], list(content)):
            message = reply(RESCUES, *pieces)
            assert (message.calls, message.text) == ((), content)

    def test_text_that_cannot_become_a_call_is_told_at_once(self) -> None:
        decoder = ChatDecoder(RESCUES, tools=TOOLS)
        assert decoder.feed(b'{"choices":[{"delta":{"content":"He"}}]}') == [TextChunk("He")]

    @pytest.mark.parametrize(
        "content", ['<tool_call>\n{"name": "weather", "arguments": {"ci', "<tool_call>\n<function=weather>\n<par"]
    )
    def test_b03_half_a_call_is_no_answer_and_the_model_is_told(self, content: str) -> None:
        """Its arguments are what was written: the engine finds no object in them, and says so to the model."""
        message = reply(RESCUES, content)
        [call] = message.calls
        assert (call.name, call.arguments, message.text) == ("weather", content, "")
        with pytest.raises(ValueError, match="not valid JSON"):
            call.parse()
        assert "malformed_call" in [delta.code for delta in deltas(RESCUES, content) if isinstance(delta, WarningChunk)]

    @pytest.mark.parametrize("content", ["<tool_call>\n{", '<tool_call>{"name": "delete_all", "ar', "[TOOL_CALLS][{"])
    def test_b03_half_a_call_without_a_known_name_is_asked_for_again(self, content: str) -> None:
        with pytest.raises(Garbled, match="half a call") as caught:
            deltas(RESCUES, content)
        assert (caught.value.recovery, caught.value.code) == ("now", "malformed_call")

    def test_b01_nothing_is_rescued_when_no_tools_were_offered_or_nobody_asked_for_it(self) -> None:
        assert reply(RESCUES, CALL, tools=()).parts == (Text(CALL),)
        assert reply(GENERIC, CALL).parts == (Text(CALL),)

    def test_a_call_in_its_own_field_settles_it(self) -> None:
        """The text before it is text, and is not run a second time."""
        message = reply(RESCUES, CALL, calls(fragment("now", "{}", id="c1", index=0)))
        assert (message.text, [call.name for call in message.calls]) == (CALL, ["now"])

    def test_a_call_may_stand_behind_a_thought(self) -> None:
        profile = replace(RESCUES, think_tags=ThinkTags())
        message = reply(profile, "<think>look it up</think>\n", CALL)
        assert [type(part).__name__ for part in message.parts] == ["Thinking", "ToolCall"]

    @settings(max_examples=200, deadline=None)
    @given(st.text(alphabet='{}[]"<>/tool_call name:,', max_size=40))
    def test_a_text_is_never_lost(self, content: str) -> None:
        try:
            message = reply(RESCUES, *content)
        except Garbled:
            return
        assert message.text == content or message.calls
