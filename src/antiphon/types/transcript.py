"""What makes a transcript fit to be sent, and how one that is not can be mended.

The rule: every call of a reply has exactly one result; the results come right behind their reply, in the order of the
calls, with nothing in between; ids are not empty and not repeated within a reply (the same id in another reply is fine);
a user message says something. System messages, an application's own messages and unknown ones may stand anywhere else.

A result belongs to the nearest reply before it that has a call with its id. Where calls of one reply share an id, the
first free one takes it, one of the result's tool before the others.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from antiphon.types.content import Part, Text, ToolCall
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

__all__ = ["Problem", "ProblemCode", "open_calls", "repair", "validate"]

ProblemCode: TypeAlias = Literal[
    "open_call",
    "orphan_result",
    "duplicate_result",
    "misplaced_result",
    "unordered_result",
    "empty_id",
    "repeated_id",
    "empty_message",
]
"""What is wrong: a call without result, a result without call, one too many, not behind its reply, not in call order, an
id that is empty or used twice in its reply, a user message without parts."""


class Problem(Struct, frozen=True):
    """Something that makes a transcript unfit to be sent, or what was done about it.

    `index` is the message's place in the list that was given, `text` says what to do, or what was done.
    """

    index: int
    code: ProblemCode
    text: str


Found: TypeAlias = tuple[int, ProblemCode, str]
"""A message's place, what is wrong there, and the id (or name, where there is no id) of the call."""

ADVICE: Final[dict[ProblemCode, str]] = {
    "open_call": "call {!r} has no result; add one behind its reply, or take the call out",
    "orphan_result": "the result of {!r} answers no call before it; take it out",
    "duplicate_result": "call {!r} has a result already; take this one out",
    "misplaced_result": "the result of call {!r} does not stand right behind its reply; move it there",
    "unordered_result": "the result of call {!r} comes after that of a later call; put results in the order of the calls",
    "empty_id": "the call of {!r} has an empty id; give it one, and its result the same",
    "repeated_id": "an earlier call of this reply has the id {!r} too; give this one its own, and its result the same",
    "empty_message": "a user message without parts; take it out",
}
DONE: Final[dict[ProblemCode, str]] = {
    "open_call": "call {!r} had no result; one was added that says so",
    "orphan_result": "the result of {!r} answered no call before it; it was taken out",
    "duplicate_result": "call {!r} had a result already; this one was taken out",
    "misplaced_result": "the result of call {!r} was moved right behind its reply",
    "unordered_result": "the result of call {!r} was put before that of a later call",
    "empty_id": "the call of {!r} had an empty id; it was given one",
    "repeated_id": "an earlier call of this reply had the id {!r} too; this one was given its own",
    "empty_message": "a user message without parts was taken out",
}
NOT_KNOWN: Final = "It is not known whether this call was started, or whether it finished: no result was recorded."


class Reply:
    """A reply with calls, and which results it has: `results[i]` is the place of the result of call `i`."""

    __slots__ = ("alike", "calls", "index", "last", "places", "results")

    def __init__(self, index: int, calls: tuple[ToolCall, ...]) -> None:
        self.index = index
        self.calls = calls
        self.results: list[int | None] = [None] * len(calls)
        self.last = -1  # the last call that had its result in place
        self.places = {call.id: place for place, call in enumerate(calls)}
        self.alike = len(self.places) < len(calls)  # some calls have the same id

    def take(self, result: ToolResultMessage, index: int) -> int | None:
        """Put the result to its call and say to which; `None` if no call with its id is free."""
        place = self._alike(result) if self.alike else self.places.get(result.call_id)
        if place is None or self.results[place] is not None:
            return None
        self.results[place] = index
        return place

    def _alike(self, result: ToolResultMessage) -> int | None:
        own = [i for i, call in enumerate(self.calls) if call.id == result.call_id and self.results[i] is None]
        return next((i for i in own if self.calls[i].name == result.tool_name), own[0] if own else None)


def validate(messages: Sequence[Message]) -> list[Problem]:
    """What makes `messages` unfit to be sent, in their order; empty if they are fit."""
    return [Problem(index, code, ADVICE[code].format(name)) for index, code, name in _look(messages)[0]]


def repair(messages: Sequence[Message]) -> tuple[tuple[Message, ...], list[Problem]]:
    """A transcript that is fit to be sent, and what was changed. `messages` itself is not.

    A call without result gets one that says so (outcome `unknown`). Results move behind their reply, in the order of the
    calls, and what stood between comes after them. Results without a call, and all but the first of a call, go away, as
    do user messages without parts. Empty and repeated ids are replaced, in calls and results alike.
    """
    problems, replies = _look(messages)
    if not problems:
        return tuple(messages), []
    mended: list[Message] = []
    for index, message in enumerate(messages):
        if isinstance(message, ToolResultMessage) or (isinstance(message, UserMessage) and not message.parts):
            continue
        if index in replies and isinstance(message, AssistantMessage):
            mended.extend(_closed(message, replies[index], messages))
        else:
            mended.append(message)
    return tuple(mended), [Problem(index, code, DONE[code].format(name)) for index, code, name in problems]


def open_calls(messages: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of the last reply that have no result yet, in order; none once a user message followed it."""
    for last in reversed(range(len(messages))):
        if isinstance(message := messages[last], AssistantMessage | UserMessage):
            break
    else:
        return ()
    if isinstance(message, UserMessage):
        return ()
    reply = Reply(last, message.calls)
    for index in range(last + 1, len(messages)):
        if isinstance(result := messages[index], ToolResultMessage):
            reply.take(result, index)
    return tuple([call for call, result in zip(reply.calls, reply.results, strict=True) if result is None])


def _look(messages: Sequence[Message]) -> tuple[list[Found], dict[int, Reply]]:
    """What is wrong, by place, and the replies with calls, by place."""
    found: list[Found] = []
    replies: dict[int, Reply] = {}
    owners: dict[str, Reply] = {}  # call id to the nearest reply with such a call
    before = -1  # the nearest message that is no result
    for index, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            code = _place(message, index, owners.get(message.call_id), before)
            if code:
                found.append((index, code, message.call_id))
            continue
        before = index
        if isinstance(message, AssistantMessage):
            if calls := message.calls:
                replies[index] = reply = Reply(index, calls)
                owners.update(dict.fromkeys(reply.places, reply))
                if reply.alike or "" in reply.places:
                    found.extend(_id_problems(index, calls))
        elif isinstance(message, UserMessage) and not message.parts:
            found.append((index, "empty_message", ""))
    for index, reply in replies.items():
        if None in reply.results:
            found.extend(
                [
                    (index, "open_call", call.id)
                    for call, at in zip(reply.calls, reply.results, strict=True)
                    if at is None
                ]
            )
    return sorted(found, key=lambda each: each[0]), replies


def _place(result: ToolResultMessage, index: int, reply: Reply | None, before: int) -> ProblemCode | None:
    """Put a result to its call; what is wrong with where it stands."""
    if reply is None:
        return "orphan_result"
    place = reply.take(result, index)
    if place is None:
        return "duplicate_result"
    if before != reply.index:
        return "misplaced_result"
    if place < reply.last:
        return "unordered_result"
    reply.last = place
    return None


def _id_problems(index: int, calls: tuple[ToolCall, ...]) -> Iterator[Found]:
    seen: set[str] = set()
    for call in calls:
        if not call.id:
            yield index, "empty_id", call.name
        elif call.id in seen:
            yield index, "repeated_id", call.id
        seen.add(call.id)


def _closed(message: AssistantMessage, reply: Reply, messages: Sequence[Message]) -> Iterator[Message]:
    """The reply with ids of its own for every call, and a result for each."""
    ids = _own_ids(reply.calls)
    calls = [msgspec.structs.replace(call, id=own) for call, own in zip(reply.calls, ids, strict=True)]
    if calls == list(reply.calls):
        yield message
    else:
        renamed = iter(calls)
        parts: list[Part] = [next(renamed) if type(part) is ToolCall else part for part in message.parts]
        yield msgspec.structs.replace(message, parts=tuple(parts))
    for call, place in zip(calls, reply.results, strict=True):
        if place is None:
            yield _not_known(call)
        else:
            result = messages[place]
            same = isinstance(result, ToolResultMessage) and result.call_id == call.id
            yield result if same else msgspec.structs.replace(result, call_id=call.id)


def _not_known(call: ToolCall) -> ToolResultMessage:
    return ToolResultMessage(
        call_id=call.id, tool_name=call.name, parts=(Text(NOT_KNOWN),), is_error=True, outcome="unknown"
    )


def _own_ids(calls: tuple[ToolCall, ...]) -> list[str]:
    """An id for each call: its own if it has one and is the first with it, else one that no call of the reply has."""
    taken = {call.id for call in calls}
    ids: list[str] = []
    for number, call in enumerate(calls, 1):
        own = call.id
        if not own or own in ids:
            own = next(new for n in count(number) if (new := f"call_{n}") not in taken)
            taken.add(own)
        ids.append(own)
    return ids
