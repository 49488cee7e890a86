"""Whatever comes: the same deltas however the bytes are cut, and nothing but deltas or a `ModelError`."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import ModelError
from antiphon.providers.anthropic.decode import AnthropicDecoder

from .anthropic_stream import EVERYTHING, decode, decode_bytes, in_bytes

NAMES = st.lists(st.sampled_from(["message", "error", "ping", "content_block_delta", "message_stop"]), max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 10**400) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
BLOCK = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"]) | JSON,
        **dict.fromkeys(("text", "thinking", "signature", "data", "id", "name", "input"), JSON),
    },
)
DELTA = st.fixed_dictionaries(
    {},
    optional={
        "type": JSON,
        **dict.fromkeys(("text", "partial_json", "thinking", "signature", "stop_reason", "stop_details"), JSON),
    },
)
EVENTS = (
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(
                ["message_start", "content_block_start", "content_block_delta", "content_block_stop",
                 "message_delta", "message_stop", "ping", "message", "error", "sparkle"]
            ) | JSON,
            "index": st.integers(-2, 3) | JSON,
            "delta": DELTA | JSON,
            "content_block": BLOCK | JSON,
            "content": st.lists(BLOCK | JSON, max_size=2) | JSON,
            "message": JSON,
            "usage": st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "output_tokens_details"]), JSON)
            | JSON,
            "error": JSON,
        },
    )
    | JSON
)  # fmt: skip


def survive(pieces: Sequence[bytes], *, whole: bool = True, names: Sequence[str] = ()) -> None:
    """Decode; only a `ModelError` may come out. `whole`: the pieces are those of a stream, else each is an event's data."""
    try:
        if whole:
            decode_bytes(pieces)
            return
        decoder = AnthropicDecoder()
        for number, piece in enumerate(pieces):
            decoder.feed(piece, names[number] if number < len(names) else "message")
        decoder.finish()
    except ModelError:
        pass


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_d04_any_cut_of_the_bytes_gives_the_same_deltas(data: st.DataObject) -> None:
    stream = in_bytes(EVERYTHING)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=30)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert decode_bytes(pieces) == decode(EVERYTHING)


@settings(max_examples=900, deadline=None)
@given(st.data())
def test_a_damaged_stream_gives_deltas_or_a_model_error(data: st.DataObject) -> None:
    """Nothing else may come out of a decoder: the engine retries by the kind of the error."""
    stream = bytearray(in_bytes(EVERYTHING))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(stream)))
        size = data.draw(st.integers(0, 40))
        stream[at : at + size] = data.draw(st.binary(max_size=8))
    survive([bytes(stream)])


@settings(max_examples=700, deadline=None)
@given(st.data())
def test_any_json_gives_deltas_or_a_model_error(data: st.DataObject) -> None:
    events = data.draw(st.lists(EVENTS, max_size=5))
    survive([json.dumps(event).encode() for event in events], whole=False, names=data.draw(NAMES))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5), st.booleans())
def test_any_bytes_give_deltas_or_a_model_error(pieces: list[bytes], whole: bool) -> None:
    survive(pieces, whole=whole)


@pytest.mark.parametrize("depth", [500, 900, 100_000])
def test_deep_nesting_is_no_way_out(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    start_of_call = b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","input":%b}}' % deep
    lone = b'{"type":"content_block_delta","index":0,"delta":{"text":"\\ud800","partial_json":%b}}' % deep
    for payload in (deep, start_of_call, lone):
        survive([payload], whole=False)
