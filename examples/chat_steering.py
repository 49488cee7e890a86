# A chat that listens while it works: another task steers the run, and a follow-up waits until nothing else is left.
#
# The model is a script, so that this runs anywhere. Take a real one with `Agent("anthropic:claude-sonnet-4-5", …)`.

import anyio

from antiphon import Agent, Event, MessageDelivered, MessageQueued, TextDelta, ToolCall, ToolFinished, ToolStarted, tool
from antiphon.testing import Scripted


@tool
async def search(query: str) -> str:
    """Search the news."""
    await anyio.sleep(0.05)  # time enough for a person to say something
    return f"3 articles about {query}"


model = Scripted(
    [ToolCall(id="s1", name="search", arguments='{"query": "Mars"}')],
    "Three articles, in short: a rover, a storm, and water.",
    "You are welcome.",
)


def show(event: Event) -> None:
    match event:
        case TextDelta(text=text):
            print(f"assistant: {text}")
        case ToolStarted(name=name, arguments=arguments):
            print(f"  [{name} {arguments}]")
        case ToolFinished(result=result):
            print(f"  [{result.text}]")
        case MessageQueued(queue=queue):
            print(f"  ({queue} message is waiting)")
        case MessageDelivered(queue=queue):
            print(f"  ({queue} message was delivered)")
        case _:
            pass


async def main() -> None:
    chat = Agent(model, instructions="You read the news.", tools=[search]).conversation()
    searching = anyio.Event()
    chat.subscribe(show)
    chat.subscribe(lambda event: searching.set() if isinstance(event, ToolStarted) else None)

    async def somebody_types() -> None:
        await searching.wait()
        chat.steer("Keep it short, please.")
        chat.follow_up("Thank you!")

    async with anyio.create_task_group() as group:
        group.start_soon(somebody_types)
        await chat.prompt("What is new on Mars?")
        await chat.wait_for_idle()

    print()
    for message in chat.messages:
        print(type(message).__name__, repr(getattr(message, "text", "")))


anyio.run(main)
