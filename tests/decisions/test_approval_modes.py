"""Ready-made approval modes over classes of tools."""

import re
from typing import Any

import pytest

from antiphon import Agent, ApprovalModes, UsageError
from antiphon.agent.modes import Mode
from antiphon.testing import Scripted
from antiphon.tools.tool import Tool

from .scenes import Bodies, call, outcome, outcomes, texts

pytestmark = [pytest.mark.anyio, pytest.mark.parity("B19")]

RUN, ASK, DENY = "ok", "asked", "denied"

EXPECTED: dict[Mode, tuple[str, str, str, str]] = {
    "plan": (RUN, DENY, DENY, RUN),
    "ask": (RUN, ASK, ASK, RUN),
    "auto_edit": (RUN, RUN, ASK, RUN),
    "auto": (RUN, RUN, RUN, RUN),
}
"""Mode to what becomes of a reading, a writing, an executing tool and one of no class."""


def workshop(bodies: Bodies) -> list[Tool]:
    return [
        bodies.tool("look", kind="read"),
        bodies.tool("edit", kind="write"),
        bodies.tool("launch", kind="exec"),
        bodies.tool("ponder"),
    ]


async def judged(modes: ApprovalModes, tools: list[Tool]) -> dict[str, str]:
    """What becomes of one call of each tool."""
    calls = [call(tool.name, tool.name) for tool in tools]
    agent = Agent(Scripted([*calls], "done"), tools=tools, policy=modes)
    result, _ = await outcome(agent)
    waiting = {each.id: ASK for each in result.pending}
    finished = outcomes(result.messages)
    if result.status == "paused":
        finished = {slot: "ok" for slot in (tool.name for tool in tools) if slot not in waiting}
    return finished | waiting


@pytest.mark.parametrize("mode", EXPECTED)
async def test_a_mode_decides_by_the_class_of_a_tool(mode: Mode) -> None:
    bodies = Bodies()
    tools = workshop(bodies)
    found = await judged(ApprovalModes(mode), tools)
    assert tuple(found[tool.name] for tool in tools) == EXPECTED[mode]
    assert bodies.names == [tool.name for tool, verdict in zip(tools, EXPECTED[mode], strict=True) if verdict == RUN]


async def test_plan_tells_the_model_why() -> None:
    """A refusal that gives no reason is tried again."""
    agent = Agent(Scripted([call("edit")], "ok"), tools=workshop(Bodies()), policy=ApprovalModes("plan"))
    result, _ = await outcome(agent)
    assert "only reading is allowed now" in texts(result.messages)["edit-1"]


async def test_of_an_unclassified_tool_only_auto_has_an_opinion() -> None:
    """The tool's own `needs_approval` holds in every other mode."""
    for mode in EXPECTED:
        found = await judged(ApprovalModes(mode), [Bodies().tool("odd", needs_approval=True)])
        assert found == {"odd": RUN if mode == "auto" else ASK}, mode


@pytest.mark.parametrize(
    ("name", "expected"),
    [("rm", "exec"), ("git_push", "exec"), ("write_file", "write"), ("read_file", "read"), ("other", None)],
)
def test_tools_without_a_kind_are_classified_by_name_or_pattern(name: str, expected: str | None) -> None:
    modes = ApprovalModes(read=["read_*"], write=[re.compile(r"write_\w+")], exec=["rm", "git_*"])
    assert modes.kind_of(name) == expected


def test_the_most_dangerous_class_counts() -> None:
    """A name that two lists know is judged by the stricter one."""
    modes = ApprovalModes(read=["*"], write=["*_file"], exec=["run_file"])
    assert [modes.kind_of(name) for name in ("run_file", "save_file", "list")] == ["exec", "write", "read"]


def test_a_tools_own_kind_comes_before_the_lists() -> None:
    assert ApprovalModes(exec=["*"]).kind_of("look", "read") == "read"


async def test_a_switched_mode_holds_for_the_next_call() -> None:
    """The mode is read at each call, so that a person can loosen or tighten a run that goes on."""
    modes = ApprovalModes("plan")
    bodies = Bodies()

    def loosen(_arguments: Any) -> None:
        assert modes.mode == "plan"
        modes.mode = "auto"

    tools = [bodies.tool("look", loosen, kind="read"), bodies.tool("edit", kind="write")]
    agent = Agent(Scripted([call("edit", "e1")], [call("look")], [call("edit", "e2")], "ok"), tools=tools, policy=modes)
    result, _ = await outcome(agent)
    assert outcomes(result.messages) == {"e1": "denied", "look-1": "ok", "e2": "ok"}


def test_an_unknown_mode_is_refused_by_name() -> None:
    modes = ApprovalModes()
    with pytest.raises(UsageError, match="'yolo'; the modes are: plan, ask, auto_edit, auto"):
        modes.mode = "yolo"  # pyright: ignore[reportAttributeAccessIssue] - what is tested
    assert modes.mode == "ask"
