"""An agent as a tool: its own history, the caller's stop and limits, its events inside the caller's."""

from collections.abc import Callable
from typing import Any, Protocol, Unpack, cast

from msgspec.structs import replace

from antiphon.agent.prompt import Prompt
from antiphon.agent.run import Run
from antiphon.errors import ToolError, UsageError
from antiphon.loop.limits import Limits
from antiphon.loop.session import CALL, ChildPaused, Session
from antiphon.loop.state import Nested, Phase, Slot, Spent
from antiphon.tools.context import ToolContext
from antiphon.tools.tool import Tool, ToolTraits
from antiphon.types.events import ApprovalDecided, ApprovalRequested, Event
from antiphon.types.result import RunError, RunResult

__all__ = ["agent_tool"]

PROMPT: dict[str, Any] = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "description": "What the agent should do, with all it needs to know."}},
    "required": ["prompt"],
    "additionalProperties": False,
}


class Runnable(Protocol):
    """What a sub-agent is to its caller."""

    @property
    def limits(self) -> Limits: ...
    def run(self, input: Prompt | None = None, /, **options: Any) -> Run[Any]: ...  # noqa: A002 - the agent's word


def agent_tool(
    agent: Runnable,
    name: str,
    description: str,
    parameters: dict[str, Any] | None,
    prompt: Callable[[dict[str, Any]], Prompt] | None,
    **traits: Unpack[ToolTraits],
) -> Tool:
    """A tool that runs `agent`. Its arguments are one `prompt` text, or what `parameters` and `prompt` make of them."""
    if (parameters is None) != (prompt is None):
        raise UsageError("as_tool takes parameters= and prompt= together: the schema, and what makes a prompt of it")
    make = prompt or plain_prompt

    async def body(arguments: dict[str, Any], context: ToolContext[Any]) -> Any:
        found = CALL.get()
        if found is None:
            return (await agent.run(make(arguments), deps=context.deps, cancel=context.cancel)).output
        return await Child(agent, *found, context).run(make(arguments))

    traits.setdefault("timeout", 0)
    return Tool.from_schema(name, description, parameters or PROMPT, body, **traits)


def plain_prompt(arguments: dict[str, Any]) -> Prompt:
    """What the model wrote as the prompt."""
    return cast("str", arguments["prompt"])


class Child:
    """One run of a sub-agent inside a call of its caller."""

    def __init__(self, agent: Runnable, parent: Session, slot: Slot, context: ToolContext[Any]) -> None:
        self.agent = agent
        self.parent = parent
        self.slot = slot
        self.context = context

    async def run(self, prompt: Prompt) -> Any:
        """Run to the end. Raises `ToolError` for every ending that has no answer."""
        run = self._make(prompt)
        unsubscribe = run.subscribe(self._relay)
        call_id = self.slot.call.id
        self.parent.children[call_id] = run
        try:
            if self.parent.live:
                async with run:
                    result = await run
            else:
                result = await run
        except RunError as error:
            raise ToolError(f"the agent failed: {error}") from error
        finally:
            self.parent.children.pop(call_id, None)
            unsubscribe()
            if run.ended:
                self._spend(run.result)
        return self._answer(result)

    def _make(self, prompt: Prompt) -> Run[Any]:
        decision = self.slot.decision
        shared: dict[str, Any] = {
            "deps": self.context.deps,
            "cancel": self.parent.cancel,
            "limits": remaining(self.agent.limits, self.parent),
            "parent_run_id": self.parent.state.run_id,
        }
        if self.parent.spec.approver is not None:
            shared["approver"] = self.parent.spec.approver
        if self.slot.nested is not None:
            decisions = decision.decisions if isinstance(decision, Nested) else {}
            return self.agent.run(resume=self.slot.nested, decisions=decisions, **shared)
        return self.agent.run(prompt, **shared)

    def _relay(self, event: Event) -> None:
        """The caller's viewers see the sub-agent's events; its questions carry their path."""
        call_id = self.slot.call.id
        if isinstance(event, ApprovalRequested):
            event = replace(event, call_id=f"{call_id}/{event.call_id}", path=(call_id, *event.path))
        elif isinstance(event, ApprovalDecided):
            event = replace(event, call_id=f"{call_id}/{event.call_id}")
        self.parent.teller.hand_out(event)
        self.parent.wake()

    def _spend(self, result: RunResult[Any]) -> None:
        """What it consumed counts in its caller too; a paused one carries it on until it ends."""
        if result.status != "paused" and self.parent.state.phase is Phase.CALLING:
            self.parent.feed(Spent(usage=result.usage, requests=result.requests))

    def _answer(self, result: RunResult[Any]) -> Any:
        if result.status == "paused":
            raise ChildPaused(result.state)
        if result.status == "done":
            output: Any = result.output
            return output
        said = f" so far it said: {result.text}" if result.text else ""
        reason = f" ({result.reason})" if result.reason else ""
        raise ToolError(f"the agent ended without an answer: {result.status}{reason};{said or ' it said nothing'}")


def remaining(own: Limits, parent: Session) -> Limits:
    """The sub-agent's limits, none above what its caller has left."""
    theirs, used = parent.spec.limits, parent.state.counters
    usage = used.usage
    spent = {
        "requests": used.requests,
        "tokens": usage.total if usage.total is not None else usage.input + usage.output,
        "cost": usage.cost or 0.0,
        "seconds": parent.seconds,
    }
    changes: dict[str, Any] = {}
    for name, amount in spent.items():
        limit, mine = getattr(theirs, name), getattr(own, name)
        if limit is not None:
            left = max(0, limit - amount)
            changes[name] = left if mine is None else min(mine, left)
    return replace(own, **changes)
