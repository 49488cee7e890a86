"""Server-sent events, both ways."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import Garbled, UsageError
from antiphon.wire.sse import SseEvent, SseParser, encode_comment, encode_event


def parse(*pieces: bytes, max_event: int = 2**20) -> list[SseEvent]:
    parser = SseParser(max_event=max_event)
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.finish()


def data_of(*pieces: bytes) -> list[bytes]:
    return [event.data for event in parse(*pieces)]


def reference(stream: bytes) -> list[SseEvent]:
    """The standard's algorithm, line by line, over the whole stream; empty data dropped, the rest at the end kept."""
    events: list[SseEvent] = []
    data: list[bytes] = []
    name = event_id = retry = None
    for line in [*re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf")), b""]:
        field, value = re.fullmatch(rb"([^:]*)(?:: ?(.*))?", line, re.DOTALL).groups()  # type: ignore[union-attr] - matches every line
        value = value or b""
        match field:
            case b"" if line == b"":
                if b"\n".join(data):
                    events.append(SseEvent(b"\n".join(data), name or "message", event_id, retry))
                data, name, event_id, retry = [], None, None, None
            case b"data":
                data.append(value)
            case b"event":
                name = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                event_id = value.decode(errors="replace")
            case b"retry" if re.fullmatch(rb"[0-9]{1,15}", value):
                retry = int(value)
            case _:
                pass
    return events


FIELDS = st.sampled_from([b"data", b"event", b"id", b"retry", b"", b"foo", b"dat", b"data x", b"\xef\xbb\xbfdata"])
VALUES = st.sampled_from(
    [b"", b"x", b" x", b"1", b"007", b"a:b", b'{"a":1}', "é".encode(), b"\xff", b"a\0", b"9" * 5000]
)
COLONS = st.sampled_from([b": ", b":", b"", b"::", b":  "])
ENDS = st.sampled_from([b"\n", b"\n", b"\n\n", b"\r\n", b"\r", b"\r\n\r\n", b"\n\r\n", b"\r\r", b"\n\n\n"])
LINES = st.tuples(FIELDS, COLONS, VALUES, ENDS).map(b"".join)
USUAL = st.sampled_from(
    [b'data: {"a":1}\n\n', b"event: e\ndata: x\n\n", b"data: y\r\n\r\n", b": ping\n\n", b"data: \n\n"]
)
STREAMS = st.tuples(
    st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef", b"\n"]),
    st.lists(LINES | USUAL | ENDS, max_size=12).map(b"".join),
    st.sampled_from([b"", b"data: cut", b"\r"]),
).map(b"".join)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    """`stream` in pieces; places beyond its end make empty pieces."""
    edges = [0, *sorted(min(place, len(stream)) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


class TestReading:
    @given(STREAMS, st.lists(st.integers(0, 120), max_size=12))
    def test_any_cut_of_any_stream_gives_the_events_of_the_standard(self, stream: bytes, places: list[int]) -> None:
        """A network cuts where it likes: in a line end, in a character, in the byte order mark."""
        assert parse(*cut(stream, places)) == reference(stream)

    @given(STREAMS)
    def test_a_stream_may_come_byte_by_byte(self, stream: bytes) -> None:
        assert parse(*cut(stream, list(range(len(stream))))) == reference(stream)

    def test_a_plain_stream_gives_its_payloads_undecoded(self) -> None:
        assert parse(b'data: {"a":1}\n\ndata: [DONE]\n\n') == [SseEvent(b'{"a":1}'), SseEvent(b"[DONE]")]

    def test_names_are_told_and_fall_back_to_message(self) -> None:
        stream = (
            b"event: delta\ndata: 1\n\nevent: delta\ndata: 2\n\ndata: 3\n\nevent: \ndata: 4\n\ndata: 5\nevent: late\n\n"
        )
        assert [(event.event, event.data) for event in parse(stream)] == [
            ("delta", b"1"),
            ("delta", b"2"),
            ("message", b"3"),
            ("message", b"4"),
            ("late", b"5"),
        ]

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    def test_every_line_end_of_the_standard_is_one(self, end: bytes) -> None:
        assert data_of(b"data: a" + end + b"data: b" + end + end + b"data: c" + end + end) == [b"a\nb", b"c"]

    def test_an_lf_after_a_cr_of_the_chunk_before_is_no_second_line_end(self) -> None:
        """Read as two line ends it would cut the event in two."""
        assert data_of(b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n") == [b"a\nb"]

    def test_an_event_is_handed_out_with_its_last_byte(self) -> None:
        """A reader that waited for the LF after a final CR would hold the token back until the next one."""
        parser = SseParser()
        assert parser.feed(b"data: a\r\n\r") == [SseEvent(b"a")]
        assert parser.feed(b"\n") == []
        assert parser.feed(b"data: b\n\n") == [SseEvent(b"b")]

    def test_a_character_cut_in_two_is_whole_again(self) -> None:
        stream = "data: é\n\n".encode()
        assert data_of(stream[:7], stream[7:]) == ["é".encode()]

    def test_one_space_after_the_colon_goes(self) -> None:
        assert data_of(b"data:a\n\n", b"data: a\n\n", b"data:  a\n\n") == [b"a", b"a", b" a"]

    def test_comments_are_ignored_at_any_length_and_place(self) -> None:
        """Servers keep a connection open with them, also in the middle of an event."""
        assert data_of(b": OPEN\n\n:\n\ndata: a\n:" + b"x" * 100_000 + b"\ndata: b\n\n:\n") == [b"a\nb"]

    @pytest.mark.parametrize(
        "block", [b"data:", b"data: ", b"data", b"event: ping", b"event: ping\ndata: ", b"id: 1", b"retry: 5"]
    )
    def test_a_block_without_data_is_no_event(self, block: bytes) -> None:
        """Heartbeats look like this; a reader of JSON must not get an empty text."""
        assert data_of(b"data: a\n\n" + block + b"\n\ndata: b\n\n") == [b"a", b"b"]

    def test_an_empty_line_of_data_in_an_event_is_kept(self) -> None:
        assert data_of(b"data\ndata: b\n\n") == [b"\nb"]

    def test_ids_and_retries_are_told_and_the_last_ones_kept(self) -> None:
        """A block without data sets them too: servers send one first so that a client can reconnect."""
        parser = SseParser()
        assert parser.feed(b"id: 7\nretry: 1500\ndata: a\n\ndata: b\n\n") == [
            SseEvent(b"a", "message", "7", 1500),
            SseEvent(b"b"),
        ]
        parser.feed(b"id: 8\ndata:\n\nretry: 20\n\n")
        assert (parser.last_event_id, parser.retry) == ("8", 20)

    def test_a_bad_id_or_retry_is_ignored(self) -> None:
        parser = SseParser()
        assert parser.feed(b"id: 1\0\nretry: -1\nretry: 1.5\nretry: " + b"9" * 9999 + b"\ndata: a\n\n") == [
            SseEvent(b"a")
        ]
        assert (parser.last_event_id, parser.retry) == ("", None)

    def test_a_byte_order_mark_is_skipped_at_the_start_alone(self) -> None:
        mark = b"\xef\xbb\xbf"
        assert data_of(mark[:1], mark[1:2], mark[2:] + b"data: a\n\n") == [b"a"]
        assert data_of(b"data: a\n\n" + mark + b"data: b\n\n") == [b"a"]

    def test_what_is_left_at_the_end_is_handed_out_once(self) -> None:
        """Servers leave out the last blank line; the standard would drop the event, and with it the usage or the end."""
        parser = SseParser()
        assert parser.feed(b"data: a\n\nevent: end\ndata: [DO") == [SseEvent(b"a")]
        assert parser.finish() == [SseEvent(b"[DO", "end")]
        assert parser.finish() == []

    def test_a_finished_parser_starts_anew(self) -> None:
        parser = SseParser()
        parser.feed(b"data: a\r")
        parser.finish()
        assert parser.feed(b"\xef\xbb\xbfdata: b\n\n") == [SseEvent(b"b")]


class TestLimit:
    @pytest.mark.parametrize("size", [1, 7, 1000])
    def test_an_event_larger_than_the_limit_is_garbled_however_it_comes(self, size: int) -> None:
        """A server that never ends an event must not fill the memory."""
        stream = b"data: a\n\ndata: " + b"x" * 95 + b"\n\n"
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        with pytest.raises(Garbled, match="larger than 100 bytes; raise `max_event`"):
            parse(*pieces, max_event=100)

    @pytest.mark.parametrize("size", [1, 7, 1000])
    @pytest.mark.parametrize("end", [b"\n", b"\r\n"])
    def test_an_event_of_just_the_limit_passes_however_it_comes(self, size: int, end: bytes) -> None:
        block = b"data: " + b"x" * 87 + end + b"id: 12"
        stream = (end * 3 + block + end * 2) * 3
        pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
        assert [len(event.data) for event in parse(*pieces, max_event=100)] == [87, 87, 87]

    def test_many_small_events_in_one_read_pass(self) -> None:
        assert len(parse(b"data: x\n\n" * 100, max_event=10)) == 100


class TestWriting:
    @given(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r")).filter(bool),
        st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1),
        st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0")),
        st.none() | st.integers(0, 10**14),
    )
    def test_what_is_written_is_read_again(
        self, data: str, event: str | None, event_id: str | None, retry: int | None
    ) -> None:
        written = encode_event(data, event=event, id=event_id, retry=retry)
        assert parse(written) == [SseEvent(data.encode(), event or "message", event_id, retry)]

    def test_plain_events_have_the_usual_bytes(self) -> None:
        assert encode_event(b'{"a":1}') == b'data: {"a":1}\n\n'
        assert encode_event("x\r\ny\rz", event="e", id="1", retry=9) == (
            b"event: e\nid: 1\nretry: 9\ndata: x\ndata: y\ndata: z\n\n"
        )

    def test_a_comment_is_no_event(self) -> None:
        assert encode_comment() == b": \n\n"
        assert parse(encode_event("a") + encode_comment("two\nlines") + encode_comment() + encode_event("b")) == [
            SseEvent(b"a"),
            SseEvent(b"b"),
        ]

    def test_what_would_break_the_stream_is_refused(self) -> None:
        """A line break in a name would let whoever chose the name write fields of his own."""
        for wrong in ({"event": "a\ndata: evil"}, {"id": "a\rb"}, {"id": "a\0"}, {"retry": -1}):
            with pytest.raises(UsageError):
                encode_event("x", **wrong)  # type: ignore[arg-type] - one of several keyword types
