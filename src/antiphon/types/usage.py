"""What a model request consumed."""

from typing import Any, TypeVar

from msgspec import Struct

__all__ = ["Usage"]

N = TypeVar("N", int, float)


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tokens, time and money. What the provider did not report is `None`, never 0.

    `input` counts every token that the model read, those from and into a cache included (`cache_read` and `cache_write`
    say how many of them; of the latter `cache_write_long` are kept for the longer of two times, where there are two);
    `output` counts every token it wrote, `reasoning` of them unseen. `duration` is in seconds, `cost` in US dollars.
    `extra` carries whatever else the provider said, as it said it.
    """

    input: int = 0
    output: int = 0
    total: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cache_write_long: int | None = None
    reasoning: int | None = None
    duration: float | None = None
    cost: float | None = None
    extra: dict[str, Any] | None = None

    def __add__(self, other: "Usage") -> "Usage":
        """The sum. A number that only one side reported is kept; `extra` is not summed (see the last request's)."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            total=plus(self.total, other.total),
            cache_read=plus(self.cache_read, other.cache_read),
            cache_write=plus(self.cache_write, other.cache_write),
            cache_write_long=plus(self.cache_write_long, other.cache_write_long),
            reasoning=plus(self.reasoning, other.reasoning),
            duration=plus(self.duration, other.duration),
            cost=plus(self.cost, other.cost),
        )


def plus(a: N | None, b: N | None) -> N | None:
    if a is None:
        return b
    return a if b is None else a + b
