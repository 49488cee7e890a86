"""Sets up an `Agent` from a recording's input, runs it, and keeps what came of it in the recording's words."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from antiphon import (
    Agent,
    AntiphonError,
    AssistantMessage,
    ForcedCall,
    Hooks,
    Limits,
    Message,
    ModelSettings,
    Recovery,
    RunError,
    ToolOptions,
    UsageError,
)
from antiphon.providers.function import FunctionModel
from antiphon.types.request import ModelInfo, ModelRequest

from .clock import MadeTimeLoop
from .projection import KNOWN, SETTINGS, Json, Projection, message_in, message_out, request_out, usage_out
from .script import Script, Step, encoded, failure

PATIENT = Recovery(
    retries=0,
    length_retries=0,
    empty_retries=0,
    on_length="keep",
    on_empty="keep",
    first_token=None,
    idle=None,
    request=None,
)
"""The aparte loop asks once, and takes what it gets."""

FORCED, THEIR_FORCED = "forced", "synthetic-tool"
"""The prefixes that the two give the id of a forced call."""


class Played:
    """What came of a run, in the words of the recording."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.outcome: Json = {}
        self.predicate_calls: list[Json] = []
        self.answers: list[str] = []
        self.warned: list[str] = []
        self.unchanged = True


class Player:
    """One scenario, set up and run."""

    def __init__(self, recording: Json) -> None:
        self.given: Json = recording["input"]
        self.base: Json = self.given["base_request"]
        self.script = Script(self.given)
        self.answers: list[str] = []
        self.trigger = Trigger(recording, self.script.token.cancel)
        self.lists: set[str] = set()

    async def play(self) -> Played:
        before = deepcopy(self.base)
        played = Played()
        if self.given.get("abort", {}).get("before_run"):
            self.script.token.cancel()
        played.outcome = await self._run()
        await left_behind()
        played.steps = [(kind, renamed(value)) for kind, value in self.script.steps]
        played.predicate_calls = renamed(self.script.predicate_calls)
        played.answers, played.warned = self.answers, sorted(self.script.warned)
        played.unchanged = before == self.base
        return played

    async def _run(self) -> Json:
        try:
            run = self.agent().run(
                messages=[self._given(index, said) for index, said in enumerate(self.base["messages"])],
                cancel=self.script.token,
                meta=self.base.get("_meta"),
                tool_choice=self._choice(),
            )
        except UsageError as error:
            return {"raised": raised(error)}
        run.subscribe(Projection(self._sink, self.trigger.turn_ended))
        try:
            result = await run
        except RunError as error:
            return {"raised": raised(error)}
        return {"returned": None if result.last_usage is None else usage_out(result.last_usage)}

    def agent(self) -> Agent[Any]:
        """The aparte loop's rules: one call after another, nothing repeated, what a tool raises is raised."""
        limits, extra = self.given.get("limits", {}), {k: v for k, v in self.base.items() if k not in KNOWN}
        settings = {name: self.base[key] for key, name in SETTINGS.items() if key in self.base}
        return Agent(
            FunctionModel(self._ask, info=ModelInfo(provider="aparte", id=self.base["modelId"])),
            tools=self.script.declared(),
            sources=[self.script],
            hooks=Hooks(on_append=self._appended),
            approver=self.script.approver if "approvals" in self.given else None,
            limits=Limits(turns=limits.get("max_turns", 10), invalid_calls=None),
            settings=ModelSettings(**settings, extra_body=extra or None),
            recovery=PATIENT,
            tool_options=ToolOptions(
                execution="sequential",
                timeout=limits.get("tool_timeout_ms", 300_000) / 1000,
                grace=0.0,
                on_error="raise",
            ),
            id_generator=self._id_generator(),
        )

    async def _ask(self, request: ModelRequest) -> Any:
        declared = {
            said["name"]: {key: said[key] for key in ("maxTurns", "needsApproval") if key in said}
            for said in self.base.get("tools", ())
        }
        said = request_out(request, self.base["modelId"], self.base, declared, self.lists)
        self.script.steps.append(("request", said))
        return await self.script.transport(request)

    def _given(self, index: int, said: Json) -> Message:
        if isinstance(said.get("content"), list):
            self.lists.add(f"given-{index}")
        return message_in(said, f"given-{index}", encoded)

    def _choice(self) -> str | ForcedCall:
        choice = self.base.get("toolChoice", "auto")
        if isinstance(choice, str):
            return choice
        return ForcedCall(choice["name"], choice["input"] or {}) if "input" in choice else choice["name"]

    def _id_generator(self) -> Callable[[str], str] | None:
        """The recording's generator gives each prefix one id; only that of the forced call is compared."""
        value, numbers = self.given.get("id_gen"), Counter[str]()
        if value is None:
            return None

        def generate(prefix: str) -> str:
            numbers[prefix] += 1
            return f"{value}:{prefix}" if prefix == FORCED else f"{value}:{prefix}:{numbers[prefix]}"

        return generate

    def _appended(self, message: Message) -> None:
        if isinstance(message, AssistantMessage) and not message.calls:
            self.answers += [message.text] if message.text else []
        else:
            self.script.steps.append(("append", message_out(message)))

    def _sink(self, event: Json) -> None:
        self.script.steps.append(("event", event))
        self.trigger(renamed(event))


class Trigger:
    """Stops the run, or raises, when the event comes that is the recording's n-th: that event, not that number.

    The flush that ends a turn with calls is the end of the turn here, because the flush itself comes before the calls.
    """

    def __init__(self, recording: Json, stop: Callable[[], None]) -> None:
        given, events = recording["input"], recording["observed"]["events"]
        self.stop = stop
        self.ids = ids_of(given) - {""}
        self.stopping = self._place(events, given.get("abort", {}).get("on_event"))
        self.raising = self._place(events, given.get("emitter_raises_at"))
        self.turns = [self._turn(events, given.get("abort", {}).get("on_event"))]
        if self.turns[0]:
            self.stopping = None
        self.seen: Counter[tuple[str, str]] = Counter()

    def _key(self, event: Json) -> tuple[str, str]:
        """The event's kind and its call, if the call has an id of its own. A tool that cancels itself fails here."""
        call_id, kind = event.get("toolCallId", ""), event["type"]
        return "tool-aborted" if kind == "tool-failed" else kind, call_id if call_id in self.ids else ""

    def _place(self, events: list[Json], number: int | None) -> tuple[tuple[str, str], int] | None:
        if number is None or number > len(events):
            return None
        key = self._key(events[number - 1])
        return key, sum(self._key(event) == key for event in events[:number])

    def _turn(self, events: list[Json], number: int | None) -> int:
        """The turn with calls whose flush is event `number`; 0 if it is no such event."""
        if number is None or number > len(events) or events[number - 1]["type"] != "text-flush":
            return 0
        before = [event["type"] for event in events[: number - 1]]
        began = max((at for at, kind in enumerate(before) if kind == "turn-start"), default=0)
        has_calls = "tool-start" in before[began:]
        return sum(event["type"] == "text-flush" for event in events[:number]) if has_calls else 0

    def __call__(self, event: Json) -> None:
        key = self._key(event)
        self.seen[key] += 1
        if self.stopping == (key, self.seen[key]):
            self.stop()
        if self.raising == (key, self.seen[key]):
            raise failure({"name": "Error", "message": "sink failed"})

    def turn_ended(self, turn: int) -> None:
        if turn in self.turns:
            self.stop()


def ids_of(given: Json) -> set[str]:
    """The ids that the model gives its calls."""
    return {item["id"] for entry in given["transport"] for item in entry.get("stream", ()) if "id" in item}


def renamed(value: Any) -> Any:
    """The forced call's id under the other's prefix."""
    return json.loads(
        json.dumps(value).replace(f'"{FORCED}-', f'"{THEIR_FORCED}-').replace(f':{FORCED}"', f':{THEIR_FORCED}"')
    )


def raised(error: AntiphonError) -> Json:
    """Name and text of what was raised at the far side."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    name = "AbortError" if isinstance(cause, asyncio.CancelledError) else type(cause).__name__
    return {"name": name, "message": str(cause)}


async def left_behind() -> None:
    """Wait for the bodies that the run did not wait for."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        await asyncio.wait(others)


def play(recording: Json) -> Played:
    """What antiphon does with a recording's input."""
    with asyncio.Runner(loop_factory=MadeTimeLoop) as runner:
        return runner.run(Player(recording).play())
