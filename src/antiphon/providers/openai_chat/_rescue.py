"""Calls that a model wrote into its text, told as calls.

Off unless a profile says so. Limits: it happens only when tools were offered, when the text is nothing but calls, and when
every name in it is an offered tool's; whatever else looks like a call is text, and never run. A text that may still become
a call is held back until that is settled, which for JSON is the end of the reply.
"""

from collections.abc import Sequence

from antiphon.errors import Garbled
from antiphon.providers.json_text import whole_characters
from antiphon.providers.openai_chat._call_texts import WAYS, Broken, Way
from antiphon.providers.peer import Peer
from antiphon.types.request import Delta, TextChunk, ToolSpec, WarningChunk, WholeCall

__all__ = ["Rescuer"]

_LONGEST_OPENING = max(len(opening) for way in WAYS.values() for opening in way.openings)


class Rescuer:
    """Holds back the text of one reply as long as it may be a call. `ways` are names of `WAYS`."""

    __slots__ = ("_held", "_peer", "_settled", "_tools", "_ways", "called")

    def __init__(self, ways: Sequence[str], tools: Sequence[ToolSpec], peer: Peer) -> None:
        self._ways: tuple[Way, ...] = tuple([way for name, way in WAYS.items() if name in ways]) if tools else ()
        self._tools = {tool.name: tool for tool in tools}
        self._peer = peer
        self._held: list[str] = []
        self._settled = False  # how the text begins is known
        self.called = False

    def feed(self, text: str, out: list[Delta]) -> None:
        """Take the next piece of text."""
        if not text:
            return
        if not self._ways:
            out.append(TextChunk(text))
            return
        self._held.append(text)
        if self._settled:
            return
        lead = "".join(self._held).lstrip()
        self._settled = len(lead) >= _LONGEST_OPENING
        if lead:
            self._ways = tuple([way for way in self._ways if _may_begin(lead, way)])
            if not self._ways:
                self.give_up(out)

    def give_up(self, out: list[Delta]) -> None:
        """It is text after all: a call came in its own field, or there is no way left."""
        self._ways = ()
        if self._held:
            out.append(TextChunk("".join(self._held)))
            self._held.clear()

    def finish(self, out: list[Delta]) -> None:
        """The reply has ended. Raises `Garbled` for half a call of which not even the name can be read."""
        text = whole_characters("".join(self._held)).strip()
        for way in self._ways if text else ():
            found = way.read(text, self._tools)
            if isinstance(found, Broken):
                self._tell_broken(found, out)
                return
            if found is not None and all(call.name in self._tools for call in found):
                self._held.clear()
                self.called = True
                out.append(WarningChunk("rescued_call", "a call that was written as text was taken for a call"))
                out.extend([WholeCall(call.name, call.arguments) for call in found])
                return
        self.give_up(out)

    def _tell_broken(self, found: Broken, out: list[Delta]) -> None:
        """No answer, and nothing to run: the model learns from the arguments that are none, or is asked once more."""
        self._held.clear()
        if found.name not in self._tools:
            text = f"left half a call in its text: {found.text[:80]!r}; ask again"
            raise self._peer.error(Garbled, text, code="malformed_call", recovery="now")
        self.called = True
        out.append(WarningChunk("malformed_call", f"half a call of {found.name!r} was written as text"))
        out.append(WholeCall(found.name, found.text))


def _may_begin(lead: str, way: Way) -> bool:
    return any(lead.startswith(opening) or opening.startswith(lead) for opening in way.openings)
