"""Five hundred conversations over real sockets that fail: the client, the parser and the decoder are under test too."""

from typing import Any

import pytest

from antiphon import aclose
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.testing import FAULTS, Chaos, chaos_server

from .chaos_talks import BRIEF, QUICK, STUBBORN, Answers, Makes, Tally, all_of, answer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Real sockets have real time."""
    return "asyncio"


async def test_500_conversations_over_a_faulty_server() -> None:
    """The client, the parser of the stream and the decoder are under test too: bytes are cut, stalled and lost."""
    tally, chaos = Tally(), Chaos(seed=12)
    async with chaos_server(answer, chaos) as server:
        makes: Makes = [
            (f"k{n}", OpenAIChat("m", base_url=f"{server.url}/k{n}", api_key="none"), QUICK) for n in range(500)
        ]
        await all_of(tally, makes)
        await aclose()
    assert tally.wrong == []
    assert tally.ends.total() == 500
    assert tally.ends["right"] > 300, "on a busy machine a reply may stall for no fault of the server's"
    assert {fault for _, fault in chaos.rolled} == {*FAULTS, None}


async def test_with_enough_patience_every_conversation_comes_to_its_end() -> None:
    """Nothing that passes is taken for something that does not."""
    tally, chaos = Tally(), Chaos(seed=13, rate=0.6)
    async with chaos_server(answer, chaos) as server:
        makes: Makes = [
            (f"k{n}", OpenAIChat("m", base_url=f"{server.url}/k{n}", api_key="none"), STUBBORN) for n in range(40)
        ]
        await all_of(tally, makes)
        await aclose()
    assert tally.wrong == []
    assert tally.ends == {"right": 40}


@pytest.mark.parity("C12")
async def test_a_repeated_attempt_sends_the_same_bytes() -> None:
    """A provider's cache is keyed by them."""
    chaos = Chaos(seed=5, faults=["drop"], rate=0.5)
    async with chaos_server(answer, chaos) as server:
        model = OpenAIChat("m", base_url=f"{server.url}/k", api_key="none")
        tally = Tally()
        await tally.talk("k", model, STUBBORN)
        await aclose()
    bodies = [served.body for served in server.served]
    assert tally.ends == {"right": 1}
    assert len(bodies) > 2
    assert len(set(bodies)) == 2, "one request for the call and one for the answer, however often each was sent"


@pytest.mark.parametrize("fault", ["split", "duplicate", "reorder", "slow"])
async def test_what_is_odd_and_harmless_costs_no_attempt(fault: Any) -> None:
    """These are habits of servers, not failures."""
    tally, chaos = Tally(), Chaos(seed=1, rate=1, faults=[fault])
    async with chaos_server(answer, chaos) as server:
        await tally.talk("k", OpenAIChat("m", base_url=server.url, api_key="none"))
        await tally.talk("l", chaos.model(Answers()))
        await aclose()
    assert tally.wrong == []
    assert tally.ends == {"right": 2}
    assert len(chaos.rolled) == 4


@pytest.mark.parametrize("fault", ["drop", "stall", "heartbeat", "error", "status"])
async def test_nothing_but_failures_ends_in_a_typed_error(fault: Any) -> None:
    tally, chaos = Tally(), Chaos(seed=1, rate=1, faults=[fault])
    async with chaos_server(answer, chaos) as server:
        await tally.talk("k", OpenAIChat("m", base_url=server.url, api_key="none"), BRIEF)
        await tally.talk("l", chaos.model(Answers()), BRIEF)
        await aclose()
    assert tally.wrong == []
    assert tally.ends["right"] == 0
    assert tally.discarded == {"k": 3, "l": 3}
