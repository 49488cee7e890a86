"""Five hundred conversations over a transport that fails: the right words once, or a typed error; never anything else."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    AttemptDiscarded,
    ModelError,
    Recovery,
    RunError,
    ToolCall,
    Usage,
    UsageError,
    UserMessage,
    View,
    aclose,
    tool,
    validate,
)
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.testing import FAULTS, Chaos, Scripted, ServedReply, chaos_server, record
from antiphon.types.request import (
    CallChunk,
    Delta,
    FinishChunk,
    Model,
    ModelInfo,
    ModelRequest,
    TextChunk,
    UsageChunk,
    WarningChunk,
)

from .drills import reply

pytestmark = pytest.mark.anyio

QUICK = Recovery(delay=0.0005, jitter=0.2, first_token=0.2, idle=0.1, request=5)
STUBBORN = Recovery(retries=40, delay=0, first_token=0.2, idle=0.1)
AT_ONCE = 25
LOOK = "look"


@pytest.fixture
def anyio_backend() -> str:
    """Real sockets have real time."""
    return "asyncio"


def words(key: str) -> str:
    return f"the answer for {key} is forty-two, and not a word of it comes twice: äöü 🌧"


class Tally:
    """What became of the conversations."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.looked: Counter[str] = Counter()
        self.discarded: Counter[str] = Counter()

    async def talk(self, key: str, model: Model, recovery: Recovery = QUICK) -> None:
        """One conversation: a call, and an answer. What went wrong is noted."""

        @tool(name=LOOK)
        async def look(key: str) -> str:
            """Look a key up."""
            self.looked[key] += 1
            return "found"

        chat = Agent(model, tools=[look], recovery=recovery).conversation()
        view = View()
        run_ends: list[str] = []
        chat.subscribe(view.apply)
        chat.subscribe(lambda event: self.discarded.update([key] if isinstance(event, AttemptDiscarded) else []))
        try:
            result = await chat.prompt(key)
        except RunError as error:
            self.ends[type(error.__cause__).__name__] += 1
            if not isinstance(error.__cause__, ModelError):
                run_ends.append(f"ended with {error.__cause__!r}")
            if self.looked[key] > 1:
                run_ends.append(f"looked {self.looked[key]} times")
        else:
            self.ends["right"] += 1
            if result.text != words(key) or self.looked[key] != 1:
                run_ends.append(f"said {result.text!r} after {self.looked[key]} looks")
        if view.messages != chat.messages or view.partial is not None or view.running_calls:
            run_ends.append(f"showed {view.messages!r}")
        if validate(chat.messages):
            run_ends.append(f"cannot be sent: {validate(chat.messages)}")
        self.wrong += [f"{key}: {end}" for end in run_ends]


class Answers:
    """A model that calls the tool first, and then says the words."""

    info = ModelInfo(provider="local", id="answers")

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        first = request.messages[0]
        assert isinstance(first, UserMessage)
        key = first.text
        if len(request.messages) == 1:
            text = f'{{"key": "{key}"}}'
            for delta in [CallChunk(0, "c1", LOOK, text[:6]), CallChunk(0, arguments=text[6:])]:
                yield delta
            yield FinishChunk("tool_calls")
            return
        said = words(key)
        for at in range(0, len(said), 9):
            yield TextChunk(said[at : at + 9])
        yield FinishChunk()


def answer(path: str, body: dict[str, Any]) -> ServedReply:
    key = body["messages"][0]["content"]
    if body["messages"][-1]["role"] == "tool":
        return ServedReply(text=words(key), piece=9)
    return ServedReply(calls=[("c1", LOOK, {"key": key})])


async def all_of(tally: Tally, makes: list[tuple[str, Model, Recovery]]) -> None:
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def one(key: str, model: Model, recovery: Recovery) -> None:
        async with limiter:
            await tally.talk(key, model, recovery)

    async with anyio.create_task_group() as group:
        for make in makes:
            group.start_soon(one, *make)


async def test_500_conversations_with_a_faulty_model() -> None:
    """Every fault that a provider can show, in a third of all replies."""
    tally, chaos = Tally(), Chaos(seed=11)
    model = Answers()
    await all_of(tally, [(f"k{n}", chaos.model(model, f"k{n}"), QUICK) for n in range(500)])
    assert tally.wrong == []
    assert tally.ends.total() == 500
    assert tally.ends["right"] > 450
    assert {fault for _, fault in chaos.rolled} == {*FAULTS, None}


async def test_500_conversations_over_a_faulty_server() -> None:
    """The client, the parser of the stream and the decoder are under test too: bytes are cut, stalled and lost."""
    tally, chaos = Tally(), Chaos(seed=12)
    async with chaos_server(answer, chaos) as server:
        makes: list[tuple[str, Model, Recovery]] = [
            (f"k{n}", OpenAIChat("m", base_url=f"{server.url}/k{n}", api_key="none"), QUICK) for n in range(500)
        ]
        await all_of(tally, makes)
        await aclose()
    assert tally.wrong == []
    assert tally.ends.total() == 500
    assert tally.ends["right"] > 450
    assert {fault for _, fault in chaos.rolled} == {*FAULTS, None}


async def test_with_enough_patience_every_conversation_comes_to_its_end() -> None:
    """Nothing that passes is taken for something that does not."""
    tally, chaos = Tally(), Chaos(seed=13, rate=0.6)
    async with chaos_server(answer, chaos) as server:
        makes: list[tuple[str, Model, Recovery]] = [
            (f"k{n}", OpenAIChat("m", base_url=f"{server.url}/k{n}", api_key="none"), STUBBORN) for n in range(60)
        ]
        await all_of(tally, makes)
        await aclose()
    assert tally.wrong == []
    assert tally.ends == {"right": 60}


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
        await tally.talk("k", OpenAIChat("m", base_url=server.url, api_key="none"))
        await tally.talk("l", chaos.model(Answers()))
        await aclose()
    assert tally.wrong == []
    assert tally.ends["right"] == 0
    assert tally.discarded == {"k": 3, "l": 3}


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
        Chaos(faults=["earthquake"])  # type: ignore[list-item]
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
        model = Chaos(1, rate=1, faults=[fault]).model(Scripted([call], "done"))  # type: ignore[list-item]
        run = Agent(model).run("go")
        told = record(run)
        result = await run
        assert reply(result.messages, 1).calls == (call,)
        told.check()
