"""Thinking levels: what is wanted, clamped to what the model can do; announced and sent as it really is."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon import Agent, Hooks, ModelInfo, ModelSettings, RunStarted, ThinkingLevel, UseContext, UseRequest
from antiphon.testing import Scripted, record
from antiphon.types.thinking import LEVELS, effective_thinking

from .talks import AT_ONCE

ALL: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)


def model_with(*levels: ThinkingLevel) -> ModelInfo:
    return ModelInfo(provider="p", id="m", thinking_levels=levels)


@pytest.mark.parity("C10")
@pytest.mark.parametrize(
    ("has", "effective"),
    [
        # off       minimal    low     medium    high     xhigh    max
        ((), "off off off off off off off"),
        (("off",), "off off off off off off off"),
        (ALL, "off minimal low medium high xhigh max"),
        (("off", "minimal", "low", "medium", "high"), "off minimal low medium high high high"),
        (("off", "minimal", "low", "medium", "high", "xhigh"), "off minimal low medium high xhigh xhigh"),
        (("off", "minimal", "low", "medium", "high", "max"), "off minimal low medium high high max"),
        (("off", "low", "medium", "high", "max"), "off low low medium high high max"),
        (("low", "high"), "low low low low high high high"),
        (("low", "medium", "high"), "low low low medium high high high"),
        (("off", "high"), "off high high high high high high"),
        (("high", "off", "low"), "off low low low high high high"),
    ],
    ids=lambda value: "/".join(value) if isinstance(value, tuple) else "",
)
def test_a_level_is_clamped_to_what_the_model_has(has: tuple[ThinkingLevel, ...], effective: str) -> None:
    """As much as was asked for and no more; who asked for a thought gets the least one, not none."""
    assert [effective_thinking(level, model_with(*has)) for level in ALL] == effective.split()


@pytest.mark.parity("C10")
def test_nothing_asked_or_nothing_known_is_left_alone() -> None:
    """A model of which nothing is known may have the level; the provider will say so if not."""
    for level in ALL:
        assert effective_thinking(level, None) == level
        assert effective_thinking(level, ModelInfo(provider="p", id="m")) == level
    assert effective_thinking(None, model_with("low")) is None


@pytest.mark.parity("C10")
@given(st.sets(st.sampled_from(ALL)), st.sampled_from(ALL))
def test_the_effective_level_is_one_that_the_model_has(has: set[ThinkingLevel], wanted: ThinkingLevel) -> None:
    """And clamping twice changes nothing."""
    info = model_with(*has)
    effective = effective_thinking(wanted, info)
    assert effective in (has or {"off"}) or (effective == "off" and has <= {"off"})
    assert effective_thinking(effective, info) == effective
    thinks = has - {"off"}
    if wanted != "off" and thinks:
        assert effective in thinks
        lower = {level for level in thinks if LEVELS.index(level) <= LEVELS.index(wanted)}
        assert (LEVELS.index(effective or "off") <= LEVELS.index(wanted)) == bool(lower)


@pytest.mark.parity("C10")
@pytest.mark.anyio
async def test_the_effective_level_is_announced_and_sent() -> None:
    """Not the one that was wanted: what a person reads is what the model was told."""
    model = Scripted("a", info=model_with("off", "low", "high"))
    run = Agent(model, settings=ModelSettings(thinking="max", thinking_display="summarized")).run("go")
    told = record(run)
    await run
    assert told.one(RunStarted).thinking == "high"
    assert model.requests[0].settings == ModelSettings(thinking="high", thinking_display="summarized")


@pytest.mark.parity("C10")
@pytest.mark.anyio
async def test_a_level_for_one_request_and_a_model_for_the_rest_are_clamped_too() -> None:
    first = Scripted("a", info=model_with("off", "low", "high"))
    one = Hooks[Any](before_model_request=lambda context: UseRequest(settings=ModelSettings(thinking="xhigh")))
    await Agent(first, hooks=one, recovery=AT_ONCE).run("go")
    assert first.requests[0].settings.thinking == "high"
    other = Scripted("b", info=model_with("off", "low"))
    swap = Hooks[Any](prepare_context=lambda context: UseContext(model=other))
    await Agent(first, hooks=swap, settings=ModelSettings(thinking="high")).run("go")
    assert other.requests[0].settings.thinking == "low"


@pytest.mark.parity("C10")
@pytest.mark.anyio
async def test_budgets_and_display_go_along_untouched() -> None:
    """A budget for each level, and whether thoughts are shown: a provider takes what it has a switch for."""
    settings = ModelSettings(thinking="low", thinking_budgets={"low": 2000, "high": 9000}, thinking_display="omitted")
    model = Scripted("a", info=model_with("off", "low"))
    await Agent(model, settings=settings).run("go")
    assert model.requests[0].settings == settings
