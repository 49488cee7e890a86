"""JSON text of messages, events and a loop's own records, and what becomes of what this version does not know."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from antiphon.errors import UsageError
from antiphon.types import codec
from antiphon.types.codec import (
    dump_event,
    dump_message,
    dump_messages,
    from_plain,
    load_event,
    load_message,
    load_messages,
    to_plain,
)
from antiphon.types.content import Part, Text, ToolCall, Unknown
from antiphon.types.events import Event, StoredEvent, TextDelta
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, CustomMessage, Message, ToolResultMessage, UserMessage
from antiphon.types.usage import Usage

from .strategies import JSON, members, of, tag_of

often = settings(deadline=None, max_examples=200)
seldom = settings(deadline=None, max_examples=40)

SPOKEN = (
    UserMessage.of("hello", id="u", created_at=1.5),
    AssistantMessage(parts=(Text("hm"), ToolCall(id="c", name="read", arguments='{"a":1}')), usage=Usage(input=3)),
    ToolResultMessage(call_id="c", tool_name="read", parts=(Text("1"),), details={"n": [1, None]}),
)


# There and back


@pytest.mark.parametrize("kind", members(Message), ids=tag_of)
@given(data=st.data())
@seldom
def test_every_message_comes_back(kind: type, data: st.DataObject) -> None:
    """A field that does not survive storage is lost on the first restart."""
    message = data.draw(of(kind))
    assert load_message(dump_message(message)) == message
    assert load_messages(dump_messages([message, message])) == (message, message)


@pytest.mark.parametrize("kind", members(Part), ids=tag_of)
@given(data=st.data())
@seldom
def test_every_part_comes_back(kind: type, data: st.DataObject) -> None:
    """Signatures and opaque data go back to the provider, to the letter."""
    message = UserMessage(parts=(data.draw(of(kind)),))
    assert load_messages(dump_messages([message])) == (message,)


@pytest.mark.parametrize("kind", members(StoredEvent), ids=tag_of)
@given(data=st.data())
@seldom
def test_every_event_comes_back(kind: type, data: st.DataObject) -> None:
    """What a person saw is a fold of events, also of those read back."""
    event = data.draw(of(kind))
    line = dump_event(event)
    assert b"\n" not in line
    assert load_event(line) == event


@given(of(tuple[Message, ...]))
@seldom
def test_every_transcript_comes_back(messages: tuple[Message, ...]) -> None:
    """Kinds that nobody here knows stand among the others."""
    stored = dump_messages(messages)
    assert load_messages(stored) == messages
    assert load_messages(stored.decode()) == messages
    assert dump_messages(load_messages(stored)) == stored


def test_the_unions_have_all_their_kinds() -> None:
    """The tests above are over the unions; one that lost a kind would pass them."""
    assert set(members(StoredEvent)) == set(get_args(Event))
    assert len(members(Message)) == 5
    assert len(members(Part)) == 5


def test_a_history_is_a_list_of_messages() -> None:
    """A run's own transcript is one; nobody should have to copy it first."""
    assert dump_messages(History(SPOKEN)) == dump_messages(SPOKEN) == dump_messages(iter(SPOKEN))


def test_the_envelope_says_its_version() -> None:
    """The first thing a later version must know is that this is an earlier one."""
    assert json.loads(dump_messages(SPOKEN[:1])) == {
        "version": 1,
        "messages": [
            {"type": "user", "parts": [{"type": "text", "text": "hello"}], "id": "u", "created_at": 1.5},
        ],
    }


def test_known_data_is_read_and_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for unknown kinds costs ten times as much as the reading itself."""
    stored, line = dump_messages(SPOKEN), dump_event(TextDelta(run_id="r", seq=1, message_id="m", text="x"))

    def slow(*_: Any, **__: Any) -> Any:
        pytest.fail("the slow path was taken")

    for name in ("_parse", "_convert", "_unwrap"):
        monkeypatch.setattr(codec, name, slow)
    assert dump_messages(load_messages(stored)) == stored
    assert dump_event(load_event(line)) == line


# A loop's own records


class Slot(Struct, frozen=True, omit_defaults=True):
    call: ToolCall
    result: ToolResultMessage | None = None


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    messages: History
    queue: tuple[Message, ...] = ()
    batch: dict[str, Slot] = {}
    pair: tuple[int, Message] | None = None
    again: "Record | None" = None
    free: Any = None


def test_a_record_with_messages_inside_comes_back() -> None:
    """The state of a run is such a record."""
    later = Unknown({"type": "later", "raw": 1})
    result = ToolResultMessage(call_id="c", tool_name="n", parts=(later,))
    inner = Record(messages=History([later]))
    record = Record(
        messages=History([*SPOKEN, later]),
        queue=(later, SPOKEN[0]),
        batch={"c": Slot(ToolCall(id="c", name="n"), result)},
        pair=(1, later),
        again=inner,
        free={"type": "unknown", "raw": {}},
    )
    plain = to_plain(record)
    assert plain["messages"][-1] == plain["queue"][0] == plain["pair"][1] == later.raw
    assert plain["batch"]["c"]["result"]["parts"] == [later.raw]
    assert plain["free"] == record.free
    before = json.dumps(plain)
    assert from_plain(plain, Record) == record
    assert from_plain(plain, Record, exact=True) == record
    assert json.dumps(plain) == before
    assert type(from_plain(plain, Record).messages) is History


def test_plain_data_may_be_lists_and_dicts_of_records() -> None:
    """A union, a list or a dict is a type as good as a struct."""
    later = Unknown({"type": "later"})
    assert to_plain([later, {"a": later}]) == [{"type": "later"}, {"a": {"type": "later"}}]
    assert to_plain(History([later])) == [{"type": "later"}]
    assert from_plain([{"type": "later"}], list[Message]) == [later]
    assert from_plain({"a": {"type": "later"}}, dict[str, Message]) == {"a": later}


@given(JSON)
@often
def test_plain_json_stays_what_it_is(data: Any) -> None:
    """Nothing in a user's own data means anything here."""
    assert to_plain(data) == data
    assert from_plain(data, Any) == data


# Strings that are no text, numbers that are no numbers


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\ud83d\ude00é\ude00", "\ufffd😀é\ufffd"),
    ],
)
def test_halves_of_pairs_are_mended(text: str, kept: str) -> None:
    """UTF-8 has no way to write them. Half an emoji must not cost the transcript, nor vanish without a trace."""
    message = UserMessage(parts=(Text(text), Unknown({"type": "later", text: text})))
    read = UserMessage(parts=(Text(kept), Unknown({"type": "later", kept: kept})))
    assert load_messages(dump_messages([message])) == (read,)
    assert load_message(dump_message(message)) == read
    assert to_plain([message])[0]["parts"][0]["text"] == kept
    foreign = json.dumps({"type": "user", "parts": [{"type": "text", "text": text}]})
    assert load_message(foreign) == load_message(foreign.encode()) == UserMessage.of(kept)
    raw = f'{{"type":"user","parts":[{{"type":"text","text":"{text}"}}]}}'
    assert load_message(raw) == UserMessage.of(kept)
    event = TextDelta(run_id="r", seq=1, message_id="m", text=text)
    assert load_event(dump_event(event)) == TextDelta(run_id="r", seq=1, message_id="m", text=kept)


@given(st.text(st.characters() | st.characters(categories=["Cs"]), max_size=6))
@often
def test_no_text_stops_the_codec(text: str) -> None:
    """Whatever a model or a tool says is stored; what is text stays as it is."""
    message = ToolResultMessage(call_id=text, tool_name=text, parts=(Text(text),), details={text: [text]})
    read = load_message(dump_message(message))
    assert isinstance(read, ToolResultMessage)
    assert read.text == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert load_message(dump_message(read)) == read


def test_numbers_that_are_no_json_become_null() -> None:
    """Text that only some parsers read is no storage."""
    message = CustomMessage(kind="k", data=[float("nan"), float("inf"), 1.5])
    assert load_message(dump_message(message)) == CustomMessage(kind="k", data=[None, None, 1.5])


# What is refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "not JSON"),
        (b"{'version': 1}", "not JSON"),
        (b'\xff{"version":1,"messages":[]}', "not JSON"),
        (b'{"version":1,"messages":[NaN]}', "not JSON"),
        (b'{"version":1,"messages":["\\ud800",NaN]}', "not JSON"),
        (b'{"version":1,"messages":' + b"[" * 5000, "nested too deeply"),
        (b"[]", "got `array`"),
        (b'{"messages":[]}', "`version`"),
        (b'{"version":"1","messages":[]}', r"`\$.version`"),
        (b'{"version":true,"messages":[]}', r"`\$.version`"),
        (b'{"version":0,"messages":[]}', "no such version: 0"),
        (b'{"version":1}', "`messages`"),
        (b'{"version":2,"messages":[1]}', r"`\$.messages\[0\]`"),
        (b'{"version":1,"messages":[{"role":"user"}]}', r"`type` - at `\$.messages\[0\]`"),
        (b'{"version":1,"messages":[{"type":5}]}', r"`\$.messages\[0\].type`"),
        (b'{"version":1,"messages":[{"type":"user","parts":[{"type":"text"}]}]}', r"`\$.messages\[0\].parts\[0\]`"),
    ],
)
def test_what_is_no_transcript_is_refused(text: bytes, said: str) -> None:
    """The error says what was expected, and where it was not."""
    with pytest.raises(UsageError, match=said) as caught:
        load_messages(text)
    assert 'expected the JSON object {"version": 1, "messages": [...]}' in str(caught.value)


@pytest.mark.parametrize("text", [b"{", b"[]", b"1", b'{"type":"user"}', b'{"type":"text_delta"}', b'{"id":"x"}'])
def test_what_is_no_message_or_event_is_refused(text: bytes) -> None:
    """A damaged line is not a kind that nobody knows."""
    if b"text_delta" not in text:
        with pytest.raises(UsageError, match="expected the JSON object of a message"):
            load_message(text)
    if b"user" not in text:
        with pytest.raises(UsageError, match="expected the JSON object of an event"):
            load_event(text)


def test_what_is_no_json_is_not_stored() -> None:
    """Found when it is written, not when it is wanted."""
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for data in (object(), {(1, 2): 3}, deep):
        with pytest.raises(UsageError, match="cannot be stored"):
            dump_messages([CustomMessage(kind="k", data=data)])
    with pytest.raises(UsageError, match="not a message: dict, str"):
        dump_messages([{"type": "user", "parts": []}, "hello"])  # pyright: ignore[reportArgumentType] - the fault under test
    with pytest.raises(UsageError, match="does not fit"):
        from_plain([1], list[Message])
