"""A call waits for a person who answers much later, when the program that asked is long gone.

The first process runs until nothing can go on without a decision, stores the run's state as JSON and ends. The second
one knows nothing but that file: it goes on with the decisions, and what ran in the first is not run again. Keep such a
file where users cannot change it: it says which calls were allowed.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from antiphon import Agent, Answer, Approve, ToolCall, ToolContext, tool
from antiphon.testing import Scripted, ScriptedReply


@tool
async def find_flight(to: str) -> str:
    """Finds a flight."""
    print("  (find_flight runs)")
    return f"the cheapest to {to} is at 7:10, 90 EUR"


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pays."""
    print("  (pay runs)")
    return f"paid {amount} EUR"


@tool
async def choose_seat(context: ToolContext[None]) -> str:
    """Chooses a seat."""
    seat = await context.ask("window or aisle?")  # ask before you act: after a restart the body begins again
    print("  (choose_seat goes on)")
    return f"seat at the {seat}"


def make(*script: ScriptedReply) -> Agent[None]:
    return Agent(Scripted(*script), tools=[find_flight, pay, choose_seat])


async def begin(_stored: str) -> str:
    """The first process: a web request, say. Gives what must be stored."""
    calls = [
        ToolCall(id="c1", name="find_flight", arguments='{"to": "Oslo"}'),
        ToolCall(id="c2", name="pay", arguments='{"amount": 90}'),
        ToolCall(id="c3", name="choose_seat"),
    ]
    result = await make(calls).run("Book me a flight to Oslo.")
    print(f"  {result.status}; waiting: {[call.name for call in result.pending]}, asking: {result.questions}")
    return json.dumps(result.state)


async def go_on(stored: str) -> str:
    """The second process: the next morning."""
    decisions = {"c3": Answer("window"), "c2": Approve({"amount": 80})}
    result = await make("You fly at 7:10, at the window.").run(resume=json.loads(stored), decisions=decisions)
    print(f"  {result.status}: {result.text}")
    for message in result.messages[2:-1]:
        print(f"  {getattr(message, 'text', '')}")
    return json.dumps(result.state)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.json"
        file.write_text("")
        for step in ("begin", "go_on"):
            print(f"{step}, in a process of its own:", flush=True)
            subprocess.run([sys.executable, __file__, step, str(file)], check=True)  # noqa: S603 - this very file


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        step, kept = {"begin": begin, "go_on": go_on}[sys.argv[1]], Path(sys.argv[2])
        kept.write_text(asyncio.run(step(kept.read_text())))
