"""Anything in any order: long talks of prompts, steering, failures, pauses, decisions, aborts and resets.

Whatever happens, the transcript is fit to be sent, no queued message is lost, idle means idle, and what the conversation
shows is the fold of its events.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable
from typing import Any

import anyio
import anyio.lowlevel
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from antiphon import (
    Agent,
    Answer,
    ApprovalRequested,
    Approve,
    Deny,
    Event,
    Hooks,
    Limits,
    MessageDelivered,
    Recovery,
    RunError,
    Stop,
    UsageError,
    UseContext,
    UserMessage,
    View,
    validate,
)
from antiphon.testing import check_events

from .improvised import REPLIES, Improvised, make_tools

ACTS = (
    "steer", "follow_up", "abort", "clear steering", "clear follow_up", "mode one", "mode all",
    "prompt", "replace", "raise", "configure",
)  # fmt: skip
HOOKS = ("", "", "", "", "compact", "fail", "stop", "enough", "steer")
SAY = st.sampled_from(["steering", "follow_up"])


class Talk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.plan: deque[Any] = deque()
        self.hooks: deque[str] = deque()
        self.armed: list[list[Any]] = []
        self.faults: list[str] = []
        self.events: list[Event] = []
        self.said: set[str] = set()
        self.delivered: list[str] = []
        self.handed_back: list[str] = []
        self.model = Improvised(self.plan)
        self.chat = Agent(
            self.model,
            tools=make_tools(lambda: self.say("steering")),
            hooks=Hooks(
                prepare_context=self.prepare, before_model_request=self.before_request, should_continue=self.wants_more
            ),
            recovery=Recovery(retries=1, delay=0, length_retries=1),
            limits=Limits(turns=4),
        ).conversation()
        self.view = View()
        self.chat.subscribe(self.follow)
        self.chat.subscribe(self.act)
        self.chat.subscribe(self.slowly)

    def teardown(self) -> None:
        self.runner.close()

    # What happens inside of runs

    def prepare(self, context: Any) -> UseContext | None:
        match self.hooks.popleft() if self.hooks else "":
            case "compact":
                return UseContext(messages=[UserMessage.of("a summary")])
            case "fail":
                raise ValueError("a broken hook")
            case "stop":
                self.armed.append([0, "stop"])
            case "enough":
                self.armed.append([0, "enough"])
            case "steer":
                self.say("steering")
            case _:
                pass
        return None

    def taken(self, act: str) -> bool:
        found = [item for item in self.armed if item[1] == act]
        for item in found:
            self.armed.remove(item)
        return bool(found)

    def before_request(self, _context: Any) -> Stop | None:
        return Stop("a hook") if self.taken("stop") else None

    def wants_more(self, _context: Any) -> bool:
        return not self.taken("enough")

    def follow(self, event: Event) -> None:
        self.view.apply(event)
        self.events.append(event)
        if isinstance(event, MessageDelivered):
            self.delivered.append(event.message_id)

    async def slowly(self, event: Event) -> None:
        if event.seq % 3 == 0:
            await anyio.lowlevel.checkpoint()

    def act(self, event: Event) -> None:
        """Do what was armed for this moment."""
        for item in list(self.armed):
            if item[1] in ("stop", "enough"):
                continue
            item[0] -= 1
            if item[0] < 0:
                self.armed.remove(item)
                self.do(item[1])

    def do(self, act: str) -> None:
        chat = self.chat
        match act.split():
            case ["steer"]:
                self.say("steering")
            case ["follow_up"]:
                self.say("follow_up")
            case ["clear", queue]:
                self.clear(queue)
            case ["mode", "one"]:
                chat.steering_mode = chat.follow_up_mode = "one"
            case ["mode", _]:
                chat.steering_mode = chat.follow_up_mode = "all"
            case ["abort"]:
                chat.abort("armed")
            case ["prompt"]:
                self.refuses(lambda: chat.prompt("me too").send(None))
            case ["replace"]:
                self.refuses(lambda: chat.replace_messages(()))
            case ["configure"]:
                chat.configure(instructions="other")
            case _:
                raise ValueError("a broken listener")

    def refuses(self, act: Any) -> None:
        try:
            act()
        except UsageError:
            return
        self.faults.append("a run that goes on was disturbed")

    def say(self, queue: str) -> None:
        said = self.chat.steer("!") if queue == "steering" else self.chat.follow_up("?")
        self.said.add(said)

    def clear(self, queue: Any) -> None:
        self.handed_back += [getattr(message, "id", "") for message in self.chat.clear_queue(queue)]

    def run(self, talk: Awaitable[Any]) -> Any:
        """Run to idle. What a run may end with is a result or its error."""

        async def talked() -> Any:
            try:
                result = await talk
            except RunError as error:
                result = error.result
            await self.chat.wait_for_idle()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            if left:
                self.faults.append(f"tasks are left: {left}")
            return result

        return self.runner.run(talked())

    # What happens between them

    @rule(replies=st.lists(REPLIES, min_size=1, max_size=4))
    def plan_replies(self, replies: list[Any]) -> None:
        self.plan.extend(replies)

    @rule(moment=st.integers(0, 30), act=st.sampled_from(ACTS))
    def arm(self, moment: int, act: str) -> None:
        self.armed.append([moment, act])

    @rule(plan=st.lists(st.sampled_from(HOOKS), max_size=4))
    def plan_hooks(self, plan: list[str]) -> None:
        self.hooks.extend(plan)

    @precondition(lambda self: not self.chat.paused)
    @rule()
    def prompt(self) -> None:
        self.run(self.chat.prompt("go"))

    @precondition(lambda self: not self.chat.paused)
    @rule()
    def resume(self) -> None:
        try:
            self.run(self.chat.resume())
        except UsageError:
            assert not self.chat.queued("steering")
            assert not self.chat.queued("follow_up")
            assert not self.chat.running

    @precondition(lambda self: not self.chat.paused)
    @rule(leave=st.integers(0, 25))
    def watch_and_leave(self, leave: int) -> None:
        async def watch() -> None:
            async with self.chat.live("look") as run:
                async for event in run:
                    if event.seq >= leave or isinstance(event, ApprovalRequested):
                        break

        self.run(watch())

    @precondition(lambda self: not self.chat.paused)
    @rule(ticks=st.integers(0, 40), act=st.sampled_from(ACTS))
    def prompt_with_somebody_else(self, ticks: int, act: str) -> None:
        """Another task acts in the middle, between any two steps of the run."""

        async def both() -> None:
            async def other() -> None:
                for _ in range(ticks):
                    await anyio.lowlevel.checkpoint()
                if self.chat.running and act != "raise":
                    self.do(act)

            async with anyio.create_task_group() as group:
                group.start_soon(other)
                with contextlib.suppress(RunError):
                    await self.chat.prompt("go")

        self.run(both())

    @precondition(lambda self: not self.chat.paused)
    @rule(ticks=st.integers(0, 40))
    def prompt_and_cancel(self, ticks: int) -> None:
        """The caller's task is cancelled somewhere."""

        async def cancelled() -> None:
            async def prompt() -> None:
                with anyio.CancelScope() as scope:
                    scopes.append(scope)
                    with contextlib.suppress(RunError):
                        await self.chat.prompt("go")

            scopes: list[anyio.CancelScope] = []
            async with anyio.create_task_group() as group:
                group.start_soon(prompt)
                for _ in range(ticks):
                    await anyio.lowlevel.checkpoint()
                if scopes:
                    scopes[0].cancel()

        self.run(cancelled())

    @precondition(lambda self: self.chat.paused)
    @rule(choices=st.lists(st.sampled_from(["approve", "deny", "wait"]), min_size=3, max_size=3), live=st.booleans())
    def decide(self, choices: list[str], live: bool) -> None:
        decisions: dict[str, Any] = {}
        for call, choice in zip(self.chat.pending, choices, strict=False):
            if choice == "approve":
                decisions[call.id] = Answer("this") if call.name == "questions" else Approve()
            elif choice == "deny":
                decisions[call.id] = Deny("no")

        async def watch() -> None:
            async with self.chat.live(decisions=decisions) as run:
                async for event in run:
                    if event.seq > 12 or isinstance(event, ApprovalRequested):
                        break

        self.run(watch() if live else self.chat.resume(decisions=decisions))

    @precondition(lambda self: self.chat.paused)
    @rule()
    def speak_while_paused(self) -> None:
        try:
            self.run(self.chat.prompt("hello?"))
        except UsageError:
            pass
        else:
            self.faults.append("a paused conversation took a prompt")

    @rule(queue=SAY)
    def say_while_idle(self, queue: str) -> None:
        self.say(queue)

    @rule(queue=SAY)
    def clear_while_idle(self, queue: str) -> None:
        self.clear(queue)
        self.view.queued = []

    @precondition(lambda self: not self.chat.paused)
    @rule(keep=st.integers(0, 6))
    def rewind(self, keep: int) -> None:
        self.chat.replace_messages(self.chat.messages[:keep])
        self.view = View(self.chat.messages)

    @rule()
    def reset(self) -> None:
        back: Any = self.run(self.chat.reset())
        self.handed_back += [message.id for message in back]
        self.view = View()

    @rule()
    def reset_in_the_middle(self) -> None:
        if self.chat.paused:
            return

        async def both() -> None:
            async def other() -> None:
                for _ in range(9):
                    await anyio.lowlevel.checkpoint()
                back = await self.chat.reset()
                self.handed_back.extend(getattr(message, "id", "") for message in back)

            async with anyio.create_task_group() as group:
                group.start_soon(other)
                with contextlib.suppress(RunError):
                    await self.chat.prompt("go")

        self.run(both())
        self.view = View(self.chat.messages)

    # What always holds

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert self.faults == []
        assert self.model.unfit == []
        check_events(self.events)
        self.events.clear()

    @invariant()
    def idle_means_idle(self) -> None:
        assert not self.chat.running
        assert not self.chat.streaming
        assert self.chat.partial is None
        assert self.chat.running_calls == frozenset()

    @invariant()
    def the_transcript_can_be_sent(self) -> None:
        problems = validate(self.chat.messages)
        if self.chat.paused:
            assert {problem.code for problem in problems} == {"open_call"}
            assert len({problem.index for problem in problems}) == 1
        else:
            assert problems == []

    @invariant()
    def no_message_is_lost(self) -> None:
        waiting = [getattr(m, "id", "") for queue in ("steering", "follow_up") for m in self.chat.queued(queue)]
        accounted = self.delivered + self.handed_back + waiting
        assert sorted(accounted) == sorted(self.said)

    @invariant()
    def the_view_is_the_state(self) -> None:
        chat, view = self.chat, self.view
        assert list(view.messages) == list(chat.messages)
        assert (view.status, view.error, view.partial) == (chat.status, chat.error, chat.partial)
        assert view.streaming is chat.streaming
        assert view.running_calls == set(chat.running_calls)
        assert view.waiting_calls == {call.id for call in chat.pending}
        if not chat.paused:
            assert view.queued == []
        assert chat.paused == (chat.status == "paused")


TestTalk = Talk.TestCase
TestTalk.settings = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
