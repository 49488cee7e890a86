"""Whatever comes: deltas or a `ModelError`, and never an argument that no server sent."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import ModelError
from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.types.request import CallChunk, Delta

from .chat_stream import calls, fragment, message, only, text

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
