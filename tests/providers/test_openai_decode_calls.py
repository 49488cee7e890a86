"""Which call a fragment belongs to, whatever the server's habits are.

The letter and number in a name is the report in the collection of quirks that the rule answers.
"""

import json
from typing import Any

import pytest

from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.types.content import ToolCall
from antiphon.types.joiner import join
from antiphon.types.request import CallChunk

from .chat_stream import calls, chunk, decode, fragment, made, message, only, text


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


def test_a03_an_id_made_up_for_every_fragment_does_not_tear_a_call() -> None:
    """A call without a name could never run, and its arguments would be a piece of the other's."""
    assert made(
        calls(fragment("f", '{"x"', index=0, id="a")),
        calls(fragment(None, ":1", index=0, id="b")),
        calls(fragment(None, "}", index=0, id="c")),
        calls(fragment(None, "{}", index=0, id="d")),
    ) == [("a", "f", '{"x":1}'), ("d", "", "{}")]
    assert made(calls(fragment("f", "{", id="a")), calls(fragment(None, "}", id="b"))) == [("a", "f", "{}")]


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
    assert made(calls(fragment("search", "", index=0, id="a")), *again, calls(fragment("search", "{}", index=0))) == [
        ("a", "search", "{}")
    ]


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
