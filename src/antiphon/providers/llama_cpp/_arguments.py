"""The arguments of a call, copied out of the question.

What is plain is not asked: a choice that is named, numbers, paths, quotations. The rest the model decides, one parameter
after the other, each by a grammar of what the question still has to give. Optional parameters are filled only where the
words give a cue. What nobody can know is not guessed: an optional parameter is left out.
"""

import json
import re
from collections.abc import Sequence
from itertools import permutations
from typing import Any, Final

from antiphon.providers.llama_cpp._asker import Asker
from antiphon.providers.llama_cpp._grammar import MOST_WORDS, any_json, literal, one_of, spans
from antiphon.providers.llama_cpp._prompts import arguments_prompt, formula_prompt
from antiphon.providers.llama_cpp._shape import Parameter, Shape
from antiphon.providers.llama_cpp._words import (
    DETERMINERS,
    FOLDERS,
    STOP,
    Word,
    mentioned,
    number_of,
    quoted,
    stem,
    stems,
    word_set,
    words_of,
)

__all__ = ["Arguments"]

LONGEST_VALUE: Final = 96
"""Tokens of one value."""
_PLACES: Final = word_set("in inside under from within")
_CUES: Final = _PLACES | word_set("of at for on by with as named called between before after since until")
_ANY_PLACE: Final = word_set(
    "code codebase project repo repository everything files file folder directory this it there here"
)
_NEGATIONS: Final = word_set("off no not don't without disable false out stop never none")
_PROSE: Final = frozenset(
    map(stem, word_set("text message body content note memo fact entry comment title summary subject"))
)
_ORIGINS: Final = re.compile(r"(?:from|old|source|src|origin|base|start)(?:_|$|[A-Z])")
_TARGETS: Final = re.compile(r"(?:to|new|target|dest\w*|end)(?:_|$|[A-Z])")
_MARKS: Final = word_set("that know saying")
_COMMANDS: Final = word_set(
    """add ask assign book bring buy call change check close compute convert copy count create delete do fetch file find get
    give google grep inform install keep let list look make move note open order pause phone play print put read remember
    remind remove rename reserve ring roll run save say schedule search send set show start stop switch take tell throw
    track translate turn update use work write"""
)
_OPERATIONS: Final = {
    "+": word_set("plus add added sum total together"),
    "-": word_set("minus subtract subtracted less difference"),
    "*": word_set("times multiply multiplied product"),
    "/": word_set("divide divided over quotient"),
}
_SUM: Final = re.compile(r"[-+*/^%().\d\s]*\d[-+*/^%().\d\s]*")


class Arguments:
    """Fills one call. `values` has what is filled so far, in the order in which it was decided."""

    def __init__(self, asker: Asker, shape: Shape, question: str) -> None:
        self._asker = asker
        self._shape = shape
        self._question = question
        self._words = words_of(question)[:MOST_WORDS]
        self._free = set(range(len(self._words)))
        self._prompt = arguments_prompt(shape, question)
        self.values: dict[str, Any] = {}

    async def fill(self) -> dict[str, Any]:
        """The arguments, in the order of the schema."""
        order = self._shape.sorted()
        self._take_choices(order)
        self._take_quotations(order)
        self._take_paths(order)
        await self._take_numbers(order)
        for parameter in order:
            if parameter.name not in self.values and not parameter.is_number:
                await self._decide(parameter)
        return {each.name: self.values[each.name] for each in self._shape.parameters if each.name in self.values}

    def _open(self, order: Sequence[Parameter]) -> list[Parameter]:
        return [parameter for parameter in order if parameter.name not in self.values]

    def _take_choices(self, order: Sequence[Parameter]) -> None:
        for parameter in order:
            if len(found := mentioned(parameter.choices, self._question)) == 1:
                self._set(parameter, found[0])

    def _take_quotations(self, order: Sequence[Parameter]) -> None:
        texts = [parameter for parameter in order if parameter.kind == "text"]
        takers = [parameter for parameter in texts if not (parameter.is_path or parameter.is_address)]
        for parameter, value in zip([p for p in takers if p.required] or takers, quoted(self._question), strict=False):
            self._set(parameter, value)

    def _take_paths(self, order: Sequence[Parameter]) -> None:
        """Addresses and paths in the order of the words; then the place that an optional path is told by `in …`."""
        for parameter in self._open(order):
            if not (parameter.is_address or parameter.is_path):
                continue
            fits = [
                i
                for i in sorted(self._free)
                if (self._words[i].is_address if parameter.is_address else self._words[i].is_path)
            ]
            if not fits and parameter.is_path and not parameter.required:
                fits = [i for i in sorted(self._free) if self._is_place(i)]
                fits = fits if len(self._telling()) > len(self._needing_words()) else []
            if fits:
                self._set(parameter, self._words[fits[0]].text)

    def _is_place(self, at: int) -> bool:
        word = self._words[at]
        if word.lower in _ANY_PLACE or stem(word.text) in self._shape.vocabulary or word.lower in STOP:
            return False
        after = self._words[at + 1].lower if at + 1 < len(self._words) else ""
        return after in FOLDERS or self._follows(at, _PLACES)

    def _follows(self, at: int, cues: frozenset[str]) -> bool:
        """Whether one of the words stands right before, or with an article or `my` between."""
        before = [self._words[i].lower for i in range(max(0, at - 2), at)]
        if before and before[-1] in DETERMINERS | {"my", "our"}:
            before.pop()
        return bool(before) and before[-1] in cues

    def _needing_words(self) -> list[Parameter]:
        """The required texts that are still open."""
        texts = [each for each in self._shape.parameters if each.required and each.kind == "text"]
        return [each for each in texts if each.name not in self.values]

    async def _take_numbers(self, order: Sequence[Parameter]) -> None:
        """Numbers go to the parameter whose name stands beside them, else in the order of the words."""
        found = [(i, value) for i in sorted(self._free) if (value := number_of(self._words[i].text)) is not None]
        takers = [parameter for parameter in self._open(order) if parameter.is_number]
        for parameter in takers:
            beside = [pair for pair in found if self._fits(parameter, pair[1]) and self._is_beside(parameter, pair[0])]
            if beside:
                found.remove(beside[0])
                self._set_number(parameter, *beside[0])
        for parameter in [parameter for parameter in takers if parameter.name not in self.values]:
            fits = [pair for pair in found if self._fits(parameter, pair[1])]
            if fits and (parameter.required or not self._is_needed_as_text()):
                found.remove(fits[0])
                self._set_number(parameter, *fits[0])
            elif parameter.required:
                await self._ask(parameter, "root ::= [1-9] [0-9]?")

    def _fits(self, parameter: Parameter, value: float) -> bool:
        return parameter.kind == "number" or isinstance(value, int)

    def _is_beside(self, parameter: Parameter, at: int) -> bool:
        near = [self._words[i].text for i in (at - 1, at + 1) if 0 <= i < len(self._words)]
        return bool(stems(parameter.name) & stems(*near))

    def _is_needed_as_text(self) -> bool:
        """Whether a required text is open for which the question has nothing but numbers."""
        return bool(self._needing_words()) and all(number_of(self._words[i].text) is not None for i in self._telling())

    def _telling(self) -> list[int]:
        """The free words that are neither empty nor the tool's own."""
        return [
            i
            for i in sorted(self._free)
            if self._words[i].lower not in STOP and not stems(self._words[i].text) <= self._shape.vocabulary
        ]

    async def _decide(self, parameter: Parameter) -> None:
        match parameter.kind:
            case "choice":
                if parameter.required:
                    await self._ask(parameter, one_of(parameter.choices))
            case "boolean":
                if parameter.required or stems(parameter.name) & stems(self._question):
                    self._set(parameter, not any(word.lower in _NEGATIONS for word in self._words))
            case "other":
                if parameter.required:
                    grammar = any_json(parameter.schema, self._shape.definitions, self._question, self._words)
                    await self._ask(parameter, grammar)
            case _:
                await self._decide_text(parameter)

    async def _decide_text(self, parameter: Parameter) -> None:
        if parameter.is_formula and (formula := await self._formula()):
            self._set(parameter, formula)
        elif parameter.required:
            if clause := self._reported(parameter):
                self._set(parameter, clause)
                return
            grammar = self._grammar(parameter)
            if grammar is None:
                self._set(parameter, self._question.strip())
            else:
                await self._ask(parameter, grammar)
        elif not parameter.is_path:
            starts = {i for i in self._telling() if self._is_cue(i)}
            grammar = spans(self._question, self._words, self._free, starts)
            if grammar is not None:
                await self._ask(parameter, grammar)

    def _grammar(self, parameter: Parameter) -> str | None:
        """What the text may be: free words that begin and end with no word of the tool's own, else whatever there is."""
        part = self._part(parameter)
        own = {i for i in part if stems(self._words[i].text) & self._shape.vocabulary}
        command = {0} if self._words and self._words[0].lower in _COMMANDS else set[int]()
        everything = range(len(self._words))
        for free, edges in (
            (part, part - own - command),
            (part, part - command),
            (part, part),
            (everything, everything),
        ):
            if grammar := spans(self._question, self._words, free, edges):
                return grammar
        return None

    def _reported(self, parameter: Parameter) -> str | None:
        """What is told after `that` or a colon, to the end of its sentence, for a parameter that takes prose.

        What belongs to other parameters at its end is left out.
        """
        if not parameter.vocabulary & _PROSE:
            return None
        opened = [i + 1 for i, word in enumerate(self._words[:-1]) if self._opens_clause(i, word)]
        if not opened:
            return None
        words = self._words[opened[0] :]
        end = words[0].start + len(re.split(r"[.?!;](?:\s|$)|\n", self._question[words[0].start :], maxsplit=1)[0])
        others = set[str]().union(*[each.vocabulary for each in self._shape.parameters if each is not parameter])
        inside = [(i, word) for i, word in enumerate(words, opened[0]) if word.end <= end]
        while len(inside) > 1 and (inside[-1][0] not in self._free or stem(inside[-1][1].text) in others):
            inside.pop()
        return self._question[words[0].start : inside[-1][1].end] if inside else None

    def _opens_clause(self, at: int, word: Word) -> bool:
        return self._question[word.end :][:1] == ":" or (at > 0 and word.lower in _MARKS)

    def _part(self, parameter: Parameter) -> set[int]:
        """The free words that a required text may be made of.

        Of a pair like `from` and `to`, each has its side of the word between; the last text of a call is told after a
        colon, if there is one.
        """
        texts = [each for each in self._shape.parameters if each.required and each.kind == "text"]
        if any(_ORIGINS.match(each.name) for each in texts) and any(_TARGETS.match(each.name) for each in texts):
            before, after = self._sides()
            if _ORIGINS.match(parameter.name) and before and after:
                return before
            if _TARGETS.match(parameter.name) and before and after:
                return after
        if self._needing_words() == [parameter]:
            colon = next((i for i, word in enumerate(self._words) if self._question[word.end :][:1] == ":"), None)
            after = {i for i in self._free if colon is not None and i > colon}
            return after or self._free
        return self._free

    def _sides(self) -> tuple[set[int], set[int]]:
        """The free words before and after the last `to`, or `in`; of those before it, those after `from`."""
        lows = [word.lower for word in self._words]
        pivots = [i for i, low in enumerate(lows) if low in {"to", "into"}] or [
            i for i, low in enumerate(lows) if low == "in"
        ]
        pivot = max(pivots, default=len(lows))
        first = lows.index("from", 0, pivot) if "from" in lows[:pivot] else -1
        return {i for i in self._free if first < i < pivot}, {i for i in self._free if i > pivot}

    def _is_cue(self, at: int) -> bool:
        word = self._words[at]
        marked = at > 0 and (word.text[:1].isupper() or any(char.isdigit() for char in word.text))
        return marked or self._follows(at, _CUES)

    async def _formula(self) -> str | None:
        """The expression that stands in the question, or the one that its words mean."""
        written = max(_SUM.findall(self._question), key=len, default="").strip().rstrip(".").strip()
        if re.search(r"[\d)]\s*[-+*/^%]\s*[-\d(]", written):
            return written
        numbers = [value for word in self._words if (value := number_of(word.text)) is not None]
        if len(numbers) < 2:
            return None
        orders = permutations(numbers) if len(numbers) <= 3 else [numbers]
        ways = [" op ".join([literal(json.dumps(value)) for value in order]) for order in orders]
        percent = ' (" / 100" | "")' if re.search("percent|%", self._question) else ""
        said = {word.lower for word in self._words}
        signs = [sign for sign, names in _OPERATIONS.items() if names & said] or list(_OPERATIONS)
        operations = " | ".join([literal(f" {sign} ") for sign in signs])
        grammar = f'root ::= " " ({" | ".join(ways)}){percent} "\\n"\nop ::= {operations}'
        return (await self._asker.text(formula_prompt(self._question), 48, grammar=grammar)).strip()

    async def _ask(self, parameter: Parameter, grammar: str) -> None:
        """Let the model go on with the value. A value that was cut off is left out: it would be broken JSON."""
        told = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.values.items()]
        prompt = self._prompt.plus(", ".join([*told, f"{parameter.name}="]))
        text = await self._asker.text(prompt, LONGEST_VALUE, grammar=grammar)
        try:
            value = json.loads(text)
        except ValueError:
            return
        self._set(parameter, value)

    def _set(self, parameter: Parameter, value: Any) -> None:
        """Keep a value; the words that it took are no longer free."""
        self.values[parameter.name] = value
        text = str(value).lower()
        for first in range(len(self._words)):
            for last in range(first, len(self._words)):
                run = self._question[self._words[first].start : self._words[last].end].lower()
                if run == text and set(range(first, last + 1)) <= self._free:
                    self._free.difference_update(range(first, last + 1))
                    return
                if len(run) >= len(text):
                    break

    def _set_number(self, parameter: Parameter, at: int, value: float) -> None:
        self.values[parameter.name] = value
        self._free.discard(at)
