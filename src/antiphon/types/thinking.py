"""Thinking levels: from none to as much as a model can."""

from typing import get_args

from antiphon.types.request import ModelInfo, ThinkingLevel

__all__ = ["LEVELS", "effective_thinking"]

LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
"""All levels, the lowest first."""


def effective_thinking(level: ThinkingLevel | None, info: ModelInfo | None) -> ThinkingLevel | None:
    """The level that is really used: the wanted one, or the nearest below it that the model has, else its lowest.

    A model of which nothing is known gets the level as it is.
    """
    if level is None or info is None or info.thinking_levels is None:
        return level
    if level in info.thinking_levels:
        return level
    levels = info.thinking_levels
    known: list[ThinkingLevel] = [other for other in LEVELS if other in levels]
    below: list[ThinkingLevel] = [other for other in known if LEVELS.index(other) < LEVELS.index(level)]
    if below:
        return below[-1]
    return known[0] if known else "off"
