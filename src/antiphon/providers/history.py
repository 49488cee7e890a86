"""What a vendor may see of a transcript, whoever wrote it: one place for all formats, each with its rules as data. Pure.

A transcript may have been begun by another model, or a reply of it cut off. What a provider attached to a reply goes back
to its origin alone and as it came, since anybody else refuses it; nothing signed is ever made up; ids and names that an
API would refuse are rewritten, always alike. The transcript itself never changes.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from antiphon.providers.call_ids import CallIds, IdRule, NameRule, first_uses
from antiphon.providers.marks import fields_of
from antiphon.providers.media import named
from antiphon.providers.prefix import encoded_prefix
from antiphon.providers.prefix_watch import PrefixWatch
from antiphon.types.content import File, Image, Part, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from antiphon.types.request import ModelRequest

__all__ = ["ForeignThinking", "HistoryEncoder", "HistoryRules", "Visible", "visible_messages"]

ForeignThinking: TypeAlias = Literal["omit", "text"]
"""What becomes of another model's readable thought: it is left out, or told as text in a marker."""

Visible: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolResultMessage
"""A message that a model may see."""

Write: TypeAlias = Callable[[Sequence[Visible]], bytes]
"""A vendor's writer: visible messages as the inside of a JSON array."""

_MARKER = "<earlier_reasoning>\n{}\n</earlier_reasoning>"


class HistoryRules(Struct, frozen=True, kw_only=True):
    """What one vendor takes of a transcript.

    `origin` is the `provider:model` that is asked. `thoughts`: which of its own go back: those that the very same model
    `signed`, all that the provider's models thought in `readable` text, or none (`never`); those of a reply that was cut
    off are for readers alone. With `gaps`, one that stays behind leaves an empty one. `foreign` is for readable thoughts
    of other models. `ids` and `names`: what it takes for those of calls, `None` for any. `modalities` are what
    the model reads, `None` where that is not known: then everything is shown.
    """

    origin: str
    thoughts: Literal["signed", "readable", "never"] = "signed"
    gaps: bool = False
    foreign: ForeignThinking = "omit"
    ids: IdRule | None = None
    names: NameRule | None = None
    modalities: tuple[str, ...] | None = None


class HistoryEncoder:
    """Encodes transcripts for one vendor: what it may see of them, in its own writing, each message once.

    `key` names the format; whatever else the bytes depend on must be in `rules` or in `more`.
    """

    __slots__ = ("_key", "_rules", "_write")

    def __init__(self, key: str, rules: HistoryRules, write: Write, more: tuple[Any, ...] = ()) -> None:
        self._key = (key, rules, more)
        self._rules = rules
        self._write = write

    def pieces(self, request: ModelRequest, watch: PrefixWatch, begin: int = 0) -> list[bytes]:
        """The bytes of a request's messages from `begin` on, in pieces. `watch` is told of them."""
        messages = request.messages
        count = len(messages)
        unique = self._rules.ids is not None and self._rules.ids.unique
        first = first_uses(messages) if unique else None

        def part(start: int, end: int) -> bytes:
            start = max(start, begin)
            ids = CallIds(self._rules.ids, first)
            return self._write(visible_messages(messages[start:end], self._rules, ids, start))

        pieces = encoded_prefix(messages, self._key, lambda run: part(count - len(run), count))
        watch.see(request, self._key, pieces, part)
        return pieces


def visible_messages(
    messages: Sequence[Message], rules: HistoryRules, ids: CallIds | None = None, start: int = 0
) -> list[Visible]:
    """The messages as the vendor may see them; the first one stands at `start` in the transcript.

    A stretch must not begin within an exchange. Custom and unknown messages are for no model.
    """
    ids = ids or CallIds(rules.ids, first_uses(messages))
    seen: list[Visible] = []
    for place, message in enumerate(messages, start):
        if type(message) is UserMessage:
            seen.append(_with_parts(message, _shown(message.parts, rules)))
        elif type(message) is AssistantMessage:
            ids.reply(message, place)
            seen.append(_with_parts(message, _reply_parts(message, rules, ids)))
        elif type(message) is ToolResultMessage:
            seen.append(_result(message, rules, ids))
        elif type(message) is SystemMessage:
            seen.append(message)
    return seen


def _with_parts(message: Any, parts: tuple[Part, ...]) -> Any:
    return message if parts is message.parts else replace(message, parts=parts)


def _result(message: ToolResultMessage, rules: HistoryRules, ids: CallIds) -> ToolResultMessage:
    name = message.tool_name if rules.names is None else rules.names.taken(message.tool_name)
    call_id, parts = ids.taken(message.call_id), _shown(message.parts, rules)
    if name == message.tool_name and call_id == message.call_id and parts is message.parts:
        return message
    return replace(message, call_id=call_id, tool_name=name, parts=parts)


def _shown(parts: tuple[Part, ...], rules: HistoryRules) -> tuple[Part, ...]:
    """The parts, with a note for a picture that the model cannot see: it is told that there is one, rather than nothing."""
    if rules.modalities is None or "image" in rules.modalities:
        return parts
    shown = tuple([_note(part) if isinstance(part, Image | File) and _is_picture(part) else part for part in parts])
    return shown if shown != parts else parts


def _is_picture(part: Image | File) -> bool:
    return isinstance(part, Image) or (part.media_type or "").startswith("image/")


def _note(part: Image | File) -> Text:
    return Text(f"[{named(part)}: not shown, this model sees no pictures]")


def _reply_parts(message: AssistantMessage, rules: HistoryRules, ids: CallIds) -> tuple[Part, ...]:
    if len(message.parts) == 1 and type(message.parts[0]) is Text and message.parts[0].signature is None:
        return message.parts  # as most are
    origin = f"{message.provider}:{message.model}"
    parts: list[Part] = []
    told: list[int] = []  # places of thoughts that are told as text
    for part in message.parts:
        match part:
            case Text():
                parts.append(_text(part, origin, rules))
            case Thinking():
                thought = None if message.partial else _thought(part, rules)
                if thought is not None:
                    if type(thought) is Text:
                        told.append(len(parts))
                    parts.append(thought)
                elif rules.gaps:
                    parts.append(Thinking())
            case ToolCall():
                parts.append(_call(part, origin, rules, ids))
            case _:
                parts.append(part)
    return tuple(_set_apart(parts, told) if told else parts)


def _set_apart(parts: list[Part], told: list[int]) -> list[Part]:
    """The parts with blank lines between a thought that is told as text and the text around it: some APIs join them."""

    def is_text(place: int) -> bool:
        return 0 <= place < len(parts) and type(parts[place]) is Text

    apart = list(parts)
    for place in told:
        marked = parts[place]
        assert type(marked) is Text
        before, after = "\n\n" * is_text(place - 1), "\n\n" * is_text(place + 1)
        apart[place] = Text(f"{before}{marked.text}{after}")
    return apart


def _text(part: Text, origin: str, rules: HistoryRules) -> Text:
    """Text without a mark that is not the vendor's. A mark names its origin itself, or has the reply's."""
    if part.signature is None or fields_of(part.signature).get("origin", origin) == rules.origin:
        return part
    return Text(part.text)


def _thought(part: Thinking, rules: HistoryRules) -> Thinking | Text | None:
    """A thought for its own model, or what another may know of it."""
    match rules.thoughts:
        case "signed":
            goes_back = bool(part.signature) and part.origin == rules.origin
        case "readable":
            goes_back = _provider(part.origin) == _provider(rules.origin)
        case "never":
            goes_back = False
    if goes_back:
        return part
    is_told = rules.foreign == "text" and part.origin != rules.origin and not part.redacted and part.text.strip()
    return Text(_MARKER.format(part.text.strip())) if is_told else None


def _provider(origin: str | None) -> str:
    return (origin or "").partition(":")[0]


def _call(call: ToolCall, origin: str, rules: HistoryRules, ids: CallIds) -> ToolCall:
    """A call whose id and name are taken, whose arguments are an object, and whose attachments are the vendor's own."""
    opaque = call.opaque
    if opaque and opaque.get("origin", origin) != rules.origin:
        opaque = None
    name = call.name if rules.names is None else rules.names.taken(call.name)
    return ToolCall(id=ids.taken(call.id), name=name, arguments=_sendable(call), opaque=opaque)


def _sendable(call: ToolCall) -> str:
    """The arguments as the model wrote them; an empty object for what is not a JSON object, which servers refuse."""
    try:
        call.parse()
    except (ValueError, RecursionError):
        return "{}"
    return call.arguments if call.arguments.strip() else "{}"
