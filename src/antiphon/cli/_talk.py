"""A chat between runs: the agent, what was said so far, and the ways to change both."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from antiphon.cli._interrupt import silent_keys
from antiphon.cli._setup import Made, close_model, model_of
from antiphon.cli.ask import watched
from antiphon.cli.choose import Choice
from antiphon.cli.render import Renderer
from antiphon.errors import UsageError
from antiphon.tools.tool import Tool
from antiphon.types.codec import dump_messages, load_messages
from antiphon.types.messages import Message, UserMessage
from antiphon.types.transcript import repair

__all__ = ["Talk"]


class Talk:
    """One chat: one run at a time, and whatever else is done happens between runs.

    What cannot be done raises `UsageError`, or `OSError` for a file, and changes nothing.
    """

    def __init__(self, made: Made, err: Console, renderer: Renderer) -> None:
        self.agent = made.agent
        self.choice = made.choice
        self.tools = made.tools
        self.messages: Sequence[Message] = ()
        self._err = err
        self._renderer = renderer

    async def say(self, prompt: str) -> int:
        """Say something and show the answer; the exit code that the answer stands for."""
        run = self.agent.run(prompt, messages=self.messages)
        with silent_keys():
            code = await watched(run, self._renderer.show)
        self.messages = run.result.messages
        return code

    async def use_model(self, name: str) -> None:
        """Go on with another model."""
        choice = Choice(name=name, reason="asked for with /model")
        model = await model_of(choice, self._err)
        before, self.agent, self.choice = self.agent, self.agent.but(model=model), choice
        await close_model(before.model)

    def use_tools(self, tools: Sequence[Tool]) -> None:
        self.agent = self.agent.but(tools=tools)

    def undo(self) -> str:
        """Forget the last prompt and everything after it; gives the prompt."""
        for index in range(len(self.messages) - 1, -1, -1):
            message = self.messages[index]
            if isinstance(message, UserMessage):
                self.messages = self.messages[:index]
                return message.text
        raise UsageError("nothing was said yet")

    def save(self, path: Path) -> int:
        """Write the transcript; gives the number of messages. A file that is none is not overwritten."""
        if path.is_dir():
            raise UsageError(f"{str(path)!r} is a folder; give the path of a file")
        if path.exists():
            try:
                load_messages(path.read_bytes())
            except UsageError as error:
                raise UsageError(f"{str(path)!r} is there and is no transcript; give another path") from error
        path.write_bytes(dump_messages(self.messages) + b"\n")
        return len(self.messages)

    def load(self, path: Path) -> int:
        """Go on from a transcript that was saved; gives the number of its messages."""
        if path.is_dir():
            raise UsageError(f"{str(path)!r} is a folder; give the path of a file")
        try:
            loaded = load_messages(path.read_bytes())
        except FileNotFoundError:
            raise UsageError(f"there is no file {str(path)!r}; give one that /save wrote") from None
        self.messages, _ = repair(loaded)
        return len(self.messages)
