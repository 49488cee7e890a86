"""A faulty transport, for tests of what runs over it: the same seed gives the same faults."""

import json
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Sequence
from contextlib import aclosing
from random import Random
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import anyio

from antiphon.errors import Dropped, ModelError, Overloaded, RateLimited, Unreachable, UsageError
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    Model,
    ModelInfo,
    ModelRequest,
    TextChunk,
    ThinkingChunk,
    UsageChunk,
    WarningChunk,
)
from antiphon.types.usage import Usage

__all__ = ["FAULTS", "Chaos", "ChaosModel", "Fault", "Rolled"]

Fault: TypeAlias = Literal[
    "drop", "stall", "heartbeat", "split", "duplicate", "reorder", "error", "status", "slow"
]  # fmt: skip
"""What can happen to a reply: it ends half way; nothing more comes; only signs of life come; it comes in tiny pieces; what
says nothing new comes twice; what may come in any order does; an error comes in the middle; the request is refused; it
takes its time. Words are never repeated or moved: no reader could tell."""

FAULTS: tuple[Fault, ...] = get_args(Fault)
"""Every kind of fault there is."""

MARKER = b"data: [DONE]\n\n"
HEARTBEATS = (b": keep-alive\n\n", b"data:\n\n", b'data: {"choices":[]}\n\n')
REFUSALS: tuple[Callable[[], ModelError], ...] = (
    lambda: Overloaded("the server is overloaded; ask again", status=503),
    lambda: RateLimited("too many requests; ask again", status=429, retry_after=0.0),
    lambda: Unreachable("nobody answers; ask again"),
)


class Rolled(NamedTuple):
    """What the die said for one request: its fault, `None` for none, and the die for the details of it."""

    fault: Fault | None
    random: Random


class Chaos:
    """Which requests fail, and how. `rate` of them get one of `faults`; waits take about `pause` seconds.

    `roll(key)` decides on the next request of a key (a conversation, say), whatever happens under other keys meanwhile.
    `rolled` has every decision, as (key, fault).
    """

    def __init__(
        self, seed: int = 0, *, rate: float = 0.3, faults: Sequence[Fault] = FAULTS, pause: float = 0.001
    ) -> None:
        strange = sorted(set(faults) - set(FAULTS))
        if strange or not 0 <= rate <= 1:
            raise UsageError(f"chaos takes a rate from 0 to 1 and faults of {', '.join(FAULTS)}; not {strange or rate}")
        self.rolled: list[tuple[str, Fault | None]] = []
        self.pause = pause
        self._seed = seed
        self._rate = rate
        self._faults = tuple(faults)
        self._counts: dict[str, int] = {}

    def roll(self, key: str = "") -> Rolled:
        """Decide on the next request under this key."""
        number = self._counts[key] = self._counts.get(key, 0) + 1
        random = Random(f"{self._seed}/{key}/{number}")  # noqa: S311 - it is to be repeatable
        fault = random.choice(self._faults) if self._faults and random.random() < self._rate else None
        self.rolled.append((key, fault))
        return Rolled(fault, random)

    def model(self, model: Model, key: str = "") -> "ChaosModel":
        """The model behind a faulty transport."""
        return ChaosModel(model, self, key)

    async def body(self, events: Iterable[bytes], rolled: Rolled) -> AsyncGenerator[bytes, None]:
        """The body of a Chat Completions stream, given as whole server-sent events, as it arrives.

        Raises `ConnectionResetError` where the connection is lost; `status` is not seen here, for it comes before.
        """
        for step in spoiled(list(events), rolled):
            if isinstance(step, bytes):
                yield step
            elif step == "lost":
                raise ConnectionResetError("the connection was lost")
            elif step == "silence":
                await anyio.sleep_forever()
            else:
                await anyio.sleep(self.pause)


Step: TypeAlias = bytes | Literal["pause", "silence", "lost"]


def spoiled(events: list[bytes], rolled: Rolled) -> Iterable[Step]:
    """The bytes of `events` and what happens between them."""
    fault, random = rolled
    match fault:
        case "split":
            yield from in_pieces(b"".join(events), random)
        case "duplicate":
            for event in events:
                yield event if not is_quiet(event) else event * 2
        case "reorder":
            yield from reordered(events, random)
        case "slow":
            for event in events:
                yield "pause"
                yield event
        case "drop" | "stall" | "heartbeat" | "error":
            yield from broken_off(events, fault, random)
        case _:
            yield from events


def in_pieces(body: bytes, random: Random) -> Iterable[bytes]:
    while body:
        size = random.randint(1, 3)
        yield body[:size]
        body = body[size:]


def reordered(events: list[bytes], random: Random) -> Iterable[bytes]:
    """Events without choices (the count of tokens) may stand anywhere before the end."""
    stays = [event for event in events if not has_no_choices(event)]
    for event in events:
        if has_no_choices(event):
            stays.insert(random.randrange(len(stays)), event)
    yield from stays


def broken_off(events: list[bytes], fault: Fault, random: Random) -> Iterable[Step]:
    """Some of the reply, and never its end."""
    whole = events[: random.randrange(len(events))] if events else []
    yield from whole
    if fault == "drop":
        following = events[len(whole)] if len(whole) < len(events) else b""
        if following and random.random() < 0.5:  # cut inside of an event
            yield following[: random.randrange(len(following))]
        if random.random() < 0.5:
            yield "lost"
    elif fault == "stall":
        yield "silence"
    elif fault == "heartbeat":
        while True:
            yield random.choice(HEARTBEATS)
            yield "pause"
    else:
        code = random.choice(["server_error", "overloaded_error", "rate_limit_exceeded"])
        yield b"data: " + json.dumps({"error": {"message": "the server broke", "code": code}}).encode() + b"\n\n"


def chunk_of(event: bytes) -> dict[str, Any] | None:
    """The JSON of an event, `None` if it has none."""
    try:
        parsed: object = json.loads(event.removeprefix(b"data:"))
    except ValueError:
        return None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None


def has_no_choices(event: bytes) -> bool:
    chunk = chunk_of(event)
    return chunk is not None and not chunk.get("choices")


def is_quiet(event: bytes) -> bool:
    """The event says nothing that a reader would show, so that it may come twice."""
    if event == MARKER:
        return True
    chunk = chunk_of(event)
    if chunk is None:
        return False
    deltas: list[dict[str, Any]] = [choice.get("delta") or {} for choice in chunk.get("choices") or ()]
    return not any(delta.get(name) for delta in deltas for name in ("content", "reasoning_content", "tool_calls"))


class ChaosModel:
    """A model behind a faulty transport; what it is to its caller is a model that fails as models do."""

    def __init__(self, model: Model, chaos: Chaos, key: str = "") -> None:
        self._model = model
        self._chaos = chaos
        self._key = key
        self.info: ModelInfo | None = getattr(model, "info", None)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply as it arrives, if it does. Raises only `ModelError`."""
        fault, random = self._chaos.roll(self._key)
        if fault == "status":
            refusal = random.choice(REFUSALS)()
            raise refusal
        stream: Any = self._model.stream(request)
        async with aclosing(stream), aclosing(self._spoiled(stream, fault, random)) as spoiled_stream:
            async for delta in spoiled_stream:
                yield delta

    async def _spoiled(
        self, stream: AsyncIterable[Delta], fault: Fault | None, random: Random
    ) -> AsyncGenerator[Delta, None]:
        if fault == "reorder":
            for delta in await usage_first(stream):
                yield delta
            return
        left = random.randrange(6) if fault in ("drop", "stall", "heartbeat", "error") else None
        async for delta in stream:
            if left is not None and (left == 0 or isinstance(delta, FinishChunk)):
                break
            left = left - 1 if left is not None else None
            if fault == "slow":
                await anyio.sleep(self._chaos.pause)
            for piece in spoiled_delta(delta, fault):
                yield piece
        fail_as(fault, random)
        while fault == "heartbeat":
            yield random.choice([TextChunk(""), UsageChunk(Usage(input=1)), WarningChunk("odd", "a sign of life")])
            await anyio.sleep(self._chaos.pause)
        if fault == "stall":
            await anyio.sleep_forever()


def fail_as(fault: Fault | None, random: Random) -> None:
    """Raise what breaks a reply off, if that is the fault; some drops just end."""
    if fault == "error":
        raise Overloaded("the server broke off its reply; ask again")
    if fault == "drop" and random.random() < 0.5:
        raise Dropped("the connection was lost")


async def usage_first(stream: AsyncIterable[Delta]) -> list[Delta]:
    """The whole reply, with the count of tokens before the words."""
    deltas = [delta async for delta in stream]
    return sorted(deltas, key=lambda delta: not isinstance(delta, UsageChunk))


def spoiled_delta(delta: Delta, fault: Fault | None) -> Iterable[Delta]:
    """A delta in tiny pieces, or twice if that changes nothing."""
    match delta:
        case TextChunk(text=text, signature=None) if fault == "split":
            yield from [TextChunk(character) for character in text]
        case ThinkingChunk(text=text, signature=None, redacted=False) if fault == "split":
            yield from [ThinkingChunk(character) for character in text]
        case CallChunk(key=key, arguments=arguments) if fault == "split" and arguments:
            first, *rest = arguments
            yield CallChunk(key, delta.id, delta.name, first, delta.opaque)
            yield from [CallChunk(key, arguments=character) for character in rest]
        case CallChunk(key=key, id=id_, name=name) if fault == "duplicate":  # servers repeat what names a call
            yield delta
            yield CallChunk(key, id_, name)
        case UsageChunk() | FinishChunk() if fault == "duplicate":
            yield delta
            yield delta
        case _:
            yield delta
