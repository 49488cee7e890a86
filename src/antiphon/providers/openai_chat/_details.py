"""`reasoning_details`: a gateway's record of a model's thoughts, some of them signed or encrypted, kept word for word.

Shape: openrouter.ai/docs, "Reasoning tokens", "Preserving reasoning": a list of objects with a `type` (`reasoning.text`,
`reasoning.summary`, `reasoning.encrypted`) and an `index`; streamed in fragments, given back whole and in order. Between
the two they are one JSON text, the signature of a `Thinking` part.
"""

from typing import Any

import msgspec

from antiphon.providers.lenient import objects_in

__all__ = ["Details", "details_in", "said_in"]

_GROWING = ("text", "summary", "data")


class Details:
    """Gathers the fragments of a reply's details."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[Any, dict[str, Any], dict[str, list[str]]]] = []

    def add(self, fragments: list[dict[str, Any]]) -> None:
        """Take what one delta says: text grows, whatever else a fragment says is set once."""
        for fragment in fragments:
            place = (fragment.get("type"), fragment.get("index"), fragment.get("id"))
            if not self._entries or self._entries[-1][0] != place or fragment.get("index") is None:
                self._entries.append((place, {}, {}))
            _, fixed, growing = self._entries[-1]
            for name, value in fragment.items():
                if name in _GROWING and isinstance(value, str):
                    growing.setdefault(name, []).append(value)
                    fixed.setdefault(name, "")
                elif value is not None or name not in fixed:
                    fixed[name] = value

    def close(self) -> tuple[str | None, bool]:
        """The details since the last closing as JSON text, `None` if there are none; whether a person can read them."""
        if not self._entries:
            return None, False
        whole = [
            {**fixed, **{name: "".join(texts) for name, texts in growing.items()}}
            for _, fixed, growing in self._entries
        ]
        self._entries.clear()
        return msgspec.json.encode(whole).decode(), bool(said_in(whole))


def said_in(fragments: list[dict[str, Any]]) -> str:
    """The readable text of fragments."""
    texts = [fragment.get("text") or fragment.get("summary") for fragment in fragments]
    return "".join([text for text in texts if isinstance(text, str)])


def details_in(signature: str) -> list[dict[str, Any]]:
    """The details that a signature holds; none if it is of another kind."""
    try:
        whole = msgspec.json.decode(signature)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return []
    return objects_in(whole)
