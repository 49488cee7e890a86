"""Who decides whether a call runs: the tool's own word, the policy, an approver; and what the model reads of a refusal."""

from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    Allow,
    ApprovalDecided,
    ApprovalRequested,
    Ask,
    Block,
    Deny,
    Hooks,
    ToolOptions,
    UseArguments,
    UseResult,
)
from antiphon.testing import Scripted, ScriptedApprover

from .scenes import CITY, Bodies, call, failing, outcome, outcomes, texts

pytestmark = pytest.mark.anyio

MODES = pytest.mark.parametrize("execution", ["parallel", "sequential"])


# The tool's own word


RULES: list[Any] = [
    (False, "ok"),
    (True, "pending"),
    (lambda _: False, "ok"),
    (lambda _: "run", "ok"),
    (lambda _: True, "pending"),
    (lambda _: "ask", "pending"),
    (lambda _: "deny", "denied"),
]


@pytest.mark.parity("B8")
@pytest.mark.parity("B2")
@pytest.mark.parametrize(("rule", "becomes"), RULES)
async def test_a_tools_own_word_runs_asks_or_denies(rule: Any, becomes: str) -> None:
    bodies = Bodies()
    agent = Agent(Scripted([call("a")], "ok"), tools=[bodies.tool("a", needs_approval=rule)])
    result, recording = await outcome(agent)
    recording.check()
    found = "pending" if result.pending else outcomes(result.messages)["a-1"]
    assert found == becomes
    assert bodies.names == (["a"] if becomes == "ok" else [])
    assert len(recording.of(ApprovalRequested)) == (becomes == "pending"), "only a question is announced"


@pytest.mark.parity("B8")
async def test_a_predicate_is_given_id_name_and_arguments_per_call() -> None:
    """It decides at call time, on the arguments that would be used, defaults included."""
    seen: list[Any] = []

    def rule(info: Any) -> bool:
        seen.append((info.id, info.name, info.arguments))
        return info.arguments["city"] == "Rome"

    bodies = Bodies()
    calls = [call("weather", "w1", city="Oslo"), call("weather", "w2", city="Rome")]
    agent = Agent(Scripted(calls), tools=[bodies.tool("weather", None, CITY, needs_approval=rule)])
    result, _ = await outcome(agent)
    assert seen == [
        ("w1", "weather", {"city": "Oslo", "unit": "C", "days": [1]}),
        ("w2", "weather", {"city": "Rome", "unit": "C", "days": [1]}),
    ]
    assert [each.id for each in result.pending] == ["w2"]
    assert [arguments["city"] for _, arguments in bodies.ran] == ["Oslo"]


@pytest.mark.parity("B11")
async def test_limit_and_approval_are_answered_at_call_time_for_tools_not_known_beforehand_too() -> None:
    """A tool that a source finds for a call brings its own rule along."""

    class Finder:
        name = "finder"

        async def list(self, _cancel: Any) -> list[Any]:
            return []

        def find(self, name: str) -> Any:
            return Bodies().tool(name, needs_approval=lambda info: info.name == "risky", max_calls=1)

    model = Scripted([call("safe"), call("safe", "s2"), call("risky")], "ok")
    result, _ = await outcome(Agent(model, sources=[Finder()], approver=lambda _: False))
    assert outcomes(result.messages) == {"safe-1": "ok", "s2": "not_run", "risky-1": "denied"}


# The policy


@pytest.mark.parity("B8")
@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("verdict", "becomes"), [(Allow(), "ok"), (Ask(), "pending"), (Deny("house rule"), "denied"), (None, "pending")]
)
async def test_the_policy_comes_before_the_tools_own_word(verdict: Any, becomes: str, wait: bool) -> None:
    """Nothing means that it has no opinion, and the tool's own word counts."""

    async def later(_context: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return verdict

    bodies = Bodies()
    agent = Agent(
        Scripted([call("a")], "ok"),
        tools=[bodies.tool("a", needs_approval=True)],
        policy=later if wait else lambda _: verdict,
    )
    result, recording = await outcome(agent)
    found = "pending" if result.pending else outcomes(result.messages)["a-1"]
    assert found == becomes
    assert len(recording.of(ApprovalRequested)) == (becomes == "pending")
    if becomes == "denied":
        assert "house rule" in texts(result.messages)["a-1"]


@pytest.mark.parity("B8")
async def test_a_deny_of_the_policy_asks_nobody() -> None:
    """An approver that says yes cannot overrule it."""
    approver = ScriptedApprover(True)
    bodies = Bodies()
    agent = Agent(Scripted([call("a")], "ok"), tools=[bodies.tool("a")], policy=lambda _: Deny("no"), approver=approver)
    result, recording = await outcome(agent)
    assert (approver.asked, bodies.ran, outcomes(result.messages)) == ([], [], {"a-1": "denied"})
    assert recording.of(ApprovalRequested) == recording.of(ApprovalDecided) == []


@pytest.mark.parity("B9")
async def test_the_policy_is_given_the_call_the_tool_and_the_arguments_that_the_hooks_left() -> None:
    seen: list[Any] = []

    def policy(context: Any) -> Allow:
        seen.append(context)
        return Allow()

    bodies = Bodies()
    weather = bodies.tool("weather", None, CITY)
    agent = Agent(
        Scripted([call("weather", city="Oslo")], "ok"),
        tools=[weather],
        hooks=Hooks(before_tool_execute=lambda _: UseArguments({"city": "Rome"})),
        policy=policy,
    )
    result = await agent.run("go", deps="mine")
    (context,) = seen
    assert (context.call.name, context.tool, context.deps, context.run_id) == (
        "weather",
        weather,
        "mine",
        result.run_id,
    )
    assert context.arguments == {"city": "Rome", "unit": "C", "days": [1]}
    assert context.cancel.cancelled, "the run is over"


@MODES
@pytest.mark.parity("A9")
@pytest.mark.parametrize("answer", [UseResult("given"), Block("blocked")], ids=["given", "blocked"])
async def test_given_and_blocked_calls_are_never_put_to_approval(execution: Any, answer: Any) -> None:
    """A person is not asked about something that will not happen."""
    approver = ScriptedApprover(True)
    agent = Agent(
        Scripted([call("a")], "ok"),
        tools=[Bodies().tool("a", needs_approval=failing(AssertionError("asked")))],
        hooks=Hooks(before_tool_execute=lambda _: answer),
        policy=failing(AssertionError("asked")),
        approver=approver,
        tool_options=ToolOptions(execution=execution),
    )
    result, recording = await outcome(agent)
    assert result.status == "done"
    assert "asked" not in texts(result.messages)["a-1"]
    assert (approver.asked, recording.of(ApprovalRequested)) == ([], [])


@pytest.mark.parity("B8")
async def test_bad_arguments_are_never_put_to_approval() -> None:
    approver = ScriptedApprover()
    tools = [Bodies().tool("weather", None, CITY, needs_approval=True)]
    model = Scripted([call("weather", town="x"), call("ghost")], "ok")
    result, _ = await outcome(Agent(model, tools=tools, approver=approver))
    assert (approver.asked, result.status) == ([], "done")
