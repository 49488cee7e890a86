"""What becomes of stored data that this version does not know: it is kept, and written back as it was."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
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
from antiphon.types.events import ContextReplaced, MessageFinished, StoredEvent, TextDelta, ToolStarted
from antiphon.types.history import History
from antiphon.types.messages import AssistantMessage, CustomMessage, Message, UserMessage
from antiphon.types.usage import Usage

from .strategies import unknown

often = settings(deadline=None, max_examples=150)


def envelope(*messages: Any, version: int = 1) -> bytes:
    return json.dumps({"version": version, "messages": messages}).encode()


# What this version does not know


@given(raw=unknown(Message))
@example(raw={"type": "unknown", "raw": {"type": "user", "parts": []}})
@example(raw={"type": "later", "version": 9, "exact": True})
@often
def test_an_unknown_message_is_written_back_as_it_was(raw: dict[str, Any]) -> None:
    """An older version that opens and saves a file must not destroy what a newer one put there."""
    assert load_messages(envelope(raw)) == (Unknown(raw),)
    assert json.loads(dump_messages(load_messages(envelope(raw)))) == {"version": 1, "messages": [raw]}
    assert load_message(json.dumps(raw)) == Unknown(raw)
    assert json.loads(dump_message(Unknown(raw))) == raw


@given(raw=unknown(Part))
@example(raw={"type": "user", "parts": []})
@often
def test_an_unknown_part_is_written_back_as_it_was(raw: dict[str, Any]) -> None:
    """The message around it is still what it is."""
    stored = {"type": "user", "parts": [{"type": "text", "text": "see"}, raw]}
    assert load_messages(envelope(stored)) == (UserMessage(parts=(Text("see"), Unknown(raw))),)
    assert json.loads(dump_messages(load_messages(envelope(stored)))) == {"version": 1, "messages": [stored]}


@given(raw=unknown(StoredEvent), message=unknown(Message), part=unknown(Part))
@often
def test_an_unknown_event_is_written_back_as_it_was(
    raw: dict[str, Any], message: dict[str, Any], part: dict[str, Any]
) -> None:
    """Logs of newer versions can be shown, filtered and copied."""
    assert load_event(json.dumps(raw)) == Unknown(raw)
    assert json.loads(dump_event(Unknown(raw))) == raw
    inside = {"type": "turn_finished", "run_id": "r", "seq": 1, "turn": 1}
    inside |= {"message": {"type": "assistant", "parts": [part]}}
    around = {"type": "message_queued", "run_id": "r", "seq": 1, "message": message, "queue": "steering"}
    for event in (inside, around):
        assert json.loads(dump_event(load_event(json.dumps(event)))) == event


@pytest.mark.parametrize("escaped", [r'{"\u0074ype":"unknown","raw":{}}', r'{"type":"unkn\u006fwn","raw":{}}'])
def test_an_escape_hides_nothing(escaped: str) -> None:
    """JSON may spell any letter in two ways."""
    raw = {"type": "unknown", "raw": {}}
    assert load_message(escaped) == Unknown(raw)
    assert load_messages(f'{{"version":1,"messages":[{escaped}]}}') == (Unknown(raw),)
    assert load_event(escaped) == Unknown(raw)
    assert load_event(r'{"type":"later","v\u0065rsion":2}') == Unknown({"type": "later", "version": 2})


def test_what_only_looks_unknown_is_left_alone() -> None:
    """Details, custom data, opaque data and arguments belong to users, whatever they look like."""
    fake = {"type": "unknown", "raw": {"type": "text", "text": "x"}}
    message = AssistantMessage(
        parts=(ToolCall(id="c", name="n", arguments=json.dumps(fake), opaque=fake), Unknown({"type": "new"})),
        usage=Usage(extra=fake),
    )
    custom = CustomMessage(kind="k", data=[fake])
    event = ToolStarted(run_id="r", seq=1, call_id="c", name="n", arguments=fake)
    assert load_messages(dump_messages([message, custom])) == (message, custom)
    assert json.loads(dump_messages([custom]))["messages"] == [{"type": "custom", "kind": "k", "data": [fake]}]
    assert load_event(dump_event(event)) == event
    assert to_plain(event)["arguments"] == fake


def test_an_extra_key_of_this_version_is_ignored() -> None:
    """An application that adds a key of its own to stored messages still has messages."""
    assert load_messages(envelope({"type": "user", "parts": [], "mine": 1})) == (UserMessage(parts=()),)


# What a newer version wrote

FITS = {"type": "user", "parts": [{"type": "text", "text": "x"}], "id": "u"}
NEW_KEY = {"type": "user", "parts": [], "mood": "good"}
NEW_VALUE = {"type": "assistant", "parts": [], "stop_reason": "bored"}
NEW_IN_PART = {"type": "user", "parts": [{"type": "text", "text": "x", "bold": True}]}
NEW_IN_USAGE = {"type": "assistant", "parts": [], "usage": {"input": 1, "watts": 5}}
NO_TYPE = {"role": "user"}


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        (FITS, UserMessage.of("x", id="u")),
        (NEW_KEY, Unknown(NEW_KEY)),
        (NEW_VALUE, Unknown(NEW_VALUE)),
        (NEW_IN_PART, UserMessage(parts=(Unknown(NEW_IN_PART["parts"][0]),))),
        (NEW_IN_USAGE, Unknown(NEW_IN_USAGE)),
        (NO_TYPE, Unknown(NO_TYPE)),
    ],
)
def test_a_newer_version_loses_nothing(raw: dict[str, Any], read: Message) -> None:
    """What fits is read; of the rest the innermost object that can be kept is kept. So it stays, however often it is
    read and written."""
    assert load_messages(envelope(raw, version=2)) == (read,)
    saved = dump_messages([read])
    assert json.loads(saved)["messages"] == [raw]
    assert load_messages(saved) == (read,)
    assert dump_messages(load_messages(saved)) == saved


def test_defaults_that_are_spelled_out_are_no_loss() -> None:
    """Another writer need not leave them out as this one does."""
    raw = {"type": "user", "parts": [], "id": "", "created_at": None}
    assert load_messages(envelope(raw, version=2)) == (UserMessage(parts=()),)


def test_a_message_or_event_may_say_its_own_version() -> None:
    """Lines of a log have no envelope."""
    delta = {"type": "text_delta", "run_id": "r", "seq": 1, "message_id": "m", "text": "x"}
    assert load_event(json.dumps({**delta, "version": 2})) == TextDelta(run_id="r", seq=1, message_id="m", text="x")
    newer = {**delta, "version": 2, "language": "nl"}
    assert load_event(json.dumps(newer)) == Unknown(newer)
    assert load_event(json.dumps({**delta, "language": "nl"})) == load_event(json.dumps(delta))
    assert load_message(json.dumps({**NEW_KEY, "version": 2})) == Unknown({**NEW_KEY, "version": 2})


def test_an_event_around_a_newer_message_comes_back() -> None:
    """A run that goes on from a newer transcript tells of it in events of this version."""
    kept = (Unknown(NEW_KEY), UserMessage.of("x"), Unknown(NEW_VALUE), Unknown({}))
    event = ContextReplaced(run_id="r", seq=1, messages=kept)
    assert load_event(dump_event(event)) == event


class Record(Struct, frozen=True):
    messages: History


def test_a_record_of_a_newer_transcript_comes_back_exactly() -> None:
    """Without `exact` a resumed run would drop what a newer version wrote, or not start at all."""
    record = Record(messages=History([Unknown(NEW_KEY), Unknown(NEW_VALUE), UserMessage.of("x")]))
    assert from_plain(to_plain(record), Record, exact=True) == record
    with pytest.raises(UsageError, match="bored"):
        from_plain(to_plain(record), Record)


def test_an_unknown_begins_as_the_codec_expects() -> None:
    """The search for unknown kinds in what was written stands on msgspec's writing the tag first."""
    event = MessageFinished(run_id="r", seq=1, message=Unknown({"a": 1}))
    assert codec.UNKNOWN in msgspec.json.encode(event)
    assert codec.UNKNOWN not in msgspec.json.encode(UserMessage.of('{"type":"unknown","raw":{}}'))
