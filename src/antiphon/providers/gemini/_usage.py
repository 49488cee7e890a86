"""What a reply consumed. Fields: ai.google.dev/api/generate-content, "UsageMetadata".

The counts are cumulative: the last chunk's count. Thoughts are written too, and not among the candidates' tokens; what the
server's own tools read is not among the prompt's.
"""

from typing import Any

from antiphon.providers.lenient import count_in
from antiphon.types.usage import Usage

__all__ = ["usage_of"]

_TAKEN = frozenset(
    {
        "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount",
        "totalTokenCount", "cachedContentTokenCount",
    }
)  # fmt: skip


def usage_of(reported: dict[str, Any]) -> Usage:
    """The report as a `Usage`; what has no field there is in `extra`."""
    thoughts = count_in(reported.get("thoughtsTokenCount"))
    return Usage(
        input=(count_in(reported.get("promptTokenCount")) or 0)
        + (count_in(reported.get("toolUsePromptTokenCount")) or 0),
        output=(count_in(reported.get("candidatesTokenCount")) or 0) + (thoughts or 0),
        total=count_in(reported.get("totalTokenCount")),
        cache_read=count_in(reported.get("cachedContentTokenCount")),
        reasoning=thoughts,
        extra={name: value for name, value in reported.items() if name not in _TAKEN and value is not None} or None,
    )
