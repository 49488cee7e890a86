"""Whatever bytes come, in any of the four formats: deltas or a `ModelError`, and no call whose arguments nobody sent.

ANTIPHON_FUZZ in the environment is the number of streams for each decoder, for a long run by hand.
"""

import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from antiphon.errors import ModelError
from antiphon.providers.anthropic.decode import AnthropicDecoder
from antiphon.providers.framing import Events
from antiphon.providers.gemini.decode import GeminiDecoder
from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.providers.openai_chat.profiles import PROFILES, ThinkTags
from antiphon.providers.openai_responses.decode import ResponsesDecoder
from antiphon.testing.quirks import load
from antiphon.types.joiner import Joiner
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import ToolSpec

STREAMS = int(os.environ.get("ANTIPHON_FUZZ", "150"))
MANY = settings(max_examples=STREAMS, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LONG = pytest.mark.timeout(60 + STREAMS // 20)

RESCUES = replace(PROFILES["generic"], think_tags=ThinkTags(), rescue=("json", "tool_call", "mistral"))
TOOLS = (ToolSpec(name="weather"), ToolSpec(name="now"))
DECODERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "openai_chat": ("openai_chat", lambda: ChatDecoder(origin="o:m", tools=TOOLS)),
    "openai_chat with tags": ("openai_chat", lambda: ChatDecoder(RESCUES, origin="o:m", tools=TOOLS)),
    "openai_responses": ("openai_responses", lambda: ResponsesDecoder(origin="o:m")),
    "anthropic": ("anthropic", AnthropicDecoder),
    "gemini": ("gemini", lambda: GeminiDecoder(origin="o:m")),
}
EACH = pytest.mark.parametrize("name", DECODERS)
ODD = (
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"-1",
    b"1e999",
    b"true",
    b'"\\ud83d"',
    b"[[",
    b"NaN",
    b"\n\n",
    b"data: ",
    b"\xff",
    b"\x00",
)


@cache
def bodies(wire: str) -> list[bytes]:
    """The replies of the corpus in this format."""
    return [b"".join(quirk.body()) for quirk in load() if quirk.format == wire]


def damaged(body: bytes, random: Random) -> bytes:
    """Some places cut out, doubled, written over, or moved."""
    spoiled = bytearray(body)
    for _ in range(random.randint(1, 4)):
        at, size = random.randrange(len(spoiled) + 1), random.choice((1, 2, 5, 20, 80))
        match random.randrange(5):
            case 0:
                del spoiled[at : at + size]
            case 1:
                spoiled[at:at] = spoiled[at : at + size]
            case 2:
                spoiled[at : at + 1] = random.randbytes(1)
            case 3:
                spoiled[at:at] = random.choice(ODD)
            case _:
                other = random.randrange(len(spoiled) + 1)
                spoiled[other:other] = spoiled[at : at + size]
    return bytes(spoiled)


def reshaped(body: bytes, random: Random) -> bytes:
    """Events in another order, lost or repeated, and values of other types in their fields."""
    events = body.split(b"\n\n")
    random.shuffle(events) if random.random() < 0.3 else None
    kept = [event for event in events for _ in range(random.choice((0, 1, 1, 1, 1, 2)))]
    return b"\n\n".join([exchanged(event, random) for event in kept]) + b"\n\n"


def exchanged(event: bytes, random: Random) -> bytes:
    head, colon, data = event.rpartition(b"data: ")
    try:
        value = json.loads(data)
    except ValueError:
        return event
    places = list(inside(value))
    if not places or random.random() < 0.6:
        return event
    owner, key = random.choice(places)
    owner[key] = random.choice((None, [], {}, "", "x", -1, 2**70, True, 0.5, [{}], {"a": "b"}, "\ud83d"))
    return head + colon + json.dumps(value).encode()


def inside(value: Any) -> Iterator[tuple[Any, Any]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(steps):
        yield value, key
        yield from inside(each)


def read(body: bytes, decoder: Any, random: Random) -> AssistantMessage | None:
    """The message of a body that comes in pieces; `None` where the stream is a `ModelError`."""
    joiner, events = Joiner(lambda: f"minted-{random.random()}"), Events("p", None)
    try:
        at = 0
        while at < len(body):
            size = random.choice((1, 7, 64, 4096))
            for event in events.feed(body[at : at + size]):
                for delta in decoder.feed(event.data, event.event):
                    joiner.add(delta)
            at += size
        for event in events.finish():
            for delta in decoder.feed(event.data, event.event):
                joiner.add(delta)
        for delta in decoder.finish():
            joiner.add(delta)
    except ModelError:
        return None
    return joiner.message()


def words(body: bytes) -> set[str]:
    """Every text and every object that the events hold: what arguments may be made of."""
    found: set[str] = set()
    for line in body.replace(b"\r", b"\n").split(b"\n"):
        waiting: list[Any] = []
        for start in {line.find(mark) for mark in (b"{", b"[")} - {-1}:
            try:
                waiting.append(json.loads(line[start:], strict=False))
            except ValueError:
                continue
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict | list):
                found.add(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
                found.add(json.dumps(value))
                waiting += value.values() if isinstance(value, dict) else value
            elif isinstance(value, str):
                found.add(value)
            else:
                found.add(json.dumps(value))
    return {word for word in found if word}


def made_of(text: str, known: set[str]) -> bool:
    """Whether the text is some of the known words, one behind the other."""
    reached = {0}
    for at in range(len(text)):
        if at in reached:
            reached |= {at + len(word) for word in known if text.startswith(word, at)}
    return len(text) in reached


@LONG
@EACH
@MANY
@given(st.integers(0, 2**60))
def test_any_bytes_give_deltas_or_a_model_error(name: str, seed: int) -> None:
    """Random bytes, and replies of the corpus with random damage."""
    wire, make = DECODERS[name]
    random = Random(seed)
    body = random.randbytes(random.randrange(200)) if random.random() < 0.1 else random.choice(bodies(wire))
    for _ in range(random.randint(1, 2)):
        body = random.choice((damaged, reshaped))(body, random)
    message = read(body, make(), random)
    if message is not None:
        ids = [call.id for call in message.calls]
        assert "" not in ids
        assert len(set(ids)) == len(ids)


@LONG
@pytest.mark.parametrize("name", [name for name in DECODERS if "tags" not in name])
@MANY
@given(st.integers(0, 2**60))
def test_no_arguments_are_invented(name: str, seed: int) -> None:
    """Events lost, repeated, exchanged: whatever a call's arguments are, the server sent each piece of them."""
    wire, make = DECODERS[name]
    random = Random(seed)
    body = reshaped(random.choice(bodies(wire)), random)
    message = read(body, make(), random)
    for call in message.calls if message is not None else ():
        assert not call.arguments or "\ufffd" in call.arguments or made_of(call.arguments, words(body)), call


@pytest.mark.parametrize("depth", [50, 600, 5_000, 100_000])
@pytest.mark.parametrize("opening", ['{"a":', "["])
@EACH
def test_no_depth_of_nesting_is_a_way_out(name: str, opening: str, depth: int) -> None:
    """Arguments, usage, details, a chunk itself: each is decoded and written again somewhere."""
    wire, make = DECODERS[name]
    closing = "}" if opening != "[" else "]"
    deep = opening * depth + "1" + closing * depth
    for body in bodies(wire):
        for mark in (
            b'"arguments":',
            b'"usage":',
            b'"args":',
            b'"input":',
            b'"error":',
            b'"extra_content":',
            b'"item":',
        ):
            at = body.find(mark)
            if at >= 0:
                read(body[: at + len(mark)] + deep.encode() + b"," + body[at + len(mark) :], make(), Random(1))
    for payload in (deep, f'{{"choices":{deep}}}', f'{{"type":{deep}}}', f'{{"candidates":{deep}}}'):
        read(f"data: {payload}\n\n".encode(), make(), Random(1))
