"""While it runs: ending it, waiting for it, hearing it, watching it."""

import asyncio
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from antiphon import (
    Agent,
    Conversation,
    Dropped,
    Hooks,
    MessageQueued,
    Overloaded,
    RunFinished,
    RunStarted,
    TextDelta,
)
from antiphon.testing import Scripted

from .talks import AT_ONCE, Gate, heard, lines, talk

pytestmark = pytest.mark.anyio


@pytest.mark.parity("C16")
async def test_abort_ends_the_run_and_keeps_the_queues() -> None:
    gate = Gate()
    chat, model = talk(["Once", gate], "next")
    told = heard(chat)
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "one")
        await gate.reached.wait()
        chat.steer("s")
        chat.follow_up("f")
        chat.abort("enough")
        assert chat.running
        await chat.wait_for_idle()
        assert not chat.running
    assert (chat.status, told.one(RunFinished).reason) == ("aborted", "enough")
    assert [lines(chat.queued(queue)) for queue in ("steering", "follow_up")] == [["user: s"], ["user: f"]]
    assert lines(chat.messages) == ["user: one", "assistant: Once <aborted>"]
    assert len(model.requests) == 1


@pytest.mark.parity("C16")
async def test_abort_of_an_idle_conversation_does_nothing() -> None:
    chat, _ = talk("a", "b")
    chat.abort()
    await chat.prompt("one")
    chat.abort()
    assert (await chat.prompt("two")).text == "b"


@pytest.mark.parity("C16")
async def test_idle_means_that_all_clean_up_is_done() -> None:
    """Who waits for idle goes on to close what the hooks and listeners of the run still use."""
    log: list[str] = []

    async def slow_end(context: Any) -> None:
        await anyio.sleep(0.02)
        log.append("on_run_end")

    async def slow_listener(event: Any) -> None:
        if isinstance(event, RunFinished):
            await anyio.sleep(0.02)
            log.append("listener")

    chat, _ = talk("Hi", hooks=Hooks[Any](on_run_end=slow_end))
    chat.subscribe(slow_listener)
    streaming: list[tuple[bool, bool]] = []
    chat.subscribe(
        lambda event: streaming.append((chat.streaming, chat.running)) if isinstance(event, RunFinished) else None
    )
    async with anyio.create_task_group() as group:
        group.start_soon(chat.prompt, "one")
        await anyio.lowlevel.checkpoint()
        await chat.wait_for_idle()
        assert sorted(log) == ["listener", "on_run_end"]
        assert not chat.running
        await chat.wait_for_idle()
    assert streaming == [(False, True)], "the last event is told, and the clean-up still goes on"


@pytest.mark.parity("C16")
async def test_a_cancelled_caller_leaves_a_conversation_that_goes_on() -> None:
    """The task that prompted is gone; what was said is not."""
    gate = Gate()
    chat, _ = talk(["Once", gate], "on")
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(chat.prompt, "one")
            await gate.reached.wait()
            scope.cancel()
    assert (chat.running, chat.status) == (False, "aborted")
    assert lines(chat.messages) == ["user: one", "assistant: Once <aborted>"]
    assert (await chat.prompt("two")).text == "on"


@pytest.mark.parity("C16")
async def test_a_listener_hears_every_run_until_it_is_unsubscribed() -> None:
    """Also when it goes away, or comes, in the middle of a run."""
    chat, _ = talk("a", "b", "c")
    early: list[str] = []
    late: list[str] = []
    ends: list[Any] = []

    def leaves(event: Any) -> None:
        early.append(type(event).__name__)
        if isinstance(event, TextDelta):
            end()
            ends.append(chat.subscribe(lambda event: late.append(type(event).__name__)))

    end = chat.subscribe(leaves)
    await chat.prompt("one")
    assert early[-1] == "TextDelta"
    assert late[0] == "MessageFinished"
    assert late[-1] == "RunFinished"
    await chat.prompt("two")
    assert late.count("RunStarted") == 1
    ends[0]()
    end()
    await chat.prompt("three")
    assert late.count("RunStarted") == 1


@pytest.mark.parity("C16")
async def test_live_shows_the_run_and_leaving_it_ends_it() -> None:
    gate = Gate()
    chat, _ = talk("first", ["Once", gate])
    async with chat.live("one") as run:
        kinds = [type(event) async for event in run]
        assert (kinds[0], kinds[-1]) == (RunStarted, RunFinished)
        assert not chat.running, "over is over: the block may go on with the next"
        await chat.wait_for_idle()
        assert run.result.text == "first"
    async with chat.live("two") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                assert chat.running
                break
    assert (chat.status, chat.running) == ("aborted", False)
    assert lines(chat.messages)[-2:] == ["user: two", "assistant: Once <aborted>"]


@pytest.mark.parity("C16")
async def test_in_the_block_of_a_live_run_that_is_over_the_next_can_be_said() -> None:
    """A loop of prompts inside one block is what people write first."""
    chat, _ = talk("a", "b", "c")
    async with chat.live("one") as run:
        await run
        await chat.prompt("two")
        async with chat.live("three") as inner:
            await inner
        await chat.reset()
    assert list(chat.messages) == []


async def test_a_conversation_outlives_the_loop_it_was_made_in() -> None:
    """Scripts call asyncio.run for each question."""

    def script() -> list[str]:
        chat: Conversation[Any] = Agent(Scripted("a", "b"), recovery=AT_ONCE).conversation()
        for prompt in ("one", "two"):
            asyncio.run(asked(chat, prompt))
        return lines(chat.messages)

    async def asked(chat: Conversation[Any], prompt: str) -> None:
        await chat.wait_for_idle()
        await chat.prompt(prompt)
        await chat.wait_for_idle()

    said = await anyio.to_thread.run_sync(script)
    assert said == ["user: one", "assistant: a", "user: two", "assistant: b"]


async def test_retries_of_a_run_are_the_conversations_too() -> None:
    """Nothing of a discarded attempt stays in the transcript or in the view."""
    chat, _ = talk(["ab", Overloaded("x")], ["abc", Dropped("x")], "abcd")
    told = heard(chat)
    await chat.prompt("go")
    assert lines(chat.messages) == ["user: go", "assistant: abcd"]
    assert told.text() == "abcd"
    assert (chat.partial, told.of(MessageQueued)) == (None, [])


async def test_what_the_block_of_a_live_run_raises_is_its_own() -> None:
    """No group around it, and the run is over when it comes out."""
    gate = Gate()
    chat, _ = talk(["Once", gate])

    async def breaks() -> None:
        async with chat.live("one"):
            await gate.reached.wait()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await breaks()
    assert (chat.running, chat.status) == (False, "aborted")
    assert lines(chat.messages) == ["user: one", "assistant: Once <aborted>"]


@pytest.mark.parity("C16")
async def test_an_impatient_caller_may_cancel_more_than_once() -> None:
    """Each cancel ends a step of the clean-up; none of them loses the transcript or the queue."""

    async def slow_end(context: Any) -> None:
        await anyio.sleep(0.05)

    gate = Gate()
    chat, _ = talk(["Once", gate], "b", "c", hooks=Hooks[Any](on_run_end=slow_end))
    chat.follow_up("f")
    task = asyncio.create_task(chat.prompt("one"))
    await gate.reached.wait()
    for _ in range(4):
        task.cancel()
        await anyio.lowlevel.checkpoint()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (chat.running, chat.status, lines(chat.queued("follow_up"))) == (False, "aborted", ["user: f"])
    assert lines(chat.messages) == ["user: one", "assistant: Once <aborted>"]
    chat.configure(hooks=None)
    await chat.prompt("two")
    assert lines(chat.messages)[-2:] == ["user: f", "assistant: c"]
