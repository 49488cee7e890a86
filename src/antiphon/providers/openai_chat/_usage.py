"""What a server reports of a reply's cost, in its many spellings, as one `Usage`.

Fields: platform.openai.com/docs/api-reference/chat/object, "usage"; `prompt_cache_hit_tokens` (DeepSeek), `cached_tokens`
(Moonshot), `cost` and `cache_write_tokens` (OpenRouter), `total_time` (Groq), `timings` (llama.cpp's server).
"""

from typing import Any, cast

from antiphon.providers.lenient import count_in, number_in, object_in
from antiphon.providers.openai_chat._chunk import Chunk
from antiphon.types.usage import Usage

__all__ = ["Report", "usage_of"]

_TAKEN = frozenset(
    {
        "prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens", "cost", "total_time",
        "prompt_cache_hit_tokens", "cached_tokens", "reasoning_tokens",
    }
)  # fmt: skip
_TAKEN_DETAILS = frozenset({"cached_tokens", "reasoning_tokens", "cache_write_tokens", "cache_creation_tokens"})


class Report:
    """Gathers what the chunks of one reply report, wherever in the stream it stands. Later counts replace earlier ones.

    `facts` are what goes along in `Usage.extra`: timings, and what content filters found.
    """

    __slots__ = ("_counts", "_told", "facts")

    def __init__(self) -> None:
        self._counts: dict[str, Any] = {}
        self._told: dict[str, Any] | None = None
        self.facts: dict[str, Any] = {}

    def take(self, chunk: Chunk) -> Usage | None:
        """The usage so far, if this chunk says something of it."""
        if chunk.timings:
            self.facts["timings"] = chunk.timings
        if chunk.prompt_filter_results:
            self.facts["prompt_filter_results"] = chunk.prompt_filter_results
        counts = chunk.usage or _object((chunk.x_groq or {}).get("usage"))
        if not counts:
            return None
        if self._counts:  # told before, in part or in full: what is said now counts
            counts = self._counts | {name: value for name, value in counts.items() if value is not None}
        self._counts = counts
        return self._usage()

    def rest(self) -> Usage | None:
        """At the end: the usage with facts that came after it, or by llama.cpp's timings if nothing else told it."""
        if not self._counts:
            self._counts = _counts_of(_object(self.facts.get("timings")))
        return self._usage() if self._counts and self.facts != self._told else None

    def _usage(self) -> Usage:
        self._told = dict(self.facts)
        return usage_of(self._counts, self._told)


def usage_of(reported: dict[str, Any], more: dict[str, Any]) -> Usage:
    """The report as a `Usage`; what has no field there is in `extra`, together with `more`."""
    said = reported.get
    read = _object(said("prompt_tokens_details") or said("input_tokens_details"))
    written = _object(said("completion_tokens_details") or said("output_tokens_details"))
    extra = {name: value for name, value in reported.items() if name not in _TAKEN and _says_more(value)}
    if more:
        extra |= more
    return Usage(
        input=_first(said("prompt_tokens"), said("input_tokens")) or 0,
        output=_first(said("completion_tokens"), said("output_tokens")) or 0,
        total=_first(said("total_tokens")),
        cache_read=_first(read.get("cached_tokens"), said("prompt_cache_hit_tokens"), said("cached_tokens")),
        cache_write=_first(read.get("cache_write_tokens"), read.get("cache_creation_tokens")),
        reasoning=_first(written.get("reasoning_tokens"), said("reasoning_tokens")),
        duration=number_in(said("total_time")),
        cost=number_in(said("cost")),
        extra=extra or None,
    )


def _counts_of(timings: dict[str, Any]) -> dict[str, Any]:
    """llama.cpp's timings as counts (tools/server/README.md, "timings"); none if there are none."""
    read, cached, written = (_first(timings.get(name)) for name in ("prompt_n", "cache_n", "predicted_n"))
    if read is None or written is None:
        return {}
    counts: dict[str, Any] = {"prompt_tokens": read + (cached or 0), "completion_tokens": written}
    return counts if cached is None else counts | {"cached_tokens": cached}


def _says_more(value: Any) -> bool:
    """Whether a field of the report is worth keeping: not a detail of which all is in fields of its own."""
    if isinstance(value, dict):
        details = cast("dict[str, Any]", value)
        return not details.keys() <= _TAKEN_DETAILS
    return value is not None


def _first(*values: Any) -> int | None:
    """The first of these that is a count."""
    return next((count for value in values if (count := count_in(value)) is not None), None)


def _object(value: Any) -> dict[str, Any]:
    return object_in(value) or {}
