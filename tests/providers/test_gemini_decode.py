"""What Gemini's streams really look like, and what must come out of them.

The letter and number in a name is the report in the collection of quirks that the rule answers.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import (
    Dropped,
    Filtered,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Unauthorized,
)
from antiphon.providers.gemini.decode import GeminiDecoder
from antiphon.providers.gemini.encode import encode
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import Joiner
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import (
    Delta,
    FinishChunk,
    ModelRequest,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)
from antiphon.types.usage import Usage

MODEL = "gemini-3-pro-preview"
ORIGIN = f"gemini:{MODEL}"


def chunk(*parts: dict[str, Any], finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk with one candidate."""
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "gemini-3-pro-preview-11-2025", "responseId": "r1", **fields}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"text": words, **fields}


def call(name: str = "look", arguments: Any = None, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": arguments if arguments is not None else {}}, **fields}


STOP = chunk(text(""), finish="STOP")


def decode(*chunks: Any, name: str = "message") -> list[Delta]:
    """The deltas of a whole stream. Bytes are sent as they are."""
    decoder = GeminiDecoder(origin=ORIGIN)
    deltas: list[Delta] = []
    for item in chunks:
        deltas += decoder.feed(item if isinstance(item, bytes) else json.dumps(item).encode(), name)
    return deltas + decoder.finish()


def joined(*chunks: Any) -> AssistantMessage:
    joiner = Joiner()
    for delta in decode(*chunks):
        joiner.add(delta)
    return joiner.message(provider="gemini", model=MODEL)


# --- text, usage, end


def test_a_reply_is_told_as_it_comes() -> None:
    assert decode(chunk(text("Hel")), chunk(text("lo")), STOP) == [
        TextChunk("Hel"),
        TextChunk("lo"),
        FinishChunk("stop", "STOP", "r1", "gemini-3-pro-preview-11-2025"),
    ]


def test_usage_is_cumulative_and_counts_thoughts_as_written() -> None:
    first = {"promptTokenCount": 10, "totalTokenCount": 10, "promptTokensDetails": [{"modality": "TEXT"}]}
    last = {
        "promptTokenCount": 10,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 4,
        "toolUsePromptTokenCount": 2,
        "cachedContentTokenCount": 8,
        "totalTokenCount": 19,
    }
    deltas = decode(chunk(text("x"), usageMetadata=first), chunk(finish="STOP", usageMetadata=last))
    assert [delta.usage for delta in deltas if isinstance(delta, UsageChunk)] == [
        Usage(input=10, output=0, total=10, extra={"promptTokensDetails": [{"modality": "TEXT"}]}),
        Usage(
            input=12,
            output=7,
            total=19,
            cache_read=8,
            reasoning=4,
            extra={"promptTokensDetails": [{"modality": "TEXT"}]},
        ),
    ]


def test_d5_a_chunk_with_usage_alone_may_stand_anywhere() -> None:
    alone = {"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": True, "totalTokenCount": 10**400}}
    assert joined(alone, chunk(text("x")), STOP).usage == Usage(input=5)
    assert joined(chunk(text("x")), STOP, alone).usage == Usage(input=5)


def test_d7_an_end_without_a_finish_reason_is_a_dropped_stream() -> None:
    unsaid = chunk(text("more"), finish="FINISH_REASON_UNSPECIFIED")
    with pytest.raises(Dropped, match="finish reason"):
        decode(chunk(text("half")), unsaid, b"[DONE]")


def test_a_finish_reason_may_stand_in_every_chunk() -> None:
    """What follows it belongs to the reply."""
    assert joined(chunk(text("Hel"), finish="STOP"), chunk(text("lo"), finish="STOP")).text == "Hello"


@pytest.mark.parametrize(
    ("reason", "label"),
    [
        ("MAX_TOKENS", "length"),
        ("SAFETY", "filtered"),
        ("RECITATION", "filtered"),
        ("LANGUAGE", "filtered"),
        ("BLOCKLIST", "filtered"),
        ("PROHIBITED_CONTENT", "filtered"),
        ("SPII", "filtered"),
    ],
)
def test_d8_reasons_other_than_stop_are_told(reason: str, label: str) -> None:
    assert joined(chunk(text("x")), chunk(finish=reason)).stop_reason == label
    assert joined({"candidates": [{"finishReason": reason}]}).stop_reason == label


@pytest.mark.parametrize("reason", ["OTHER", "TOO_MANY_TOOL_CALLS", "BRAND_NEW"])
def test_an_unusual_reason_is_a_stop_with_a_warning(reason: str) -> None:
    deltas = decode(chunk(text("x")), chunk(finish=reason))
    assert [delta.code for delta in deltas if isinstance(delta, WarningChunk)] == ["finish_reason"]
    assert isinstance(deltas[-1], FinishChunk)
    assert (deltas[-1].reason, deltas[-1].detail) == ("stop", reason)


@pytest.mark.parametrize("reason", ["STOP", "OTHER"])
def test_e1_calls_decide_whatever_the_label_says(reason: str) -> None:
    assert joined(chunk(call()), chunk(finish=reason)).stop_reason == "tool_calls"


# --- calls


def test_a_call_comes_whole_with_what_must_go_back() -> None:
    given = chunk(
        {"functionCall": {"id": "fc-1", "name": "look", "args": {"city": "Oslo"}}, "thoughtSignature": "c2ln"}
    )
    [delta] = [delta for delta in decode(given, STOP) if isinstance(delta, WholeCall)]
    assert delta == WholeCall(
        "look", '{"city": "Oslo"}', "fc-1", {"origin": ORIGIN, "id": "fc-1", "thoughtSignature": "c2ln"}
    )


def test_several_calls_in_one_chunk_and_over_chunks_keep_their_order() -> None:
    message = joined(chunk(call("a", {"n": 1}, thoughtSignature="c2ln"), call("b")), chunk(call("c")), STOP)
    assert [(item.name, item.arguments) for item in message.calls] == [("a", '{"n": 1}'), ("b", "{}"), ("c", "{}")]
    assert [item.opaque for item in message.calls] == [{"origin": ORIGIN, "thoughtSignature": "c2ln"}, None, None]


@pytest.mark.parametrize("fields", [{}, {"id": ""}, {"id": None}])
def test_a13_an_empty_id_is_left_empty_for_the_one_who_makes_unique_ones(fields: dict[str, Any]) -> None:
    minted = iter(["m1", "m2"])
    joiner = Joiner(lambda: next(minted))
    for delta in decode(chunk({"functionCall": {"name": "a", **fields}}, call("b")), STOP):
        assert not isinstance(delta, WholeCall) or delta.id == ""
        joiner.add(delta)
    assert [item.id for item in joiner.message().calls] == ["m1", "m2"]


@pytest.mark.parametrize("given", [b"{}", b'{"name":"now"}', b'{"name":"now","args":null}'])
def test_a16_a_call_without_arguments_has_none(given: bytes) -> None:
    raw = b'{"candidates":[{"content":{"parts":[{"functionCall":' + given + b"}]}}]}"
    [item] = joined(raw, STOP).calls
    assert (item.arguments, item.parse()) == ("", {})


def test_arguments_are_the_bytes_that_came() -> None:
    """Numbers keep their form: nothing is decoded and written anew."""
    raw = b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1.0,"b":12345678901234567890123}}}]}}]}'
    assert joined(raw, STOP).calls[0].arguments == '{"a":1.0,"b":12345678901234567890123}'


def test_arguments_that_are_no_object_are_left_for_the_one_who_checks_them() -> None:
    assert [item.arguments for item in joined(chunk(call(arguments=[1])), STOP).calls] == ["[1]"]
    odd = chunk({"functionCall": {"name": 7, "args": '{"a":1}'}})
    assert [(item.name, item.arguments) for item in joined(odd, STOP).calls] == [("", '{"a":1}')]


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"])
def test_a_broken_call_is_asked_for_again_at_once_and_nothing_is_run(reason: str) -> None:
    end = {"candidates": [{"finishReason": reason, "finishMessage": "Malformed function call: print(look("}]}
    with pytest.raises(Garbled, match=r"print\(look\(") as caught:
        decode(chunk(call()), end)
    assert (caught.value.recovery, caught.value.code) == ("now", reason)


def test_a_missing_signature_is_the_requests_fault() -> None:
    with pytest.raises(Rejected):
        decode(chunk(finish="MISSING_THOUGHT_SIGNATURE"))


# --- thoughts and signatures


def test_thoughts_are_told_apart_from_text() -> None:
    parts = joined(chunk(text("Hm. ", thought=True)), chunk(text("So.", thought=True), text("Yes.")), STOP).parts
    assert parts == (Thinking(text="Hm. So.", origin=ORIGIN), Text("Yes."))


def test_c7_a_signature_stays_with_the_part_it_came_in() -> None:
    stream = [chunk(text("Hel")), chunk(text("lo", thoughtSignature="c2ln")), chunk(text("!")), STOP]
    one, two = joined(*stream).parts
    assert isinstance(one, Text)
    assert json.loads(one.signature or "") == {"origin": ORIGIN, "signature": "c2ln", "length": 2}
    assert two == Text("!")


def test_an_empty_part_at_the_end_may_hold_the_signature() -> None:
    [part] = joined(chunk(text("Hello")), chunk(text("", thoughtSignature="c2ln"), finish="STOP")).parts
    assert isinstance(part, Text)
    assert part.text == "Hello"
    assert json.loads(part.signature or "") == {"origin": ORIGIN, "signature": "c2ln"}


def test_a_signed_thought_without_words_is_redacted() -> None:
    deltas = decode(chunk(text("", thought=True, thoughtSignature="c2ln")), STOP)
    assert isinstance(deltas[0], ThinkingChunk)
    assert deltas[0].redacted
    closed = decode(chunk(text("Hm.", thought=True)), chunk(text("", thought=True, thoughtSignature="c2ln")), STOP)
    assert [delta.redacted for delta in closed if isinstance(delta, ThinkingChunk)] == [False, False]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"text": st.text(min_size=1, max_size=4)},
            optional={"thought": st.just(True), "thoughtSignature": st.sampled_from(["c2ln", "b25l"])},
        )
        | st.builds(lambda number: call("f", {"n": number}, thoughtSignature="Y2Fs"), st.integers(0, 9)),
        min_size=1,
        max_size=6,
    )
)
def test_what_was_decoded_goes_back_part_by_part(parts: list[dict[str, Any]]) -> None:
    """The whole way: stream, message, request. Unsigned thoughts stay here, unsigned texts side by side are one."""
    message = joined(*map(chunk, parts), STOP)
    contents = json.loads(encode(ModelRequest(messages=[message]), MODEL))["contents"]
    back = contents[0]["parts"] if contents else []
    signed = [part for part in parts if "thoughtSignature" in part]
    assert [part for part in back if "thoughtSignature" in part] == signed
    said = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
    assert "".join(part["text"] for part in back if "text" in part and not part.get("thought")) == said


def test_steps_of_the_servers_own_tools_are_kept_so_that_they_can_go_back() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}, "thoughtSignature": "c2ln"}
    message = joined(chunk(code, ran, text("It is 1.")), STOP)
    assert [type(part) for part in message.parts] == [Thinking, Thinking, Text]
    contents = json.loads(encode(ModelRequest(messages=[message]), MODEL))["contents"]
    assert contents == [{"role": "model", "parts": [code, ran, {"text": "It is 1."}]}]


def test_a_picture_in_a_reply_is_left_aside_with_a_warning() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    deltas = decode(chunk(picture, picture, text("x")), STOP)
    assert [delta.code for delta in deltas if isinstance(delta, WarningChunk)] == ["media_left_out"]


# --- errors


def test_a_blocked_prompt_is_filtered() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 3}}
    decoder = GeminiDecoder(request_id="req-1")
    assert decoder.feed(json.dumps(blocked).encode()) == [UsageChunk(Usage(input=3))]
    with pytest.raises(Filtered, match="PROHIBITED_CONTENT") as caught:
        decoder.finish()
    assert (caught.value.code, caught.value.recovery, caught.value.request_id) == (
        "PROHIBITED_CONTENT",
        "other_model",
        "req-1",
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}, Overloaded),
        ({"code": 429, "message": "Slow down.", "status": "RESOURCE_EXHAUSTED"}, RateLimited),
        ({"code": 403, "message": "Not you.", "status": "PERMISSION_DENIED"}, Unauthorized),
        ({"code": 400, "message": "Bad field.", "status": "INVALID_ARGUMENT"}, Rejected),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_d6_an_error_in_the_stream_is_a_typed_error(
    error: dict[str, Any], kind: type[ModelError], *, wrapped: bool
) -> None:
    payload = [{"error": error}] if wrapped else {"error": error}
    with pytest.raises(kind, match=error["message"]):
        decode(chunk(text("x")), payload)


def test_the_servers_wait_is_told() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "12s"}]
    with pytest.raises(RateLimited) as caught:
        decode({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x", "details": details}})
    assert caught.value.retry_after == 12


def test_data_that_is_not_json_ends_the_reply() -> None:
    with pytest.raises(Garbled, match="not JSON"):
        decode(chunk(text("x")), b'{"candidates": [', STOP)


# --- leniency


def test_a_list_of_chunks_is_a_stream_that_was_not_asked_for_as_events() -> None:
    assert joined([chunk(text("Hel")), chunk(text("lo"), finish="STOP")]).text == "Hello"


def test_a2_fields_that_are_missing_or_odd_do_not_end_a_reply() -> None:
    odd = [
        {},
        {"candidates": None},
        {"candidates": [None, 3, {}]},
        {"candidates": [{"content": {"role": "model"}}]},
        {"candidates": [{"content": {"parts": [None, {"text": 7}, {"text": "a", "thought": "no"}]}, "index": None}]},
        {"candidates": [{"content": {"parts": [{"text": "b", "brandNew": {}}]}, "avgLogprobs": "NaN"}]},
        {"candidates": [{"content": {"parts": [{"text": "other"}]}, "index": 1, "finishReason": "SAFETY"}]},
        {"usageMetadata": [], "promptFeedback": "none", "modelVersion": 3},
    ]
    message = joined(*odd, STOP)
    assert (message.text, message.stop_reason) == ("ab", "stop")


def test_half_a_character_is_replaced() -> None:
    raw = b'{"candidates":[{"content":{"parts":[{"text":"a\\ud83d"},{"functionCall":{"name":"f","args":{"b":"\\ude00"}}}]}}]}'
    message = joined(raw, STOP)
    assert message.parts == (Text("a\ufffd"), ToolCall(id="", name="f", arguments='{"b":"\ufffd"}'))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(max_size=5) | JSON,
        "thought": st.booleans() | JSON,
        "thoughtSignature": st.text(max_size=3) | JSON,
        "functionCall": st.fixed_dictionaries({}, optional={"name": JSON, "args": JSON, "id": JSON}) | JSON,
        "executableCode": JSON,
        "toolCall": JSON,
        "inlineData": JSON,
    },
)
CHUNKS = st.fixed_dictionaries(
    {},
    optional={
        "candidates": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "content": st.fixed_dictionaries({"parts": st.lists(PARTS | JSON, max_size=3) | JSON}) | JSON,
                    "finishReason": st.sampled_from(["STOP", "MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "X"]) | JSON,
                    "finishMessage": JSON,
                    "index": JSON,
                },
            )
            | JSON,
            max_size=2,
        )
        | JSON,
        "usageMetadata": st.dictionaries(st.sampled_from(["promptTokenCount", "thoughtsTokenCount", "x"]), JSON) | JSON,
        "promptFeedback": st.fixed_dictionaries({"blockReason": JSON}) | JSON,
        "modelVersion": JSON,
        "responseId": JSON,
        "error": st.none() | JSON,
    },
)


def survives(payloads: list[bytes], names: list[str]) -> None:
    """Feeds the payloads; nothing but a `ModelError` may come of it, and a message of what came can be sent."""
    decoder, joiner = GeminiDecoder(origin=ORIGIN), Joiner()
    try:
        for place, payload in enumerate(payloads):
            for delta in decoder.feed(payload, names[place % len(names)] if names else "message"):
                joiner.add(delta)
        for delta in decoder.finish():
            joiner.add(delta)
    except ModelError:
        pass
    encode(ModelRequest(messages=[joiner.message(provider="gemini", model=MODEL)]), MODEL)


@settings(max_examples=300, deadline=None)
@given(st.lists(CHUNKS | JSON, max_size=5), st.lists(st.sampled_from(["message", "error"]), max_size=2))
def test_no_json_ends_in_another_error(chunks: list[Any], names: list[str]) -> None:
    survives([json.dumps(item).encode() for item in chunks], names)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_no_bytes_end_in_another_error(payloads: list[bytes]) -> None:
    survives(payloads, [])


@pytest.mark.parametrize("depth", [300, 600, 900, 5000, 100_000])
@pytest.mark.parametrize("place", ['{"functionCall":{"args":@}}', '{"executableCode":{"a":@}}', '{"text":@}'])
def test_no_depth_ends_in_another_error(depth: int, place: str) -> None:
    nested = "[" * depth + "]" * depth
    part = place.replace("@", nested)
    survives([f'{{"candidates":[{{"content":{{"parts":[{part}]}}}}]}}'.encode()], [])
    survives([f'{{"candidates":[{{"content":{{"parts":[{part}]}}}}],"responseId":3}}'.encode()], [])
    survives([nested.encode(), f'{{"error":{nested}}}'.encode()], [])
