"""What the API reports of a reply's cost as one `Usage`.

Fields: platform.claude.com/docs/en/api/messages/create, "usage" (the input is what was neither in the cache nor put there,
so that all three make up what was read; "cache_creation" splits what was put there by how long it stays);
build-with-claude/streaming ("The token counts shown in the usage field of the message_delta event are cumulative").
"""

from typing import Any

from antiphon.providers.lenient import count_in, object_in
from antiphon.types.usage import Usage

__all__ = ["Report"]

_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class Report:
    """Gathers what the events of one reply report. Counts only grow: some servers say 0 where they mean nothing."""

    __slots__ = ("_counts", "_rest")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._rest: dict[str, Any] = {}

    def take(self, reported: dict[str, Any] | None) -> Usage | None:
        """The usage so far, if this event says something of it."""
        if not reported:
            return None
        for name, value in reported.items():
            if name in _COUNTS:
                count = count_in(value)
                if count is not None:
                    self._counts[name] = max(count, self._counts.get(name, 0))
            elif value is not None:
                self._rest[name] = value
        return self._usage()

    def _usage(self) -> Usage:
        read, written = self._counts.get(_COUNTS[1]), self._counts.get(_COUNTS[2])
        kept = object_in(self._rest.get("cache_creation")) or {}
        details = object_in(self._rest.get("output_tokens_details")) or {}
        return Usage(
            input=self._counts.get(_COUNTS[0], 0) + (read or 0) + (written or 0),
            output=self._counts.get(_COUNTS[3], 0),
            cache_read=read,
            cache_write=written,
            cache_write_long=count_in(kept.get("ephemeral_1h_input_tokens")),
            reasoning=count_in(details.get("thinking_tokens")),
            extra=dict(self._rest) or None,
        )
