"""What streams of the Responses API really look like, and what must come out of them.

The letter and number in a name is the report in the collection of quirks that the rule answers.
"""

import json
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
)
from antiphon.providers.openai_responses.decode import ResponsesDecoder
from antiphon.providers.openai_responses.encode import encode
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import Joiner
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import CallChunk, Delta, FinishChunk, ModelInfo, ModelRequest, TextChunk, WarningChunk
from antiphon.types.usage import Usage

ORIGIN = "openai:gpt-5"
USAGE = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 20},
    "output_tokens": 9,
    "output_tokens_details": {"reasoning_tokens": 4},
    "total_tokens": 39,
}


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", **fields}


def response(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "model": "gpt-5-2025-08-07", "status": status, "output": [], **fields}


CREATED = event("created", response={**response("in_progress"), "instructions": "x", "tools": [{"type": "function"}]})
COMPLETED = event("completed", response=response(usage=USAGE))


def message_item(*texts: str, item_id: str = "msg_1", **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": content, **fields}


def call_item(name: str = "look", arguments: Any = "", call_id: str = "call_1", **fields: Any) -> dict[str, Any]:
    fixed = {"type": "function_call", "id": "fc_1", "status": "completed"}
    return {**fixed, "name": name, "call_id": call_id, "arguments": arguments, **fields}


def added(item: dict[str, Any], index: int = 0, **fields: Any) -> dict[str, Any]:
    """An announcement, which has nothing of the content yet."""
    empty = {"content": []} if item["type"] == "message" else {"arguments": ""} if "arguments" in item else {}
    return event("output_item.added", output_index=index, item={**item, **empty, "status": "in_progress"}, **fields)


def done(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return event("output_item.done", output_index=index, item=item)


def text(delta: str, index: int = 0, item_id: str = "msg_1") -> dict[str, Any]:
    return event("output_text.delta", item_id=item_id, output_index=index, content_index=0, delta=delta, logprobs=[])


def arguments(delta: str, index: int = 0, item_id: str = "fc_1") -> dict[str, Any]:
    return event("function_call_arguments.delta", item_id=item_id, output_index=index, delta=delta)


def arguments_done(whole: str, index: int = 0, item_id: str = "fc_1") -> dict[str, Any]:
    return event("function_call_arguments.done", item_id=item_id, output_index=index, arguments=whole)


def summary(delta: str, part: int = 0, index: int = 0) -> dict[str, Any]:
    return event("reasoning_summary_text.delta", item_id="rs_1", output_index=index, summary_index=part, delta=delta)


def decode(*events: Any) -> list[Delta]:
    """The deltas of a whole stream. Bytes are sent as they are."""
    decoder = ResponsesDecoder(origin=ORIGIN)
    deltas: list[Delta] = []
    for item in events:
        data = item if isinstance(item, bytes) else json.dumps(item).encode()
        deltas += decoder.feed(data)
    return deltas + decoder.finish()


def joined(*events: Any) -> AssistantMessage:
    joiner = Joiner()
    for delta in decode(*events):
        joiner.add(delta)
    return joiner.message(provider="openai", model="gpt-5")


def calls(*events: Any) -> list[tuple[str, str, str]]:
    return [(call.id, call.name, call.arguments) for call in joined(*events).calls]


# --- text, usage, end


def test_a_reply_is_told_as_it_comes() -> None:
    item = message_item("Hello")
    deltas = decode(
        CREATED,
        event("in_progress", response=response("in_progress")),
        added(item),
        event(
            "content_part.added",
            item_id="msg_1",
            output_index=0,
            content_index=0,
            part={"type": "output_text", "text": ""},
        ),
        text("Hel"),
        text("lo"),
        event("output_text.done", item_id="msg_1", output_index=0, content_index=0, text="Hello"),
        event(
            "content_part.done",
            item_id="msg_1",
            output_index=0,
            content_index=0,
            part={"type": "output_text", "text": "Hello"},
        ),
        done(item),
        event("completed", response=response(output=[item])),
    )
    assert deltas == [
        TextChunk("Hel"),
        TextChunk("lo"),
        FinishChunk("stop", "completed", "resp_1", "gpt-5-2025-08-07"),
    ]


def test_usage_has_what_was_cached_and_what_was_thought() -> None:
    assert joined(text("x"), COMPLETED).usage == Usage(input=30, output=9, total=39, cache_read=20, reasoning=4)


def test_counts_that_are_not_reported_are_none_and_odd_ones_are_left_out() -> None:
    odd = {"input_tokens": 1, "output_tokens": True, "total_tokens": 10**400, "service": "x", "cost": -1}
    reported = joined(text("x"), event("completed", response=response(usage=odd))).usage
    assert reported == Usage(input=1, output=0, extra={"service": "x"})


def test_d7_an_end_without_a_terminal_event_is_a_dropped_stream() -> None:
    with pytest.raises(Dropped, match="terminal event"):
        decode(CREATED, added(message_item("x")), text("half"), done(message_item("half")))


def test_done_of_other_apis_is_no_terminal_event() -> None:
    with pytest.raises(Dropped):
        decode(text("half"), b"[DONE]")


def test_what_follows_the_terminal_event_changes_nothing() -> None:
    assert joined(text("x"), COMPLETED, text("y"), b"[DONE]").text == "x"


@pytest.mark.parametrize(
    ("reason", "label"),
    [("max_output_tokens", "length"), ("content_filter", "filtered"), ("max_messages", "length"), (None, "length")],
)
@pytest.mark.parametrize("kind", ["incomplete", "completed"])
def test_d8_an_incomplete_reply_is_no_normal_stop(reason: str | None, label: str, kind: str) -> None:
    """Whatever the event is called: gateways call it completed."""
    end = event(kind, response=response("incomplete", incomplete_details={"reason": reason} if reason else None))
    message = joined(text("x"), end)
    assert (message.stop_reason, message.text) == (label, "x")


def test_a_refusal_is_text_for_the_reader_and_the_reason_of_the_end() -> None:
    message = joined(event("refusal.delta", output_index=0, content_index=0, delta="No."), COMPLETED)
    assert (message.text, message.stop_reason) == ("No.", "refused")
    told_whole = message_item()
    told_whole["content"] = [{"type": "refusal", "refusal": "No."}]
    assert joined(done(told_whole), COMPLETED).stop_reason == "refused"


def test_e1_calls_decide_whatever_the_label_says() -> None:
    assert joined(text("x"), done(call_item(arguments="{}"), 1), COMPLETED).stop_reason == "tool_calls"


# --- what only the end tells


def test_text_that_comes_only_with_the_done_events_is_not_lost() -> None:
    whole = event("output_text.done", item_id="msg_1", output_index=0, content_index=0, text="Hello")
    assert joined(added(message_item("Hello")), whole, done(message_item("Hello")), COMPLETED).text == "Hello"
    assert joined(done(message_item("Hel", "lo")), COMPLETED).text == "Hello"
    assert joined(event("completed", response=response(output=[message_item("Hello")]))).text == "Hello"


def test_text_that_the_deltas_left_out_is_added() -> None:
    assert joined(text("Hel"), done(message_item("Hello")), COMPLETED).text == "Hello"


def test_a_whole_reply_of_a_server_that_does_not_stream() -> None:
    message = joined({**response(usage=USAGE), "output": [message_item("Hello"), call_item(arguments='{"a":1}')]})
    assert (message.text, message.calls[0].arguments, message.response_id) == ("Hello", '{"a":1}', "resp_1")
    assert message.usage is not None
    with pytest.raises(Dropped):
        decode(response("in_progress"))


def test_an_items_last_telling_adds_nothing_twice() -> None:
    """Gateways count the items otherwise at the end, and name them otherwise."""
    end = event("completed", response=response(output=[call_item(arguments="{}"), message_item("x", item_id="other")]))
    message = joined(done(message_item("x"), 1), done(call_item(arguments="{}"), 2), end)
    assert (message.text, len(message.calls)) == ("x", 1)


# --- calls


def test_a_call_is_told_as_it_comes() -> None:
    item = call_item(arguments='{"a":1}')
    deltas = decode(added(item), arguments('{"a"'), arguments(":1}"), arguments_done('{"a":1}'), done(item), COMPLETED)
    assert deltas[:3] == [
        CallChunk(0, "call_1", "look", "", {"origin": ORIGIN, "id": "fc_1"}),
        CallChunk(0, "", "", '{"a"'),
        CallChunk(0, "", "", ":1}"),
    ]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([added(call_item()), arguments_done('{"a":1}')], id="with their own done event"),
        pytest.param([added(call_item()), done(call_item(arguments='{"a":1}'))], id="with the done item"),
        pytest.param([done(call_item(arguments='{"a":1}'))], id="with a done item that was not announced"),
        pytest.param([added(call_item()), arguments('{"a"'), done(call_item(arguments='{"a":1}'))], id="in part"),
        pytest.param([arguments('{"a":1}'), done(call_item())], id="before the name"),
        pytest.param([event("output_item.added", output_index=0, item=call_item(arguments='{"a":1}'))], id="at once"),
    ],
)
def test_arguments_are_not_lost_however_they_come(events: list[dict[str, Any]]) -> None:
    assert calls(*events, COMPLETED) == [("call_1", "look", '{"a":1}')]


def test_a_call_that_only_the_last_event_tells_is_not_lost() -> None:
    end = event("completed", response=response(output=[call_item(arguments='{"a":1}')]))
    assert calls(end) == [("call_1", "look", '{"a":1}')]
    assert calls(added(call_item()), end) == [("call_1", "look", '{"a":1}')]


def test_arguments_that_were_announced_and_streamed_too_are_not_doubled() -> None:
    announced = event("output_item.added", output_index=0, item=call_item(arguments='{"a":1}'))
    assert calls(announced, arguments('{"a":1}'), done(call_item(arguments='{"a":1}')), COMPLETED)[0][2] == '{"a":1}'


def test_a_call_whose_arguments_never_came_is_not_run_with_invented_ones() -> None:
    with pytest.raises(Garbled, match="never sent the arguments"):
        decode(added(call_item()), COMPLETED)


def test_a16_a_call_that_ends_with_blank_arguments_has_none() -> None:
    assert calls(added(call_item()), arguments_done(""), COMPLETED) == [("call_1", "look", "")]
    assert calls(done(call_item(arguments="")), COMPLETED) == [("call_1", "look", "")]


def test_an_end_of_arguments_that_belongs_to_nothing_makes_no_call() -> None:
    message = joined(text("x"), arguments_done("", 7), COMPLETED)
    assert (message.calls, message.stop_reason) == ((), "stop")


def test_a_call_told_twice_must_say_the_same() -> None:
    """Written otherwise it may be; to run the one that is not meant would be wrong."""
    same = call_item(arguments='{ "a": 1 }')
    assert calls(added(call_item()), arguments('{"a":1}'), done(same), COMPLETED)[0][2] == '{"a":1}'
    with pytest.raises(Garbled, match="different arguments"):
        decode(added(call_item()), arguments('{"a":2}'), done(same), COMPLETED)


def test_e2_a_call_cut_off_by_the_limit_keeps_what_came() -> None:
    end = event("incomplete", response=response("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    message = joined(added(call_item()), arguments('{"a"'), end)
    assert (message.stop_reason, message.calls[0].arguments) == ("length", '{"a"')


def two_calls() -> tuple[dict[str, Any], dict[str, Any]]:
    return call_item("f", call_id="a", id="fc_a"), call_item("g", call_id="b", id="fc_b")


def test_a7_arguments_of_parallel_calls_may_interleave() -> None:
    one, two = two_calls()
    events = [added(one, 0), added(two, 1), arguments("{", 0, "fc_a"), arguments("[", 1, "fc_b")]
    events += [arguments("}", 0, "fc_a"), arguments("]", 1, "fc_b"), COMPLETED]
    assert calls(*events) == [("a", "f", "{}"), ("b", "g", "[]")]


def test_a9_calls_stand_in_the_order_of_their_places() -> None:
    one, two = two_calls()
    events = [done({**two, "arguments": "{}"}, 1), done({**one, "arguments": "{}"}, 0), COMPLETED]
    assert [name for _, name, _ in calls(*events)] == ["f", "g"]


def test_a4_calls_that_all_say_the_same_place_are_told_apart_by_their_ids() -> None:
    one, two = two_calls()
    events = [added(one, 0), added(two, 0), arguments("{", 0, "fc_a"), arguments("[", 0, "fc_b")]
    events += [arguments("}", 0, "fc_a"), arguments("]", 0, "fc_b"), done({**one, "arguments": "{}"}, 0), COMPLETED]
    assert calls(*events) == [("a", "f", "{}"), ("b", "g", "[]")]


def test_an_item_may_have_another_id_in_every_event() -> None:
    """One gateway sends encrypted text as ids, fresh each time; the place holds. Such an id is not sent back."""
    item = call_item(arguments='{"a":1}')
    ids = iter([f"{number}+/=" * 30 for number in range(9)])
    events = [
        added(message_item("Hello", item_id=next(ids)), 0),
        text("Hel", 0, next(ids)),
        text("lo", 0, next(ids)),
        done(message_item("Hello", item_id=next(ids)), 0),
        added({**item, "id": next(ids)}, 1),
        arguments('{"a":1}', 1, next(ids)),
        done({**item, "id": next(ids)}, 1),
    ]
    end = event(
        "completed", response=response(output=[message_item("Hello", item_id=next(ids)), {**item, "id": next(ids)}])
    )
    message = joined(*events, end)
    assert message.parts == (Text("Hello"), ToolCall(id="call_1", name="look", arguments='{"a":1}'))


def test_events_without_any_place_go_on_with_what_is_open() -> None:
    bare = [{**text("x")}, {**arguments("{}")}]
    for item in bare:
        del item["output_index"], item["item_id"]
    assert joined(added(message_item("")), bare[0], added(call_item(), 1), bare[1], COMPLETED).parts == (
        Text("x"),
        ToolCall(id="call_1", name="look", arguments="{}", opaque={"origin": ORIGIN, "id": "fc_1"}),
    )


def test_arguments_that_are_an_object_are_encoded_once() -> None:
    assert calls(done(call_item(arguments={"a": [1]})), COMPLETED) == [("call_1", "look", '{"a":[1]}')]


def test_an_empty_id_is_left_empty_for_the_one_who_makes_unique_ones() -> None:
    assert calls(done(call_item(arguments="{}", call_id="")), COMPLETED) == [("", "look", "{}")]


# --- reasoning


def reasoning_item(*summaries: str, **fields: Any) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": item} for item in summaries]
    return {"type": "reasoning", "id": "rs_1", "summary": parts, "status": None, **fields}


def test_a_thought_is_told_as_it_comes_and_closed_with_what_must_go_back() -> None:
    item = reasoning_item("**One**", "**Two**", encrypted_content="gAAA")
    message = joined(added(item), summary("**One"), summary("**"), summary("**Two**", 1), done(item), COMPLETED)
    [part] = message.parts
    assert isinstance(part, Thinking)
    assert (part.text, part.redacted, part.origin) == ("**One**\n\n**Two**", False, ORIGIN)
    assert json.loads(part.signature or "") == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": item["summary"],
        "encrypted_content": "gAAA",
    }


def test_a_thought_without_words_is_redacted() -> None:
    [part] = joined(done(reasoning_item(encrypted_content="gAAA")), COMPLETED).parts
    assert isinstance(part, Thinking)
    assert (part.text, part.redacted) == ("", True)
    assert part.signature


def test_a_thought_that_cannot_go_back_is_kept_for_the_reader_alone() -> None:
    """Without encrypted content it refers to a stored response, and nothing is stored."""
    assert joined(done(reasoning_item("Hm.")), COMPLETED).parts == (Thinking(text="Hm.", origin=ORIGIN),)


def test_an_open_models_plain_thought_goes_back_as_content() -> None:
    item = reasoning_item(content=[{"type": "reasoning_text", "text": "Hm."}])
    plain = event("reasoning_text.delta", output_index=0, item_id="rs_1", content_index=0, delta="Hm.")
    [part] = joined(plain, done(item), COMPLETED).parts
    assert isinstance(part, Thinking)
    assert part.text == "Hm."
    assert json.loads(part.signature or "")["content"] == item["content"]


def test_a_thought_streamed_under_one_name_and_told_under_another_is_not_doubled() -> None:
    plain = event("reasoning_text.delta", output_index=0, item_id="rs_1", delta="Hm.")
    assert joined(plain, done(reasoning_item("Hm.")), COMPLETED).parts == (Thinking(text="Hm.", origin=ORIGIN),)


def test_a_message_keeps_its_phase_and_beside_reasoning_its_id() -> None:
    plain = joined(text("x"), done(message_item("x")), COMPLETED)
    assert plain.parts == (Text("x"),)
    phased = joined(text("x"), done(message_item("x", phase="final_answer")), COMPLETED).parts[0]
    assert isinstance(phased, Text)
    assert json.loads(phased.signature or "") == {"origin": ORIGIN, "phase": "final_answer"}
    thought = done(reasoning_item(encrypted_content="gAAA"))
    beside = joined(thought, text("x", 1), done(message_item("x"), 1), COMPLETED).parts[1]
    assert isinstance(beside, Text)
    assert json.loads(beside.signature or "") == {"origin": ORIGIN, "id": "msg_1"}


def test_what_was_decoded_goes_back_as_it_came() -> None:
    """The whole way: stream, message, request."""
    items = [
        reasoning_item("Hm.", encrypted_content="gAAA"),
        message_item("Let me look.", phase="commentary"),
        call_item(arguments='{"a":1}'),
    ]
    message = joined(*[done(item, place) for place, item in enumerate(items)], COMPLETED)
    info = ModelInfo(provider="openai", id="gpt-5")
    given = json.loads(encode(ModelRequest(messages=[message]), "gpt-5", info))["input"]
    assert given == [{name: value for name, value in item.items() if name != "status"} for item in items[:1]] + [
        items[1],
        {name: value for name, value in items[2].items() if name != "status"},
    ]


def test_a_hosted_tools_item_is_kept_so_that_it_can_go_back() -> None:
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    end = event("completed", response=response(output=[searched, message_item("x")]))
    message = joined(added(searched), done(searched), text("x", 1), end)
    assert [type(part) for part in message.parts] == [Thinking, Text]
    assert isinstance(message.parts[0], Thinking)
    assert json.loads(message.parts[0].signature or "") == searched


def test_an_item_that_only_its_own_client_can_use_is_left_aside_with_a_warning() -> None:
    item = {"type": "computer_call", "id": "cc_1", "action": {}}
    deltas = decode(done(item), done(item), text("x", 1), COMPLETED)
    assert [delta.code for delta in deltas if isinstance(delta, WarningChunk)] == ["unknown_item"]


# --- errors


@pytest.mark.parametrize(
    ("error", "kind", "recovery"),
    [
        ({"code": "server_error", "message": "Sorry."}, Overloaded, "wait"),
        ({"code": "rate_limit_exceeded", "message": "Slow down."}, RateLimited, "wait"),
        ({"code": "insufficient_quota", "message": "No money."}, RateLimited, "never"),
        ({"code": "invalid_prompt", "message": "Not this."}, Rejected, "never"),
        ({"code": "invalid_image_url", "message": "No image."}, Rejected, "never"),
        ({"code": "image_content_policy_violation", "message": "No."}, Filtered, "other_model"),
        ({"code": "context_length_exceeded", "message": "Too long."}, ContextOverflow, "never"),
        (None, Overloaded, "wait"),
    ],
)
def test_a_failed_reply_is_a_typed_error(error: Any, kind: type[ModelError], recovery: str) -> None:
    with pytest.raises(kind) as caught:
        decode(CREATED, text("x"), event("failed", response=response("failed", error=error)))
    assert caught.value.recovery == recovery
    if error:
        assert error["message"] in str(caught.value)
        assert caught.value.code == error["code"]


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slow down.", "param": None, "sequence_number": 3},
        {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow down."}},
        {"error": {"code": "rate_limit_exceeded", "message": "Slow down."}},
    ],
)
def test_d6_an_error_in_the_stream_is_a_typed_error(payload: dict[str, Any]) -> None:
    with pytest.raises(RateLimited, match=r"Slow down\."):
        decode(CREATED, payload)


def test_an_error_names_the_request() -> None:
    decoder = ResponsesDecoder("azure", request_id="req-1")
    with pytest.raises(Overloaded) as caught:
        decoder.feed(b'{"message":"gone"}', "error")
    assert (caught.value.provider, caught.value.request_id) == ("azure", "req-1")


def test_a_cancelled_reply_is_a_dropped_one() -> None:
    with pytest.raises(Dropped):
        decode(event("completed", response=response("cancelled")))


def test_data_that_is_not_json_ends_the_reply() -> None:
    with pytest.raises(Garbled, match="not JSON"):
        decode(text("x"), b'{"type": "response.outp', COMPLETED)


# --- leniency


def test_unknown_events_are_left_aside() -> None:
    deltas = decode(
        event("output_text.annotation.added", annotation={"type": "url_citation"}),
        event("web_search_call.searching", item_id="ws_1"),
        event("brand_new.delta", delta={"x": 1}),
        {"type": "keepalive"},
        {"type": "vendor.metrics"},
        {"type": "vendor.metrics"},
        [],
        7,
        b"",
        text("x"),
        COMPLETED,
    )
    assert [delta.code for delta in deltas if isinstance(delta, WarningChunk)] == ["unknown_event", "odd_event"]
    assert TextChunk("x") in deltas


def test_a2_fields_that_are_missing_or_odd_do_not_end_a_reply() -> None:
    odd = [
        {"type": "response.output_text.delta", "delta": "a", "output_index": "0", "content_index": None},
        {"type": "response.output_text.delta", "delta": "b", "item_id": 7},
        {"type": "response.output_text.delta", "delta": None},
        {"type": "response.output_text.delta", "delta": ["x"]},
        {"type": "response.output_item.done", "item": "none"},
        {"type": "response.output_item.added"},
        {"type": "response.completed", "response": {"id": 3, "usage": [], "output": {"x": 1}, "status": None}},
    ]
    message = joined(*odd)
    assert (message.text, message.stop_reason) == ("ab", "stop")


def test_the_type_may_stand_in_the_events_name_alone() -> None:
    decoder = ResponsesDecoder()
    deltas = decoder.feed(b'{"delta":"x","output_index":0}', "response.output_text.delta")
    assert deltas == [TextChunk("x")]


def test_halves_of_a_character_that_come_apart_are_joined() -> None:
    one, two = (json.dumps(text("@")).replace("@", half).encode() for half in ("a\\ud83d", "\\ude00b"))
    message = joined(one, two, text("c"), COMPLETED)
    assert message.text == "a😀bc"
    alone = json.dumps(text("@")).replace("@", "\\ude00").encode()
    assert joined(alone, COMPLETED).text == "\ufffd"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(
    [
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
    ]
)
ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "reasoning", "function_call", "web_search_call", "x"])},
    optional={
        "id": st.sampled_from(["a", "b"]) | JSON,
        "call_id": st.sampled_from(["a", "b"]) | JSON,
        "name": JSON,
        "arguments": JSON,
        "content": st.lists(st.fixed_dictionaries({"text": JSON, "refusal": JSON}) | JSON, max_size=2) | JSON,
        "summary": JSON,
        "encrypted_content": JSON,
        "phase": JSON,
    },
)
EVENTS = st.fixed_dictionaries(
    {"type": KINDS | JSON},
    optional={
        "delta": st.text(max_size=5) | JSON,
        "output_index": st.integers(-1, 2) | JSON,
        "item_id": st.sampled_from(["a", "b"]) | JSON,
        "content_index": JSON,
        "summary_index": JSON,
        "text": JSON,
        "arguments": JSON,
        "item": ITEMS | JSON,
        "response": st.fixed_dictionaries(
            {},
            optional={
                "output": st.lists(ITEMS | JSON, max_size=3) | JSON,
                "usage": JSON,
                "error": JSON,
                "status": JSON,
            },
        )
        | JSON,
        "error": JSON,
    },
)


def survives(payloads: list[bytes], names: list[str]) -> None:
    """Feeds the payloads; nothing but a `ModelError` may come of it, and a message of what came can be made."""
    decoder, joiner = ResponsesDecoder(origin=ORIGIN), Joiner()
    try:
        for place, payload in enumerate(payloads):
            for delta in decoder.feed(payload, names[place % len(names)] if names else "message"):
                joiner.add(delta)
        for delta in decoder.finish():
            joiner.add(delta)
    except ModelError:
        pass
    message = joiner.message(provider="openai", model="gpt-5")
    encode(ModelRequest(messages=[message]), "gpt-5", ModelInfo(provider="openai", id="gpt-5"))


@settings(max_examples=300, deadline=None)
@given(st.lists(EVENTS | JSON, max_size=6), st.lists(st.sampled_from(["message", "error"]), max_size=2))
def test_no_json_ends_in_another_error(events: list[Any], names: list[str]) -> None:
    survives([json.dumps(item).encode() for item in events], names)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_end_in_another_error(payloads: list[bytes]) -> None:
    survives(payloads, [])


@pytest.mark.parametrize("depth", [300, 600, 900, 5000, 100_000])
@pytest.mark.parametrize(
    "place", ['"item":{"type":"reasoning","content":@}', '"response":{"error":@}', '"x":@', '"error":@']
)
def test_no_depth_ends_in_another_error(depth: int, place: str) -> None:
    nested = "[" * depth + "]" * depth
    for kind in ("response.output_item.done", "response.failed", "x"):
        for odd in ("", ',"delta":3'):
            payload = f'{{"type":"{kind}",{place.replace("@", nested)}{odd}}}'
            survives([payload.encode()], [])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_cut_of_the_arguments_gives_the_same_call(data: st.DataObject) -> None:
    whole = json.dumps(
        data.draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)), ensure_ascii=False
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    pieces = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    stream = [added(call_item()), *map(arguments, pieces), done(call_item(arguments=whole)), COMPLETED]
    assert calls(*stream) == [("call_1", "look", whole)]
