"""The history as notices: each message of a run once, in order, before the request that carries it."""

import json
from typing import Any

import anyio
import pytest

from antiphon import (
    Agent,
    Approve,
    ContextReplaced,
    Deny,
    Dropped,
    ForcedCall,
    Hooks,
    Message,
    MessageFinished,
    MessageStarted,
    ModelRequest,
    Recovery,
    RunError,
    RunFinished,
    Stop,
    UseContext,
    UserMessage,
    validate,
)
from antiphon.testing import Scripted, record

from .scenes import Bodies, Gate, call, finished, outcome, outcomes, said, texts

pytestmark = [pytest.mark.anyio, pytest.mark.parity("B16")]


class Log:
    """An append-only log that can fail."""

    def __init__(self, *, fail_at: int | None = None) -> None:
        self.messages: list[Message] = []
        self.fail_at = fail_at
        self.tried: list[Message] = []

    def append(self, message: Message) -> None:
        self.tried.append(message)
        if self.fail_at is not None and len(self.messages) == self.fail_at:
            raise OSError("disk full")
        self.messages.append(message)

    async def append_later(self, message: Message) -> None:
        await anyio.lowlevel.checkpoint()
        self.append(message)

    @property
    def said(self) -> list[str]:
        return said(self.messages)


@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
async def test_each_message_of_the_run_is_told_once_in_order_and_those_passed_in_are_not(wait: bool) -> None:
    log = Log()
    agent = Agent(
        Scripted(["hm", call("a"), call("b")], "ok"),
        tools=[Bodies().tool("a"), Bodies().tool("b")],
        hooks=Hooks(on_append=log.append_later if wait else log.append),
    )
    result = await agent.run("new", messages=[UserMessage.of("old")])
    assert log.said == ["new", "hm", "a", "b", "ok"]
    assert log.messages == list(result.messages)[1:] == list(result.new_messages)


async def test_before_every_request_the_log_is_what_the_request_carries() -> None:
    """So a host can keep its own bytes and send those."""
    log = Log()
    seen: list[tuple[list[Message], list[Message]]] = []

    def look(request: ModelRequest) -> Any:
        seen.append((list(log.messages), list(request.messages)))
        return [call("a", f"c{len(seen)}")] if len(seen) < 3 else "ok"

    agent = Agent(
        Scripted(look, look, look),
        tools=[Bodies().tool("a", lambda _: run.steer(f"hurry {len(seen)}") and None)],
        hooks=Hooks(on_append=log.append),
    )
    run = agent.run("go")
    await run
    assert len(seen) == 3
    for logged, sent in seen:
        assert logged == sent


async def test_a_hosts_own_model_may_send_its_log_and_ignore_the_requests_messages() -> None:
    """A server with slots (llama.cpp, vLLM) wants the very bytes it has seen before."""
    lines: list[bytes] = []
    sent: list[bytes] = []

    def append(message: Message) -> None:
        lines.append(json.dumps([type(message).__name__, getattr(message, "text", "")]).encode())

    def model(_request: ModelRequest) -> str:
        sent.append(b"\n".join(lines))
        return f"answer {len(sent)}"

    agent = Agent(model, hooks=Hooks(on_append=append))
    run = agent.run("go")
    run.subscribe(
        lambda event: run.follow_up("more") if isinstance(event, MessageFinished) and len(sent) == 1 else None
    )
    await run
    assert len(sent) >= 2
    assert sent[1].startswith(sent[0])


def id_of(message: Message) -> str:
    return getattr(message, "id", "")


async def test_a_notice_comes_before_the_events_of_its_message_end() -> None:
    told: list[str] = []
    agent = Agent(Scripted("hi"), hooks=Hooks(on_append=lambda message: told.append(f"log {id_of(message)}")))
    run = agent.run("go")
    run.subscribe(
        lambda event: told.append(f"event {id_of(event.message)}") if isinstance(event, MessageFinished) else None,
    )
    result = await run
    ids = list(map(id_of, result.messages))
    assert told == [f"{what} {id_}" for id_ in ids for what in ("log", "event")]


async def test_the_agents_and_the_runs_hooks_are_told_in_that_order() -> None:
    told: list[str] = []
    agent = Agent(Scripted("hi"), hooks=Hooks(on_append=lambda _: told.append("agent")))
    await agent.run("go", hooks=Hooks(on_append=lambda _: told.append("run")))
    assert told == ["agent", "run"] * 2


async def test_refusals_forced_calls_and_steered_messages_are_told_too() -> None:
    log = Log()
    bodies = Bodies()
    agent = Agent(
        Scripted("ok"),
        tools=[bodies.tool("a", needs_approval=True)],
        approver=lambda _: Deny("no"),
        hooks=Hooks(on_append=log.append),
    )
    result = await agent.run("go", tool_choice=ForcedCall("a"))
    assert log.messages == list(result.messages)
    assert outcomes(log.messages) == {"forced-0": "denied"}


async def test_what_a_stop_leaves_behind_is_told_too() -> None:
    """The log of a run that was stopped can be sent again, like its transcript."""
    log = Log()
    gate = Gate()
    tools = [Bodies().tool("a", lambda _: gate.wait()), Bodies().tool("b", exclusive=True)]
    agent = Agent(Scripted(["hm", call("a"), call("b")]), tools=tools, hooks=Hooks(on_append=log.append))
    async with agent.run("go") as run:
        await gate.reached.wait()
        run.stop("enough")
    assert log.messages == list(run.result.messages)
    assert outcomes(log.messages) == {"a-1": "cancelled", "b-1": "not_run"}
    assert validate(log.messages) == []


async def test_discarded_attempts_are_never_told() -> None:
    log = Log()
    model = Scripted(["half", Dropped("lost")], "whole")
    agent = Agent(model, hooks=Hooks(on_append=log.append), recovery=Recovery(delay=0, jitter=0))
    await agent.run("go")
    assert log.said == ["go", "whole"]


async def test_replaced_messages_are_told_of_by_the_event_alone() -> None:
    """They were not appended: an append-only log has to begin anew."""
    log = Log()
    short = UseContext(messages=[UserMessage.of("short")])
    hooks = Hooks(on_append=log.append, prepare_context=lambda context: short if context.step == 1 else None)
    result, recording = await outcome(Agent(Scripted("ok"), hooks=hooks))
    assert log.said == ["go", "ok"]
    assert said(recording.one(ContextReplaced).messages or ()) == ["short"]
    assert said(result.messages) == ["short", "ok"]


# Failing


@pytest.mark.parametrize("wait", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("fail_at", [0, 1, 2, 3])
async def test_a_failing_log_ends_the_run_in_an_error_that_can_be_resumed(wait: bool, fail_at: int) -> None:
    """G10: what could not be written is written first, before anything else happens; nothing is told twice."""
    log = Log(fail_at=fail_at)
    bodies = Bodies()
    hooks = Hooks(on_append=log.append_later if wait else log.append)
    script = [["hm", call("a")], "ok"]
    first, recording = await outcome(Agent(Scripted(*script), tools=[bodies.tool("a")], hooks=hooks))
    recording.check()
    assert first.status == "error"
    assert "disk full" in str(first.error)
    assert len(log.tried) == fail_at + 1, "a log has no holes: after the failure it is told no more"
    assert validate(first.messages) == []
    assert [event.message for event in recording.of(MessageFinished)] == list(first.new_messages)

    log.fail_at = None
    log.tried.clear()
    before_request: list[list[Message]] = []

    def answer(_request: Any) -> str:
        before_request.append(list(log.messages))
        return "resumed"

    agent = Agent(answer, tools=[bodies.tool("a")], hooks=hooks)
    second, again = await finished(agent.run(resume=json.loads(json.dumps(first.state))))
    again.check()
    assert second.status == "done"
    if fail_at == 3:  # the run had said its last word: nothing is left but to tell of it
        assert before_request == []
    else:
        assert before_request == [list(second.messages)[:-1]], "all of it was told before the request"
    assert log.messages == list(second.messages)
    assert len(set(map(id_of, log.messages))) == len(log.messages)
    started = [event.message_id for event in again.of(MessageStarted)]
    assert len(started) == len(second.new_messages), "old messages have no events of their own again"
    assert bodies.names.count("a") <= 1


async def test_the_last_message_that_could_not_be_written_is_written_on_resume_and_the_run_just_ends() -> None:
    log = Log(fail_at=1)
    agent = Agent(Scripted("the answer"), hooks=Hooks(on_append=log.append))
    with pytest.raises(RunError, match="disk full") as caught:
        await agent.run("go")
    assert said(caught.value.result.messages)[:2] == ["go", "the answer"]
    assert isinstance(caught.value.__cause__, OSError)


async def test_a_log_that_fails_while_the_run_ends_changes_nothing_of_its_end() -> None:
    log = Log(fail_at=1)
    hooks = Hooks(on_append=log.append, after_model_response=lambda _: Stop("enough"))
    result, recording = await outcome(Agent(Scripted("hi"), hooks=hooks))
    recording.check()
    assert (result.status, result.reason) == ("stopped", "enough")
    assert [code for code, _ in result.warnings] == ["on_append_failed"]
    assert said(result.messages) == ["go", "hi"]


async def test_a_log_that_was_interrupted_by_a_stop_hears_the_message_again() -> None:
    """Whether the first try was written is for the log to know: messages have ids."""
    gate = Gate()
    heard: list[str] = []

    async def append(message: Any) -> None:
        heard.append(message.text)
        if len(heard) == 2:
            await gate.wait()

    async with Agent(Scripted("hi"), hooks=Hooks(on_append=append)).run("go") as run:
        recording = record(run)
        await gate.reached.wait()
        run.stop("enough")
    assert run.result.status == "aborted"
    assert heard == ["go", "hi", "hi"]
    assert recording.one(RunFinished).status == "aborted"


async def test_a_paused_run_tells_results_when_the_turn_is_complete_and_each_once() -> None:
    log = Log()
    bodies = Bodies()
    agent = Agent(
        Scripted([call("a"), call("b")], "ok"),
        tools=[bodies.tool("a"), bodies.tool("b", needs_approval=True)],
        hooks=Hooks(on_append=log.append),
    )
    paused, _ = await outcome(agent)
    assert log.said == ["go", ""]
    state = json.loads(json.dumps(paused.state))
    result, _ = await finished(agent.run(resume=state, decisions={"b-1": Approve()}))
    assert log.said == ["go", "", "a", "b", "ok"]
    assert log.messages == list(result.messages)
    assert texts(log.messages) == {"a-1": "a", "b-1": "b"}


async def test_a_host_that_begins_to_listen_on_resume_hears_what_nobody_was_told() -> None:
    log = Log()
    bodies = Bodies()
    agent = Agent(Scripted([call("a")], "ok"), tools=[bodies.tool("a", needs_approval=True)])
    paused, _ = await finished(agent.run("go", messages=[UserMessage.of("old")]))
    state = json.loads(json.dumps(paused.state))
    hooks = Hooks(on_append=log.append)
    await finished(agent.run(resume=state, decisions={"a-1": Approve()}, hooks=hooks))
    assert log.said == ["go", "", "a", "ok"]
