"""What Chat Completions streams really look like, and what must come out of them.

The letter and number in a name is the report in the collection of quirks that the rule answers.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import CallChunk, Delta, FinishChunk, TextChunk, ThinkingChunk, UsageChunk, WarningChunk
from antiphon.types.usage import Usage

DONE = b"[DONE]"


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    """A chunk with one choice."""
    return {"id": "r1", "model": "m1", "choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def text(content: str) -> dict[str, Any]:
    return chunk({"content": content})


def calls(*fragments: dict[str, Any]) -> dict[str, Any]:
    return chunk({"tool_calls": list(fragments)})


def fragment(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    """A piece of a call; what is `None` is left out."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {**more, "function": function}


def decode(*payloads: Any, end: bool = True) -> list[Delta]:
    """The deltas of a whole stream. An object is sent as JSON; without `end`, the caller sends the marker."""
    decoder = ChatDecoder()
    deltas: list[Delta] = []
    for payload in payloads:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        deltas += decoder.feed(data)
    if end:
        deltas += decoder.feed(DONE)
    return deltas + decoder.finish()


def message(*payloads: Any, end: bool = True) -> AssistantMessage:
    return join(decode(*payloads, end=end))


def made(*payloads: Any) -> list[tuple[str, str, str]]:
    """The calls of a stream: id, name, arguments."""
    return [(call.id, call.name, call.arguments) for call in message(*payloads).calls]


def only(kind: type[Any], deltas: Sequence[Delta]) -> list[Any]:
    return [delta for delta in deltas if isinstance(delta, kind)]


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
    assert found.usage.total is None and found.usage.cache_read is None and found.usage.cost is None


# --- A: assembling calls


def test_a01_without_an_index_the_id_says_which_call() -> None:
    assert made(
        calls(fragment("f", '{"x":', id="a")),
        calls(fragment("g", '{"y":', id="b")),
        calls(fragment(None, "1}", id="a")),
        calls(fragment(None, "2}", id="b")),
    ) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]


def test_a01_without_index_and_id_the_place_in_the_delta_says_it() -> None:
    assert made(
        calls(fragment("f", '{"x":'), fragment("g", '{"y":')),
        calls(fragment(None, "1}"), fragment(None, "2}")),
    ) == [("", "f", '{"x":1}'), ("", "g", '{"y":2}')]


def test_a01_without_anything_the_open_call_goes_on() -> None:
    assert made(calls(fragment("f", "{", id="a")), calls(fragment(None, "}"))) == [("a", "f", "{}")]


def test_a01_whole_calls_of_one_tool_without_index_and_id_stay_apart() -> None:
    """The second cannot belong to the first: its arguments are whole."""
    assert made(calls(fragment("f", '{"n":1}')), calls(fragment("f", '{"n":2}'))) == [
        ("", "f", '{"n":1}'),
        ("", "f", '{"n":2}'),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": [{"delta": None}]},
        {"choices": [{}]},
        {"choices": [None]},
        {"choices": "none"},
        {"choices": [{"delta": {"content": None, "tool_calls": None}, "finish_reason": None, "index": None}]},
        {"choices": [{"delta": {"tool_calls": []}}]},
        {"choices": [{"delta": {"tool_calls": [None, 7, "x"]}}]},
        {"choices": [{"delta": {"content": 7, "role": 3}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": None}]}}]},
        {},
        [],
    ],
)
def test_a02_a_missing_or_odd_field_never_ends_a_reply(odd: Any) -> None:
    assert message(text("a"), odd, text("b")).text == "ab"


def test_a03_a_new_id_under_a_used_index_opens_a_new_call() -> None:
    assert made(
        calls(fragment("f", "{}", index=0, id="a"), fragment("g", "{}", index=0, id="b")),
        calls(fragment("f", '{"n":3}', index=0, id="c")),
    ) == [("a", "f", "{}"), ("b", "g", "{}"), ("c", "f", '{"n":3}')]


def test_a04_arguments_without_an_id_go_to_the_last_call_opened_on_their_index() -> None:
    assert made(
        calls(fragment("f", "", index=0, id="a")),
        calls(fragment(None, "{}", index=0)),
        calls(fragment("g", "", index=0, id="b")),
        calls(fragment(None, '{"y"', index=0)),
        calls(fragment(None, ":2}", index=0)),
    ) == [("a", "f", "{}"), ("b", "g", '{"y":2}')]


def test_a05_every_fragment_without_an_id_is_told_at_once() -> None:
    decoder = ChatDecoder()
    decoder.feed(json.dumps(calls(fragment("f", "", index=0, id="a"))).encode())
    for piece in ('{"t":"', "aaa", '"}'):
        [delta] = decoder.feed(json.dumps(calls(fragment(None, piece, index=0))).encode())
        assert delta == CallChunk(0, arguments=piece)


def test_a06_a_repeated_id_goes_on_with_its_call_though_the_index_is_stuck() -> None:
    assert made(
        calls(fragment("f", "{", index=0, id="a")),
        calls(fragment("g", "{", index=0, id="b")),
        calls(fragment(None, "}", index=0, id="a")),
        calls(fragment(None, "}", index=0, id="b")),
    ) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_a06_an_empty_id_is_no_id() -> None:
    assert made(
        calls(fragment("f", "{", index=0, id="a")),
        calls(fragment(None, '"x":1', index=0, id="")),
        calls(fragment("", "}", index=0, id="")),
    ) == [("a", "f", '{"x":1}')]


def test_a07_interleaved_fragments_go_where_their_index_says() -> None:
    assert made(
        calls(fragment("f", "1", index=0, id="a"), fragment("g", "2", index=1, id="b")),
        calls(fragment(None, "2", index=1), fragment(None, "1", index=0)),
    ) == [("a", "f", "11"), ("b", "g", "22")]


def test_a08_a_known_index_beats_the_latest_call() -> None:
    assert made(
        calls(fragment("f", "{", index=0, id="a")),
        calls(fragment("g", "{", index=1, id="b")),
        calls(fragment(None, "}", index=0)),
        calls(fragment(None, "}", index=1)),
    ) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_a09_the_message_orders_calls_by_index_and_the_deltas_come_as_they_arrive() -> None:
    stream = (calls(fragment("g", "{}", index=5, id="z")), calls(fragment("f", "{}", index=2, id="y")))
    assert [delta.key for delta in only(CallChunk, decode(*stream))] == [5, 2]
    assert made(*stream) == [("y", "f", "{}"), ("z", "g", "{}")]


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_a10_a11_a_name_that_comes_again_is_not_added(repeats: int) -> None:
    again = [calls(fragment("search", "", index=0, id="a"))] * repeats
    assert made(
        calls(fragment("search", "", index=0, id="a")), *again, calls(fragment("search", "{}", index=0))
    ) == [("a", "search", "{}")]


def test_a_name_in_pieces_is_put_together_as_long_as_no_arguments_came() -> None:
    assert made(
        calls(fragment("get_", index=0, id="a")),
        calls(fragment("weather", index=0)),
        calls(fragment(None, "{}", index=0)),
    ) == [("a", "get_weather", "{}")]
    assert made(calls(fragment("get_", index=0, id="a")), calls(fragment("get_weather", "{}", index=0))) == [
        ("a", "get_weather", "{}")
    ]


def test_a12_id_and_type_are_set_once() -> None:
    assert made(
        calls(fragment("f", "{", index=0, id="a", type="function")),
        calls(fragment(None, "}", index=0, id="a", type="function")),
    ) == [("a", "f", "{}")]


def test_a13_a14_an_empty_or_missing_id_stays_empty_for_the_engine_to_mint() -> None:
    """No two calls are made one because both ids are empty."""
    assert made(
        calls(fragment("f", "{}", index=0, id="")),
        calls(fragment("g", "{}", index=1)),
    ) == [("", "f", "{}"), ("", "g", "{}")]


def test_a15_an_id_that_comes_late_is_told_once() -> None:
    deltas = decode(calls(fragment("f", "{", index=0)), calls(fragment(None, "}", index=0, id="late")))
    assert [delta.id for delta in only(CallChunk, deltas)] == ["", "late"]
    assert [call.id for call in join(deltas).calls] == ["late"]


@pytest.mark.parametrize("arguments", ["", None, "absent"])
def test_a16_a_call_without_arguments_has_none_invented(arguments: str | None) -> None:
    function = {"name": "now"} if arguments == "absent" else {"name": "now", "arguments": arguments}
    [call] = message(calls({"index": 0, "id": "a", "function": function})).calls
    assert (call.name, call.arguments, call.parse()) == ("now", "", {})


def test_a17_empty_deltas_and_unknown_fields_are_ignored_before_a_whole_call() -> None:
    empty = [chunk({"tool_calls": []}), calls({"index": 0}), calls({}), chunk({"x_progress": 0.4})]
    whole = calls(fragment("f", '{"x":1}', index=0, id="a", x_private={"deep": [1]}))
    assert made(*empty, whole) == [("a", "f", '{"x":1}')]
    assert message(*empty, text("none")).calls == ()


def test_a18_every_call_of_a_batch_keeps_its_own_arguments() -> None:
    batch = [calls(fragment("f", json.dumps({"n": n}), index=n, id=f"c{n}")) for n in range(8)]
    assert made(*batch, *(calls(fragment(None, "", index=n)) for n in range(8))) == [
        (f"c{n}", "f", json.dumps({"n": n})) for n in range(8)
    ]


def test_a19_filter_findings_beside_a_call_do_not_hide_it() -> None:
    whole = calls(fragment("f", "{}", index=0, id="a"))
    whole["choices"][0]["content_filter_results"] = {"hate": {"filtered": False, "severity": "safe"}}
    whole["prompt_filter_results"] = [{"prompt_index": 0, "content_filter_results": {}}]
    assert made(whole) == [("a", "f", "{}")]


def test_a20_one_large_argument_comes_through_whole() -> None:
    large = json.dumps({"text": "x" * 300_000})
    assert made(calls(fragment("f", "", index=0, id="a")), calls(fragment(None, large, index=0))) == [("a", "f", large)]


def test_one_id_under_two_indexes_is_two_calls() -> None:
    """A gateway that reuses ids must not lose a call; the engine gives the second an id of its own."""
    assert made(calls(fragment("f", "{}", index=0, id="x")), calls(fragment("g", "{}", index=1, id="x"))) == [
        ("x", "f", "{}"),
        ("x", "g", "{}"),
    ]


@pytest.mark.parametrize(("given", "text"), [({"x": 1}, '{"x":1}'), ([], "[]"), (7, "7"), (True, "true")])
def test_arguments_that_are_no_text_are_encoded_once(given: Any, text: str) -> None:
    assert made(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": given}})) == [("a", "f", text)]


@pytest.mark.parametrize("index", ["0", 0.0, -1, None, True])
def test_an_index_of_another_type_is_understood_or_left_out(index: Any) -> None:
    assert made(calls(fragment("f", "{", index=index, id="a")), calls(fragment(None, "}", index=0))) == [
        ("a", "f", "{}")
    ]


def test_the_legacy_function_call_is_a_call() -> None:
    reply = message(
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": '{"x":1}'}}),
        chunk(finish="function_call"),
    )
    assert reply.calls == (ToolCall(id="", name="f", arguments='{"x":1}'),)
    assert reply.stop_reason == "tool_calls"


def test_opaque_data_of_a_call_is_kept_with_its_origin() -> None:
    """Google's signature must come back with the call, and only to the model that signed."""
    decoder = ChatDecoder(origin="gemini_openai:pro")
    signed = {"google": {"thought_signature": "sig"}}
    deltas = decoder.feed(json.dumps(calls(fragment("f", "{}", index=0, id="a", extra_content=signed))).encode())
    assert deltas == [CallChunk(0, "a", "f", "{}", {"origin": "gemini_openai:pro", "extra_content": signed})]


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
    assert isinstance(thought, Thinking) and thought.text == "hello" and thought.signature
    assert json.loads(thought.signature) == [
        {"type": "reasoning.text", "text": "hello", "index": 0, "format": "f", "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "abc", "index": 1},
    ]


def test_c04_encrypted_reasoning_alone_is_a_redacted_thought() -> None:
    [thought, _] = message(chunk({"reasoning_details": [{"type": "reasoning.encrypted", "data": "e"}]}), text("x")).parts
    assert isinstance(thought, Thinking) and thought.redacted and thought.text == ""
    assert thought.signature and json.loads(thought.signature) == [{"type": "reasoning.encrypted", "data": "e"}]


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
        ({"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, RateLimited, "Rate limit reached"),
        ({"error": {"message": "Provider returned error", "code": 502}}, Overloaded, "Provider returned error"),
        ({"error": {"message": "too big", "code": "context_length_exceeded"}}, ContextOverflow, "too big"),
        ({"error": {"message": "bad key", "type": "authentication_error"}}, Unauthorized, "bad key"),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, Rejected, "no"),
        ({"error": {"message": "filtered", "code": "content_filter"}}, Filtered, "filtered"),
        ({"error": "llama runner has terminated"}, Overloaded, "llama runner has terminated"),
        ({"error": {"message": "x"}, "choices": [{"delta": {"content": ""}, "finish_reason": "error"}]}, Overloaded, "x"),
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
    failed = {"error": {"message": "Failed to call a function", "type": "invalid_request_error", "code": "tool_use_failed"}}
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
    objection = {"choices": [{"finish_reason": "content_filter", "content_filter_results": {"hate": {"filtered": True}}}]}
    deltas = decode(text("a"), objection)
    [warning] = only(WarningChunk, deltas)
    assert warning.code == "content_filter" and "hate" in warning.text
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
    assert reply.calls and reply.stop_reason == "stop"


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


# --- whatever comes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "delta", "content", "tool_calls", "index", "id", "function", "name", "arguments", "usage",
             "finish_reason", "error", "message", "reasoning_details", "prompt_tokens", "timings", "x_groq", "refusal",
             "function_call", "extra_content", "google", "content_filter_results", "text", "prompt_tokens_details"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


def feed_all(payloads: Sequence[bytes], events: Sequence[str] = ()) -> list[Delta]:
    decoder = ChatDecoder()
    deltas: list[Delta] = []
    try:
        for number, payload in enumerate(payloads):
            deltas += decoder.feed(payload, events[number] if number < len(events) else "message")
        deltas += decoder.finish()
    except ModelError:
        pass
    return deltas


@settings(max_examples=300, deadline=None)
@given(st.lists(JSON, max_size=5), st.lists(st.sampled_from(["message", "error", "ping"]), max_size=2))
def test_any_json_gives_deltas_or_a_model_error(values: list[Any], events: list[str]) -> None:
    feed_all([json.dumps(value).encode() for value in values], events)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_give_deltas_or_a_model_error(payloads: list[bytes]) -> None:
    feed_all(payloads)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_stream_never_invents_arguments(data: st.DataObject) -> None:
    """Whatever is lost, repeated or put in another order: every fragment of arguments is one that the server sent."""
    sent = ['{"city":', '"Oslo",', '"days":', "3}", "{}"]
    stream = [calls(fragment("weather", "", index=0, id="a")), calls(fragment("now", "", index=1, id="b"))]
    stream += [
        calls(fragment(None, piece, index=data.draw(st.sampled_from([0, 1, None, 2]))))
        for piece in data.draw(st.lists(st.sampled_from(sent), max_size=6))
    ]
    stream = data.draw(st.permutations(stream))
    payloads = [json.dumps(item).encode() for item in stream[: data.draw(st.integers(0, len(stream)))]]
    if payloads and data.draw(st.booleans()):
        payloads[-1] = payloads[-1][: data.draw(st.integers(0, len(payloads[-1])))]
    for delta in only(CallChunk, feed_all(payloads)):
        assert delta.arguments in {"", *sent}


@settings(max_examples=200, deadline=None)
@given(st.text(), st.data())
def test_the_text_is_the_same_however_it_is_cut(whole: str, data: st.DataObject) -> None:
    """Also in the middle of a character: JSON escapes halves apart."""
    pieces: list[str] = []
    rest = whole.encode("utf-16-le", "surrogatepass")
    while rest:
        size = 2 * data.draw(st.integers(1, 3))
        pieces.append(rest[:size].decode("utf-16-le", "surrogatepass"))
        rest = rest[size:]
    assert message(*(text(piece) for piece in pieces)).text == whole
