"""What a request consumed, and sums of it."""

from functools import reduce
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.types.usage import Usage

often = settings(deadline=None, max_examples=200)

COUNTS = st.integers(0, 10**9)
NUMBERS = st.none() | COUNTS
USAGES = st.builds(
    Usage, input=COUNTS, output=COUNTS, total=NUMBERS, cache_read=NUMBERS, cache_write=NUMBERS, reasoning=NUMBERS,
    duration=st.none() | COUNTS.map(float), cost=st.none() | COUNTS.map(float),
)  # fmt: skip


def test_a_sum_adds_what_both_report_and_keeps_what_one_does() -> None:
    """A number that nobody reported stays absent: 0 would claim that nothing was read from the cache."""
    first = Usage(input=10, output=5, total=15, cache_read=4, duration=0.5)
    second = Usage(input=1, output=2, cache_read=1, reasoning=2, cost=0.25)
    assert first + second == Usage(
        input=11, output=7, total=15, cache_read=5, reasoning=2, duration=0.5, cost=0.25, cache_write=None
    )


def test_zero_is_a_report() -> None:
    """A provider that says that nothing came from the cache has said something."""
    assert (Usage(cache_read=0) + Usage()).cache_read == 0
    assert (Usage() + Usage(cache_read=0)).cache_read == 0


def test_extra_is_not_summed() -> None:
    """Nobody knows what it means; the last request's is told apart."""
    assert (Usage(extra={"a": 1}) + Usage(extra={"a": 2})).extra is None


@given(st.lists(USAGES, max_size=5), st.randoms(use_true_random=False))
@often
def test_the_order_of_a_sum_does_not_matter(usages: list[Usage], random: Random) -> None:
    """Attempts, turns and sub-agents end in any order."""
    shuffled = list(usages)
    random.shuffle(shuffled)
    assert reduce(Usage.__add__, shuffled, Usage()) == reduce(Usage.__add__, usages, Usage())


@given(USAGES)
@often
def test_nothing_added_changes_nothing(usage: Usage) -> None:
    """A run starts with an empty sum."""
    assert usage + Usage() == Usage() + usage == usage


def test_it_does_not_change() -> None:
    with pytest.raises(AttributeError):
        Usage().input = 1  # pyright: ignore[reportAttributeAccessIssue] - the fault under test
