"""Two sets of hooks around every call: one decides what may be done, the other writes down what was done.

The filter belongs to the agent and comes first; the audit belongs to the run, so it sees the arguments that the filter
left, and the result before the filter takes secrets out of it. Offline: the model reads its replies from a script.
"""

import asyncio
import json
from posixpath import join, normpath
from typing import Any

from antiphon import (
    Agent,
    Block,
    Hooks,
    RunEndContext,
    ToolCall,
    ToolCallContext,
    ToolOutcomeContext,
    UseArguments,
    UseResult,
    tool,
)
from antiphon.testing import Scripted

FILES = {"/project/notes.txt": "buy milk", "/project/.env": "API_KEY=sk-12345", "/etc/passwd": "root:x:0:0"}
KEY = "sk-12345"


@tool
async def read(path: str) -> str:
    """Reads a file."""
    return FILES[path]


def allow(context: ToolCallContext[Any]) -> Block | UseArguments | None:
    """Only files of the work folder; a path without a folder is taken to be in it, and `..` leads nowhere else."""
    path = normpath(join("/project", context.arguments["path"]))
    if not path.startswith("/project/"):
        return Block(f"{path} is outside of /project; ask for a file in it")
    return UseArguments({"path": path})


def redact(context: ToolOutcomeContext[Any]) -> UseResult | None:
    """Nothing that looks like a key reaches the model, whatever the tool said."""
    if KEY in context.result.text:
        return UseResult(context.result.text.replace(KEY, "***"))
    return None


class Audit:
    """Keeps one line for each call and one for the run. It changes nothing: its hooks return nothing."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def call_ended(self, context: ToolOutcomeContext[Any]) -> None:
        outcome = context.result.outcome
        self.lines.append(f"{context.call.name} {json.dumps(context.arguments)} -> {outcome}: {context.result.text}")

    def run_ended(self, context: RunEndContext[Any]) -> None:
        self.lines.append(f"run {context.status} with {len(context.messages)} messages")

    @property
    def hooks(self) -> Hooks[Any]:
        return Hooks(after_tool_execute=self.call_ended, on_run_end=self.run_ended)


def reads(number: int, path: str) -> ToolCall:
    return ToolCall(id=f"call_{number}", name="read", arguments=json.dumps({"path": path}))


agent = Agent(
    Scripted([reads(1, "notes.txt"), reads(2, "/etc/passwd"), reads(3, "../project/.env")], "You need milk."),
    tools=[read],
    hooks=Hooks(before_tool_execute=allow, after_tool_execute=redact),
)


async def main() -> None:
    audit = Audit()
    result = await agent.run("What is in my files?", hooks=audit.hooks)
    print("what the audit has seen:")
    for line in audit.lines:
        print(f"  {line}")
    print("what the model has read:")
    for message in result.messages[2:-1]:
        print(f"  {getattr(message, 'text', '')}")
    print(result.text)


asyncio.run(main())
