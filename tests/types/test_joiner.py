"""Deltas to a message."""

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import Joiner, join
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)
from antiphon.types.usage import Usage

often = settings(deadline=None, max_examples=200)


def joined(*deltas: Delta, mint: bool = False) -> Joiner:
    numbers = count(1)
    joiner = Joiner((lambda: f"call_{next(numbers)}") if mint else None)
    for delta in deltas:
        joiner.add(delta)
    return joiner


def test_fragments_become_parts_in_the_order_in_which_they_came() -> None:
    """A model may think, speak, and think again."""
    assert joined(
        ThinkingChunk("hm"), ThinkingChunk("m"), TextChunk("a"), TextChunk("b"), ThinkingChunk("so"), TextChunk("c")
    ).parts("p:m") == (
        Thinking(text="hmm", origin="p:m"),
        Text("ab"),
        Thinking(text="so", origin="p:m"),
        Text("c"),
    )


def test_a_signature_closes_its_part() -> None:
    """It is the proof of exactly this text: words added behind it would break it."""
    joiner = joined(
        TextChunk("a"), TextChunk("", "s1"), TextChunk("b"),
        ThinkingChunk("x"), ThinkingChunk(signature="s2"), ThinkingChunk("y"),
    )  # fmt: skip
    assert joiner.parts() == (Text("a", "s1"), Text("b"), Thinking(text="x", signature="s2"), Thinking(text="y"))


def test_a_redacted_thought_stands_alone() -> None:
    """It goes back as it came, not mixed with readable thoughts."""
    joiner = joined(
        ThinkingChunk("x"), ThinkingChunk(signature="e1", redacted=True), ThinkingChunk(signature="e2", redacted=True)
    )
    assert joiner.parts() == (
        Thinking(text="x"),
        Thinking(signature="e1", redacted=True),
        Thinking(signature="e2", redacted=True),
    )


def test_empty_text_and_thinking_are_nothing() -> None:
    """Servers send an empty text ahead of calls. An empty part would shift the places of all that follow."""
    joiner = joined(TextChunk(""), ThinkingChunk(""))
    assert joiner.empty
    assert joiner.text(TextChunk("a")) == 0
    assert joiner.text(TextChunk("")) == 0
    assert joiner.parts() == (Text("a"),)
    assert not joiner.empty


def test_calls_grow_side_by_side_and_stand_in_the_order_of_their_keys() -> None:
    """Some servers interleave the fragments of parallel calls."""
    joiner = joined(
        TextChunk("go"),
        CallChunk(1, "b", "write", '{"x"'),
        CallChunk(0, "a", "read", "{"),
        CallChunk(1, arguments=":1}"),
        CallChunk(0, arguments="}", opaque={"s": 1}),
        CallChunk(0, opaque={"t": 2}),
    )
    assert joiner.parts() == (
        Text("go"),
        ToolCall(id="a", name="read", arguments="{}", opaque={"s": 1, "t": 2}),
        ToolCall(id="b", name="write", arguments='{"x":1}'),
    )
    assert joiner.open_call(1) == ("b", "write")


def test_what_names_a_call_is_set_once() -> None:
    """Servers repeat the id and the name in every fragment, or send them late."""
    joiner = joined(CallChunk(0, "a", "read"), CallChunk(0, "a", "read", "{"), CallChunk(0, "x", "y", "}"))
    assert joiner.parts() == (ToolCall(id="a", name="read", arguments="{}"),)
    assert joined(CallChunk(0), CallChunk(0, "a", "read")).parts() == (ToolCall(id="a", name="read", arguments=""),)


def test_whole_calls_take_the_next_key() -> None:
    """Arguments that come as an object are encoded once; those that come as text stay as they are."""
    joiner = Joiner()
    assert joiner.whole(WholeCall("read", {"n": 1}, "a")) == CallChunk(0, "a", "read", '{"n":1}')
    assert joiner.whole(WholeCall("read", "{ }", "b", {"s": 1})) == CallChunk(1, "b", "read", "{ }", {"s": 1})
    assert joiner.parts() == (
        ToolCall(id="a", name="read", arguments='{"n":1}'),
        ToolCall(id="b", name="read", arguments="{ }", opaque={"s": 1}),
    )


def test_empty_and_repeated_ids_are_replaced_at_once() -> None:
    """Results find their calls by id; an event that shows the first id could not be matched later."""
    joiner = joined(
        CallChunk(0, "", "read"), CallChunk(1, "a", "read"), CallChunk(2, "a", "read"), CallChunk(3, "call_1", "read"),
        CallChunk(0, "late", arguments="{}"), mint=True,
    )  # fmt: skip
    assert [joiner.open_call(key)[0] for key in range(4)] == ["call_1", "a", "call_2", "call_3"]
    assert [part.id for part in joiner.parts() if isinstance(part, ToolCall)] == ["call_1", "a", "call_2", "call_3"]


def test_the_reply_so_far_can_be_looked_at() -> None:
    """At every delta, without ending anything."""
    joiner = joined(ThinkingChunk("hm"), TextChunk("a"), CallChunk(0, "c", "read", '{"p'), TextChunk("b"))
    assert joiner.partial_text() == "ab"
    assert joiner.partial_arguments("c") == '{"p'
    assert joiner.partial_arguments("x") is None
    joiner.add(CallChunk(0, arguments='":1}'))
    assert joiner.partial_arguments("c") == '{"p":1}'


def test_the_message_tells_how_the_reply_ended() -> None:
    """The model that served may be another than the one that was asked; signatures go back to the one asked."""
    joiner = joined(
        ThinkingChunk("hm"),
        TextChunk("a"),
        UsageChunk(Usage(input=1)),
        WarningChunk("odd", "text"),
        UsageChunk(Usage(input=2, output=3)),
        FinishChunk("length", response_id="r", model="m-2"),
    )
    assert joiner.message(provider="p", model="m", message_id="i", created_at=1.5) == AssistantMessage(
        parts=(Thinking(text="hm", origin="p:m"), Text("a")),
        stop_reason="length",
        usage=Usage(input=2, output=3),
        provider="p",
        model="m-2",
        response_id="r",
        id="i",
        created_at=1.5,
    )


@pytest.mark.parametrize("given", [None, "aborted"])
def test_a_reply_without_its_end_is_an_error_unless_said_otherwise(given: str | None) -> None:
    """A stream that was cut must not look finished."""
    message = joined(TextChunk("a")).message(stop_reason=given, error="lost")  # pyright: ignore[reportArgumentType] - a literal
    assert (message.stop_reason, message.error) == (given or "error", "lost")


def test_join_makes_the_message_of_a_list() -> None:
    """For tests and for providers that have it all at once."""
    assert join([TextChunk("a"), TextChunk("b"), FinishChunk()]) == AssistantMessage(parts=(Text("ab"),))


TEXTS = st.sampled_from(["", "a", "bc"])
MARKS = st.none() | st.sampled_from(["s", "t"])
CHUNKS = st.lists(
    st.builds(TextChunk, TEXTS, MARKS)
    | st.builds(ThinkingChunk, TEXTS, MARKS, st.booleans())
    | st.builds(CallChunk, st.integers(0, 3), st.sampled_from(["", "x", "y"]), TEXTS, TEXTS),
    max_size=12,
)


@given(CHUNKS)
@often
def test_a_place_that_was_told_is_where_the_part_is(chunks: list[TextChunk | ThinkingChunk | CallChunk]) -> None:
    """Viewers put a delta to the part that its event names; the finished message must have it there."""
    joiner = Joiner()
    told: dict[int, str] = {}
    for chunk in chunks:
        if isinstance(chunk, TextChunk) and (chunk.text or chunk.signature):
            place = joiner.text(chunk)
            told[place] = told.get(place, "") + chunk.text
        elif isinstance(chunk, ThinkingChunk) and (chunk.text or chunk.signature or chunk.redacted):
            place = joiner.thinking(chunk)
            told[place] = told.get(place, "") + chunk.text
        else:
            joiner.add(chunk)
    parts = joiner.parts()
    assert {place: part.text for place, part in enumerate(parts) if isinstance(part, Text | Thinking)} == told
    assert joiner.partial_text() == "".join([part.text for part in parts if isinstance(part, Text)])


@given(CHUNKS)
@often
def test_minted_ids_tell_all_calls_apart(chunks: list[Delta]) -> None:
    """Within a reply an id means one call."""
    ids = [part.id for part in joined(*chunks, mint=True).parts() if isinstance(part, ToolCall)]
    assert len(ids) == len(set(ids))
    assert all(ids)
