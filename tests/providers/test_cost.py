"""What a request costs."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from antiphon.providers.anthropic.decode import AnthropicDecoder
from antiphon.providers.catalogue import model_info
from antiphon.types.request import Prices, PriceTier, UsageChunk
from antiphon.types.usage import Usage

often = settings(deadline=None, max_examples=200)

SONNET = Prices(input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_long=6)

COUNTS = st.integers(0, 10**7)
PRICES = st.floats(0.001, 1000)
MAYBE = st.none() | PRICES


def tiers() -> st.SearchStrategy[tuple[PriceTier, ...]]:
    tier = st.builds(PriceTier, above=COUNTS, input=PRICES, output=PRICES, cache_read=MAYBE, cache_write=MAYBE)
    return st.lists(tier, max_size=3, unique_by=lambda each: each.above).map(tuple)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    read, written, plain = draw(COUNTS), draw(COUNTS), draw(COUNTS)
    return Usage(
        input=plain + read + written,
        output=draw(COUNTS),
        cache_read=read,
        cache_write=written,
        cache_write_long=draw(st.integers(0, written)),
    )


def known_prices() -> st.SearchStrategy[Prices]:
    return st.builds(
        Prices, input=PRICES, output=PRICES, cache_read=MAYBE, cache_write=MAYBE, cache_write_long=MAYBE, tiers=tiers()
    )


@pytest.mark.parity("C20")
@pytest.mark.parametrize(
    ("plain", "output", "read", "written", "cost"),
    [
        (1000, 500, 0, 0, 0.0105),
        (0, 0, 0, 0, 0),
        (1, 1, 1, 1, 0.00002205),
        (123456, 7890, 1000000, 2000, 0.796218),
    ],
)
def test_each_token_is_counted_once_at_its_own_price(
    plain: int, output: int, read: int, written: int, cost: float
) -> None:
    """`input` counts what came from the cache too; taking both at full price would bill it twice."""
    usage = Usage(input=plain + read + written, output=output, cache_read=read, cache_write=written)
    assert SONNET.cost(usage) == pytest.approx(cost)


@pytest.mark.parametrize("prices", [Prices(), Prices(input=3), Prices(output=15), Prices(cache_read=1, cache_write=1)])
def test_an_unknown_price_is_no_cost_at_all(prices: Prices) -> None:
    """0 would be a run that costs nothing, under any limit."""
    assert prices.cost(Usage(input=10, output=10)) is None
    assert prices.cost(Usage()) is None


def test_cached_tokens_without_a_price_of_their_own_cost_what_others_do() -> None:
    prices = Prices(input=2, output=8)
    assert prices.cost(Usage(input=1_000_000, cache_read=400_000, cache_write=500_000)) == pytest.approx(2)


def test_what_is_kept_longer_in_a_cache_costs_more() -> None:
    """platform.claude.com/docs/en/build-with-claude/prompt-caching, "Pricing": an hour costs twice the input."""
    assert SONNET.cost(Usage(input=1_000_000, cache_write=1_000_000, cache_write_long=1_000_000)) == pytest.approx(6)
    assert SONNET.cost(Usage(input=1_000_000, cache_write=1_000_000, cache_write_long=400_000)) == pytest.approx(
        0.6 * 3.75 + 0.4 * 6
    )
    unpriced = Prices(input=3, output=15, cache_write=3.75)
    assert unpriced.cost(Usage(input=10**6, cache_write=10**6, cache_write_long=10**6)) == pytest.approx(3.75)


def test_what_anthropic_reports_of_an_hour_s_cache_is_billed_as_such() -> None:
    """platform.claude.com/docs/en/build-with-claude/prompt-caching, "1-hour cache duration": `cache_creation` splits it."""
    counts = {
        "input_tokens": 100_000,
        "cache_creation_input_tokens": 500_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 200_000, "ephemeral_1h_input_tokens": 300_000},
        "output_tokens": 0,
    }
    deltas = AnthropicDecoder("anthropic").feed(
        json.dumps({"type": "message_start", "message": {"usage": counts}}).encode(), "message_start"
    )
    (usage,) = [delta.usage for delta in deltas if isinstance(delta, UsageChunk)]
    assert (usage.input, usage.cache_write, usage.cache_write_long) == (600_000, 500_000, 300_000)
    assert SONNET.cost(usage) == pytest.approx(0.1 * 3 + 0.2 * 3.75 + 0.3 * 6)


def test_a_tier_counts_for_the_whole_of_a_large_request() -> None:
    """ai.google.dev/gemini-api/docs/pricing, platform.openai.com/docs/pricing: from the size on, every token costs more."""
    info = model_info("gemini", "gemini-2.5-pro")
    assert info
    assert info.prices
    small = Usage(input=200_000, output=1000, cache_read=50_000)
    assert info.prices.cost(small) == pytest.approx(0.15 * 1.25 + 0.05 * 0.125 + 0.001 * 10)
    large = Usage(input=200_001, output=1000, cache_read=50_000)
    assert info.prices.cost(large) == pytest.approx(0.150001 * 2.5 + 0.05 * 0.25 + 0.001 * 15)


def test_the_highest_tier_that_is_reached_counts_in_any_order() -> None:
    prices = Prices(
        input=1, output=1, tiers=(PriceTier(above=200, input=3, output=3), PriceTier(above=100, input=2, output=2))
    )
    costs = [prices.cost(Usage(input=size)) for size in (100, 101, 200, 201)]
    assert costs == pytest.approx([100e-6, 202e-6, 400e-6, 603e-6])


def test_a_report_that_contradicts_itself_is_not_negative() -> None:
    """Some servers leave what came from the cache out of the input."""
    assert SONNET.cost(Usage(input=10, cache_read=1000)) == pytest.approx(1000 * 0.3e-6)


@given(usages(), known_prices())
@often
def test_a_cost_lies_between_the_cheapest_and_the_dearest_price(usage: Usage, prices: Prices) -> None:
    cost = prices.cost(usage)
    assert cost is not None
    names = ("input", "output", "cache_read", "cache_write", "cache_write_long")
    every = [getattr(row, name) for row in (prices, *prices.tiers) for name in names]
    known = [price for price in every if price is not None]
    tokens = (usage.input + usage.output) / 1_000_000
    assert min(known) * tokens * 0.999 <= cost <= max(known) * tokens * 1.001


@given(usages(), known_prices())
@often
def test_more_tokens_cost_more_within_a_tier(usage: Usage, prices: Prices) -> None:
    flat = replace(prices, tiers=())
    before, after = flat.cost(usage), flat.cost(replace(usage, input=usage.input + 1, output=usage.output + 1))
    assert before is not None
    assert after is not None
    assert after > before
