"""Tools that come from elsewhere and may change while a run goes on."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Hooks, ListedTools, Tool, ToolRegistry, UsageError, UseRequest, UseTools, Warned
from antiphon.testing import Scripted
from antiphon.tools import combined, filtered, renamed

from .scenes import Bodies, Gate, Spy, call, failing, finished, outcome, outcomes, texts

pytestmark = [pytest.mark.anyio, pytest.mark.parity("A21")]


class Shelf(ListedTools):
    """A source that counts its listings and closings, and can fail."""

    def __init__(self, name: str, *tools: Tool) -> None:
        super().__init__(name, tools)
        self.listings = 0
        self.closed = 0
        self.failing: list[Any] = []

    async def list(self, cancel: Any) -> Any:
        self.listings += 1
        if self.failing:
            failure = self.failing.pop(0)
            if failure is not None:
                raise failure
        return await super().list(cancel)

    async def close(self) -> None:
        self.closed += 1

    @property
    def watched(self) -> int:
        return len(self._listeners)


def offered(model: Scripted) -> list[list[str]]:
    return [[tool.name for tool in request.tools] for request in model.requests]


def named(*names: str) -> list[Tool]:
    bodies = Bodies()
    return [bodies.tool(name) for name in names]


# Listing and refreshing


async def test_a_source_is_listed_at_the_start_of_each_run_and_its_tools_can_be_called() -> None:
    shelf = Shelf("shelf", *named("book"))
    model = Scripted([call("book")], "ok", "hi")
    agent = Agent(model, tools=named("own"), sources=[shelf])
    result = await agent.run("go")
    assert (offered(model), outcomes(result.messages)) == ([["own", "book"]] * 2, {"book-1": "ok"})
    assert shelf.listings == 1
    await agent.run("go")
    assert shelf.listings == 2


async def test_a_change_is_seen_between_rounds_never_inside_one() -> None:
    """A tool that is called in the same reply as the change is the one that was offered."""
    shelf = Shelf("shelf", *named("old"))
    grow = Bodies().tool("grow", lambda _: shelf.set(named("new")))
    model = Scripted([call("grow"), call("old")], [call("new"), call("old", "gone")], "ok")
    agent = Agent(model, tools=[grow], sources=[shelf])
    result = await agent.run("go")
    assert offered(model) == [["grow", "old"], ["grow", "new"], ["grow", "new"]]
    assert outcomes(result.messages) == {"grow-1": "ok", "old-1": "ok", "new-1": "ok", "gone": "error"}


async def test_nothing_is_listed_again_without_a_notice() -> None:
    shelf = Shelf("shelf", *named("book"))
    await Agent(Scripted([call("book")], [call("book", "b2")], "ok"), sources=[shelf]).run("go")
    assert shelf.listings == 1


async def test_a_notice_that_comes_during_a_listing_is_not_lost() -> None:
    """The listing may have read the shelf before the change: only another one is sure to see it."""

    class Changing(Shelf):
        async def list(self, cancel: Any) -> Any:
            tools = await super().list(cancel)
            if self.listings == 2:
                self.set(named("late"))
            return tools

    shelf = Changing("shelf", *named("early"))
    model = Scripted([call("poke")], [call("poke", "p2")], "ok")
    poke = Bodies().tool("poke", lambda _: shelf.set(named("early")) if shelf.listings == 1 else None)
    await Agent(model, tools=[poke], sources=[shelf]).run("go")
    assert offered(model) == [["poke", "early"], ["poke", "early"], ["poke", "late"]]
    assert shelf.listings == 3


async def test_a_notice_during_the_first_listing_counts_for_the_first_request() -> None:
    class Changing(Shelf):
        async def list(self, cancel: Any) -> Any:
            tools = await super().list(cancel)
            if self.listings == 1:
                self.set(named("late"))
            return tools

    model = Scripted("ok")
    await Agent(model, sources=[Changing("shelf", *named("early"))]).run("go")
    assert offered(model) == [["late"]]


async def test_the_order_of_tools_does_not_depend_on_which_source_changed() -> None:
    """The order is part of the prompt that providers cache."""
    first, second = Shelf("first", *named("a", "b")), Shelf("second", *named("c"))
    changes = iter([lambda: first.set(named("b", "a")), lambda: second.set(named("d", "c"))])
    poke = Bodies().tool("poke", lambda _: next(changes)())
    model = Scripted([call("poke")], [call("poke", "p2")], "ok")
    await Agent(model, tools=[poke], sources=[first, second]).run("go")
    assert offered(model) == [["poke", "a", "b", "c"], ["poke", "b", "a", "c"], ["poke", "b", "a", "d", "c"]]


async def test_runs_of_one_agent_each_follow_the_source_by_themselves() -> None:
    shelf = Shelf("shelf", *named("a"))
    gate = Gate()
    first, second = Scripted([gate, call("a")], "ok"), Scripted("ok")
    agent = Agent(first, sources=[shelf])
    async with agent.run("go") as run:
        await gate.reached.wait()
        shelf.set(named("b"))
        await agent.run("go", model=second)
        gate.open()
        await run
    assert (offered(first), offered(second)) == ([["a"], ["b"]], [["b"]])


# Names


async def test_local_names_win_and_it_is_told() -> None:
    bodies = Bodies()
    agent = Agent(
        Scripted([call("same")], "ok"),
        tools=[bodies.tool("same", "mine")],
        sources=[Shelf("shelf", bodies.tool("same", "theirs"), bodies.tool("other"))],
    )
    result, recording = await outcome(agent)
    assert texts(result.messages) == {"same-1": "mine"}
    (warned,) = recording.of(Warned)
    assert (warned.code, "'same' of source 'shelf'" in warned.text) == ("tool_hidden", True)


async def test_a_name_in_two_sources_is_an_error_with_both_origins() -> None:
    model = Scripted("never")
    result, _ = await outcome(Agent(model, sources=[Shelf("one", *named("x")), Shelf("two", *named("x"))]))
    assert (result.status, model.requests) == ("error", [])
    assert "'x': 'one' and 'two'" in str(result.error)


async def test_a_name_twice_in_one_source_is_an_error_with_its_origin() -> None:
    result, _ = await outcome(Agent(Scripted("never"), sources=[Shelf("one", *named("x", "x"))]))
    assert result.status == "error"
    assert "'x'" in str(result.error)
    assert "'one'" in str(result.error)


async def test_a_clash_that_a_refresh_brings_ends_the_run_in_a_valid_state() -> None:
    one, two = Shelf("one", *named("x")), Shelf("two", *named("y"))
    poke = Bodies().tool("poke", lambda _: two.set(named("x")))
    result, recording = await outcome(Agent(Scripted([call("poke")]), tools=[poke], sources=[one, two]))
    recording.check()
    assert result.status == "error"
    assert "'x': 'one' and 'two'" in str(result.error)
    assert outcomes(result.messages) == {"poke-1": "ok"}


# Failures


@pytest.mark.parity("A12")
async def test_a_source_that_fails_at_the_start_has_no_tools_and_warns() -> None:
    shelf = Shelf("shelf", *named("book"))
    shelf.failing = [OSError("unplugged")]
    spy = Spy()
    model = Scripted("ok")
    result, recording = await outcome(Agent(model, tools=named("own"), sources=[shelf], hooks=spy.hooks()))
    assert (result.status, offered(model)) == ("done", [["own"]])
    (warned,) = recording.of(Warned)
    assert (warned.code, "'shelf'" in warned.text, "unplugged" in warned.text) == ("source_failed", True, True)
    assert len(spy.at("before_tools_resolved")) == len(spy.at("after_tools_resolved")) == 1
    assert [tool.name for tool in spy.at("after_tools_resolved")[0].tools] == ["own"], "a filter there still filters"


async def test_a_source_that_fails_later_keeps_its_tools_until_the_next_notice() -> None:
    shelf = Shelf("shelf", *named("old"))
    shelf.failing = [None, OSError("unplugged")]
    poke = Bodies().tool("poke", lambda _: shelf.set(named("new")))
    model = Scripted([call("poke")], [call("poke", "p2")], "ok")
    result, _ = await outcome(Agent(model, tools=[poke], sources=[shelf]))
    assert offered(model) == [["poke", "old"], ["poke", "old"], ["poke", "new"]]
    assert [code for code, _ in result.warnings] == ["source_failed"]


async def test_a_stop_during_a_listing_is_a_stop() -> None:
    gate = Gate()

    class Slow(Shelf):
        async def list(self, cancel: Any) -> Any:
            await gate.wait()
            return []

    model = Scripted("never")
    async with Agent(model, sources=[Slow("slow")]).run("go") as run:
        await gate.reached.wait()
        run.stop("enough")
    assert (run.result.status, model.requests) == ("aborted", [])


async def test_f7_a_cancellation_of_the_sources_own_does_not_escape() -> None:
    """F7: a library inside the source gave up; the process that runs the agent must not."""
    shelf = Shelf("shelf")
    shelf.failing = [asyncio.CancelledError()]
    result, recording = await outcome(Agent(Scripted("ok"), sources=[shelf]))
    recording.check()
    assert result.status in ("done", "error")


# Finding


class Finder(Shelf):
    """A source that knows more than it lists."""

    def __init__(self, name: str, *hidden: Tool) -> None:
        super().__init__(name)
        self.hidden = {tool.name: tool for tool in hidden}
        self.asked: list[str] = []

    async def find(self, name: str) -> Tool | None:
        self.asked.append(name)
        return self.hidden.get(name)


@pytest.mark.parity("A9")
@pytest.mark.parity("B11")
async def test_a_source_may_find_a_tool_that_was_not_advertised() -> None:
    """It passes the same hooks and the same approval as any other."""
    bodies = Bodies()
    spy = Spy()
    finder = Finder("archive", bodies.tool("deep"), bodies.tool("gated", needs_approval=True))
    model = Scripted([call("deep"), call("gated"), call("nothing")], "ok")
    agent = Agent(model, tools=named("own"), sources=[finder], hooks=spy.hooks(), approver=lambda _: False)
    result = await agent.run("go")
    assert outcomes(result.messages) == {"deep-1": "ok", "gated-1": "denied", "nothing-1": "error"}
    assert offered(model)[0] == ["own"]
    assert [context.tool and context.tool.name for context in spy.at("before_tool_execute")] == ["deep", "gated", None]
    assert "own" not in finder.asked


@pytest.mark.parity("A7")
async def test_a_source_is_never_asked_for_what_a_hook_took_away() -> None:
    finder = Finder("archive", *named("own", "listed", "request"))
    finder.set(named("listed"))
    hooks = Hooks(
        after_tools_resolved=lambda context: UseTools([t for t in context.tools if t.name in ("kept", "request")]),
        before_model_request=without("request"),
    )
    calls = [call("own"), call("listed"), call("request")]
    agent = Agent(Scripted(calls, "ok"), tools=named("own", "kept", "request"), sources=[finder], hooks=hooks)
    result = await agent.run("go")
    assert set(outcomes(result.messages).values()) == {"error"}
    assert finder.asked == []


def without(name: str) -> Any:
    """A request hook that takes one tool away."""
    return lambda context: UseRequest(tools=[tool for tool in context.tools if tool.name != name])


async def test_a_source_that_cannot_look_is_a_warning_and_the_next_is_asked() -> None:
    class Broken(Finder):
        async def find(self, name: str) -> Tool | None:
            raise OSError("unplugged")

    bodies = Bodies()
    agent = Agent(Scripted([call("deep")], "ok"), sources=[Broken("broken"), Finder("archive", bodies.tool("deep"))])
    result, recording = await outcome(agent)
    recording.check()
    assert outcomes(result.messages) == {"deep-1": "ok"}
    assert [code for code, _ in result.warnings] == ["source_failed"]


async def test_a_tool_found_under_another_name_is_not_what_was_asked_for() -> None:
    """An alias would be a way around what a hook took away."""

    class Alias(Finder):
        async def find(self, name: str) -> Tool | None:
            return self.hidden["secret"]

    bodies = Bodies()
    agent = Agent(Scripted([call("nickname")], "ok"), sources=[Alias("alias", bodies.tool("secret"))])
    result = await agent.run("go")
    assert (bodies.ran, outcomes(result.messages)) == ([], {"nickname-1": "error"})


# Closing


async def test_a_source_is_closed_and_no_longer_watched_when_the_run_ends() -> None:
    for script in ("ok", ConnectionError("gone")):
        shelf = Shelf("shelf")
        await outcome(Agent(Scripted(script), sources=[shelf]))
        assert (shelf.closed, shelf.watched) == (1, 0)


async def test_a_source_that_does_not_close_is_a_warning_and_the_next_is_closed() -> None:
    class Stuck(Shelf):
        async def close(self) -> None:
            raise OSError("jammed")

    class Odd(Shelf):
        def on_invalidated(self, listener: Any) -> Any:
            super().on_invalidated(listener)
            return lambda: failing(OSError("stuck"))(None)

    last = Shelf("last")
    result, _ = await outcome(Agent(Scripted("ok"), sources=[Stuck("stuck"), Odd("odd"), last]))
    assert (result.status, last.closed) == ("done", 1)
    assert [code for code, _ in result.warnings] == ["source_close_failed", "source_close_failed"]


# Wrapping


async def test_sources_can_be_combined_filtered_and_renamed() -> None:
    one, two = Finder("one", *named("deep", "secret")), Shelf("two", *named("b", "c"))
    one.set(named("a"))
    both = combined("both", one, filtered(two, lambda tool: tool.name != "c"))
    source = renamed(filtered(both, lambda tool: tool.name != "secret"), lambda name: name.removeprefix("x"))
    calls = [call("a"), call("deep"), call("secret")]
    poke = Bodies().tool("poke", lambda _: two.set(named("d")))
    model = Scripted([call("poke"), *calls], "ok")
    result = await Agent(model, tools=[poke], sources=[source]).run("go")
    assert offered(model) == [["poke", "a", "b"], ["poke", "a", "d"]]
    assert outcomes(result.messages) == {"poke-1": "ok", "a-1": "ok", "deep-1": "ok", "secret-1": "error"}
    assert (one.closed, two.closed, one.watched, two.watched) == (1, 1, 0, 0)


async def test_a_renamed_tool_runs_under_its_new_name() -> None:
    """Two servers with the same words can be used side by side."""
    model = Scripted([call("left.find"), call("right.find")], "ok")
    bodies = Bodies()
    sources = [renamed(Shelf(side, bodies.tool("find", side)), f"{side}.{{}}".format) for side in ("left", "right")]
    result = await Agent(model, sources=sources).run("go")
    assert texts(result.messages) == {"left.find-1": "left", "right.find-1": "right"}
    with pytest.raises(UsageError, match="renamed to nothing"):
        await renamed(Shelf("x", *named("a")), lambda _: "").list(Any)  # type: ignore[arg-type]


# A registry


@pytest.mark.parity("A1")
@pytest.mark.parity("A3")
async def test_a_tool_registered_later_is_seen_by_later_runs_and_by_none_that_goes_on() -> None:
    registry = ToolRegistry(named("a"))
    gate = Gate()
    first, second = Scripted([gate, call("a")], "ok"), Scripted("ok")
    agent = Agent(first, tools=registry)
    async with agent.run("go") as run:
        await gate.reached.wait()
        registry.register(Bodies().tool("b"))
        gate.open()
        await run
    await agent.run("go", model=second)
    assert (offered(first), offered(second)) == ([["a"], ["a"]], [["a", "b"]])
    registry.unregister("a")
    result, _ = await finished(agent.run("go", model=Scripted([call("a")], "ok")))
    assert outcomes(result.messages) == {"a-1": "error"}
