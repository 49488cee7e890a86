"""A chat: the conversation, how it is answered, and the ways to change both."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from rich.console import Console

from antiphon.agent.modes import ApprovalModes
from antiphon.cli._codes import DONE, INTERRUPTED, OF_STATUS
from antiphon.cli._interrupt import interrupts
from antiphon.cli._questions import HOW, Questions
from antiphon.cli._sentences import sentence_of
from antiphon.cli._setup import LEVELS, Made, close_model, model_of
from antiphon.cli._status import Meter, status_line
from antiphon.cli.choose import Choice
from antiphon.cli.render import Renderer
from antiphon.errors import AntiphonError, UsageError
from antiphon.loop.state import Decision, Deny
from antiphon.tools.tool import Tool
from antiphon.types.codec import dump_messages, load_messages
from antiphon.types.events import ApprovalRequested, Event, MessageDelivered, Queue
from antiphon.types.messages import Message, UserMessage
from antiphon.types.request import Model, ModelSettings, ThinkingLevel

__all__ = ["Talk"]


class Talk:
    """One chat. What is said is answered in a task of `group`; meanwhile the person may say more.

    What cannot be done raises `UsageError`, or `OSError` for a file, and changes nothing.
    """

    group: TaskGroup

    def __init__(self, made: Made, modes: ApprovalModes, err: Console, renderer: Renderer) -> None:
        self.conversation = made.agent.but(policy=modes).conversation()
        self.choice = made.choice
        self.tools = made.tools
        self.modes = modes
        self.questions = Questions()
        self.code = DONE
        self._err = err
        self._renderer = renderer
        self._meter = Meter()
        self._steered: set[str] = set()
        self._retired: list[Model] = []
        self._answering = False
        self._changed = anyio.Event()

    # Talking

    @property
    def answering(self) -> bool:
        """Whether an answer is under way, from the prompt to the end of all clean-up."""
        return self._answering

    @property
    def prompt(self) -> str:
        """What stands before the line that is typed."""
        return self.questions.prompt or "> "

    @property
    def draft(self) -> str:
        """What the next line begins with."""
        return self.questions.draft

    @property
    def status(self) -> str:
        """The status line of this moment."""
        queued = len(self.queued("steering")) + len(self.queued("follow_up"))
        return status_line(self.choice.name, self._meter, running=self._answering, queued=queued)

    def say(self, text: str) -> None:
        """Begin an answer; while one is under way, steer it."""
        if self._answering:
            self.conversation.steer(text)
            return
        self._answering = True
        self.group.start_soon(self._answer, text)

    def later(self, text: str) -> None:
        """Say something when nothing else is left to do."""
        if self._answering:
            self.conversation.follow_up(text)
        else:
            self.say(text)

    def decide(self, line: str) -> None:
        """Decide on the call that waits, as the line says."""
        self._decide(self.questions.take(line))

    def refuse(self, reason: str) -> None:
        """Refuse the call that waits, whatever it asks."""
        if (asked := self.questions.first) is not None:
            self._decide({asked.call_id: Deny(reason)})

    def _decide(self, decisions: dict[str, Decision]) -> None:
        if decisions:
            self.conversation.decide(decisions)
        for call_id in decisions:
            self.questions.decided(call_id)

    def abort(self, reason: str) -> bool:
        """End the answer that is under way; whether there was one."""
        if self._answering:
            self.conversation.abort(reason)
        return self._answering

    async def settled(self) -> None:
        """Wait until no answer is under way, or a call waits for a decision."""
        while self._answering and not self.questions:
            self._changed = anyio.Event()
            await self._changed.wait()

    def queued(self, queue: Queue) -> tuple[Message, ...]:
        """The messages that wait."""
        return self.conversation.queued(queue)

    def clear_queue(self) -> int:
        """Take back what waits; gives the number of messages."""
        return len(self.conversation.clear_queue("steering")) + len(self.conversation.clear_queue("follow_up"))

    async def _answer(self, prompt: str) -> None:
        """Answer a prompt, and what was queued so late that the run had ended."""
        try:
            said: str | None = prompt
            while await self._ran(said) == DONE and (self.queued("steering") or self.queued("follow_up")):
                said = None
        except (AntiphonError, OSError) as error:
            if isinstance(error, BrokenPipeError):
                raise
            self._renderer.note(f"antiphon: {sentence_of(error)}", "red")
        finally:
            self._answering = False
            self._changed.set()
        if sys.stdin.isatty():
            self._renderer.note("")
        await self.close(retired=True)

    async def _ran(self, prompt: str | None) -> int:
        """One run, shown; its exit code. In a terminal Ctrl-C is a key like others, else a signal."""

        def stop() -> None:
            self.conversation.abort("interrupted")

        with nullcontext() if sys.stdin.isatty() else interrupts(stop) as interrupt:
            async with self.conversation.live(prompt) as run:
                async for event in run:
                    self._show(event)
        pressed = interrupt is not None and interrupt.pressed
        self.code = INTERRUPTED if pressed else OF_STATUS[run.result.status]
        return self.code

    def _show(self, event: Event) -> None:
        self._meter.apply(event)
        self.questions.apply(event)
        if isinstance(event, MessageDelivered) and event.queue == "steering":
            self._steered.add(event.message_id)
        self._renderer.show(event)
        if isinstance(event, ApprovalRequested):
            if event.question is None:
                self._renderer.note(HOW)
            self._changed.set()

    # Changing

    async def use_model(self, name: str) -> None:
        """Go on with another model from the next answer on."""
        choice = Choice(name=name, reason="asked for with /model")
        model = await model_of(choice, self._err)
        self._retired.append(self.conversation.agent.model)
        self.conversation.configure(model=model)
        self.choice = choice
        if not self._answering:
            await self.close(retired=True)

    def use_tools(self, tools: Sequence[Tool]) -> None:
        self.conversation.configure(tools=tools)

    def think(self, level: str) -> None:
        """How hard the model thinks from the next answer on."""
        known: ThinkingLevel | None = next((known for known in LEVELS if known == level), None)
        if known is None:
            raise UsageError(f"there is no thinking level {level!r}; take one of {', '.join(LEVELS)}")
        settings = self.conversation.agent.settings.merged(ModelSettings(thinking=known))
        self.conversation.configure(settings=settings)

    def undo(self) -> str:
        """Forget the last prompt and everything after it, what steered its answer too; gives the prompt."""
        self._must_rest()
        messages = self.conversation.messages
        spoken = [index for index, message in enumerate(messages) if isinstance(message, UserMessage)]
        if not spoken:
            raise UsageError("nothing was said yet")
        begun = [index for index in spoken if getattr(messages[index], "id", "") not in self._steered]
        last = (begun or spoken)[-1]
        said = messages[last]
        self.conversation.replace_messages(messages[:last])
        return said.text if isinstance(said, UserMessage) else ""

    def save(self, path: Path) -> int:
        """Write the transcript; gives the number of messages. A file that is none is not overwritten."""
        if path.is_dir():
            raise UsageError(f"{str(path)!r} is a folder; give the path of a file")
        if path.exists():
            try:
                load_messages(path.read_bytes())
            except UsageError as error:
                raise UsageError(f"{str(path)!r} is there and is no transcript; give another path") from error
        messages = self.conversation.messages
        path.write_bytes(dump_messages(messages) + b"\n")
        return len(messages)

    def load(self, path: Path) -> int:
        """Go on from a transcript that was saved, repaired if need be; gives the number of its messages."""
        self._must_rest()
        if path.is_dir():
            raise UsageError(f"{str(path)!r} is a folder; give the path of a file")
        try:
            loaded = load_messages(path.read_bytes())
        except FileNotFoundError:
            raise UsageError(f"there is no file {str(path)!r}; give one that /save wrote") from None
        self.conversation.replace_messages(loaded)
        return len(self.conversation.messages)

    async def close(self, *, retired: bool = False) -> None:
        """Free the models that are not used any more; without `retired` all of them."""
        models, self._retired = self._retired, []
        for model in models if retired else [*models, self.conversation.agent.model]:
            await close_model(model)

    def _must_rest(self) -> None:
        if self._answering:
            raise UsageError("an answer is under way: wait for its end, or /abort it first")
