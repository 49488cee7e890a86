"""From the bytes of an answer to events, and the address that is asked."""

import json
from urllib.parse import urlsplit, urlunsplit

from antiphon.errors import Garbled, UsageError
from antiphon.wire.sse import SseEvent, SseParser

__all__ = ["Events", "endpoint"]


class Events:
    """The events of a body: a stream of them, or the one of a server that answers with a whole JSON document."""

    __slots__ = ("_begun", "_body", "_parser", "_provider", "_request_id")

    def __init__(self, provider: str, request_id: str | None) -> None:
        self._provider = provider
        self._request_id = request_id
        self._parser = SseParser()
        self._body: list[bytes] | None = None
        self._begun = False

    def feed(self, data: bytes) -> list[SseEvent]:
        """The events that `data` completes. Raises `Garbled` for a page of HTML and for an event without end."""
        if not self._begun:
            self._begin(data)
        if self._body is None:
            return self._parser.feed(data)
        self._body.append(data)
        return []

    def finish(self) -> list[SseEvent]:
        """What is left at the end. An event that the end cut in two is none: the lack of a marker tells of the loss."""
        if self._body is not None:
            return [event for event in (SseEvent(b"".join(self._body)),) if not _is_cut(event.data)]
        return [event for event in self._parser.finish() if not _is_cut(event.data)]

    def _begin(self, data: bytes) -> None:
        """The first byte tells more than the content type, which servers get wrong."""
        first = data.lstrip()[:1]
        if not first:
            return
        self._begun = True
        if first in (b"{", b"["):
            self._body = []
        elif first == b"<":
            raise Garbled(
                f"{self._provider!r} answers with a page of HTML; check the base URL",
                recovery="never",
                provider=self._provider,
                request_id=self._request_id,
            )


def endpoint(base_url: str, path: str, query: str = "") -> str:
    """The address of `path` under a base URL, which may have a query of its own.

    Raises `UsageError` for what is no address.
    """
    try:
        parts = urlsplit(base_url)
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"no base URL: {base_url!r}; give one as in 'https://generativelanguage.googleapis.com/v1beta'"
        )
    both = "&".join(filter(None, (parts.query, query)))
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path, query=both))


def _is_cut(data: bytes) -> bool:
    try:
        json.loads(data, strict=False)
    except (ValueError, RecursionError):
        return data.lstrip()[:1] in (b"{", b"[")
    return False
