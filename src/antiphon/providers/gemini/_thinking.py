"""How a model is told to think: in tokens or in levels, by its generation. Pure.

ai.google.dev/gemini-api/docs/thinking, "Controlling thinking": budgets (`thinkingBudget`) for the 2.5 series, levels
(`thinkingLevel`) from Gemini 3 on, never both. Gemini 2.5 Pro and Gemini 3 always think.
"""

import re
from typing import Any

from msgspec import Struct

from antiphon.types.request import ModelInfo, ModelSettings, ThinkingLevel
from antiphon.types.thinking import LEVELS, effective_thinking

__all__ = ["Family", "family_of", "thinking_config"]

_NAME = re.compile(r"gemini-(?P<major>\d+)(?:\.(?P<minor>\d+))?(?:-(?P<kind>pro|flash))?(?P<lite>-lite)?")
_DYNAMIC = -1
_NAMED: tuple[ThinkingLevel, ...] = ("minimal", "low", "medium", "high", "xhigh")  # those that the API has a word for


class Family(Struct, frozen=True, kw_only=True):
    """What a model's name tells: `version` is (0, 0) where it tells none."""

    version: tuple[int, int] = (0, 0)
    pro: bool = False
    lite: bool = False

    @property
    def has_levels(self) -> bool:
        return self.version >= (3, 0)


def family_of(model: str) -> Family:
    """The family of a model, by its name."""
    found = _NAME.search(model.lower())
    if found is None:
        return Family()
    version = (int(found["major"]), int(found["minor"] or 0))
    return Family(version=version, pro=found["kind"] == "pro", lite=bool(found["lite"]))


def thinking_config(family: Family, settings: ModelSettings, info: ModelInfo) -> dict[str, Any]:
    """`generationConfig.thinkingConfig`; empty where nothing is to be said, or may be."""
    if info.thinking_levels == () or (0, 0) < family.version < (2, 5):
        return {}
    level = effective_thinking(settings.thinking, info)
    display = settings.thinking_display
    if level is None:
        return {"includeThoughts": display == "summarized"} if display else {}
    if level == "off":
        said = _off(family, info)
        return {**said, "includeThoughts": False} if said else {}
    if family.has_levels:
        said = {"thinkingLevel": _word(family, level, info)}
    else:
        said = {"thinkingBudget": _budget(family, level, settings)}
    return {**said, "includeThoughts": display != "omitted"}


def _off(family: Family, info: ModelInfo) -> dict[str, Any]:
    """As little as the model can. Of an unknown one nothing is said: it may refuse."""
    if family.has_levels:
        return {"thinkingLevel": _lowest(family, info)}
    if family.version == (0, 0):
        return {}
    return {"thinkingBudget": 128 if family.pro else 0}


def _word(family: Family, level: ThinkingLevel, info: ModelInfo) -> str:
    """The level's name. Where nothing else is known: Gemini 3 Pro has two levels, 3.1 Pro three, Flash four."""
    if info.thinking_levels is not None:
        return level.upper() if level in _NAMED else "HIGH"
    if LEVELS.index(level) > LEVELS.index("high"):
        return "HIGH"
    if family.pro and level == "minimal":
        return "LOW"
    if family.pro and family.version == (3, 0) and level == "medium":
        return "HIGH"
    return level.upper()


def _lowest(family: Family, info: ModelInfo) -> str:
    known = [level for level in _NAMED if level in (info.thinking_levels or ())]
    return known[0].upper() if known else ("LOW" if family.pro else "MINIMAL")


def _budget(family: Family, level: ThinkingLevel, settings: ModelSettings) -> int:
    """Tokens for the level: those asked for, else a share of what the model may use, else as it likes."""
    asked = (settings.thinking_budgets or {}).get(level)
    if asked is not None:
        return asked
    if family.version == (0, 0):
        return _DYNAMIC
    least, most = (128, 32768) if family.pro else (512 if family.lite else 128, 24576)
    return {"minimal": least, "low": 2048, "medium": 8192}.get(level, most)
