"""Server-sent events, read and written without I/O.

The format is that of the WHATWG HTML standard, section 9.2, "Server-sent events". Two things differ on purpose, because
servers of models differ: an event whose data is empty is no event (servers send it as a heartbeat), and what is left
when the stream ends is handed out by `finish` (servers leave out the last blank line).
"""

from msgspec import Struct

from antiphon.errors import Garbled, UsageError

__all__ = ["DEFAULT_MAX_EVENT", "SseEvent", "SseParser", "encode_comment", "encode_event"]

DEFAULT_MAX_EVENT = 32 * 1024 * 1024
"""Bytes that one event may have. Generous: an event may carry a picture as base64 text."""

_MARK = b"\xef\xbb\xbf"
_MESSAGE = "message"


class SseEvent(Struct, frozen=True, gc=False):
    """One event. `data` is undecoded, so that a JSON decoder can have it as it came.

    `event` is the name, "message" when none was sent. `id` and `retry` (milliseconds) are those of this event alone;
    the parser keeps the last of each.
    """

    # Positional, data first: a read of many plain events becomes one `map` over their payloads.
    data: bytes
    event: str = _MESSAGE
    id: str | None = None
    retry: int | None = None


class SseParser:
    """Makes events out of the bytes of one stream, however they were cut.

    Feed it what was read, then call `finish`. `last_event_id` and `retry` (milliseconds) hold the last of each that the
    stream named, with an event or without; a client that reconnects sends and obeys them.

    `max_event` bounds the bytes between two blank lines, comments included, each line end counted as one. Beyond it
    `feed` raises `Garbled`; the parser is of no use afterwards.
    """

    __slots__ = ("_after_cr", "_fresh", "_held", "_held_size", "_mark", "last_event_id", "max_event", "retry")

    def __init__(self, *, max_event: int = DEFAULT_MAX_EVENT) -> None:
        self.max_event = max_event
        self.last_event_id = ""
        self.retry: int | None = None
        self._held: list[bytes] = []  # an event without its end, in pieces: joining at each read would be quadratic
        self._held_size = 0
        self._fresh = True  # nothing came yet but perhaps a part of a byte order mark, which is in `_mark`
        self._mark = b""
        self._after_cr = False  # the last byte was CR; an LF that follows belongs to it

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes. Raises `Garbled` when an event is too large."""
        if self._fresh:
            data = self._without_mark(data)
        if self._after_cr or b"\r" in data:
            data = self._with_plain_line_ends(data)
        if not data:
            return []
        if self._held:
            if b"\n\n" not in data and not (data[:1] == b"\n" and self._held[-1][-1:] == b"\n"):
                self._hold(data)
                return []
            data = b"".join((*self._held, data))
            self._drop_held()
        complete, end, rest = data.rpartition(b"\n\n")
        if rest:
            self._hold(rest)
        if not end:
            return []
        if len(complete) > self.max_event:
            self._refuse_large(complete)
        return self._parse(complete)

    def finish(self) -> list[SseEvent]:
        """The stream has ended: what is left, taken as if a blank line had followed, and the parser starts anew.

        The data of such an event may be cut off in the middle. Only a terminal marker of the protocol above, in this or
        an earlier event, tells whether the stream was complete; the standard would drop the event.
        """
        rest = b"".join(self._held)
        self._drop_held()
        self._fresh, self._mark, self._after_cr = True, b"", False
        return self._parse(rest) if rest else []

    def _parse(self, complete: bytes) -> list[SseEvent]:
        """The events of text that a blank line follows. Plain streams first: they are almost all there is."""
        if complete[:6] == b"data: ":
            payloads = complete.split(b"\n\ndata: ")
            if complete.count(b"\n") == 2 * len(payloads) - 2:  # no line end but those between: one data line each
                payloads[0] = payloads[0][6:]
                return list(map(SseEvent, filter(None, payloads)))
        events: list[SseEvent] = []
        name, name_line = _MESSAGE, b""
        for block in complete.split(b"\n\n"):
            start = block.find(b"\n") + 1 if block[:7] == b"event: " else 0
            if block[start : start + 6] == b"data: " and block.find(b"\n", start) < 0:
                if block[7:start] != name_line:  # names come in long runs: decode one once
                    name_line = block[7:start]
                    name = name_line[:-1].decode(errors="replace") or _MESSAGE
                if payload := block[start + 6 :]:
                    events.append(SseEvent(payload, name))
            elif event := self._parse_lines(block):
                events.append(event)
        return events

    def _parse_lines(self, block: bytes) -> SseEvent | None:
        """One event by the rules of the standard ("Interpreting an event stream"); `None` if it has no data."""
        data: list[bytes] = []
        name = event_id = retry = None
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value.decode(errors="replace")
            elif field == b"id" and b"\0" not in value:
                event_id = self.last_event_id = value.decode(errors="replace")
            elif field == b"retry" and value.isdigit() and len(value) < 16:
                retry = self.retry = int(value)
        payload = b"\n".join(data)
        return SseEvent(payload, name or _MESSAGE, event_id, retry) if payload else None

    def _hold(self, data: bytes) -> None:
        if not self._held:
            data = data.lstrip(b"\n")  # blank lines before an event are none of its bytes
            if not data:
                return
        self._held.append(data)
        self._held_size += len(data)
        if self._held_size - data.endswith(b"\n") > self.max_event:
            raise self._too_large()

    def _drop_held(self) -> None:
        self._held.clear()
        self._held_size = 0

    def _refuse_large(self, complete: bytes) -> None:
        if any(len(block.strip(b"\n")) > self.max_event for block in complete.split(b"\n\n")):
            raise self._too_large()

    def _too_large(self) -> Garbled:
        return Garbled(f"an event of the stream is larger than {self.max_event} bytes; raise `max_event` if it may be")

    def _without_mark(self, data: bytes) -> bytes:
        data = self._mark + data
        if len(data) < len(_MARK) and _MARK.startswith(data):
            self._mark = data
            return b""
        self._fresh, self._mark = False, b""
        return data.removeprefix(_MARK)

    def _with_plain_line_ends(self, data: bytes) -> bytes:
        if not data:
            return data
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
        self._after_cr = data[-1:] == b"\r"
        return _plain_line_ends(data)


def encode_event(
    data: bytes | str,
    *,
    event: str | None = None,
    id: str | None = None,  # noqa: A002 - the name that the format gives it
    retry: int | None = None,
) -> bytes:
    """The bytes of one event. Line ends in `data` (CR, CRLF) arrive as LF; empty data arrives as no event.

    `retry` is in milliseconds. Raises `UsageError` for a name or an id that does not fit on a line.
    """
    head = b""
    if event:
        head = b"event: " + _one_line("event", event) + b"\n"
    if id is not None:
        if "\0" in id:
            raise UsageError(f"the id of an event holds NUL: {id!r}; readers ignore such an id, leave it out")
        head += b"id: " + _one_line("id", id) + b"\n"
    if retry is not None:
        if retry < 0:
            raise UsageError(f"retry is a time in milliseconds, not {retry!r}; give a number from 0 up")
        head += b"retry: %d\n" % retry
    payload = data.encode() if isinstance(data, str) else data
    if b"\n" in payload or b"\r" in payload:
        payload = _plain_line_ends(payload).replace(b"\n", b"\ndata: ")
    return b"%bdata: %b\n\n" % (head, payload)


def encode_comment(text: str = "") -> bytes:
    """The bytes of a comment. Readers ignore it; sent now and then, it keeps an idle connection open."""
    return b": %b\n\n" % _plain_line_ends(text.encode()).replace(b"\n", b"\n: ")


def _one_line(field: str, value: str) -> bytes:
    if "\n" in value or "\r" in value:
        raise UsageError(f"the {field} of an event holds a line break: {value!r}; give one line")
    return value.encode()


def _plain_line_ends(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
