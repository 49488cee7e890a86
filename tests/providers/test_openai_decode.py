"""What Chat Completions streams really look like, and what must come out of them.

The letter and number in a name is the report in the collection of quirks that the rule answers.
"""

import json
from typing import Any

import pytest

from antiphon.errors import (
    ContextOverflow,
    Dropped,
    Filtered,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Unauthorized,
)
from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import join
from antiphon.types.request import CallChunk, FinishChunk, TextChunk, ThinkingChunk, UsageChunk, WarningChunk
from antiphon.types.usage import Usage

from .chat_stream import DONE, calls, chunk, decode, fragment, message, only, text

# --- the plain road


def test_text_comes_as_it_is_said_and_the_end_says_why_and_who() -> None:
    deltas = decode(chunk({"role": "assistant", "content": ""}), text("Hel"), text("lo"), chunk(finish="stop"))
    assert deltas == [TextChunk("Hel"), TextChunk("lo"), FinishChunk("stop", "stop", "r1", "m1")]


def test_a_call_is_told_when_its_name_is_known_and_grows_fragment_by_fragment() -> None:
    deltas = decode(
        calls(fragment("add", "", index=0, id="c1", type="function")),
        calls(fragment(None, '{"a":', index=0)),
        calls(fragment(None, "1}", index=0)),
        chunk(finish="tool_calls"),
    )
    assert deltas[:3] == [CallChunk(0, "c1", "add"), CallChunk(0, arguments='{"a":'), CallChunk(0, arguments="1}")]
    assert deltas[-1] == FinishChunk("tool_calls", "tool_calls", "r1", "m1")


def test_usage_is_mapped_and_what_has_no_field_is_carried() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 5},
        "cost": 0.01,
        "prompt_cache_miss_tokens": 40,
    }
    [found] = only(UsageChunk, decode(text("x"), chunk(finish="stop"), {"choices": [], "usage": usage}))
    assert found.usage == Usage(
        input=100,
        output=20,
        total=120,
        cache_read=60,
        reasoning=5,
        cost=0.01,
        extra={"prompt_tokens_details": {"cached_tokens": 60, "audio_tokens": 1}, "prompt_cache_miss_tokens": 40},
    )


def test_what_is_not_reported_is_none_and_not_zero() -> None:
    [found] = only(UsageChunk, decode({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}))
    assert found.usage == Usage(input=3, output=4)
    assert found.usage.total is None
    assert found.usage.cache_read is None
    assert found.usage.cost is None


# --- C: reasoning


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_is_thinking_whatever_its_field_is_called(field: str) -> None:
    assert decode(chunk({field: "hm"}), text("so"))[:2] == [ThinkingChunk("hm"), TextChunk("so")]


def test_the_same_thought_in_two_fields_is_told_once() -> None:
    assert message(chunk({"reasoning": "hm", "reasoning_content": "hm"}), text("x")).parts[0] == Thinking(text="hm")


def test_within_one_delta_thought_comes_before_text() -> None:
    """At the border of the two a server sends both, and the thought is what came first."""
    parts = message(chunk({"reasoning": "a"}), chunk({"content": "c", "reasoning": "b"}), text("d")).parts
    assert parts == (Thinking(text="ab"), Text("cd"))


def test_c03_reasoning_details_are_kept_word_for_word_to_go_back() -> None:
    details = [
        {"type": "reasoning.text", "text": "he", "index": 0, "format": "f", "signature": None},
        {"type": "reasoning.text", "text": "llo", "index": 0, "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "abc", "index": 1},
    ]
    reply = message(
        chunk({"reasoning": "he", "reasoning_details": details[:1]}),
        chunk({"reasoning": "llo", "reasoning_details": details[1:2]}),
        chunk({"reasoning_details": details[2:]}),
        text("x"),
    )
    thought = reply.parts[0]
    assert isinstance(thought, Thinking)
    assert thought.text == "hello"
    assert thought.signature
    assert json.loads(thought.signature) == [
        {"type": "reasoning.text", "text": "hello", "index": 0, "format": "f", "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "abc", "index": 1},
    ]


def test_c04_encrypted_reasoning_alone_is_a_redacted_thought() -> None:
    [thought, _] = message(
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "e"}]}), text("x")
    ).parts
    assert isinstance(thought, Thinking)
    assert thought.redacted
    assert thought.text == ""
    assert thought.signature
    assert json.loads(thought.signature) == [{"type": "reasoning.encrypted", "data": "e"}]


def test_content_parts_are_told_apart() -> None:
    """Mistral's thinking models send content as a list of parts."""
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    assert message(chunk({"content": [thinking]}), chunk({"content": [{"type": "text", "text": "so"}]})).parts == (
        Thinking(text="hm"),
        Text("so"),
    )


def test_content_that_google_marks_as_thought_is_thinking() -> None:
    marked = chunk({"content": "hm", "extra_content": {"google": {"thought": True}}})
    assert message(marked, text("so")).parts == (Thinking(text="hm"), Text("so"))


# --- D: framing and errors


@pytest.mark.parametrize("blank", [b"", b"  ", b"data:", b"null", b'""', b"{}"])
def test_d02_blank_data_is_no_event(blank: bytes) -> None:
    assert message(text("a"), blank, text("b")).text == "ab"


def test_d04_a_character_cut_in_two_chunks_is_whole_in_text_thought_and_arguments() -> None:
    """JSON may escape the halves of a character apart; joining strings later cannot mend what was replaced."""
    first = b'{"choices":[{"delta":{"content":"a\\ud83d","reasoning":"b\\ud83d"}}]}'
    second = b'{"choices":[{"delta":{"content":"\\ude00!","reasoning":"\\ude01"}}]}'
    args = (
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"\\ud83d"}}]}}]}',
        b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\ude02"}}]}}]}',
    )
    reply = message(first, second, *args)
    assert reply.text == "a😀!"
    assert [part.text for part in reply.parts if isinstance(part, Thinking)] == ["b", "😁"]
    assert reply.calls[0].arguments == "😂"


def test_d04_half_a_character_that_stands_alone_is_replaced() -> None:
    half = b'{"choices":[{"delta":{"content":"a\\ud83d"}}]}'
    assert message(half, text("b")).text == "a\ufffdb"
    assert message(half).text == "a\ufffd"


def test_d04_bytes_that_are_no_utf8_are_replaced() -> None:
    assert message(b'{"choices":[{"delta":{"content":"a\xff"}}]}').text == "a\ufffd"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_d05_a_chunk_without_choices_gives_its_usage_wherever_it_stands(place: int) -> None:
    stream: list[Any] = [text("a"), chunk(finish="stop")]
    stream.insert(place, {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}})
    deltas = decode(*stream)
    assert [found.usage for found in only(UsageChunk, deltas)] == [Usage(input=1, output=2)]
    assert join(deltas).text == "a"


def test_d05_usage_in_every_chunk_the_last_one_counts() -> None:
    reply = message(*(text("x") | {"usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in range(1, 4)))
    assert reply.usage == Usage(input=5, output=3)


@pytest.mark.parametrize(
    ("payload", "kind", "words"),
    [
        (
            {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}},
            RateLimited,
            "Rate limit reached",
        ),
        ({"error": {"message": "Provider returned error", "code": 502}}, Overloaded, "Provider returned error"),
        ({"error": {"message": "too big", "code": "context_length_exceeded"}}, ContextOverflow, "too big"),
        ({"error": {"message": "bad key", "type": "authentication_error"}}, Unauthorized, "bad key"),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, Rejected, "no"),
        ({"error": {"message": "filtered", "code": "content_filter"}}, Filtered, "filtered"),
        ({"error": "llama runner has terminated"}, Overloaded, "llama runner has terminated"),
        (
            {"error": {"message": "x"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]},
            Overloaded,
            "x",
        ),
        ({"object": "error", "message": "bad", "type": "BadRequestError", "code": 400}, Rejected, "bad"),
        ({"choices": [{"error": {"message": "choice", "code": 500}}]}, Overloaded, "choice"),
        ([{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}], RateLimited, "quota"),
        ({"detail": "Not Found"}, Overloaded, "Not Found"),
        ({"choices": [], "x_groq": {"error": "over capacity"}}, Overloaded, "over capacity"),
    ],
)
def test_d06_an_error_in_the_stream_is_raised_by_its_kind_with_the_servers_words(
    payload: Any, kind: type[ModelError], words: str
) -> None:
    decoder = ChatDecoder(request_id="req-7")
    decoder.feed(json.dumps(text("a")).encode())
    with pytest.raises(kind, match=words) as caught:
        decoder.feed(json.dumps(payload).encode())
    assert caught.value.request_id == "req-7"


@pytest.mark.parametrize("payload", [b'{"message":"upstream died"}', b"upstream died", b'{"error":{"message":"died"}}'])
def test_d06_an_event_named_error_is_an_error_whatever_its_data(payload: bytes) -> None:
    with pytest.raises(ModelError, match="died"):
        ChatDecoder().feed(payload, "error")


@pytest.mark.parametrize("nothing", [None, {}, "", False])
def test_d06_an_empty_error_field_is_no_error(nothing: Any) -> None:
    assert message(text("a") | {"error": nothing}).text == "a"


def test_a_models_own_broken_call_may_be_tried_again_at_once() -> None:
    failed = {
        "error": {"message": "Failed to call a function", "type": "invalid_request_error", "code": "tool_use_failed"}
    }
    with pytest.raises(Garbled, match="Failed to call a function") as caught:
        ChatDecoder().feed(json.dumps(failed).encode())
    assert caught.value.recovery == "now"


def test_d07_an_end_without_a_marker_is_a_drop() -> None:
    with pytest.raises(Dropped, match="without a finish marker"):
        decode(text("hal"), end=False)
    with pytest.raises(Dropped):
        decode(end=False)


@pytest.mark.parametrize("marker", [[chunk(finish="stop")], [DONE], [b"data: [DONE]"], [b" [DONE]\n"]])
def test_d07_either_marker_is_enough(marker: list[Any]) -> None:
    assert message(text("all"), *marker, end=False).text == "all"


@pytest.mark.parametrize("none", ["", "null", None, "None"])
def test_d07_a_finish_reason_that_says_nothing_is_no_marker(none: Any) -> None:
    with pytest.raises(Dropped):
        decode(chunk({"content": "a"}, finish=none), end=False)


@pytest.mark.parametrize(
    ("reason", "kind"), [("error", Overloaded), ("abort", Dropped), ("insufficient_system_resource", Overloaded)]
)
def test_d08_a_reason_that_says_broken_off_is_an_error(reason: str, kind: type[ModelError]) -> None:
    with pytest.raises(kind, match=reason):
        decode(text("hal"), chunk(finish=reason))


def test_d09_filter_only_frames_are_tolerated_and_their_facts_kept() -> None:
    """Azure sends them first, without id, model or delta, and last, after the finish."""
    findings = {"hate": {"filtered": False, "severity": "safe"}}
    reply = message(
        {"choices": [], "id": "", "model": "", "prompt_filter_results": [{"content_filter_results": findings}]},
        text("a"),
        chunk(finish="stop"),
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
        {"choices": [{"index": 0, "finish_reason": None, "content_filter_results": findings}]},
    )
    assert (reply.text, reply.response_id, reply.model) == ("a", "r1", "m1")
    assert reply.usage == Usage(
        input=1,
        output=1,
        extra={"prompt_filter_results": [{"content_filter_results": findings}], "content_filter_results": findings},
    )


def test_d09_an_objection_without_any_usage_is_told() -> None:
    objection = {
        "choices": [{"finish_reason": "content_filter", "content_filter_results": {"hate": {"filtered": True}}}]
    }
    deltas = decode(text("a"), objection)
    [warning] = only(WarningChunk, deltas)
    assert warning.code == "content_filter"
    assert "hate" in warning.text
    assert join(deltas).stop_reason == "filtered"


@pytest.mark.parametrize("broken", [b'{"choices":[{"delta":{"content":"a', b"oops", b"{'choices': []}"])
def test_data_that_is_not_json_ends_the_reply_because_a_piece_of_it_is_gone(broken: bytes) -> None:
    """Going on would give a text with a hole, or run a call without a part of its arguments."""
    with pytest.raises(Garbled, match="not JSON"):
        decode(text("a"), broken, text("b"))


def test_json_that_a_strict_reader_refuses_is_read_all_the_same() -> None:
    raw_control = b'{"choices":[{"delta":{"content":"a\x01b"}}],"extra":NaN}'
    assert message(raw_control).text == "a\x01b"


def test_a_frame_within_a_frame_is_unwrapped() -> None:
    assert message(b"data: " + json.dumps(text("a")).encode()).text == "a"


def test_a_chunk_of_an_unknown_kind_is_left_aside_with_one_warning() -> None:
    deltas = decode({"type": "ping"}, {"type": "ping"}, text("a"), 7, "seven")
    assert [warning.code for warning in only(WarningChunk, deltas)] == ["unknown_chunk", "odd_chunk"]
    assert join(deltas).text == "a"


# --- E: endings


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("stop", "stop"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("model_length", "length"),
        ("content_filter", "filtered"),
        ("CONTENT_FILTER", "filtered"),
        ("other", "stop"),
        ("unknown", "stop"),
    ],
)
def test_e01_finish_reasons_are_mapped_and_the_servers_word_is_kept(reason: str, expected: str) -> None:
    [finish] = only(FinishChunk, decode(text("a"), chunk(finish=reason)))
    assert (finish.reason, finish.detail) == (expected, reason)


def test_e01_calls_are_kept_under_a_reason_that_does_not_fit() -> None:
    reply = message(calls(fragment("f", "{}", index=0, id="a")), chunk(finish="stop"))
    assert reply.calls
    assert reply.stop_reason == "stop"


def test_e01_without_a_reason_the_calls_say_it() -> None:
    assert message(calls(fragment("f", "{}", index=0, id="a"))).stop_reason == "tool_calls"


def test_a_refusal_is_text_for_the_reader_and_the_reason() -> None:
    reply = message(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk(finish="stop"))
    assert (reply.text, reply.stop_reason) == ("I cannot.", "refused")


# --- servers that do not stream, and other bodies


def test_a_whole_reply_in_place_of_a_stream_is_read() -> None:
    body = {
        "id": "r2",
        "model": "m2",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hi",
                    "reasoning_content": "hm",
                    "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                        {"id": "b", "type": "function", "function": {"name": "g", "arguments": {"x": 1}}},
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    reply = message(body, end=False)
    assert reply.parts == (
        Thinking(text="hm"),
        Text("Hi"),
        ToolCall(id="a", name="f", arguments="{}"),
        ToolCall(id="b", name="g", arguments='{"x":1}'),
    )
    assert (reply.response_id, reply.model, reply.usage) == ("r2", "m2", Usage(input=1, output=2))


def test_a_whole_message_after_its_deltas_is_not_said_twice() -> None:
    final = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
    assert message(text("H"), text("i"), final).text == "Hi"


def test_only_one_candidate_is_read() -> None:
    two = {"choices": [{"index": 0, "delta": {"content": "a"}}, {"index": 1, "delta": {"content": "SECOND"}}]}
    assert message(two, {"choices": [{"index": 1, "delta": {"content": "b"}}]}, text("c")).text == "ac"


def test_llama_cpps_timings_are_kept_and_count_where_nothing_else_does() -> None:
    timings = {"prompt_n": 7, "cache_n": 3, "predicted_n": 5, "predicted_ms": 20.5}
    reply = message(text("a"), chunk(finish="stop", timings=timings))
    assert reply.usage == Usage(input=10, output=5, cache_read=3, extra={"timings": timings})
    reply = message(chunk({"content": "a"}, usage={"prompt_tokens": 10, "completion_tokens": 6}, timings=timings))
    assert reply.usage == Usage(input=10, output=6, extra={"timings": timings})


def test_chunks_that_are_decoded_already_are_taken_too() -> None:
    decoder = ChatDecoder()
    deltas = [*decoder.feed_object(text("a")), *decoder.feed_object(json.dumps(chunk({"content": "b"}, "stop")))]
    assert join([*deltas, *decoder.finish()]).text == "ab"
