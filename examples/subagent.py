"""An agent as a tool of another.

It has a history of its own, its events stand inside its caller's, what it consumes counts there, and what it asks a
person is decided there, under `outer/inner`. Offline: the models read their replies from scripts.
"""

import asyncio

from antiphon import Agent, ApprovalRequested, RunFinished, RunStarted, ToolCall, ToolFinished, Usage, tool
from antiphon.testing import Scripted


@tool(needs_approval=True)
async def fetch(url: str) -> str:
    """Fetches a page."""
    return f"{url}: Oslo has 717 710 inhabitants"


researcher = Agent(
    Scripted(
        [ToolCall(id="f1", name="fetch", arguments='{"url": "example.org/oslo"}'), Usage(input=50, output=9)],
        ["717 710", Usage(input=90, output=4)],
    ),
    instructions="You look things up. Answer with the fact alone.",
    tools=[fetch],
)
editor = Agent(
    Scripted(
        [ToolCall(id="r1", name="research", arguments='{"prompt": "inhabitants of Oslo"}'), Usage(input=30, output=8)],
        ["Oslo has about 718 000 inhabitants.", Usage(input=60, output=9)],
    ),
    tools=[researcher.as_tool("research", "Looks a fact up.")],
)


async def main() -> None:
    async with editor.run("How big is Oslo?") as run:
        async for event in run:
            depth = "" if event.parent_run_id is None else "    "
            match event:
                case RunStarted():
                    print(f"{depth}a run begins")
                case ApprovalRequested(call_id=call_id, name=name, arguments=arguments):
                    print(f"{depth}may I {name} {arguments}? yes, {call_id}")
                    run.approve(call_id)
                case ToolFinished(name=name, result=result):
                    print(f"{depth}{name}: {result.text}")
                case RunFinished(status=status, usage=usage):
                    print(f"{depth}{status}, {usage.input} tokens in, {usage.output} out")
                case _:
                    pass
    print(run.result.text)


asyncio.run(main())
