"""How hard a model thinks, and how freely it speaks, as the fields of a request. Pure.

platform.claude.com/docs/en/build-with-claude: extended-thinking (budgets of 1,024 tokens and more, below `max_tokens`; not
together with temperature, `top_p` only from 0.95, no demanded calls), thinking (adaptive; `display`), effort.
"""

from collections.abc import Mapping
from typing import Any

from antiphon.providers.anthropic._models import Rules
from antiphon.types.request import ModelSettings, ThinkingLevel
from antiphon.types.thinking import LEVELS

__all__ = ["budget", "sampling_fields", "silenced", "thinking_fields"]

_BUDGETS: dict[ThinkingLevel, int] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 16_384,
    "max": 16_384,
}
_LEAST_BUDGET = 1_024
_LEAST_ANSWER = 4_096
_LEAST_TOP_P = 0.95


def thinking_fields(settings: ModelSettings, rules: Rules, max_tokens: int, *, blocked: bool) -> dict[str, Any]:
    """`thinking`, and `output_config` with the effort. Empty where the model's own habit is what is wanted.

    `blocked`: this request cannot have a budget, since it goes on with a turn that began without a thought.
    """
    level = settings.thinking
    if rules.thinking == "never" or (level is None and not (rules.unasked and settings.thinking_display)):
        return {}
    if level == "off":
        return _off(rules)
    shown = {"display": settings.thinking_display} if settings.thinking_display else {}
    budgets = settings.thinking_budgets
    if level is not None and (rules.thinking == "budget" or (rules.thinking == "either" and level in (budgets or ()))):
        tokens = None if blocked else budget(level, max_tokens, budgets)
        return {"thinking": {"type": "enabled", "budget_tokens": tokens, **shown}} if tokens else {}
    fields: dict[str, Any] = {"thinking": {"type": "adaptive", **shown}}
    if level is not None and rules.efforts:
        fields["output_config"] = {"effort": _effort(level, rules.efforts)}
    return fields


def silenced(rules: Rules) -> dict[str, Any]:
    """The fields of a request that demands a call, where thinking has no place."""
    return {"thinking": {"type": rules.off}} if rules.unasked and rules.off else {}


def sampling_fields(settings: ModelSettings, rules: Rules, *, thinks: bool) -> dict[str, Any]:
    """Temperature and `top_p`, as far as the model takes them now."""
    temperature, top_p = settings.temperature, settings.top_p
    if thinks:
        temperature, top_p = None, top_p if top_p is not None and top_p >= _LEAST_TOP_P else None
    if rules.sampling == "none":
        return {}
    if rules.sampling == "one" and temperature is not None:
        top_p = None
    given = (("temperature", temperature), ("top_p", top_p))
    return {name: value for name, value in given if value is not None}


def budget(level: ThinkingLevel, max_tokens: int, own: Mapping[ThinkingLevel, int] | None = None) -> int | None:
    """The tokens to think with; `None` if `max_tokens` leaves no room.

    `own` budgets come first; the highest levels use that of the next one below that has one. A quarter of `max_tokens`, at
    least 4,096, stays for the answer, as far as the least budget allows.
    """
    own = own or {}
    upwards = LEVELS[LEVELS.index("high") :]
    lower = upwards[: upwards.index(level) + 1] if level in upwards else (level,)
    wanted = next((own[each] for each in reversed(lower) if each in own), _BUDGETS[level])
    tokens = max(_LEAST_BUDGET, min(wanted, max_tokens - max(_LEAST_ANSWER, max_tokens // 4)))
    return tokens if tokens < max_tokens else None


def _off(rules: Rules) -> dict[str, Any]:
    if rules.off is not None:
        return {"thinking": {"type": rules.off}}
    return {"thinking": {"type": "adaptive"}, "output_config": {"effort": rules.efforts[0]}}


def _effort(level: ThinkingLevel, efforts: tuple[str, ...]) -> str:
    """The model's word for the level, or for the nearest one below it that it has."""
    at_most = LEVELS[: LEVELS.index(level) + 1]
    return next((word for word in reversed(efforts) if word in at_most), efforts[0])
