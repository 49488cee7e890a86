"""Messages, events and a loop's own records as JSON, and back.

Three forms. A transcript is an envelope, `{"version": 1, "messages": [...]}`. A message or an event by itself is its
object, which may have a `version` too (none means 1). `to_plain` and `from_plain` speak JSON data in place of text, for
records that hold messages.

Nothing that is stored is lost. An object whose `type` this version does not know, a message, a part or an event, is read
as `Unknown` and written back as the object that it was. In data of a newer version an object of a known type becomes
`Unknown` as well when it has a key or a value that would be lost. If such an object is written by this version, its
envelope (or the message or event around it) says `"exact": true`, and is read back with the same care.

Text that cannot be UTF-8 is mended: surrogate halves that belong together become the character they stand for, a lone
one becomes U+FFFD. A number that is no JSON (not a number, infinite) is written as null.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, NoReturn, TypeVar, cast, get_args, overload

import msgspec
from msgspec import Struct

from antiphon.errors import UsageError
from antiphon.types._surrogates import mended, mended_text
from antiphon.types._unknown import dec_hook, enc_hook, unwrapped, wrapped
from antiphon.types.content import Unknown
from antiphon.types.events import StoredEvent
from antiphon.types.history import History
from antiphon.types.messages import Message

__all__ = [
    "dump_event",
    "dump_message",
    "dump_messages",
    "from_plain",
    "load_event",
    "load_message",
    "load_messages",
    "to_plain",
]

T = TypeVar("T")

VERSION: Final = 1  # of what this library writes
ENCODER: Final = msgspec.json.Encoder(enc_hook=enc_hook)
UNKNOWN: Final = b'{"type":"unknown","raw":'  # how msgspec begins an `Unknown`; quotes inside strings have a backslash
KINDS: Final = frozenset(get_args(Message))
ENVELOPE: Final = 'the JSON object {"version": 1, "messages": [...]}, as dump_messages writes it'
MESSAGE: Final = "the JSON object of a message, as dump_message writes it"
EVENT: Final = "the JSON object of an event, as dump_event writes it"


class Envelope(Struct, omit_defaults=True):
    """A transcript as it is stored."""

    version: int
    messages: list[Message]
    exact: bool = False


@cache  # made when first used: together they take longer than the whole room to import
def envelopes() -> msgspec.json.Decoder[Envelope]:
    return msgspec.json.Decoder(Envelope)


@cache
def messages_alone() -> msgspec.json.Decoder[Message]:
    return msgspec.json.Decoder(Message)


@cache
def events() -> msgspec.json.Decoder[StoredEvent]:
    return msgspec.json.Decoder(StoredEvent)


def dump_messages(messages: Iterable[Message]) -> bytes:
    """A transcript as JSON text. Raises `UsageError` for what is no message or no JSON."""
    items = list(messages)
    if strange := {type(item) for item in items} - KINDS:
        names = ", ".join(sorted([kind.__name__ for kind in strange]))
        raise UsageError(f"not a message: {names}; give messages, such as UserMessage")
    data = _encode(Envelope(VERSION, items))
    if UNKNOWN not in data:
        return data
    plain: list[Any] = [_unwrap(item) for item in items]
    exact = not _same(plain, list[Message], items)
    return _encode({"version": VERSION, **({"exact": True} if exact else {}), "messages": plain})


def load_messages(data: bytes | str) -> tuple[Message, ...]:
    """The transcript in `data`. Raises `UsageError` when it holds none; the text says where and what was expected."""
    try:
        envelope = envelopes().decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    else:
        if envelope.version == VERSION and not envelope.exact and not _any_unknown(envelope.messages):
            return tuple(envelope.messages)
    raw = _parse(data, ENVELOPE)
    envelope = _convert(raw, Envelope, ENVELOPE, exact=_newer(raw))
    if envelope.version < 1:
        raise UsageError(f"no such version: {envelope.version}; expected {ENVELOPE}")
    return tuple(envelope.messages)


def dump_message(message: Message) -> bytes:
    """One message as a JSON object, on one line. Raises `UsageError` for what is no JSON."""
    return _dump(message, Message)


def load_message(data: bytes | str) -> Message:
    """The message in `data`. Raises `UsageError` when it holds none."""
    return _load(data, messages_alone, Message, MESSAGE)


def dump_event(event: StoredEvent) -> bytes:
    """One event as a JSON object, on one line without its end. Raises `UsageError` for what is no JSON."""
    return _dump(event, StoredEvent)


def load_event(data: bytes | str) -> StoredEvent:
    """The event in `data`. Raises `UsageError` when it holds none."""
    return _load(data, events, StoredEvent, EVENT)


def to_plain(value: Any) -> Any:
    """Any struct, or a list, tuple or dict of them, as JSON data. Raises `UsageError` for what is no JSON.

    Each `Unknown` at a place where messages, parts or events stand becomes its raw object.
    """
    data = _encode(value)
    if UNKNOWN in data:
        data = _encode(_unwrap(value))
    return msgspec.json.decode(data)


@overload
def from_plain(raw: Any, kind: type[T], *, exact: bool = False) -> T: ...
@overload
def from_plain(raw: Any, kind: Any, *, exact: bool = False) -> Any: ...
def from_plain(raw: Any, kind: Any, *, exact: bool = False) -> Any:
    """JSON data as a value of type `kind`: a struct, a union, or a list or dict of them. `raw` is not changed.

    `exact` keeps as `Unknown` every message, part or event that would lose something. Ask for it when `raw` may hold
    what a newer version wrote. Raises `UsageError` when `raw` does not fit; the text says where.
    """
    return _convert(raw, kind, "what to_plain makes of the same type", exact=exact)


def _dump(value: Any, kind: Any) -> bytes:
    data = _encode(value)
    if UNKNOWN not in data:
        return data
    plain = _unwrap(value)
    if type(value) is not Unknown and not _same(plain, kind, value):
        plain["exact"] = True
    return _encode(plain)


def _load(data: bytes | str, decoder: Callable[[], msgspec.json.Decoder[Any]], kind: Any, expected: str) -> Any:
    if not _careful(data.encode(errors="replace") if isinstance(data, str) else data):
        try:
            return decoder().decode(data)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass
    raw = _parse(data, expected)
    if not _newer(raw):
        return _convert(raw, kind, expected, exact=False)
    body = {key: value for key, value in raw.items() if key not in {"version", "exact"}}
    value = _convert(body, kind, expected, exact=True)
    return Unknown(raw) if type(value) is Unknown else value


def _careful(data: bytes) -> bool:
    """There may be an object of an unknown kind in `data`, or a word that asks for care; an escape may hide either."""
    return (
        b'"unknown"' in data
        or b'"version"' in data
        or b'"exact"' in data
        or b"\\u006" in data  # the letters from a to o
        or b"\\u007" in data  # the letters from p to z
    )


def _newer(raw: Any) -> bool:
    """A stored object holds what a newer version wrote."""
    if not isinstance(raw, dict):
        return False
    found = cast("dict[str, Any]", raw)
    version = found.get("version")
    return found.get("exact") is True or (type(version) is int and version > VERSION)


def _convert(raw: Any, kind: Any, expected: str, *, exact: bool) -> Any:
    try:
        return msgspec.convert(wrapped(raw, kind, exact=exact), kind, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise UsageError(f"stored data does not fit: {error}; expected {expected}") from error


def _encode(value: Any) -> bytes:
    try:
        try:
            return ENCODER.encode(value)
        except UnicodeEncodeError:
            return ENCODER.encode(mended(msgspec.to_builtins(value, enc_hook=enc_hook)))
    except (TypeError, NotImplementedError, OverflowError, RecursionError) as error:
        raise UsageError(f"cannot be stored: {error}; keep to JSON in details, data and arguments") from error


def _unwrap(value: Any) -> Any:
    """JSON data of a value that may have an `Unknown` somewhere."""
    if isinstance(value, Unknown):
        return value.raw
    if isinstance(value, Struct):
        return unwrapped(msgspec.to_builtins(value, enc_hook=enc_hook), type(value))
    if isinstance(value, list | tuple | History):
        return [_unwrap(item) for item in cast("Iterable[Any]", value)]
    if isinstance(value, dict):
        return {key: _unwrap(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def _same(plain: Any, kind: Any, value: Any) -> bool:
    """Reading `plain` without special care gives `value`."""
    try:
        return from_plain(plain, kind) == value
    except UsageError:
        return False


def _any_unknown(messages: list[Message]) -> bool:
    for message in messages:
        if type(message) is Unknown:
            return True
        for part in getattr(message, "parts", ()):
            if type(part) is Unknown:
                return True
    return False


def _parse(data: bytes | str, expected: str) -> Any:
    """JSON data, surrogates mended."""
    try:
        return msgspec.json.decode(data)
    except RecursionError as error:
        raise UsageError(f"JSON nested too deeply; expected {expected}") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        try:
            return _parse_surrogates(data if isinstance(data, str) else data.decode())
        except (ValueError, RecursionError):
            raise UsageError(f"not JSON ({error}); expected {expected}") from error


def _parse_surrogates(text: str) -> Any:
    """What msgspec refuses and other writers write: halves of surrogate pairs, escaped or not."""
    if text.isascii() and not re.search(r"\\u[dD][89a-fA-F]", text):
        raise ValueError("no surrogates")

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no JSON")

    return mended(json.loads(mended_text(text), parse_constant=refuse))
