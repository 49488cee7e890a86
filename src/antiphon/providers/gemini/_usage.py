"""What a reply consumed. Fields: ai.google.dev/api/generate-content, "UsageMetadata".

The counts are cumulative: the last chunk's count. Thoughts are written too, and not among the candidates' tokens; what the
server's own tools read is not among the prompt's.
"""

from typing import Any

from antiphon.types.usage import Usage

__all__ = ["usage_of"]

_TOO_MANY = 2**63
_TAKEN = frozenset(
    {
        "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount",
        "totalTokenCount", "cachedContentTokenCount",
    }
)  # fmt: skip


def usage_of(reported: dict[str, Any]) -> Usage:
    """The report as a `Usage`; what has no field there is in `extra`."""
    thoughts = _count(reported, "thoughtsTokenCount")
    return Usage(
        input=(_count(reported, "promptTokenCount") or 0) + (_count(reported, "toolUsePromptTokenCount") or 0),
        output=(_count(reported, "candidatesTokenCount") or 0) + (thoughts or 0),
        total=_count(reported, "totalTokenCount"),
        cache_read=_count(reported, "cachedContentTokenCount"),
        reasoning=thoughts,
        extra={name: value for name, value in reported.items() if name not in _TAKEN and value is not None} or None,
    )


def _count(report: dict[str, Any], name: str) -> int | None:
    """A number that can be a count: finite, not negative, and of a size that can be added to others."""
    value = report.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _TOO_MANY else None
