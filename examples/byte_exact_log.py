"""A host that owns the bytes of the conversation, for a server that remembers what it has read (llama.cpp, vLLM).

`on_append` tells of each message once, before the request that carries it. The host appends its line to a log, and its
model sends the log, not the request's messages. Before each request it checks that both are the same to the byte, and
that the server has seen a part of them before: what is sent is always the old bytes with new ones behind them.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from antiphon import Agent, Hooks, Message, ModelRequest, ToolCall, dump_messages, tool
from antiphon.testing import Scripted
from antiphon.types.request import Delta


def line(message: Message) -> bytes:
    """The bytes of one message, always the same for the same message."""
    return dump_messages([message]) + b"\n"


class Log:
    """An append-only file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(b"")

    def append(self, message: Message) -> None:
        with self.path.open("ab") as file:
            file.write(line(message))


class SlotServer:
    """A model that sends the log's bytes to a server with a slot, and says how much the server knew already."""

    def __init__(self, log: Log, answers: Scripted) -> None:
        self.log = log
        self.answers = answers
        self.slot = b""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        sent = self.log.path.read_bytes()
        if sent != b"".join(map(line, request.messages)):
            raise AssertionError("the log is not what the request carries")
        if not sent.startswith(self.slot):
            raise AssertionError("the server has to read everything anew")
        print(f"request: {len(sent)} bytes, of which the server knew {len(self.slot)}")
        self.slot = sent
        async for delta in self.answers.stream(request):
            yield delta


@tool
async def weather(city: str) -> str:
    """Current weather in a city."""
    return f"6 °C and rain in {city}"


def call(number: int, city: str) -> ToolCall:
    return ToolCall(id=f"call_{number}", name="weather", arguments=f'{{"city": "{city}"}}')


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder) / "conversation.jsonl")
        answers = Scripted([call(1, "Oslo"), call(2, "Rome")], "Rain in both.", "Then take an umbrella.")
        agent = Agent(SlotServer(log, answers), tools=[weather], hooks=Hooks(on_append=log.append))
        result = await agent.run("Weather in Oslo and Rome?")
        result = await agent.run("And what should I take?", messages=result.messages)
        print(f"the log has {len(log.path.read_bytes().splitlines())} messages, the transcript {len(result.messages)}")
        print(result.text)


asyncio.run(main())
