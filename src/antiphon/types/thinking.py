"""Thinking levels: from none to as much as a model can."""

from typing import get_args

from antiphon.types.request import ModelInfo, ThinkingLevel

__all__ = ["LEVELS", "effective_thinking"]

LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
"""All levels, the lowest first."""


def effective_thinking(level: ThinkingLevel | None, info: ModelInfo | None) -> ThinkingLevel | None:
    """The level that is really used: the wanted one, or the nearest below it that the model has, else its lowest.

    `off` is never what is left of a wish to think: the least thought of the model is then. A model that does not think
    gets `off`, one of which nothing is known the level as it is.
    """
    if level is None or info is None or info.thinking_levels is None:
        return level
    if level in info.thinking_levels:
        return level
    known = info.thinking_levels
    thinks: list[ThinkingLevel] = [other for other in LEVELS if other in known and other != "off"]
    if not thinks:
        return "off"
    below: list[ThinkingLevel] = [other for other in thinks if LEVELS.index(other) < LEVELS.index(level)]
    return below[-1] if below else thinks[0]
