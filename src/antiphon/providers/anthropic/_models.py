"""What each generation of Claude accepts, by the name of the model. Pure.

platform.claude.com/docs/en: build-with-claude/thinking ("Configuring thinking", "Controlling thinking display");
build-with-claude/effort ("Effort levels"); build-with-claude/structured-outputs; about-claude/models/overview (output
limits); the migration guides of the models from Opus 4.7 on (sampling parameters, thinking that cannot be turned off,
forced tool use).
"""

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

__all__ = ["Rules", "rules_for"]


class Rules(Struct, frozen=True, kw_only=True):
    """What a model takes.

    `thinking`: it never thinks, within a budget of tokens, as much as it likes (adaptive), or either. `unasked`: it thinks
    when nothing is said. `off`: the word that turns thinking off, `None` where nothing does. `efforts`: the words for how
    hard it tries, ascending. `sampling`: whether it takes temperature and `top_p`, one of them, or none. `forced`: whether
    a call may be demanded. `schemas`: whether it keeps to a schema (its reply's, and tools' strict mode).
    `max_tokens` is what it may write unless told otherwise: the API wants a number.
    """

    thinking: Literal["never", "budget", "either", "adaptive"]
    unasked: bool = False
    off: Literal["disabled", "between_tools"] | None = "disabled"
    efforts: tuple[str, ...] = ()
    sampling: Literal["both", "one", "none"] = "none"
    forced: bool = True
    schemas: bool = False
    max_tokens: int = 8_192


_THREE = ("low", "medium", "high")
_FIVE = (*_THREE, "xhigh", "max")

# Not Claude: servers that imitate the API know its extended thinking with a budget, and no more.
_FOREIGN = Rules(thinking="budget", sampling="both")
_CLAUDE_2 = Rules(thinking="never", sampling="both", max_tokens=4_096)
_CLAUDE_3_5 = replace(_CLAUDE_2, max_tokens=8_192)
_CLAUDE_3_7 = Rules(thinking="budget", sampling="both", max_tokens=32_000)
_CLAUDE_4 = replace(_CLAUDE_3_7, sampling="one")
_CLAUDE_4_5 = replace(_CLAUDE_4, schemas=True)
_CLAUDE_4_6 = replace(_CLAUDE_4_5, thinking="either", efforts=(*_THREE, "max"), max_tokens=64_000)
_CLAUDE_4_7 = replace(_CLAUDE_4_6, thinking="adaptive", efforts=_FIVE, sampling="none")
_CLAUDE_5 = replace(_CLAUDE_4_7, unasked=True)
_ALWAYS = replace(_CLAUDE_5, off=None)
_MYTHOS_PREVIEW = replace(_ALWAYS, efforts=(*_THREE, "max"))
_NEWEST = replace(_ALWAYS, forced=False)

# From version to rules, ascending: a version has the rules of the last row that is not above it.
_GENERATIONS: tuple[tuple[tuple[int, int], Rules], ...] = (
    ((0, 0), _CLAUDE_2),
    ((3, 5), _CLAUDE_3_5),
    ((3, 7), _CLAUDE_3_7),
    ((4, 0), _CLAUDE_4),
    ((4, 5), _CLAUDE_4_5),
    ((4, 6), _CLAUDE_4_6),
    ((4, 7), _CLAUDE_4_7),
    ((5, 0), _CLAUDE_5),
    ((5, 1), _NEWEST),
)
# Families that differ from their generation.
_EXCEPTIONS: dict[tuple[str, tuple[int, int]], Rules] = {
    ("fable", (5, 0)): _ALWAYS,
    ("mythos", (5, 0)): _ALWAYS,
    ("sonnet", (5, 5)): replace(_NEWEST, off="between_tools"),
    ("haiku", (5, 5)): _CLAUDE_5,
}

# "claude-opus-4-6", "claude-opus-4.6", "us.anthropic.claude-opus-4-6-v1", "claude-sonnet-4-20250514", "claude-sonnet-4@…"
_NAMED = re.compile(r"claude-(?P<family>[a-z]+)-(?P<major>\d)(?:[-.](?P<minor>\d{1,2}))?(?!\d)")
# "claude-3-7-sonnet-20250219", "claude-2.1"
_NUMBERED = re.compile(r"claude-(?P<major>\d)(?:[-.](?P<minor>\d{1,2}))?(?!\d)")


def rules_for(model: str) -> Rules:
    """The rules of a model; a Claude that is not known yet is taken for the newest, anything else for a plain server."""
    name = model.lower()
    if "claude" not in name:
        return _FOREIGN
    if "claude-mythos-preview" in name:
        return _MYTHOS_PREVIEW
    found = _NAMED.search(name) or _NUMBERED.search(name)
    if found is None:
        return _CLAUDE_2 if "claude-instant" in name else _NEWEST
    parts = found.groupdict()
    version = (int(parts["major"]), int(parts["minor"] or 0))
    exception = _EXCEPTIONS.get((parts.get("family") or "", version))
    if exception is not None:
        return exception
    return next(rules for least, rules in reversed(_GENERATIONS) if least <= version)
