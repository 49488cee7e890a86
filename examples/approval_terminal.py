"""A person at a terminal decides on each call: yes, no, or yes with other arguments.

`ApprovalModes` says which calls are worth a question (here: what writes or runs something), the approver asks it.
Without a terminal the answers are canned. Offline: the model reads its replies from a script.
"""

import asyncio
import json
import sys
from typing import Any

from antiphon import Agent, ApprovalContext, ApprovalModes, Approve, Deny, ToolCall, ToolFinished, tool
from antiphon.testing import Scripted

CANNED = iter(["y", 'e {"to": "ann@example.org", "text": "see you at 7"}', "n too risky"])


@tool(kind="read")
async def look(folder: str) -> str:
    """Lists a folder."""
    return f"{folder}: report.txt"


@tool(kind="write")
async def write(name: str) -> str:
    """Writes a file."""
    return f"wrote {name}"


@tool(kind="exec")
async def send(to: str, text: str) -> str:
    """Sends a mail."""
    return f"sent {text!r} to {to}"


@tool(kind="exec")
async def remove(name: str) -> str:
    """Removes a file."""
    return f"removed {name}"


async def typed(question: str) -> str:
    """What the person types. It is awaited in a thread: the run's other calls go on meanwhile."""
    if sys.stdin.isatty():
        return await asyncio.to_thread(input, question)
    answer = next(CANNED)
    print(f"{question}{answer}")
    return answer


one_at_a_time = asyncio.Lock()


async def ask(context: ApprovalContext) -> Approve | Deny:
    """Puts one call to the person. The engine asks about all calls of a reply at once; a terminal has one line."""
    arguments = json.dumps(context.arguments, ensure_ascii=False)
    async with one_at_a_time:
        answer = await typed(f"{context.call.name} {arguments}? [y]es, [n]o and why, [e]dit: ")
    match answer[:1], answer[1:].strip():
        case "y", _:
            return Approve()
        case "e", edited:
            return Approve(json.loads(edited))
        case _, reason:
            return Deny(reason or None)


def call(number: int, name: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(id=f"call_{number}", name=name, arguments=json.dumps(arguments))


script = [
    [
        call(1, "look", folder="/project"),
        call(2, "write", name="summary.txt"),
        call(3, "send", to="all@example.org", text="see you at 7"),
        call(4, "remove", name="report.txt"),
    ],
    "Written and sent. I left report.txt where it is.",
]
agent = Agent(Scripted(*script), tools=[look, write, send, remove], policy=ApprovalModes("ask"), approver=ask)


async def main() -> None:
    run = agent.run("Summarise, tell Ann, clean up.")
    run.subscribe(
        lambda event: (
            print(f"  [{event.name}: {event.outcome}: {event.result.text}]")
            if isinstance(event, ToolFinished)
            else None
        )
    )
    result = await run
    print(result.text)


asyncio.run(main())
