"""What is known of models, and how a name is found."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import UsageError
from antiphon.providers import catalogue as module
from antiphon.providers.catalogue import Catalogue, ProviderSpec, builtin_catalogue, find_model, model_info, undated
from antiphon.providers.resolve import PROVIDERS
from antiphon.types.request import ModelInfo, Prices, PriceTier
from antiphon.types.thinking import LEVELS

DATA = Path(module.__file__).with_name("catalogue.json")
BUILTIN = builtin_catalogue()
EVERY = [info for provider in BUILTIN.providers() for info in BUILTIN.models(provider)]


def catalogue(*names: str, provider: str = "p") -> Catalogue:
    return Catalogue([ModelInfo(provider=provider, id=name, name=name.upper().replace("-", " ")) for name in names])


# --- the facts that come with the library


@pytest.mark.parity("C20")
def test_a_model_has_its_facts() -> None:
    """Checked against the vendor's pages: platform.claude.com/docs, "Models overview" and "Pricing"."""
    assert model_info("anthropic", "claude-sonnet-4-5") == ModelInfo(
        provider="anthropic",
        id="claude-sonnet-4-5",
        name="Claude Sonnet 4.5",
        context_window=200_000,
        output_limit=64_000,
        thinking_levels=("off", "minimal", "low", "medium", "high"),
        modalities=("text", "image", "file"),
        prices=Prices(input=3, output=15, cache_read=0.3, cache_write=3.75, cache_write_long=6),
    )


def test_large_requests_have_prices_of_their_own() -> None:
    """ai.google.dev/gemini-api/docs/pricing: Gemini 2.5 Pro costs more from 200,000 tokens on."""
    info = model_info("gemini", "gemini-2.5-pro")
    assert info
    assert info.prices == Prices(
        input=1.25,
        output=10,
        cache_read=0.125,
        tiers=(PriceTier(above=200_000, input=2.5, output=15, cache_read=0.25),),
    )


def test_a_window_that_input_and_output_share_is_told_whole() -> None:
    """platform.openai.com/docs/models: 400,000 tokens, of which 128,000 may be output."""
    info = model_info("openai", "gpt-5")
    assert info
    assert (info.context_window, info.output_limit) == (400_000, 128_000)


@pytest.mark.parametrize(
    ("provider", "model", "levels"),
    [
        ("anthropic", "claude-opus-4-7", ("off", "low", "medium", "high", "xhigh", "max")),
        ("openai", "gpt-5", ("minimal", "low", "medium", "high")),
        ("openai", "gpt-5.1", ("off", "low", "medium", "high")),
        ("openai", "gpt-5.2", ("off", "low", "medium", "high", "xhigh")),
        ("openai", "gpt-5-pro", ("high",)),
        ("openai", "o3", ("low", "medium", "high")),
        ("openai", "gpt-4o", ()),
        ("gemini", "gemini-2.5-pro", ("minimal", "low", "medium", "high")),
        ("gemini", "gemini-2.5-flash", ("off", "minimal", "low", "medium", "high")),
        ("gemini", "gemini-3.1-pro-preview", ("low", "medium", "high")),
        ("deepseek", "deepseek-reasoner", None),
    ],
)
def test_thinking_levels_are_those_that_a_model_takes(
    provider: str, model: str, levels: tuple[str, ...] | None
) -> None:
    """A level too many is a refused request. Nothing known leaves the choice to the provider's own table."""
    info = model_info(provider, model)
    assert info
    assert info.thinking_levels == levels


def test_the_file_tells_its_age_and_its_sources() -> None:
    """Prices go stale; who doubts one wants to know from when it is."""
    assert BUILTIN.date
    assert BUILTIN.date >= "2026-11-30"
    assert [source.split()[0] for source in BUILTIN.sources] == ["litellm", "genai-prices"]
    assert DATA.stat().st_size < 200_000


def test_every_row_is_sound() -> None:
    """One misread number is a wrong bill; 0 would say that a model costs nothing."""
    assert len(EVERY) > 500
    for info in EVERY:
        assert info.context_window, info
        assert info.output_limit is None or info.output_limit > 0, info
        assert info.thinking_levels is None or list(info.thinking_levels) == [
            level for level in LEVELS if level in info.thinking_levels
        ], info
        assert info.modalities is None or (
            info.modalities[0] == "text" and set(info.modalities) <= {"text", "image", "file", "audio", "video"}
        ), info
        for prices in (info.prices, *(info.prices.tiers if info.prices else ())):
            if prices is not None:
                every = [getattr(prices, name) for name in ("input", "output", "cache_read", "cache_write")]
                assert all(0 < price < 1000 for price in every if price is not None), info
                assert prices.input is not None, info
                assert prices.cache_read is None or prices.cache_read <= prices.input, info


def test_every_provider_in_it_can_be_resolved() -> None:
    families = {row.family for row in PROVIDERS.values()}
    assert set(BUILTIN.providers()) <= families


def test_what_is_unknown_stays_unknown() -> None:
    assert model_info("openai", "gpt-99") is None
    assert model_info("nobody", "gpt-5") is None
    assert all(info.prices is None or info.prices.known for info in EVERY)


def test_importing_the_library_does_not_read_it() -> None:
    """A program that brings its own model should not pay for a table of others."""
    program = (
        "import sys, antiphon\n"
        "from antiphon.providers.catalogue import builtin_catalogue as built\n"
        "print(built.cache_info().currsize)\n"
        "antiphon.get_model('openai:gpt-5')\n"
        "print(built.cache_info().currsize)\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert told.stdout.split() == ["0", "1"]


def test_a_line_is_a_model() -> None:
    """An update is read as a difference before it is committed."""
    lines = DATA.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(EVERY) + len(BUILTIN.providers()) + 1
    assert json.loads("".join(lines))


# --- ids


@pytest.mark.parametrize(
    ("dated", "family"),
    [
        ("gpt-5-2025-08-07", "gpt-5"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("gpt-4-0613", "gpt-4"),
        ("gemini-2.5-flash-preview-09-2025", "gemini-2.5-flash-preview"),
        ("gemini-2.5-pro-preview-05-06", "gemini-2.5-pro-preview"),
        ("gemini-2.0-flash-001", "gemini-2.0-flash"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-opus-4-1", "claude-opus-4-1"),
        ("gpt-4.1", "gpt-4.1"),
        ("o3", "o3"),
    ],
)
def test_a_date_is_not_part_of_a_family(dated: str, family: str) -> None:
    assert undated(dated) == family


def test_a_dated_id_has_the_facts_of_its_family_under_its_own_name() -> None:
    family, dated = model_info("openai", "gpt-5"), model_info("openai", "gpt-5-2025-08-07")
    assert family
    assert dated
    assert dated.id == "gpt-5-2025-08-07"
    assert (dated.context_window, dated.prices) == (family.context_window, family.prices)


def test_a_dated_id_with_facts_of_its_own_keeps_them() -> None:
    """The first GPT-4o cost twice as much as those that came after it."""
    first = model_info("openai", "gpt-4o-2024-05-13")
    assert first
    assert first.prices == Prices(input=5, output=15)


def test_a_family_without_an_undated_id_speaks_through_its_latest() -> None:
    known = catalogue("h-20240101", "h-20250101", "k-20250101", "k-latest")
    assert (known.model_info("p", "h"), known.model_info("p", "k-2026")) == (
        ModelInfo(provider="p", id="h", name="H 20250101"),
        ModelInfo(provider="p", id="k-2026", name="K LATEST"),
    )


# --- what a person means


VECTORS = [
    ("claude-sonnet-4-5", "claude-sonnet-4-5"),
    ("sonnet", "claude-sonnet-4-5"),
    ("haiku", "claude-3-5-haiku-latest"),
    ("OPUS", "claude-opus-4-1"),
    ("gpt-5", "gpt-5"),
    ("gpt", "gpt-5-mini"),
    ("SONNET 4", "claude-sonnet-4-5"),
    ("20241022", "claude-3-5-haiku-20241022"),
    ("4-20250514", "claude-sonnet-4-20250514"),
    ("nothing", None),
    ("", "gpt-5-mini"),
]


@pytest.mark.parity("C20")
@pytest.mark.parametrize(("pattern", "found"), VECTORS)
def test_a_part_of_a_name_finds_the_newest_model(pattern: str, found: str | None) -> None:
    known = catalogue(
        "claude-3-5-haiku-20241022",
        "claude-3-5-haiku-latest",
        "claude-opus-4-1",
        "claude-sonnet-4-20250514",
        "claude-sonnet-4-5",
        "gpt-5",
        "gpt-5-mini",
    )
    info = known.find_model(pattern)
    assert (info.id if info else None) == found
    assert known.find_model(pattern, "p") == info
    assert known.find_model(pattern, "other") is None


def test_a_vendor_comes_before_those_who_resell_its_models() -> None:
    found = find_model("opus")
    assert found
    assert found.provider == "anthropic"


def test_a_provider_may_stand_before_the_part() -> None:
    found = find_model("openrouter:sonnet")
    assert found
    assert found.origin.startswith("openrouter:anthropic/claude-sonnet-")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("claude-sonet-4-5", "claude-sonnet-4-5"),
        ("Claude-Opus-4.5", "claude-opus-4-5"),
        ("claude-sonnet-4-5", None),
        ("claude-sonnet-4-5-20250929", None),
        ("something-else-entirely", None),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(given: str, meant: str | None) -> None:
    assert BUILTIN.suggest("anthropic", given) == meant


# --- models and providers of an application


def test_models_are_added_by_plain_data_and_nothing_else_changes() -> None:
    """A table that an import can change makes one part of a program price the runs of another."""
    row: dict[str, Any] = {
        "provider": "openai",
        "id": "gpt-5",
        "context_window": 7,
        "prices": {"input": 1, "output": 2},
    }
    mine = BUILTIN.with_models([row, ModelInfo(provider="ours", id="m", thinking_levels=("off", "max"))])
    assert mine.model_info("openai", "gpt-5") == ModelInfo(
        provider="openai", id="gpt-5", context_window=7, prices=Prices(input=1, output=2)
    )
    assert mine.model_info("ours", "m") == ModelInfo(provider="ours", id="m", thinking_levels=("off", "max"))
    assert mine.model_info("openai", "gpt-5-mini") == BUILTIN.model_info("openai", "gpt-5-mini")
    assert BUILTIN.model_info("ours", "m") is None
    assert BUILTIN.model_info("openai", "gpt-5") != mine.model_info("openai", "gpt-5")
    assert (mine.date, mine.sources) == (BUILTIN.date, BUILTIN.sources)


def test_a_provider_brings_its_models_under_its_own_name() -> None:
    spec = {"name": "ours", "base_url": "http://127.0.0.1:1", "models": [{"id": "m", "context_window": 9}]}
    mine = BUILTIN.with_providers([spec])
    assert mine.provider("ours") == ProviderSpec(
        name="ours", base_url="http://127.0.0.1:1", models=(ModelInfo(provider="ours", id="m", context_window=9),)
    )
    assert mine.models("ours") == [ModelInfo(provider="ours", id="m", context_window=9)]
    assert "ours" in mine.providers()
    assert BUILTIN.provider("ours") is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"provider": "p", "id": "m", "context": 9}, "ModelInfo has no field 'context'; it has provider, id, name"),
        ({"provider": "p"}, "no ModelInfo: Object missing required field `id`"),
        (
            {"provider": "p", "id": "m", "context_window": "9"},
            r"Expected `int \| null`, got `str` - at `\$.context_window`",
        ),
        ("p:m", "no ModelInfo: 'p:m'; give one, or a mapping with its fields"),
    ],
)
def test_a_fact_that_does_not_fit_is_refused(given: Any, said: str) -> None:
    """A mistyped field would be a limit that is never kept."""
    with pytest.raises(UsageError, match=said):
        BUILTIN.with_models([given])


@pytest.mark.parametrize("name", ["", "a:b", " a"])
def test_a_provider_needs_a_name_that_can_be_written(name: str) -> None:
    with pytest.raises(UsageError, match="it stands before the colon"):
        BUILTIN.with_providers([{"name": name, "base_url": "http://127.0.0.1:1"}])


def test_a_wire_format_is_one_of_four() -> None:
    with pytest.raises(UsageError, match="Invalid enum value 'soap'"):
        BUILTIN.with_providers([{"name": "a", "base_url": "http://127.0.0.1:1", "wire": "soap"}])
