"""The items of a reply as they come: which item an event belongs to, and what of it was told already.

Shapes: platform.openai.com/docs/api-reference/responses-streaming. An item is announced, grows, and is told once more
when it is done, and again in the last event. Servers leave out any of these, so that each of them only adds what is
still missing.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from antiphon.errors import ModelError
from antiphon.providers.lenient import arguments_in, objects_in, raw_text_in
from antiphon.providers.openai_responses._event import Event
from antiphon.providers.openai_responses._marks import HOSTED, kept_item, text_mark, usable_id
from antiphon.types.request import CallChunk, Delta, TextChunk, ThinkingChunk

__all__ = ["Output", "Section"]

Section: TypeAlias = tuple[str, int]
"""What a piece of an item's text belongs to: a kind of content, and its number."""

_KINDS = frozenset({"message", "reasoning", "function_call"})
_CALL_EXTRAS = ("namespace", "caller")  # docs/guides/tools-tool-search and programmatic tool calling: they go back
_ARGUMENTS: Section = ("arguments", 0)
_REFUSAL = "response.refusal.delta"
_SEPARATOR = "\n\n"  # between the sections of a summary, which are paragraphs with a heading of their own


class _Item:
    """An item as far as it has come. `said` is its text by section; a call has one section."""

    __slots__ = ("announced", "call_id", "complete", "done", "extras", "id", "key", "kind", "name", "said", "told")

    def __init__(self, kind: str, item_id: str) -> None:
        self.kind = kind
        self.id = item_id
        self.key = 0
        self.call_id = ""
        self.name = ""
        self.extras: dict[str, Any] = {}
        self.announced = ""  # arguments that stood in the announcement, should none follow
        self.said: dict[Section, list[str]] = {}
        self.told = False  # a call: its first chunk went out
        self.complete = False  # a call: its arguments ended, be they blank
        self.done = False

    def text(self, section: Section = _ARGUMENTS) -> str:
        return "".join(self.said.get(section, ()))


class Output:
    """The items of one reply.

    An event belongs to the item of its id, if that is known; else to the one at its `output_index` (gateways give an item
    another id in every event); else to the open one of its kind. `refused`: the reply holds a refusal. `garbled` makes
    the error of what cannot be understood.
    """

    __slots__ = ("_by_id", "_by_place", "_garbled", "_items", "_keys", "_last", "_origin", "_reasons", "refused")

    def __init__(self, origin: str | None, garbled: Callable[[str], ModelError]) -> None:
        self._origin = origin
        self._garbled = garbled
        self._items: list[_Item] = []
        self._by_id: dict[str, _Item] = {}
        self._by_place: dict[tuple[str, int], _Item] = {}
        self._keys: set[int] = set()
        self._last: _Item | None = None  # what the last text or thought belongs to: a signature closes that one
        self._reasons = False  # a signed thought came
        self.refused = False

    @property
    def has_calls(self) -> bool:
        return bool(self._keys)

    def announce(self, item: dict[str, Any], index: int | None, out: list[Delta]) -> None:
        """`response.output_item.added`. What stands in it already counts when the item is done."""
        kind = raw_text_in(item.get("type")) or ""
        if kind not in _KINDS:
            return
        opened = self._open(kind, raw_text_in(item.get("id")) or "", index)
        if kind == "function_call":
            self._name(opened, item)
            opened.announced = arguments_in(item.get("arguments")) or ""
            if opened.call_id and opened.name:
                self._tell_call(opened, out)

    def grow(self, kind: str, section: Section, event: Event, out: list[Delta]) -> None:
        """The deltas of a message's text and refusal, and of a thought and its summary."""
        if event.delta:
            self.refused = self.refused or event.type == _REFUSAL
            self._say(self._growing(kind, event), section, event.delta, out)

    def end_section(self, kind: str, section: Section, event: Event, out: list[Delta]) -> None:
        """The end of a section, told whole: what its deltas left out is added."""
        whole = event.text or event.refusal
        if whole:
            self.refused = self.refused or bool(event.refusal)
            self._say_rest(self._growing(kind, event, closing=True), section, whole, out)

    def arguments(self, event: Event, out: list[Delta]) -> None:
        """`response.function_call_arguments.delta`. A call that was not announced waits for its name."""
        if event.delta:
            call = self._growing("function_call", event)
            call.said.setdefault(_ARGUMENTS, []).append(event.delta)
            if call.told:
                out.append(CallChunk(call.key, "", "", event.delta))

    def arguments_done(self, event: Event, out: list[Delta]) -> None:
        """`response.function_call_arguments.done`. Raises if the arguments are others than those told."""
        if event.arguments or self._found("function_call", event) is not None:
            call = self._growing("function_call", event, closing=True)
            call.complete = True
            self._complete(call, event.arguments or "", out)

    def done(self, item: dict[str, Any], index: int | None, out: list[Delta]) -> str | None:
        """`response.output_item.done`. Gives the item's kind if it is of no use here. Raises as above."""
        kind = raw_text_in(item.get("type")) or ""
        if kind not in _KINDS and kind not in HOSTED:
            return kind
        known = self._known(kind, item, index)
        if known is None or _is_another_call(known, item) or (known.done and not _is_same(known, item)):
            known = self._open(kind, raw_text_in(item.get("id")) or "", index)
        if not known.done:
            known.done = True
            self._close(known, item, out)
        return None

    def settle(self, items: list[dict[str, Any]], out: list[Delta]) -> None:
        """The items as the last event tells them. Of a kind that was streamed, only calls with an id can be new."""
        seen = {item.kind for item in self._items}
        for place, item in enumerate(items):
            kind = raw_text_in(item.get("type")) or ""
            known = self._known(kind, item, place)
            if known is None or (kind == "function_call" and not _is_same(known, item)):
                if kind in seen and not (kind == "function_call" and item.get("call_id")):
                    continue
            elif known.done:
                continue
            self.done(item, place, out)

    def close(self, out: list[Delta], *, whole: bool) -> None:
        """The reply has ended: calls that were never told to be done. `whole`: it is not cut off.

        Raises for a call of a whole reply whose arguments never came: to run it without them would be wrong.
        """
        for call in self._items:
            if call.kind != "function_call" or call.done:
                continue
            if call.announced and not call.text():
                self._complete(call, call.announced, out)
            if whole and not call.text() and not call.complete:
                raise self._garbled(f"never sent the arguments of its call of {call.name!r}")
            if not call.told:
                self._tell_call(call, out)

    def _close(self, item: _Item, told: dict[str, Any], out: list[Delta]) -> None:
        match item.kind:
            case "message":
                self._close_message(item, told, out)
            case "function_call":
                self._name(item, told)
                announced = "" if item.text() else item.announced
                self._complete(item, arguments_in(told.get("arguments")) or announced, out)
                if not item.told:
                    self._tell_call(item, out)
            case "reasoning":
                for section, summary in enumerate(objects_in(told.get("summary"))):
                    self._say_rest(item, ("summary", section), raw_text_in(summary.get("text")) or "", out)
                for section, content in enumerate(objects_in(told.get("content"))):
                    self._say_rest(item, ("content", section), raw_text_in(content.get("text")) or "", out)
                self._sign(item, told, out)
            case _:
                self._sign(item, told, out)

    def _close_message(self, item: _Item, told: dict[str, Any], out: list[Delta]) -> None:
        for section, part in enumerate(objects_in(told.get("content"))):
            refusal = raw_text_in(part.get("refusal"))
            self.refused = self.refused or bool(refusal)
            self._say_rest(item, ("content", section), refusal or raw_text_in(part.get("text")) or "", out)
        if item.said and self._last is item:
            mark = text_mark(told, self._origin, with_id=self._reasons)
            if mark:
                out.append(TextChunk("", mark))

    def _sign(self, item: _Item, told: dict[str, Any], out: list[Delta]) -> None:
        """Close the thought with what the server wants back. Without readable text it stands alone."""
        signature = kept_item(told)
        if signature is not None:
            self._reasons = True
            out.append(ThinkingChunk("", signature, redacted=self._last is not item))
            self._last = None

    def _say(self, item: _Item, section: Section, text: str, out: list[Delta]) -> None:
        said = item.said.get(section)
        if item.kind == "reasoning":
            first = said is None and bool(item.said)
            out.append(ThinkingChunk(_SEPARATOR + text if first else text))
        else:
            out.append(TextChunk(text))
        if said is None:
            item.said[section] = [text]
        else:
            said.append(text)
        self._last = item

    def _say_rest(self, item: _Item, section: Section, whole: str, out: list[Delta]) -> None:
        said = item.text(section)
        if not said and item.kind == "reasoning" and any(item.text(other) == whole for other in item.said):
            return  # streamed as a thought and told as its summary, or the other way round
        if len(whole) > len(said) and whole.startswith(said):
            self._say(item, section, whole[len(said) :], out)

    def _complete(self, call: _Item, whole: str, out: list[Delta]) -> None:
        """Add what the deltas left out. Both may be written differently, but they must say the same."""
        said = call.text()
        if whole.startswith(said):
            rest = whole[len(said) :]
            if rest:
                call.said.setdefault(_ARGUMENTS, []).append(rest)
                if call.told:
                    out.append(CallChunk(call.key, "", "", rest))
        elif whole.strip() and not _says_same(said, whole):
            raise self._garbled(f"told its call of {call.name!r} twice, with different arguments")

    def _tell_call(self, call: _Item, out: list[Delta]) -> None:
        call.told = True
        opaque = {"origin": self._origin, **call.extras} if call.extras else None
        out.append(CallChunk(call.key, call.call_id, call.name, call.text(), opaque))

    def _name(self, call: _Item, item: dict[str, Any]) -> None:
        """What names the call is set once."""
        call.call_id = call.call_id or raw_text_in(item.get("call_id")) or ""
        call.name = call.name or raw_text_in(item.get("name")) or ""
        if not call.extras:
            own_id = usable_id(item.get("id"))
            call.extras = {"id": own_id} if own_id else {}
            call.extras |= {name: item[name] for name in _CALL_EXTRAS if item.get(name)}

    def _growing(self, kind: str, event: Event, *, closing: bool = False) -> _Item:
        """The item that an event goes on with. One that is done does not grow; the end of a section may still come."""
        item = self._found(kind, event)
        if item is None or (item.done and not closing):
            return self._open(kind, event.item_id or "", event.output_index)
        return item

    def _found(self, kind: str, event: Event) -> _Item | None:
        item = self._by_id.get(event.item_id) if event.item_id else None
        return item if item is not None and item.kind == kind else self._at(kind, event.output_index)

    def _known(self, kind: str, item: dict[str, Any], index: int | None) -> _Item | None:
        """The item that is told once more."""
        known = self._by_id.get(raw_text_in(item.get("id")) or "")
        if known is not None and known.kind == kind:
            return known
        if call_id := raw_text_in(item.get("call_id")):
            for call in self._items:
                if call.call_id == call_id and call.kind == kind:
                    return call
        return self._at(kind, index)

    def _at(self, kind: str, index: int | None) -> _Item | None:
        if index is not None:
            return self._by_place.get((kind, index))
        return next((item for item in reversed(self._items) if item.kind == kind and not item.done), None)

    def _open(self, kind: str, item_id: str, index: int | None) -> _Item:
        item = _Item(kind, item_id)
        self._items.append(item)
        if item_id:
            self._by_id[item_id] = item
        if index is not None:
            self._by_place[kind, index] = item
        if kind == "function_call":
            free = index is not None and index not in self._keys
            item.key = index if index is not None and free else max(self._keys, default=-1) + 1
            self._keys.add(item.key)
        return item


def _is_another_call(known: _Item, item: dict[str, Any]) -> bool:
    return bool(known.call_id and item.get("call_id")) and known.call_id != item["call_id"]


def _is_same(known: _Item, item: dict[str, Any]) -> bool:
    """Whether an item that is told once more can be this one, by whatever ids both have."""
    if known.call_id and item.get("call_id"):
        return known.call_id == item["call_id"]
    return not known.id or not item.get("id") or known.id == item["id"]


def _says_same(one: str, other: str) -> bool:
    try:
        return msgspec.json.decode(one) == msgspec.json.decode(other)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
