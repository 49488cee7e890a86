"""An answer as a validated value, watched while it is streamed.

The model gives it through a final tool call, which every provider has. What does not fit is told to the model, which
repairs it. Offline: the model reads its replies from a script.
"""

import asyncio
from typing import Literal

from pydantic import BaseModel, Field

from antiphon import Agent, ToolCall, ToolCallDelta, ToolFinished
from antiphon.testing import Scripted


class Step(BaseModel):
    text: str
    minutes: int = Field(ge=1)


class Recipe(BaseModel):
    """How to cook something."""

    name: str
    level: Literal["easy", "hard"]
    steps: list[Step]


wrong = '{"name": "Tea", "level": "simple", "steps": [{"text": "boil water", "minutes": 0}]}'
right = (
    '{"name": "Tea", "level": "easy", "steps": [{"text": "boil water", "minutes": 3}, {"text": "wait", "minutes": 4}]}'
)
model = Scripted(
    ToolCall(id="first", name="final_answer", arguments=wrong),
    ToolCall(id="second", name="final_answer", arguments=right),
    piece=24,
)
agent = Agent(model)


async def main() -> None:
    run = agent.run("How do I make tea?", output_type=Recipe)

    def show(event: object) -> None:
        match event:
            case ToolCallDelta(call_id=call_id):
                print(f"so far: {run.partial_arguments(call_id)}")  # for viewers: nothing of it is checked yet
            case ToolFinished(outcome=outcome, result=result):
                print(f"{outcome}: {result.text}")
            case _:
                pass

    run.subscribe(show)
    recipe = (await run).output  # a Recipe, for the type checker too
    print(f"{recipe.name} ({recipe.level}): {sum(step.minutes for step in recipe.steps)} minutes")


asyncio.run(main())
