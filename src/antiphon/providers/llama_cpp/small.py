"""Calling tools with a model that is too small to be told how: the way of the built-in default.

A base model of 270 million parameters goes on with patterns and cannot follow instructions. So each decision is a short
prompt of its own: which tool, or none (`_choice`); each argument, copied from the question (`_arguments`); the words
around the result (`_answer`). Everything is deterministic, and nothing is remembered but what was computed.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final

from msgspec import Struct

from antiphon.providers.llama_cpp._answer import answer
from antiphon.providers.llama_cpp._arguments import Arguments
from antiphon.providers.llama_cpp._asker import Asker, Completions
from antiphon.providers.llama_cpp._choice import Chooser, nearest
from antiphon.providers.llama_cpp._prompts import talk_prompt
from antiphon.providers.llama_cpp._shape import Shape, shape_of
from antiphon.types.request import ToolSpec
from antiphon.types.usage import Usage

__all__ = ["Called", "Ended", "Said", "SmallModel", "Turn"]

ASKED: Final = 800
"""Characters of a question that are looked at: the beginning, where people say what they want."""
REMEMBERED: Final = 3
"""How many earlier questions and answers small talk goes on from."""
ANSWERED: Final = 200
"""Characters of an earlier answer that are looked at."""
INSTRUCTED: Final = 200
"""Characters of the instructions that small talk is led by."""
LONGEST: Final = 96
"""Tokens of an answer in free words."""
ABILITIES: Final = 8
_ABILITY: Final = re.compile(
    r"\bwhat (?:else )?(?:can|could) you do\b|\bwhat are you able\b|\bhow (?:can|could) you help\b"
    r"|\b(?:what|which) (?:tools|functions)\b.*\byou\b",
    re.IGNORECASE,
)
"""A question that the tools' own sentences answer."""


class Turn(Struct, frozen=True, kw_only=True):
    """What the small model is asked: the last question, the results of its calls so far, what was said before.

    `choice` is `auto`, `none`, `required`, or the name of a tool. `results` are texts and whether they are errors.
    """

    question: str
    results: tuple[tuple[str, bool], ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    instructions: str = ""
    choice: str = "auto"
    limit: int | None = None


class Said(Struct, frozen=True):
    """The answer goes on."""

    text: str


class Called(Struct, frozen=True):
    """A tool is to be called."""

    name: str
    arguments: dict[str, Any]


class Ended(Struct, frozen=True):
    """All is said. `cut` says that the text reached its limit of tokens."""

    usage: Usage
    cut: bool = False


class SmallModel:
    """Answers turns through an engine: calls at most one tool for a question, then tells its result."""

    def __init__(self, engine: Completions) -> None:
        self._engine = engine
        self._chooser = Chooser()

    async def reply(self, turn: Turn) -> AsyncGenerator[Said | Called | Ended, None]:
        """What the model says or calls, and the end. Raises what the engine raises."""
        asker = Asker(self._engine)
        question = " ".join(turn.question[:ASKED].split())
        shape = await self._choose(asker, turn, question)
        if shape is not None:
            arguments = await Arguments(asker, shape, question).fill()
            yield Called(shape.name, arguments)
            yield Ended(asker.usage)
            return
        words = self._talk(asker, turn, question)
        if turn.results:
            words = answer(asker, question, turn.results)
        async with aclosing(words) as pieces:
            async for piece in pieces:
                yield Said(piece)
        yield Ended(asker.usage, asker.cut)

    async def _choose(self, asker: Asker, turn: Turn, question: str) -> Shape | None:
        if turn.results or turn.choice == "none" or not turn.tools or not question:
            return None
        shapes = [shape_of(tool) for tool in turn.tools]
        named = [shape for shape in shapes if shape.name == turn.choice]
        if named:
            return named[0]
        return await self._chooser.choose(asker, nearest(shapes, question), question, must=turn.choice == "required")

    async def _talk(self, asker: Asker, turn: Turn, question: str) -> AsyncGenerator[str, None]:
        if turn.tools and _ABILITY.search(question):
            yield f"I can do this: {'; '.join(_abilities(turn.tools))}."
            return
        earlier = [(ask[:ASKED], reply[:ANSWERED]) for ask, reply in turn.history[-REMEMBERED:]]
        instructions = " ".join(turn.instructions.split())[:INSTRUCTED]
        prompt = talk_prompt(question, map(_in_lines, earlier), instructions)
        first = True
        limit = min(turn.limit or LONGEST, LONGEST)
        async with aclosing(asker.stream(prompt, limit, stop=("\n",))) as pieces:
            async for piece in pieces:
                shown = piece.lstrip() if first else piece
                first = first and not shown
                if shown:
                    yield shown


def _in_lines(pair: tuple[str, str]) -> tuple[str, str]:
    return " ".join(pair[0].split()), " ".join(pair[1].split())


def _abilities(tools: Sequence[ToolSpec]) -> list[str]:
    sentences = [shape_of(tool).sentence for tool in tools[:ABILITIES]]
    return [sentence[:1].lower() + sentence[1:] for sentence in sentences]
