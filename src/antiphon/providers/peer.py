"""The server at the other end as a decoder speaks of it: its errors, its oddities, its JSON."""

from typing import Any, Final

from antiphon.errors import Garbled, ModelError, Recovery
from antiphon.providers.json_text import read_patiently
from antiphon.types.request import Delta, WarningChunk
from antiphon.wire.status import error_for_event

__all__ = ["DONE", "Peer"]

DONE: Final = object()
"""What `Peer.read` gives for the marker that ends a stream in the older OpenAI API, and in imitations of others."""

_SHOWN = 80  # characters of what is no JSON


class Peer:
    """Names the server in every error, and warns of each oddity once: an odd server is odd in every event."""

    __slots__ = ("_warned", "name", "request_id")

    def __init__(self, name: str, request_id: str | None) -> None:
        self.name = name
        self.request_id = request_id
        self._warned: set[str] = set()

    def error(
        self, kind: type[ModelError], text: str, *, code: str | None = None, recovery: Recovery | None = None
    ) -> ModelError:
        """The server's name in front of what it did."""
        return kind(
            f"{self.name!r} {text}", code=code, recovery=recovery, provider=self.name, request_id=self.request_id
        )

    def reported(self, body: bytes) -> ModelError:
        """The error that the server reports in the middle of a stream."""
        return error_for_event(body, self.name, self.request_id)

    def too_deep(self) -> ModelError:
        """What was sent cannot be written as JSON again."""
        return self.error(Garbled, "sent JSON that is nested too deeply; ask again")

    def warn(self, code: str, text: str, out: list[Delta], *, once: str | None = None) -> None:
        """Tell of an oddity, once for `once`, or for the code."""
        key = once or code
        if key not in self._warned:
            self._warned.add(key)
            out.append(WarningChunk(code, text))

    def read(self, payload: bytes, event: str = "message") -> Any:
        """The JSON of an event that the fast decoder did not take; `None` where nothing is said.

        Raises the error that an event named `error` reports, and `Garbled` for what is no JSON.
        """
        text = payload.decode(errors="replace").strip()
        while text.startswith("data:"):  # a gateway that frames what is framed already
            text = text[5:].strip()
        if not text:
            return None
        if text in {"[DONE]", "DONE"}:
            return DONE
        if event == "error":
            raise self.reported(payload)
        try:
            return read_patiently(text)
        except ValueError as error:
            shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            raise self.error(Garbled, f"sent what is not JSON: {shown!r}; ask again") from error
