"""An agent that calls a tool, watched while it runs. Offline: the model reads its replies from a script."""

import asyncio

from antiphon import Agent, TextDelta, ToolCall, ToolFinished, tool
from antiphon.testing import Scripted


@tool
async def weather(city: str) -> str:
    """Current weather in a city."""
    return f"6 °C and rain in {city}"


call = ToolCall(id="call_1", name="weather", arguments='{"city": "Oslo"}')
model = Scripted(call, "Take an umbrella: it is raining in Oslo.", piece=4)  # or "openai:gpt-5-mini"
agent = Agent(model, instructions="Be brief.", tools=[weather])


async def main() -> None:
    async with agent.run("Do I need an umbrella in Oslo?") as run:
        async for event in run:
            match event:
                case ToolFinished(name=name, arguments=arguments, result=result):
                    print(f"[{name} {arguments}: {result.text}]")
                case TextDelta(text=text):
                    print(text, end="", flush=True)
                case _:
                    pass
    print(f"\n{run.result.status} after {run.result.turns} turns")


asyncio.run(main())
