"""From the bytes of an answer to events, and the address that is asked."""

import re
from urllib.parse import urlsplit, urlunsplit

from antiphon.errors import Garbled, UsageError
from antiphon.providers.json_text import read_patiently
from antiphon.wire.sse import SseEvent, SseParser

__all__ = ["Events", "endpoint"]

_BEGINS_JSON = (b"{", b"[")


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
        left = self._parser.finish() if self._body is None else [SseEvent(b"".join(self._body))]
        return [event for event in left if not _is_cut(event)]

    def _begin(self, data: bytes) -> None:
        """The first byte tells more than the content type, which servers get wrong."""
        first = data.lstrip()[:1]
        if not first:
            return
        self._begun = True
        if first in _BEGINS_JSON:
            self._body = []
        elif first == b"<":
            raise Garbled(
                f"{self._provider!r} answers with a page of HTML; check the base URL",
                recovery="never",
                provider=self._provider,
                request_id=self._request_id,
            )


def endpoint(base_url: str, path: str, *, known: tuple[str, ...] = (), query: str = "", example: str) -> str:
    """The address of `path` under a base URL, which may have a query of its own.

    `known` are ends that a base URL may have already, taken off in this order. Raises `UsageError`, which shows
    `example`, for what is no address.
    """
    try:
        parts = urlsplit(base_url)
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(f"no base URL: {base_url!r}; give one as in {example!r}")
    base = parts.path.rstrip("/")
    for end in known:
        base = base.removesuffix(end)
    both = "&".join(filter(None, (parts.query, query)))
    return urlunsplit(parts._replace(path=base + path, query=both))


_DONE = re.compile(rb"\s*\[DONE\]\s*")


def _is_cut(event: SseEvent) -> bool:
    """Whether the data begins as JSON and ends before its end. The words of an error count as far as they came."""
    data = event.data
    if event.event == "error" or data.lstrip()[:1] not in _BEGINS_JSON or _DONE.fullmatch(data):
        return False
    try:
        read_patiently(data.decode(errors="replace"))
    except ValueError:
        return True
    return False
