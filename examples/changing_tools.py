"""Tools that come and go while a run goes on.

A source lists its tools when a run begins, and again between two rounds after it said that they changed; inside a round
nothing moves. Here a login brings the tools of an account along, and a logout takes them away. Offline: the model reads
its replies from a script.
"""

import asyncio

from antiphon import Agent, ListedTools, ToolCall, ToolFinished, tool
from antiphon.testing import Scripted


@tool
async def balance() -> str:
    """How much there is."""
    return "12 EUR"


account = ListedTools("account")


@tool
async def login(name: str) -> str:
    """Logs in."""
    account.set([balance])
    return f"welcome, {name}"


@tool
async def logout() -> str:
    """Logs out."""
    account.set([])
    return "bye"


def call(name: str, arguments: str = "{}") -> ToolCall:
    return ToolCall(id=f"call_{name}", name=name, arguments=arguments)


model = Scripted(
    [call("balance")],  # too early: there is no such tool yet
    [call("login", '{"name": "Ann"}')],
    [call("balance"), call("logout")],
    [call("balance")],  # too late
    "You have 12 EUR.",
)
agent = Agent(model, tools=[login, logout], sources=[account])


async def main() -> None:
    run = agent.run("How much do I have?")
    run.subscribe(
        lambda event: print(f"  {event.name}: {event.result.text}") if isinstance(event, ToolFinished) else None
    )
    result = await run
    for number, request in enumerate(model.requests, 1):
        print(f"request {number} offered {[spec.name for spec in request.tools]}")
    print(result.text)


asyncio.run(main())
