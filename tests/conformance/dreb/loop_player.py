"""Plays the scenarios of the low-level loop with a run that is entered and iterated."""

import asyncio
from typing import Any

from antiphon import AttemptDiscarded, Event, Run, RunError, RunStarted, TurnFinished, UsageError
from antiphon.types.messages import Message

from .agent_setup import Setup
from .projection import Projection
from .stage import wait_ms
from .words import Json, message_in, messages_in, messages_out

__all__ = ["LoopPlayer"]


class LoopPlayer:
    """One scenario: a run, and the one who reads its events."""

    def __init__(self, given: Json) -> None:
        self.given = given
        self.setup = Setup(given)
        self.stage = self.setup.stage
        self.caller: list[Message] = messages_in(given.get("messages") or ())
        self.projection = Projection(self.stage, self.setup.stand_in, self.caller)
        self.steering: list[list[Json]] = list(given.get("steering_by_poll") or ())
        self.follow_ups: list[list[Json]] = list(given.get("follow_up_by_poll") or ())
        self.run: Run[str] | None = None
        self._told: dict[int, list[Json]] = {}
        self._seen = 0

    async def play(self) -> Json:
        outcome: Json = {"do": self.given["surface"], "outcome": "finished"}
        try:
            run = self.run = self._make_run()
            self.setup.hooks.messages = lambda: run.messages
            run.subscribe(self._translate)
            run.subscribe(self._poll)
            async with run:
                await self._watch(run)
            outcome["result"] = messages_out(run.result.new_messages, self.setup.stand_in)
        except UsageError as error:
            outcome |= {"outcome": "raised", "error": str(error)}
        for fault in self.stage.faults:
            raise fault
        return {
            "actions": [outcome],
            "trace": self.stage.trace,
            "llm_calls": self.stage.llm_calls,
            "caller_context_messages": messages_out(self.caller, self.setup.stand_in),
        }

    def _make_run(self) -> Run[str]:
        given = self.given
        prompts = messages_in(given.get("prompts") or ())
        session_id = self.setup.options.get("sessionId")
        agent = self.setup.agent()
        if given["surface"] == "loop_continue":
            return agent.run(messages=self.caller, session_id=session_id)
        return agent.run(prompts, messages=self.caller, session_id=session_id)

    async def _watch(self, run: Run[str]) -> None:
        async for event in run:
            for told in self._told.pop(event.seq):
                self._seen += 1
                self.stage.note(event=told)
            if isinstance(event, AttemptDiscarded) and event.why != "truncated" and self.given.get("record_timers"):
                self.stage.note(timer_ms=round(event.wait * 1000))
            if self._seen >= self.given.get("abort_after_events", self._seen + 1):
                run.stop()
            if "consumer_delay_ms" in self.given:
                await wait_ms(self.given["consumer_delay_ms"])
        try:
            await run
        except RunError:
            await asyncio.sleep(0)  # the events told it

    def _translate(self, event: Event) -> None:
        """In the run's own step, in which the script says what it gives in one piece."""
        with self.stage.watched():
            self._told[event.seq] = list(self.projection.told(event))

    # Theirs asks for queued messages; ours is given them, at the moments at which theirs asks

    def _poll(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._take("steering")
        elif isinstance(event, TurnFinished) and self.run is not None:
            goes_on = self._take("steering") or bool(event.results)
            if not goes_on and not self._take("steering"):
                self._take("follow_up")

    def _take(self, queue: str) -> bool:
        polls: Any = self.steering if queue == "steering" else self.follow_ups
        given: list[Json] = polls.pop(0) if polls else []
        run = self.run
        assert run is not None
        for message in given:
            (run.steer if queue == "steering" else run.follow_up)(message_in(message))
        return bool(given)
