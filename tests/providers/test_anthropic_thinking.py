"""How hard a model thinks and how freely it speaks: what each generation is told."""

from typing import Any

import pytest

from antiphon.types.messages import UserMessage
from antiphon.types.request import ModelInfo, ModelSettings

from .anthropic_request import (
    HI,
    MODEL,
    WEATHER,
    body,
    calling,
    result,
    said,
    signed,
)


def thinking(model: str, level: Any, **more: Any) -> dict[str, Any]:
    """What a model is told of thinking at a level."""
    info = more.pop("info", None)
    fields = body(model=model, info=info, settings=ModelSettings(thinking=level, cache="none", **more))
    return {name: fields[name] for name in ("thinking", "output_config") if name in fields}


def adaptive(effort: str, **more: Any) -> dict[str, Any]:
    return {"thinking": {"type": "adaptive", **more}, "output_config": {"effort": effort}}


class TestThinkingLevels:
    @pytest.mark.parametrize(
        ("level", "tokens"),
        [("minimal", 1024), ("low", 2048), ("medium", 8192), ("high", 16384), ("xhigh", 16384), ("max", 16384)],
    )
    def test_older_models_get_a_budget(self, level: str, tokens: int) -> None:
        sent = {"thinking": {"type": "enabled", "budget_tokens": tokens}}
        for model in ("claude-3-7-sonnet-20250219", "claude-sonnet-4-20250514", "claude-haiku-4-5", "MiniMax-M2"):
            assert thinking(model, level, max_output_tokens=32_000) == sent

    @pytest.mark.parametrize(
        ("limit", "own", "tokens"),
        [
            (32_000, {"high": 20_000}, 20_000),
            (32_000, {"high": 100}, 1024),  # less is refused
            (32_000, {"high": 31_999}, 24_000),  # a quarter of the limit stays for the answer
            (8_192, None, 4_096),  # and 4,096 at least
            (2_048, None, 1_024),  # as far as the least budget allows
            (1_024, None, None),  # a budget must be below the limit
        ],
    )
    def test_a_budget_fits_into_the_output_limit(self, limit: int, own: Any, tokens: int | None) -> None:
        sent = {"thinking": {"type": "enabled", "budget_tokens": tokens}} if tokens else {}
        assert thinking(MODEL, "high", max_output_tokens=limit, thinking_budgets=own) == sent

    def test_the_highest_levels_use_the_budget_of_the_next_one_below(self) -> None:
        assert thinking(MODEL, "max", thinking_budgets={"high": 5_000})["thinking"]["budget_tokens"] == 5_000

    @pytest.mark.parametrize(
        ("model", "efforts"),
        [
            ("claude-opus-4-6", ["low", "low", "medium", "high", "high", "max"]),
            ("claude-sonnet-4.6", ["low", "low", "medium", "high", "high", "max"]),
            ("us.anthropic.claude-opus-4-7-v1:0", ["low", "low", "medium", "high", "xhigh", "max"]),
            ("claude-sonnet-5", ["low", "low", "medium", "high", "xhigh", "max"]),
            ("claude-opus-5-5", ["low", "low", "medium", "high", "xhigh", "max"]),
            ("claude-something-new", ["low", "low", "medium", "high", "xhigh", "max"]),
        ],
    )
    def test_newer_models_think_as_they_like_at_an_effort(self, model: str, efforts: list[str]) -> None:
        levels = ("minimal", "low", "medium", "high", "xhigh", "max")
        assert [thinking(model, level) for level in levels] == [adaptive(effort) for effort in efforts]

    def test_a_budget_of_ones_own_is_used_where_both_are_known(self) -> None:
        assert thinking("claude-opus-4-6", "high", thinking_budgets={"high": 5_000}) == {
            "thinking": {"type": "enabled", "budget_tokens": 5_000}
        }
        assert thinking("claude-opus-4-8", "high", thinking_budgets={"high": 5_000}) == adaptive("high")

    @pytest.mark.parametrize(
        ("model", "sent"),
        [
            ("claude-sonnet-4-5", {"thinking": {"type": "disabled"}}),
            ("claude-opus-5", {"thinking": {"type": "disabled"}}),
            ("claude-haiku-5-5", {"thinking": {"type": "disabled"}}),
            ("claude-sonnet-5-5", {"thinking": {"type": "between_tools"}}),
            ("claude-opus-5-5", adaptive("low")),  # it cannot be turned off
            ("claude-fable-5", adaptive("low")),
            ("claude-mythos-preview", adaptive("low")),
            ("claude-3-opus-20240229", {}),
        ],
    )
    def test_off_is_said_as_each_model_can(self, model: str, sent: dict[str, Any]) -> None:
        assert thinking(model, "off") == sent

    @pytest.mark.parametrize("model", ["claude-3-5-sonnet-20241022", "claude-3-haiku-20240307", "claude-2.1"])
    def test_models_that_do_not_think_are_told_nothing(self, model: str) -> None:
        assert thinking(model, "high") == {}

    def test_no_level_leaves_the_models_own_habit(self) -> None:
        for model in (MODEL, "claude-opus-4-8", "claude-opus-5-5"):
            assert thinking(model, None) == {}

    def test_the_level_is_clamped_to_what_is_known_of_the_model(self) -> None:
        info = ModelInfo(provider="anthropic", id="claude-opus-5", thinking_levels=("low", "medium"))
        assert thinking("claude-opus-5", "max", info=info) == adaptive("medium")

    def test_what_is_shown_of_thoughts_can_be_chosen(self) -> None:
        assert thinking("claude-opus-5", "low", thinking_display="summarized") == adaptive("low", display="summarized")
        assert thinking(MODEL, "low", thinking_display="omitted")["thinking"]["display"] == "omitted"
        shown = {"thinking": {"type": "adaptive", "display": "summarized"}}
        assert thinking("claude-opus-5", None, thinking_display="summarized") == shown
        assert thinking("claude-opus-4-8", None, thinking_display="summarized") == {}  # it would begin to think

    def test_a_demanded_call_and_thinking_do_not_go_together(self) -> None:
        """The API refuses both together; the demand is the more definite wish."""
        for choice in ("required", "weather"):
            for model, sent in ((MODEL, {}), ("claude-opus-4-8", {}), ("claude-opus-5", {"type": "disabled"})):
                chosen = ModelSettings(thinking="high")
                made = body(model=model, tools=(WEATHER,), tool_choice=choice, settings=chosen)
                assert made.get("thinking", {}) == sent
                assert "output_config" not in made

    def test_a_turn_that_began_without_a_thought_goes_on_without_a_budget(self) -> None:
        """Refused otherwise: "a final assistant message must start with a thinking block".

        A model that thinks as it likes does not mind.
        """
        high = ModelSettings(thinking="high")
        without = (HI, said(signed(origin="other:model"), calling()), result())
        for more in ((), (UserMessage.of("go on"),), (said(calling("c2")), result("c2"))):
            assert "thinking" not in body(*without, *more, settings=high)
            assert "thinking" in body(*without, *more, model="claude-opus-4-8", settings=high)

    def test_a_turn_that_began_with_a_thought_goes_on_with_one_and_a_new_turn_does_too(self) -> None:
        """Without interleaved thinking, only the first reply of a turn begins with a thought."""
        high = ModelSettings(thinking="high")
        begun = (HI, said(signed(), calling()), result())
        without = (HI, said(calling()), result(), said("done"), HI)
        for messages in (begun, (*begun, said(calling("c2")), result("c2")), without, (HI,), (HI, said("a"), HI)):
            assert "thinking" in body(*messages, settings=high)


class TestSampling:
    def test_temperature_is_left_out_while_the_model_thinks(self) -> None:
        made = body(settings=ModelSettings(temperature=0.2, thinking="low"))
        assert "thinking" in made
        assert "temperature" not in made

    @pytest.mark.parametrize(("top_p", "sent"), [(0.5, None), (0.95, 0.95)])
    def test_a_high_top_p_may_stay(self, top_p: float, sent: float | None) -> None:
        assert body(settings=ModelSettings(top_p=top_p, thinking="low")).get("top_p") == sent

    @pytest.mark.parametrize(
        ("model", "sent"),
        [
            ("claude-3-haiku-20240307", {"temperature": 0.2, "top_p": 0.5}),
            ("some-model", {"temperature": 0.2, "top_p": 0.5}),
            ("claude-sonnet-4-5", {"temperature": 0.2}),  # "cannot both be specified"
            ("claude-opus-4-7", {}),  # "deprecated for this model"
            ("claude-haiku-5-5", {}),
        ],
    )
    def test_each_model_gets_what_it_takes(self, model: str, sent: dict[str, Any]) -> None:
        made = body(model=model, settings=ModelSettings(temperature=0.2, top_p=0.5))
        assert {name: made[name] for name in ("temperature", "top_p") if name in made} == sent

    def test_the_session_and_the_seed_are_not_told(self) -> None:
        assert body(session_id="s", settings=ModelSettings(seed=1)) == body()
