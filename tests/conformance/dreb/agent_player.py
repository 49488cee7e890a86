"""Plays the scenarios of the stateful agent with a `Conversation`: actions, triggers, subscribers."""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from antiphon import AttemptDiscarded, Event, RunError, UsageError
from antiphon.agent.prompt import Prompt

from .agent_setup import MODES, Setup, execution_of
from .projection import Projection
from .stage import Boom, Nth, wait_ms
from .words import Json, message_in, messages_in, messages_out, part_in

__all__ = ["AgentPlayer"]

PATIENCE_MS = 600_000
"""How long an action may take, on a clock that costs nothing."""


class AgentPlayer:
    """One scenario: a conversation, and whoever talks to it."""

    def __init__(self, given: Json) -> None:
        self.given = given
        self.setup = setup = Setup(given)
        self.stage = setup.stage
        history = messages_in(given.get("messages") or ())
        self.chat = setup.agent().conversation(messages=history, session_id=setup.options.get("sessionId"))
        for queue in ("steering", "follow_up"):
            mode = setup.options.get({"steering": "steeringMode", "follow_up": "followUpMode"}[queue])
            if mode is not None:
                setattr(self.chat, f"{queue}_mode", MODES[mode])
        self.projection = Projection(self.stage, setup.stand_in, history)
        setup.hooks.projection = self.projection
        setup.hooks.messages = lambda: self.chat.messages
        self.triggers = [(Nth(trigger["on"]), trigger["do"]) for trigger in given.get("triggers") or ()]
        self.outcomes: list[Json] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def play(self) -> Json:
        self.stage.blocks.append(self._hear)
        self.chat.subscribe(self._listen)
        for declared in self.given.get("subscribers") or ():
            self.chat.subscribe(self._subscriber(declared))
        for action in self.given.get("actions") or ():
            task = self._start(action)
            if action.get("background"):
                await asyncio.sleep(0)
            else:
                await asyncio.wait([task], timeout=self._patience())
        await wait_ms(self.given.get("settle_ms", 0))
        if self.tasks:
            await asyncio.wait(self.tasks, timeout=self._patience())
        observed = self._observed()
        await self._leave()
        return observed

    def _patience(self) -> float:
        return self.given.get("hang_ms", PATIENCE_MS) / 1000

    async def _leave(self) -> None:
        faults = [error for task in self.tasks if task.done() and (error := task.exception()) is not None]
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for fault in [*faults, *self.stage.faults]:
            raise fault

    def _observed(self) -> Json:
        state = self.projection.state(self.chat)
        model: Any = self.chat.agent.model
        return {
            "actions": deepcopy(self.outcomes),
            "trace": list(self.stage.trace),
            "llm_calls": list(self.stage.llm_calls),
            "final_state": state
            | {
                "messages": messages_out(self.chat.messages, self.setup.stand_in),
                "model": {"provider": model.info.provider, "id": model.info.id},
                "hasQueuedMessages": self._has_queued(),
            },
        }

    def _has_queued(self) -> bool:
        return bool(self.chat.queued("steering") or self.chat.queued("follow_up"))

    # Who listens

    def _listen(self, event: Event) -> None:
        with self.stage.watched():
            for told in self.projection.told(event):
                self._hear(told)
        if isinstance(event, AttemptDiscarded) and event.why != "truncated" and self.given.get("record_timers"):
            self.stage.note(timer_ms=round(event.wait * 1000))

    def _hear(self, told: Json) -> None:
        """The recording subscriber, which fires the triggers too."""
        entry: Json = {"event": told}
        if self.given.get("probe_state"):
            entry["state"] = self.projection.state()
        self.stage.note(**entry)
        for due, actions in self.triggers:
            if due(told):
                for action in actions:
                    self.stage.note(triggered=action["do"])
                    self._fire(action)

    def _subscriber(self, declared: Json) -> Callable[[Event], Any]:
        projection = Projection(self.stage, self.setup.stand_in, [])
        raises = Nth(declared["raises_on"]) if "raises_on" in declared else None
        name = declared["id"]

        def listen(event: Event) -> Any:
            for told in projection.told(event):
                if "async_delay_ms" in declared and declared.get("on", told["type"]) == told["type"]:
                    self.stage.note(subscriber=name, begins=told["type"])
                    return self._slow(name, told["type"], declared)
                if declared.get("observes"):
                    self.stage.note(subscriber=name, saw=told["type"])
                if raises is not None and raises(told):
                    self.stage.note(subscriber=name, raises=declared.get("message"))
                    raise Boom(declared.get("message", "listener broke"))
            return None

        return listen

    async def _slow(self, name: str, kind: str, declared: Json) -> None:
        await wait_ms(declared["async_delay_ms"])
        self.stage.note(subscriber=name, ends=kind)
        if "raises" in declared or declared.get("async_raises"):
            raise Boom(declared.get("message") or declared.get("raises") or "listener broke")

    # What is done

    def _start(self, action: Json) -> asyncio.Task[None]:
        """Do it in a task of its own; what comes of it is written down in the order of the beginnings."""
        outcome: Json = {"do": action["do"], "outcome": "never finished"}
        self.outcomes.append(outcome)
        task = asyncio.create_task(self._do(action, outcome))
        self.tasks.append(task)
        return task

    def _fire(self, action: Json) -> None:
        """Do it at once, from inside a subscriber. Only what has to wait goes on by itself."""
        name = action["do"]
        if name == "wait_ms" or (name in ("prompt", "continue") and not self.chat.running) or name == "wait_for_idle":
            self._start(action)
            return
        outcome: Json = {"do": name, "outcome": "finished"}
        self.outcomes.append(outcome)
        try:
            if (value := self._at_once(action)) is not None:
                outcome["value"] = value
        except (UsageError, RunError) as error:
            outcome |= {"outcome": "raised", "error": str(error)}

    def _at_once(self, action: Json) -> Any:
        call = self._call(action)
        if not asyncio.iscoroutine(call):
            return call
        try:
            call.send(None)  # it refuses before it waits for anything
        except StopIteration as over:
            return over.value
        call.close()
        return None

    async def _do(self, action: Json, outcome: Json) -> None:
        try:
            value = self._call(action)
            if asyncio.iscoroutine(value):
                value = await value
        except UsageError as error:
            outcome |= {"outcome": "raised", "error": str(error)}
        except RunError:
            outcome["outcome"] = "finished"  # theirs does not raise for a failed run: the state tells it
        else:
            outcome["outcome"] = "finished"
            if isinstance(value, bool):
                outcome["value"] = value

    def _call(self, action: Json) -> Any:
        """The call of ours that this call of theirs is."""
        chat, name = self.chat, action["do"]
        match name:
            case "prompt":
                return chat.prompt(prompt_in(action))
            case "continue":
                return chat.resume()
            case "steer" | "follow_up":
                getattr(chat, name)(message_in(action["message"]))
            case "abort":
                chat.abort()
            case "reset" | "wait_for_idle":
                return getattr(chat, name)()
            case "wait_ms":
                return wait_ms(action["ms"])
            case "probe":
                self.stage.note(state=self.projection.state(self.chat))
            case "has_queued_messages":
                return self._has_queued()
            case "clear_steering_queue" | "clear_follow_up_queue" | "clear_all_queues":
                self._clear(name)
            case _:
                self._change(name, action)
        return None

    def _clear(self, name: str) -> None:
        for queue in ("steering", "follow_up"):
            if queue in name or name == "clear_all_queues":
                self.chat.clear_queue(queue)

    def _change(self, name: str, action: Json) -> None:
        """The setters."""
        chat, setup, value = self.chat, self.setup, action.get("value")
        match name:
            case "set_system_prompt":
                chat.configure(instructions=value)
            case "set_model":
                chat.configure(model=setup.model(value))
            case "set_thinking_level":
                setup.options.pop("reasoning", None)
                chat.configure(settings=chat.agent.settings.merged(setup.settings(value)))
            case "set_tools":
                chat.configure(tools=setup.active(value))
            case "set_tool_execution":
                chat.configure(tool_options=execution_of(str(value)))
            case "set_steering_mode":
                chat.steering_mode = MODES[str(value)]  # pyright: ignore[reportAttributeAccessIssue]
            case "set_follow_up_mode":
                chat.follow_up_mode = MODES[str(value)]  # pyright: ignore[reportAttributeAccessIssue]
            case "set_session_id":
                chat.session_id = value
            case "set_thinking_budgets" | "set_thinking_display" | "set_max_retry_delay_ms":
                option = {"set_thinking_budgets": "thinkingBudgets", "set_thinking_display": "thinkingDisplay"}
                setup.options[option.get(name, "maxRetryDelayMs")] = value
                merged = chat.agent.settings.merged(setup.settings())
                chat.configure(settings=merged, recovery=setup.recovery())
            case "set_transport":
                pass  # ours has one
            case _ if (hook := setup.hooks.set(name, value)) is not None:
                chat.configure(hooks=hook)
            case "replace_messages":
                chat.replace_messages(messages_in(action["messages"]))
                self._see_anew()
            case "append_message":
                chat.append_message(message_in(action["message"]))
                self._see_anew()
            case "clear_messages":
                chat.clear_messages()
                self._see_anew()
            case _:
                raise NotImplementedError(f"the player knows no action {name!r}")

    def _see_anew(self) -> None:
        """A change between runs has no event: the view begins with what there is now."""
        view = type(self.projection.view)(self.chat.messages)
        self.projection.view = view


def prompt_in(action: Json) -> Prompt:
    if "message" in action:
        return message_in(action["message"])
    if "messages" in action:
        return messages_in(action["messages"])
    images = [part_in({"type": "image", **image}) for image in action.get("images") or ()]
    return [action["text"], *images] if images else action["text"]
