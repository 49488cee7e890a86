"""Talks over a transport that fails, and what became of them."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeAlias

import anyio

from antiphon import Agent, AttemptDiscarded, ModelError, Recovery, RunError, UserMessage, View, tool, validate
from antiphon.testing import ServedReply
from antiphon.types.request import CallChunk, Delta, FinishChunk, Model, ModelInfo, ModelRequest, TextChunk

QUICK = Recovery(delay=0.0005, jitter=0.2, first_token=0.8, idle=0.4)
BRIEF = Recovery(delay=0, first_token=0.1, idle=0.1)
STUBBORN = Recovery(retries=60, delay=0, first_token=0.8, idle=0.4)
Makes: TypeAlias = Sequence[tuple[str, Model, Recovery]]
"""Conversations to be held: what each is about, with whom, and how patiently."""

AT_ONCE = 25
LOOK = "look"


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


async def all_of(tally: Tally, makes: Makes) -> None:
    limiter = anyio.CapacityLimiter(AT_ONCE)

    async def one(key: str, model: Model, recovery: Recovery) -> None:
        async with limiter:
            await tally.talk(key, model, recovery)

    async with anyio.create_task_group() as group:
        for make in makes:
            group.start_soon(one, *make)
