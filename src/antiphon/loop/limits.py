"""Limits: how much a run may use, in one accounting."""

import math
from typing import Literal, NamedTuple

from msgspec import Struct

from antiphon.errors import UsageError
from antiphon.loop.state import Counters
from antiphon.types.request import ModelInfo

__all__ = ["DEFAULT_MAX_TURNS", "Limits", "Reached", "check_limits", "exceeded"]

DEFAULT_MAX_TURNS = 50
"""How many replies a run may take, unless its limits say otherwise."""

Which = Literal["turns", "requests", "tool_calls", "tokens", "cost", "seconds", "invalid_calls"]


class Limits(Struct, frozen=True, kw_only=True):
    """What a run may use; `None` turns a limit off.

    `turns` are model replies (a repeated attempt is the same turn), `requests` are attempts, `tool_calls` bodies that
    were started, `tokens` input and output together, `cost` US dollars, `seconds` the time a run has worked (resumed
    runs carry it on), `invalid_calls` calls in a row that named no tool or had bad arguments. They are checked before a
    request: the calls of the last reply run and are kept, and the run can be resumed under a higher limit.
    """

    turns: int | None = DEFAULT_MAX_TURNS
    requests: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    invalid_calls: int | None = 5


class Reached(NamedTuple):
    """A limit that was met."""

    which: Which
    limit: float


def check_limits(limits: Limits, info: ModelInfo | None) -> None:
    """Raise `UsageError` for limits that cannot be kept."""
    for name in Limits.__struct_fields__:
        value = getattr(limits, name)
        if value is not None and (math.isnan(value) or value < 0):
            raise UsageError(f"the limit {name}={value!r} is not a number from 0 up; give one, or None to turn it off")
    if limits.cost is not None and (info is None or info.prices is None or not info.prices.known):
        model = info.origin if info else "the model"
        raise UsageError(f"a cost limit needs prices, and those of {model} are not known; give them in its ModelInfo")


def exceeded(limits: Limits, counters: Counters, seconds: float) -> Reached | None:
    """The first limit that forbids another request, if there is one."""
    usage = counters.usage
    used: dict[Which, float] = {
        "turns": counters.turns,
        "requests": counters.requests,
        "tool_calls": counters.tool_calls,
        "tokens": usage.total if usage.total is not None else usage.input + usage.output,
        "cost": usage.cost or 0.0,
        "seconds": seconds,
        "invalid_calls": counters.invalid_calls,
    }
    for which, amount in used.items():
        limit = getattr(limits, which)
        if limit is not None and amount >= limit:
            return Reached(which, limit)
    return None
