"""A process that knows nothing but a stored state: it goes on with the decisions it is given, and says what came of it.

`python resumable.py START` begins a run; `python resumable.py STATE DECISIONS` resumes one. Both print one JSON object:
the status, the pending ids, the texts of the results, the state. Each body writes a line into the file LOG.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from antiphon import Agent, Answer, Approve, Deny, Tool, ToolContext, tool
from antiphon.testing import Scripted
from antiphon.types.content import ToolCall

KINDS: dict[str, Any] = {"approve": Approve, "deny": Deny, "answer": Answer}


def make(log: Path) -> Agent[Any]:
    def note(line: str) -> None:
        with log.open("a") as file:
            file.write(f"{line}\n")

    @tool
    async def free(name: str) -> str:
        note(f"free {name}")
        return f"free {name}"

    @tool(needs_approval=True)
    async def gated(name: str) -> str:
        note(f"gated {name}")
        return f"gated {name}"

    @tool
    async def asks(name: str, context: ToolContext[Any]) -> str:
        answer = await context.ask(f"may {name}?")
        note(f"asks {name}")
        return f"{name}: {answer}"

    far = Tool.from_schema("far", "Runs elsewhere.", {"type": "object", "properties": {}})
    calls = [("free", "f"), ("gated", "g1"), ("gated", "g2"), ("asks", "q"), ("free", "f2")]
    reply = [ToolCall(id=name, name=tool_name, arguments=json.dumps({"name": name})) for tool_name, name in calls]
    return Agent(Scripted([*reply, ToolCall(id="far", name="far")], "all done"), tools=[free, gated, asks, far])


async def main(log: Path, stored: str, decided: str) -> dict[str, Any]:
    agent = make(log)
    if not stored:
        result = await agent.run("go")
    else:
        decisions = {key: KINDS[kind](*given) for key, (kind, *given) in json.loads(decided).items()}
        result = await agent.but(model=Scripted("all done")).run(resume=json.loads(stored), decisions=decisions)
    return {
        "status": result.status,
        "pending": [call.id for call in result.pending],
        "questions": result.questions,
        "text": result.text,
        "results": [[m.call_id, m.text] for m in result.messages if hasattr(m, "call_id")],  # type: ignore[union-attr]
        "state": result.state,
    }


if __name__ == "__main__":
    path, state_file, decisions_text = sys.argv[1:]
    given_state = Path(state_file).read_text() if state_file else ""
    sys.stdout.write(json.dumps(asyncio.run(main(Path(path), given_state, decisions_text))))
