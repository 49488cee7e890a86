"""Which tool, or none: what the model thinks, less what it thinks of nothing, and the words that speak for a tool.

Measured on 130 requests to 44 tools and 43 lines of small talk: the model alone finds 112 of the tools, the words alone
91, both together 125; 37 of the lines are told from requests. On requests that nothing was tuned by, expect 8 of 10.
"""

from collections.abc import Sequence
from itertools import zip_longest
from math import log
from typing import Final

from antiphon.providers.llama_cpp._asker import Asker
from antiphon.providers.llama_cpp._prompts import NOTHING_ASKED, choice_prefix, choice_prompt
from antiphon.providers.llama_cpp._shape import Shape, humanized
from antiphon.providers.llama_cpp._words import FOLDERS, STOP, Word, mentioned, number_of, stems, words_of

__all__ = ["MOST_TOOLS", "Chooser", "nearest", "words_for"]

MOST_TOOLS: Final = 24
"""How many tools are put to the model at once; of more, those that the question's words speak for."""
CALIBRATION: Final = 0.8
"""How much of the preference without content is taken off."""
MARGIN: Final = -0.2
"""How far above small talk (below, if negative) the best tool has to lie to be called."""
TALK_NAMES: Final = ("chat", "small_talk", "no_function")
KEPT: Final = 16


class Chooser:
    """Chooses among tools. It remembers the calibration of the last sets of tools, which only depends on them."""

    def __init__(self) -> None:
        self._calibrations: dict[str, dict[str, float]] = {}

    async def choose(self, asker: Asker, shapes: Sequence[Shape], question: str, *, must: bool) -> Shape | None:
        """The tool to call; `None` to answer in words, unless a tool `must` be called."""
        scores, talk = await self.scores(asker, shapes, question)
        best = max(shapes, key=lambda shape: scores[shape.name])
        return best if must or scores[best.name] - talk >= MARGIN else None

    async def scores(self, asker: Asker, shapes: Sequence[Shape], question: str) -> tuple[dict[str, float], float]:
        """What speaks for each tool, and for small talk."""
        names = [shape.name for shape in shapes]
        talk = next(name for name in (*TALK_NAMES, "_".join(names)) if name not in names)
        prefix = choice_prefix(shapes, talk)
        nothing = await self._calibration(asker, prefix, [*names, talk])
        likely = await asker.names(choice_prompt(prefix, question), [*names, talk])
        scores = {name: likely[name] - CALIBRATION * nothing[name] for name in likely}
        small_talk = scores.pop(talk)
        for name, weight in words_for(shapes, question).items():
            scores[name] += weight
        return scores, small_talk

    async def _calibration(self, asker: Asker, prefix: str, names: Sequence[str]) -> dict[str, float]:
        known = self._calibrations.pop(prefix, None)
        if known is None:
            tried = [await asker.names(choice_prompt(prefix, question), names) for question in NOTHING_ASKED]
            known = {name: sum(one[name] for one in tried) / len(tried) for name in names}
        self._calibrations[prefix] = known
        while len(self._calibrations) > KEPT:
            self._calibrations.pop(next(iter(self._calibrations)))
        return known


def nearest(shapes: Sequence[Shape], question: str) -> list[Shape]:
    """The tools that are put to the model, in their order."""
    if len(shapes) <= MOST_TOOLS:
        return list(shapes)
    weights = words_for(shapes, question)
    best = sorted(shapes, key=lambda shape: -weights[shape.name])[:MOST_TOOLS]
    return [shape for shape in shapes if shape in best]


def words_for(shapes: Sequence[Shape], question: str) -> dict[str, float]:
    """How much the question's words speak for each tool, in units of log probability.

    A word that few tools know counts more; so do a word of the tool's name, a choice that is named, and an address or
    path where one is taken. A tool that needs more numbers than there are is out of the question.
    """
    words = words_of(question)
    asked = stems(question)
    numbers = sum(number_of(word.text) is not None for word in words)
    said = {word.lower for word in words} - STOP
    names = {shape.name: set(humanized(shape.name).split()) for shape in shapes}
    found: dict[str, float] = {}
    for shape in shapes:
        weight = 0.0
        for word in asked & shape.vocabulary:
            share = 0.8 if word in shape.core else 0.3
            weight += share * log(1 + len(shapes) / sum(word in other.vocabulary for other in shapes))
        for word in said & names[shape.name]:
            weight += 0.4 * log(1 + len(shapes) / sum(word in other for other in names.values()))
        weight += 1.5 * sum(bool(mentioned(parameter.choices, question)) for parameter in shape.parameters)
        weight += _shapes_of_words(words, shape)
        weight -= _lacks(shape, question, words, numbers)
        found[shape.name] = weight
    return found


def _lacks(shape: Shape, question: str, words: Sequence[Word], numbers: int) -> float:
    """What speaks against a tool: required numbers, choices and texts for which the question has nothing."""
    required = [parameter for parameter in shape.parameters if parameter.required]
    lacking = 0.0
    if sum(parameter.is_number for parameter in required) > numbers:
        lacking += 3.0
    if any(parameter.kind == "choice" and not mentioned(parameter.choices, question) for parameter in required):
        lacking += 1.0
    places = any(parameter.is_path or parameter.is_address for parameter in shape.parameters)
    telling = [
        word
        for word, after in zip_longest(words, words[1:])
        if not stems(word.text) <= shape.vocabulary  # of which the empty set is one
        and not (places and (word.is_path or word.lower in FOLDERS or (after and after.lower in FOLDERS)))
    ]
    texts = [each for each in required if each.kind == "text" and not (each.is_path or each.is_address)]
    if len(texts) > len(telling):
        lacking += 1.5
    return lacking


def _shapes_of_words(words: Sequence[Word], shape: Shape) -> float:
    """Whether the question has an address or a path for a tool that takes one, or lacks one that it needs.

    A folder that is named speaks against a tool that takes paths and whose own words do not know folders.
    """
    paths = [parameter for parameter in shape.parameters if parameter.is_path]
    if any(word.is_address for word in words):
        return 1.5 * any(parameter.is_address for parameter in shape.parameters)
    weight = -1.0 * (bool(paths) and "folder" not in shape.core and any(word.lower in FOLDERS for word in words))
    if any(word.is_path for word in words):
        return weight + 0.5 * bool(paths)
    return weight - 1.0 * any(parameter.required for parameter in paths)
