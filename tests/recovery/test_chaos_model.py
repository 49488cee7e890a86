"""Five hundred conversations with a model that fails: the right words once, or a typed error; never anything else."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from antiphon import Agent, Recovery, RunError, ToolCall, Usage, UsageError
from antiphon.testing import FAULTS, Chaos, Scripted, record
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    ModelInfo,
    ModelRequest,
    TextChunk,
    UsageChunk,
    WarningChunk,
)

from .chaos_talks import LOOK, Answers, Tally, all_of
from .drills import reply

pytestmark = pytest.mark.anyio


async def test_500_conversations_with_a_faulty_model() -> None:
    """Every fault that a provider can show, in a third of all replies."""
    tally, chaos = Tally(), Chaos(seed=11, pause=2)
    model = Answers()
    await all_of(tally, [(f"k{n}", chaos.model(model, f"k{n}"), Recovery()) for n in range(500)])
    assert tally.wrong == []
    assert tally.ends.total() == 500
    assert tally.ends["right"] > 450
    assert {fault for _, fault in chaos.rolled} == {*FAULTS, None}


async def test_the_same_seed_gives_the_same_faults() -> None:
    """A failure that cannot be repeated cannot be mended; what other conversations do changes nothing."""

    def rolls(chaos: Chaos, keys: list[str]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for key in keys:
            fault, random = chaos.roll(key)
            found.setdefault(key, []).append((fault, random.random()))
        return found

    one = rolls(Chaos(7), ["a", "b", "a", "b", "a"])
    other = rolls(Chaos(7), ["b", "b", "a", "a", "a"])
    assert one == other
    assert one != rolls(Chaos(8), ["a", "b", "a", "b", "a"])


async def test_a_calm_chaos_changes_nothing() -> None:
    deltas: list[Delta] = [
        TextChunk("a"),
        WarningChunk("odd", "x"),
        CallChunk(0, "c", LOOK, "{}"),
        UsageChunk(Usage(input=1)),
        FinishChunk(),
    ]
    model = Chaos(1, rate=0).model(Scripted(deltas))
    stream: Any = model.stream(ModelRequest(messages=()))
    assert [delta async for delta in stream] == deltas
    assert model.info == ModelInfo(provider="scripted", id="scripted")


async def test_chaos_refuses_what_it_does_not_know() -> None:
    with pytest.raises(UsageError, match="drop, stall"):
        Chaos(faults=[cast("Any", "earthquake")])
    with pytest.raises(UsageError, match="rate from 0 to 1"):
        Chaos(rate=2)


async def test_a_faulty_model_closes_the_stream_that_it_leaves() -> None:
    """A leak of the harness would be taken for a leak of what it tests."""
    closed: list[str] = []

    class Open:
        info = None

        async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
            try:
                while True:
                    yield TextChunk("x")
            finally:
                closed.append("closed")

    model = Chaos(3, rate=1, faults=["drop"]).model(Open())
    with pytest.raises(RunError):
        await Agent(model, recovery=Recovery(retries=0)).run("go")
    assert closed == ["closed"]


async def test_calls_are_spoiled_and_come_whole() -> None:
    """Fragments in single characters, names that are repeated: the call is the same."""
    call = ToolCall(id="c9", name=LOOK, arguments='{"key": "k"}')
    for fault in ("split", "duplicate"):
        model = Chaos(1, rate=1, faults=[fault]).model(Scripted([call], "done"))
        run = Agent(model).run("go")
        told = record(run)
        result = await run
        assert reply(result.messages, 1).calls == (call,)
        told.check()
