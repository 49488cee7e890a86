"""Cache marks, and message bytes that only grow."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.providers.anthropic.encode import AnthropicEncoder, encode
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.history import History
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    UserMessage,
)
from antiphon.types.request import ModelRequest, ModelSettings

from .anthropic_request import HI, LONG, MODEL, ORIGIN, SHORT, WEATHER, body, calling, result, said, turns

MARK = re.compile(rb',"cache_control":\{"type":"ephemeral"(,"ttl":"1h")?\}')


def message_bytes(encoded: bytes) -> bytes:
    """The inside of the array of messages."""
    return encoded.partition(b'"messages":[')[2].removesuffix(b"]}")


def exchange(calls: Sequence[ToolCall]) -> list[Message]:
    return [said(*calls), *(result(call.id) for call in calls)]


class TestCacheMarks:
    def test_marks_stand_at_the_tools_the_system_prompt_and_the_ends_of_this_request_and_the_last(self) -> None:
        """A server looks back only so far from a mark: where the last request ended, it finds that one for sure."""
        made = body(
            HI,
            said("a"),
            UserMessage.of("b", "c"),
            *exchange([calling("1"), calling("2")]),
            instructions="Be.",
            tools=(WEATHER,),
        )
        marked = [block["text"] for turn in made["messages"] for block in turn["content"] if block.get("text")]
        assert marked == ["hi", "a", "b", "c"]
        marks = [
            (at, place)
            for at, turn in enumerate(made["messages"])
            for place, block in enumerate(turn["content"])
            if "cache_control" in block
        ]
        assert marks == [(2, 1), (4, 1)]
        assert made["tools"][-1]["cache_control"] == made["system"][-1]["cache_control"] == SHORT

    @pytest.mark.parametrize(("cache", "mark"), [(None, SHORT), ("short", SHORT), ("long", LONG), ("none", None)])
    def test_the_setting_says_how_long(self, cache: Any, mark: dict[str, Any] | None) -> None:
        made = body(instructions="Be.", tools=(WEATHER,), settings=ModelSettings(cache=cache))
        places = (made["tools"][0], made["system"][0], made["messages"][0]["content"][0])
        assert [place.get("cache_control") for place in places] == [mark] * 3

    def test_a_reply_is_never_marked(self) -> None:
        """Its last block may be one that takes no mark; and it is kept with the results that follow."""
        made = body(HI, said("a"), said("b"))
        assert [["cache_control" in block for block in turn["content"]] for turn in made["messages"]] == [
            [False], [False], [False],
        ]  # fmt: skip

    def test_a_message_within_arguments_is_not_taken_for_one(self) -> None:
        """Marks are put into encoded bytes, and arguments are JSON that a model may write as it likes."""
        fake = '{"m":[\n{"role":"user","content":[{"a":1}]},\n{"role":"assistant","content":[{"a":1}]}]}'
        assert body(HI, said(calling(arguments=fake)), result()) == body(
            HI, said(calling(arguments=fake.replace("\n", ""))), result()
        )

    @settings(max_examples=200, deadline=None)
    @given(st.data())
    def test_bytes_only_grow_and_do_not_depend_on_how_they_grew(self, data: st.DataObject) -> None:
        """Request n's messages are a prefix of request n+1's, marks aside: what the server has read once is paid once.

        And a history that was encoded turn by turn gives the bytes of one that is encoded afresh, marks included.
        """
        encoder = AnthropicEncoder(MODEL)
        history, before = History(), b""
        for _ in range(data.draw(st.integers(1, 6))):
            history = history.extended(*data.draw(TURNS))
            request = ModelRequest(messages=history, settings=ModelSettings(cache=data.draw(CACHES)))
            made = encoder.encode(request)
            afresh = ModelRequest(messages=tuple(history), settings=request.settings)
            assert made == AnthropicEncoder(MODEL).encode(afresh)
            assert len(MARK.findall(made)) <= 4
            plain = MARK.sub(b"", message_bytes(made))
            assert plain.startswith(before)
            assert json.loads(b"[" + plain + b"]") == (turns(*history) if history else [])
            before = plain

    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def test_the_last_requests_end_is_marked_again(self, data: st.DataObject) -> None:
        history = History([HI, *data.draw(TURNS)])
        first = message_bytes(encode(ModelRequest(messages=(*history, HI)), MODEL))
        second = message_bytes(encode(ModelRequest(messages=(*history, HI, said("a"), HI)), MODEL))
        assert first[first.rindex(b'{"role"') :] in second


CACHES: st.SearchStrategy[Any] = st.sampled_from([None, "none", "short", "long"])
PARTS = st.one_of(
    st.builds(Text, st.sampled_from(["a", "", "\n", "ü\n]}]}", '{"role":"assistant",'])),
    st.builds(
        Thinking, text=st.just("Hm"), signature=st.sampled_from([None, "s"]), origin=st.sampled_from([None, ORIGIN])
    ),
)
CALLS = st.lists(
    st.builds(
        ToolCall,
        id=st.sampled_from(["c1", "c2", "a.b", "toolu_3"]),
        name=st.just("weather"),
        arguments=st.sampled_from(["{}", "", "broken", '{"a":[\n{"role":"user","content":[{}]},\n{"role":"assistant","b":1}]}']),
    ),
    max_size=3,
    unique_by=lambda call: call.id,
)  # fmt: skip


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """A reply with all its results."""
    calls = draw(CALLS)
    reply = AssistantMessage(parts=(*draw(st.lists(PARTS, max_size=2)), *calls))
    outcomes = [result(call.id, *draw(st.lists(PARTS, max_size=1)), is_error=draw(st.booleans())) for call in calls]
    return [reply, *outcomes]


TURNS = st.lists(
    exchanges()
    | st.builds(lambda parts: [UserMessage(parts=tuple(parts))], st.lists(PARTS, max_size=2))
    | st.just([SystemMessage.of("be kind")])
    | st.just([CustomMessage(kind="note")]),
    max_size=3,
).map(lambda found: [message for each in found for message in each])
