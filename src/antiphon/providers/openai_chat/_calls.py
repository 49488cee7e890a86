"""Fragments to calls: which call a fragment belongs to, whatever the server's habits are."""

from typing import Any

import msgspec

from antiphon.providers.openai_chat._chunk import Fragment
from antiphon.types.request import CallChunk, Delta

__all__ = ["Calls"]


class _Call:
    """A call as far as it has come. `told`: its first chunk went out, so that its name is complete."""

    __slots__ = ("arguments", "id", "index", "key", "name", "opaque", "told")

    def __init__(self, key: int, index: int | None, call_id: str) -> None:
        self.key = key
        self.index = index
        self.id = call_id
        self.name = ""
        self.arguments: list[str] = []
        self.opaque: dict[str, Any] | None = None
        self.told = False

    def is_whole(self) -> bool:
        """Whether the arguments so far are a JSON object, so that more of them would spoil it."""
        try:
            return isinstance(msgspec.json.decode("".join(self.arguments)), dict)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False


class Calls:
    """Routes the fragments of one reply.

    A fragment goes on with the call of its id; without one, of its index; without either, of its place among several
    in one delta, else the call that is open. A new id opens a new call, also under an index that is taken, unless it
    comes without a name while the call before is not whole; an empty id is none. `key` orders the calls of the message:
    it is the index where the server gives one that is free.

    A name that comes again is not added. It may come in pieces as long as no arguments field came: then the pieces are
    added, or the longer text taken if each piece repeats the former; so the first chunk of a call waits for the
    arguments field, which servers send with the name, be it "". Whatever names a call is set once.
    """

    __slots__ = ("_by_id", "_by_index", "_calls", "_keys", "_origin")

    def __init__(self, origin: str | None) -> None:
        self._origin = origin
        self._calls: list[_Call] = []
        self._by_id: dict[str, _Call] = {}
        self._by_index: dict[int, _Call] = {}
        self._keys: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, fragments: list[Fragment], out: list[Delta]) -> None:
        """Take the fragments of one delta; what they tell goes to `out`."""
        for place, fragment in enumerate(fragments):
            function, index = fragment.function, fragment.index
            # The one that comes most often, first: the next arguments of a call that is known by its index.
            if function and index is not None and not fragment.id and not function.name and not fragment.extra_content:
                call = self._by_index.get(index)
                if call is not None and call.told:
                    if function.arguments:
                        call.arguments.append(function.arguments)
                        out.append(CallChunk(call.key, "", "", function.arguments))
                    continue
            self._add(fragment, place if len(fragments) > 1 else None, out)

    def close(self, out: list[Delta]) -> None:
        """The reply has ended: tell the calls that still wait for more of their name."""
        for call in self._calls:
            if not call.told and (call.id or call.name):
                self._tell(call, out)

    def _add(self, fragment: Fragment, place: int | None, out: list[Delta]) -> None:
        function = fragment.function
        name = (function.name if function else None) or ""
        arguments = function.arguments if function else None
        call = self._find(fragment, name, arguments or "", place)
        if call is None:
            if not (fragment.id or name or arguments):
                return  # an empty delta, as some servers send while they think
            call = self._open(fragment)
        late_id = fragment.id if fragment.id and not call.id else ""
        if late_id:
            call.id = late_id
            self._by_id[late_id] = call
        late_name = name if not call.name and call.told else ""
        if not call.told or late_name:
            call.name = _longer_name(call.name, name)
        opaque = self._opaque(fragment)
        if arguments:
            call.arguments.append(arguments)
        if not call.told:
            call.opaque = opaque or call.opaque
            if arguments is not None:
                self._tell(call, out)
        elif late_id or late_name or opaque or arguments:
            out.append(CallChunk(call.key, late_id, late_name, arguments or "", opaque))

    def _tell(self, call: _Call, out: list[Delta]) -> None:
        call.told = True
        out.append(CallChunk(call.key, call.id, call.name, "".join(call.arguments), call.opaque))

    def _opaque(self, fragment: Fragment) -> dict[str, Any] | None:
        """What the server attached to the call, with the model that it must go back to."""
        if not fragment.extra_content:
            return None
        opaque = {"extra_content": fragment.extra_content}
        return {"origin": self._origin, **opaque} if self._origin else opaque

    def _open(self, fragment: Fragment) -> _Call:
        index = fragment.index
        key = index if index is not None and index not in self._keys else max(self._keys, default=-1) + 1
        call = _Call(key, index, fragment.id or "")
        self._keys.add(key)
        if index is not None:
            self._by_index[index] = call
        else:  # its place stands for the index, should the server begin to name one
            self._by_index.setdefault(len(self._calls), call)
        if call.id:
            self._by_id[call.id] = call
        self._calls.append(call)
        return call

    def _find(self, fragment: Fragment, name: str, arguments: str, place: int | None) -> _Call | None:
        """The call that a fragment goes on with; `None` for a new one."""
        at_index = self._by_index.get(fragment.index) if fragment.index is not None else None
        if fragment.id:
            return self._find_by_id(fragment, name, at_index)
        if at_index is not None:
            return None if _begins_anew(at_index, name, arguments) else at_index
        if fragment.index is not None and name:
            return None
        if place is not None and fragment.index is None:
            at_place = self._calls[place] if place < len(self._calls) else None
            if at_place is None:
                return None if name or not self._calls else self._calls[-1]
            return None if _begins_anew(at_place, name, arguments) else at_place
        if not self._calls or _begins_anew(self._calls[-1], name, arguments):
            return None
        return self._calls[-1]

    def _find_by_id(self, fragment: Fragment, name: str, at_index: _Call | None) -> _Call | None:
        index = fragment.index
        if at_index is not None and (at_index.id == fragment.id or (not at_index.id and name == at_index.name)):
            return at_index
        known = self._by_id.get(fragment.id or "")
        if known is not None:
            return known if index is None or known.index is None or known.index == index else None
        current = self._calls[-1] if index is None and self._calls else at_index
        if current is not None and not name and not (current.id and current.is_whole()):
            return current  # the id comes late, or the server makes up a new one for every fragment
        return None


def _begins_anew(call: _Call, name: str, arguments: str) -> bool:
    """Whether a fragment without an id, which would go on with `call`, must be another call.

    It must if it has another name, once the call's own is complete, or more arguments although they are whole.
    """
    if not name or not call.name or not call.told:
        return False
    return name != call.name or (bool(arguments.strip()) and call.is_whole())


def _longer_name(known: str, name: str) -> str:
    if not name or name == known:
        return known
    return name if name.startswith(known) else known + name
