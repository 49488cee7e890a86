"""Streams of the Messages API to deltas: what real servers send, what they should not, and how a reply ends."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import (
    ContextOverflow,
    Dropped,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Unauthorized,
)
from antiphon.providers.anthropic.decode import AnthropicDecoder
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import join
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
)
from antiphon.types.usage import Usage

from .anthropic_stream import (
    EVERYTHING,
    PING,
    STOP,
    Event,
    begin,
    call,
    change,
    decode,
    end,
    last,
    message,
    only,
    reply,
    start,
    text,
    thought,
)


class TestReplies:
    def test_a_reply_comes_piece_by_piece_with_its_head_and_its_end(self) -> None:
        assert decode(reply(text(0, "Hel", "lo"))) == [
            UsageChunk(Usage(input=10, output=1)),
            TextChunk("Hel"),
            TextChunk("lo"),
            UsageChunk(Usage(input=10, output=7)),
            FinishChunk("stop", "end_turn", "msg_1", "claude-x-1"),
        ]

    def test_blocks_of_all_kinds_become_parts_in_order(self) -> None:
        assert join(decode(EVERYTHING)).parts == (
            Thinking(text="Hm… 雨?", signature="signed"),
            Thinking(signature="encrypted", redacted=True),
            Text("Grüße, 世界 😀"),
            ToolCall(id="toolu_a", name="weather", arguments='{"city": "Oslo"}'),
            ToolCall(id="toolu_b", name="now", arguments=""),
        )

    def test_a_call_is_named_before_its_arguments_come(self) -> None:
        """Viewers show that a call is being written long before it is whole."""
        chunks = only(CallChunk, decode(reply(call(0, "weather", "{}", call_id="toolu_a"))))
        assert chunks == [CallChunk(0, "toolu_a", "weather"), CallChunk(0, arguments="{}")]

    def test_a07_pieces_go_to_the_block_of_their_index(self) -> None:
        """Blocks may grow in turns; filed under the newest call, both calls would have broken arguments."""
        woven = [
            begin(0, "tool_use", id="a", name="one", input={}),
            begin(1, "tool_use", id="b", name="two", input={}),
            change(0, "input_json_delta", partial_json='{"n":'),
            change(1, "input_json_delta", partial_json='{"m":'),
            change(0, "input_json_delta", partial_json="1}"),
            end(0),
            change(1, "input_json_delta", partial_json="2}"),
            end(1),
        ]
        assert [part.arguments for part in message(woven).calls] == ['{"n":1}', '{"m":2}']

    @pytest.mark.parametrize("given", [{"city": "Oslo"}, '{"city":"Oslo"}'])
    def test_arguments_that_come_with_the_beginning_are_kept(self, given: Any) -> None:
        [made] = message([begin(0, "tool_use", id="a", name="weather", input=given), end(0)]).calls
        assert made.parse() == {"city": "Oslo"}

    def test_pieces_of_arguments_replace_those_of_the_beginning(self) -> None:
        """A server that says both says the same twice."""
        pieces = change(0, "input_json_delta", partial_json='{"city":"Oslo"}')
        [made] = message([begin(0, "tool_use", id="a", name="w", input={"city": "Oslo"}), pieces, end(0)]).calls
        assert made.arguments == '{"city":"Oslo"}'

    def test_broken_arguments_are_passed_on_as_they_are(self) -> None:
        """Eager streaming is not checked by the server: the engine tells the model what is wrong."""
        [made] = message(call(0, "w", '{"a": [1, ')).calls
        assert made.arguments == '{"a": [1, '

    def test_a_thought_without_words_keeps_its_signature(self) -> None:
        """Models omit what they thought by default; the signature alone must go back."""
        assert message(thought(0, "", "sig"), text(1, "a")).parts[0] == Thinking(signature="sig")

    def test_c06_a_thought_that_was_cut_off_has_no_signature(self) -> None:
        """It may be shown, and must not go back."""
        decoder = AnthropicDecoder()
        deltas: list[Delta] = []
        for event in [start(), *thought(0, "Hm", "sig")][:-1]:  # the connection is lost before the block's end
            deltas += decoder.feed(json.dumps(event).encode())
        assert only(ThinkingChunk, deltas) == [ThinkingChunk("Hm")]

    def test_a_block_that_is_still_open_at_the_end_of_the_reply_is_closed_by_it(self) -> None:
        events = [start(), *thought(0, "Hm", "sig")[:-1], last(), STOP]
        assert join(decode(events)).parts == (Thinking(text="Hm", signature="sig"),)

    def test_what_stands_in_a_blocks_beginning_counts(self) -> None:
        blocks = [begin(0, "thinking", thinking="Hm", signature="s"), end(0), begin(1, "text", text="Hi"), end(1)]
        assert message(blocks).parts == (Thinking(text="Hm", signature="s"), Text("Hi"))

    def test_citations_are_left_aside(self) -> None:
        cited = [*text(0, "a")[:-1], change(0, "citations_delta", citation={"type": "page_location"}), end(0)]
        assert decode(reply(cited)) == decode(reply(text(0, "a")))


class TestUnknown:
    def test_blocks_of_other_kinds_are_left_aside_with_one_warning(self) -> None:
        """Tools that the server runs itself cannot be told; their fragments must not end up in a call of ours."""
        foreign = [
            begin(0, "server_tool_use", id="srv", name="web_search", input={}),
            change(0, "input_json_delta", partial_json='{"query":"x"}'),
            end(0),
            begin(1, "web_search_tool_result", tool_use_id="srv", content=[]),
            end(1),
        ]
        deltas = decode(reply(foreign, text(2, "a"), call(3, "w", "{}")))
        assert [warning.code for warning in only(WarningChunk, deltas)] == ["unknown_block"]
        assert join(deltas).parts == (Text("a"), ToolCall(id="toolu_1", name="w", arguments="{}"))

    def test_events_and_pieces_of_other_kinds_are_left_aside(self) -> None:
        """The documentation announces that new ones will come."""
        events = reply([begin(0, "text", text=""), change(0, "sparkle_delta", sparkle=1), *text(0, "a")[1:]])
        events.insert(2, {"type": "message_sparkle", "delta": {"text": "no"}})
        assert join(decode(events)).parts == (Text("a"),)

    @pytest.mark.parametrize("odd", [b"", b"  ", b"[DONE]", b"data: [DONE]"])
    def test_heartbeats_and_markers_of_other_apis_are_nothing(self, odd: bytes) -> None:
        events: list[Event | bytes] = [*reply(text(0, "a"))]
        events.insert(3, odd)
        assert decode(events) == decode(reply(text(0, "a")))

    def test_an_event_that_is_no_object_is_left_aside_with_one_warning(self) -> None:
        deltas = decode([b"3", b'"x"', *reply(text(0, "a"))])
        assert [warning.code for warning in only(WarningChunk, deltas)] == ["odd_event"]
        assert join(deltas).text == "a"

    def test_a_ping_may_say_anything(self) -> None:
        assert AnthropicDecoder().feed(b"still here", "ping") == []


class TestLeniency:
    def test_the_events_name_stands_in_for_a_missing_type(self) -> None:
        decoder = AnthropicDecoder()
        nameless = [(event["type"], event | {"type": None}) for event in reply(text(0, "a"))]
        deltas = [delta for name, event in nameless for delta in decoder.feed(json.dumps(event).encode(), name)]
        assert join(deltas + decoder.finish()).text == "a"

    def test_a_piece_without_an_index_goes_to_the_block_that_began_last(self) -> None:
        events = [begin(0, "tool_use", id="a", name="w", input={}), change(None, "input_json_delta", partial_json="{}")]
        assert [made.arguments for made in message(events).calls] == ["{}"]

    def test_text_counts_although_its_block_never_began(self) -> None:
        events = [change(0, "thinking_delta", thinking="Hm"), end(0), change(1, "text_delta", text="a")]
        assert message(events).parts == (Thinking(text="Hm"), Text("a"))

    def test_a_call_that_never_began_is_none(self) -> None:
        """Nobody could say which tool it is for."""
        deltas = decode(reply([change(0, "input_json_delta", partial_json="{}")]))
        assert [warning.code for warning in only(WarningChunk, deltas)] == ["orphan_delta"]
        assert not only(CallChunk, deltas)

    def test_fields_of_the_wrong_type_are_put_right_or_left_out(self) -> None:
        events = [
            begin(0, "tool_use", id=7, name="w", input=None),
            {"type": "content_block_delta", "index": "0", "delta": {"partial_json": {"a": 1}}},
            {"type": "content_block_stop", "index": 0.0},
            {"type": "content_block_delta", "index": 1, "delta": {"text": None}},
            {"type": "content_block_delta", "index": 1, "delta": None},
        ]
        assert message(events).parts == (ToolCall(id="7", name="w", arguments='{"a":1}'),)

    def test_a_whole_message_is_a_reply(self) -> None:
        """Some servers do not stream, whatever they are asked."""
        content = [
            {"type": "thinking", "thinking": "Hm", "signature": "s"},
            {"type": "text", "text": "a"},
            {"type": "tool_use", "id": "t", "name": "w", "input": {"city": "Oslo"}},
        ]
        body = {
            "id": "msg_9", "type": "message", "role": "assistant", "model": "m", "content": content,
            "stop_reason": "tool_use", "usage": {"input_tokens": 3, "output_tokens": 4},
        }  # fmt: skip
        made = join(decode([body]))
        assert made.parts == (
            Thinking(text="Hm", signature="s"),
            Text("a"),
            ToolCall(id="t", name="w", arguments='{"city":"Oslo"}'),
        )
        assert (made.stop_reason, made.response_id, made.usage) == ("tool_calls", "msg_9", Usage(input=3, output=4))

    @settings(max_examples=100, deadline=None)
    @given(st.text(), st.data())
    def test_the_text_is_the_same_however_it_is_cut(self, whole: str, data: st.DataObject) -> None:
        """Also in the middle of a character: some servers escape the halves apart."""
        pieces: list[str] = []
        rest = whole.encode("utf-16-le", "surrogatepass")
        while rest:
            size = 2 * data.draw(st.integers(1, 3))
            pieces.append(rest[:size].decode("utf-16-le", "surrogatepass"))
            rest = rest[size:]
        assert message(text(0, *pieces)).text == whole

    def test_half_a_character_alone_is_replaced(self) -> None:
        assert message(text(0, "a\ud83d"), text(1, "b\udc00c")).text == "a\ufffdb\ufffdc"


class TestEnds:
    @pytest.mark.parametrize(
        ("reason", "label"),
        [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("tool_use", "tool_calls"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("pause_turn", "paused"),
            ("refusal", "refused"),
            ("sensitive", "filtered"),
            ("something_new", "stop"),
        ],
    )
    def test_each_stop_reason_has_a_label_and_is_told(self, reason: str, label: str) -> None:
        finish = decode(reply(text(0, "a"), reason=reason))[-1]
        assert isinstance(finish, FinishChunk)
        assert (finish.reason, finish.detail) == (label, reason)

    def test_without_a_reason_the_calls_decide(self) -> None:
        assert message(call(0, "w"), reason=None).stop_reason == "tool_calls"
        assert message(text(0, "a"), reason=None).stop_reason == "stop"

    def test_a_refusal_is_told_in_the_servers_words(self) -> None:
        details = {"type": "refusal", "category": "bio", "explanation": "not this"}
        events = [start(), *text(0, "I"), last("refusal", stop_details=details), STOP]
        assert WarningChunk("refusal", "not this") in decode(events)

    def test_d07_a_stream_that_ends_anywhere_before_its_marker_was_dropped(self) -> None:
        """Saved as complete, half an answer would be taken for a whole one, and half a call would be run."""
        for cut in range(len(EVERYTHING)):
            with pytest.raises(Dropped, match="ask again"):
                decode(EVERYTHING[:cut])

    def test_what_follows_the_marker_does_not_matter(self) -> None:
        assert decode([*EVERYTHING, *text(9, "more"), b"{broken"]) == decode(EVERYTHING)

    def test_data_that_is_no_json_ends_the_reply(self) -> None:
        """A piece of the text, or of a call, is gone: going on would pass for a whole reply."""
        with pytest.raises(Garbled, match="not JSON"):
            decode([start(), b'{"type":"content_block_delta","index":0,"del'])


class TestErrors:
    @pytest.mark.parametrize(
        ("kind", "words", "error", "recovery"),
        [
            ("overloaded_error", "Overloaded", Overloaded, "wait"),
            ("api_error", "Internal server error", Overloaded, "wait"),
            ("timeout_error", "too slow", Overloaded, "wait"),
            ("rate_limit_error", "slow down", RateLimited, "wait"),
            ("authentication_error", "invalid x-api-key", Unauthorized, "never"),
            ("permission_error", "not yours", Unauthorized, "never"),
            ("invalid_request_error", "max_tokens: too large", Rejected, "never"),
            ("invalid_request_error", "prompt is too long: 205351 tokens > 200000 maximum", ContextOverflow, "never"),
            ("request_too_large", "too many bytes", Rejected, "never"),
            ("something_new", "?", Overloaded, "wait"),
        ],
    )
    def test_d06_an_error_within_the_stream_is_raised_as_what_it_is(
        self, kind: str, words: str, error: type[ModelError], recovery: str
    ) -> None:
        body = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_9"}
        decoder = AnthropicDecoder(request_id="req_1")
        decoder.feed(json.dumps(start()).encode(), "message_start")
        with pytest.raises(error, match="anthropic") as caught:
            decoder.feed(json.dumps(body).encode(), "error")
        assert (caught.value.code, caught.value.recovery) == (kind, recovery)
        assert (caught.value.provider, caught.value.request_id) == ("anthropic", "req_1")

    @pytest.mark.parametrize(
        ("payload", "event"),
        [
            (b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', "message"),
            (b'{"error":{"message":"busy"}}', "message"),
            (b'{"error":"busy"}', "message"),
            (b'{"type":"error","message":"busy"}', "message"),
            (b'{"message":"busy"}', "error"),
            (b"busy", "error"),
        ],
    )
    def test_an_error_is_one_in_whatever_shape_it_comes(self, payload: bytes, event: str) -> None:
        with pytest.raises(Overloaded, match="busy"):
            AnthropicDecoder().feed(payload, event)


class TestUsage:
    def test_the_input_counts_what_came_from_the_cache_and_went_into_it(self) -> None:
        """The API's own `input_tokens` is the rest, which would make a cached prompt look free."""
        usage = {
            "input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 1,
            "cache_creation": {"ephemeral_5m_input_tokens": 20}, "service_tier": "standard",
        }  # fmt: skip
        final = {"output_tokens": 30, "output_tokens_details": {"thinking_tokens": 12}, "server_tool_use": None}
        [*_, told] = only(UsageChunk, decode([start(**usage), *text(0, "a"), last(usage=final), STOP]))
        extra = {
            "cache_creation": {"ephemeral_5m_input_tokens": 20},
            "service_tier": "standard",
            "output_tokens_details": {"thinking_tokens": 12},
        }
        assert told.usage == Usage(input=125, output=30, cache_read=100, cache_write=20, reasoning=12, extra=extra)

    def test_what_is_not_reported_is_none_and_never_zero(self) -> None:
        [first, _] = only(UsageChunk, decode(reply(text(0, "a"))))
        usage = first.usage
        assert (usage.cache_read, usage.cache_write, usage.reasoning, usage.cost, usage.total) == (None,) * 5

    def test_a_count_never_shrinks(self) -> None:
        """Some servers tell the input only at the end, and others only at the beginning, with 0 at the other place."""
        early = [start(input_tokens=9, output_tokens=0), last(usage={"input_tokens": 0, "output_tokens": 4}), STOP]
        late = [start(input_tokens=0, output_tokens=0), last(usage={"input_tokens": 9, "output_tokens": 4}), STOP]
        for events in (early, late):
            assert join(decode(events)).usage == Usage(input=9, output=4)

    def test_the_input_is_known_although_the_reply_breaks_off(self) -> None:
        decoder = AnthropicDecoder()
        assert decoder.feed(json.dumps(start(input_tokens=9, output_tokens=1)).encode()) == [
            UsageChunk(Usage(input=9, output=1))
        ]


def test_pings_are_nothing() -> None:
    assert AnthropicDecoder().feed(json.dumps(PING).encode(), "ping") == []
