"""Answers from a tool's result: the model says how, the result is quoted.

A model of this size alters what it repeats. So a short result is put into the sentence as it is, and the model only finds
the words before it, out of those of the question. A long text it reads and answers from, held to the numbers that occur.
"""

import html
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from antiphon.providers.llama_cpp._asker import Asker, Slot
from antiphon.providers.llama_cpp._grammar import literal
from antiphon.providers.llama_cpp._prompts import answer_prompt, reading_prompt
from antiphon.providers.llama_cpp._words import Word, word_set, words_of

__all__ = ["answer", "plain_result"]

QUOTED: Final = 1200
"""Characters of a result that are quoted whole; of a longer one the model tells what it read."""
QUOTED_LINES: Final = 24
READ: Final = 1600
"""Characters of a long text that the model reads."""
SHOWN: Final = 300
"""Characters of a result that the model sees to find the words before it."""
LEAD: Final = 40
"""Tokens before a quoted result."""

_DONE: Final = frozenset({"", "ok", "okay", "done", "true", "null", "none", "success", "sent", "{}"})
_NO_SUBJECT: Final = word_set(
    """what which who where when how why show tell list give please can could do does did is are was were me i you it
    what's who's where's"""
)
_NO_START: Final = word_set("of to for with and or by that")
_NO_END: Final = word_set("a an the of in on at to for from by with and or please my our your much many")
_ERROR: Final = re.compile(r"\s*<tool_error[^>]*>(.*?)</tool_error>\s*", re.DOTALL)


async def answer(
    asker: Asker, question: str, results: Sequence[tuple[str, bool]], limit: int
) -> AsyncGenerator[str, None]:
    """The answer, piece by piece. `results` are the texts of the tools and whether they are errors."""
    errors = [plain_result(text) for text, is_error in results if is_error]
    texts = [plain_result(text) for text, is_error in results if not is_error]
    for error in errors:
        yield f"That did not work: {error.rstrip('.')}.{' ' if texts else ''}"
    if not texts:
        return
    told = [text for text in texts if text.lower().rstrip(".!") not in _DONE]
    whole = "\n".join(told)
    if not told:
        yield "Done."
    elif len(whole) <= QUOTED and whole.count("\n") < QUOTED_LINES and not _wants_gist(question):
        async with aclosing(_lead(asker, question, whole)) as pieces:
            async for piece in pieces:
                yield piece
        yield f"\n{whole}" if "\n" in whole else whole if whole[-1] in ".!?" else f"{whole}."
    else:
        async with aclosing(_gist(asker, question, whole, limit)) as pieces:
            async for piece in pieces:
                yield piece


def plain_result(text: str) -> str:
    """A result as words: the text of an error, a JSON list with commas, an object as `name: value`."""
    if match := _ERROR.fullmatch(text):
        return html.unescape(match[1]).strip()
    text = text.strip()
    if text[:1] not in {"[", "{", '"'}:
        return text
    try:
        return _spoken(json.loads(text))
    except ValueError:
        return text


def _spoken(value: Any) -> str:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        flags = [item for item in members.values() if item is True]
        if len(flags) == len(members):  # nothing but `ok: true`
            return "done"
        return ", ".join([f"{key}: {_spoken(item)}" for key, item in members.items()])
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return (", " if all(not isinstance(item, dict | list) for item in items) else "\n").join(map(_spoken, items))
    return value if isinstance(value, str) else json.dumps(value)


def _wants_gist(question: str) -> bool:
    return re.search(r"\b(?:summar|sum up|in short|gist|explain)", question.lower()) is not None


async def _lead(asker: Asker, question: str, result: str) -> AsyncGenerator[str, None]:
    """The words before the result, like `The price of tea is `: streamed, without the blank in front."""
    several = "\n" in result
    prompt = answer_prompt(question, " ".join(result.split())[:SHOWN])
    first, last = True, ""
    async with aclosing(
        asker.stream(prompt, Slot.WORDS, LEAD, grammar=_lead_grammar(question, several=several))
    ) as pieces:
        async for piece in pieces:
            shown = piece.lstrip() if first else piece
            first = first and not shown
            if several:  # a list stands below: no blank at the line's end
                shown, last = last + shown, ""
                if shown.endswith(" "):
                    shown, last = shown[:-1], " "
            if shown:
                yield shown


def _lead_grammar(question: str, *, several: bool) -> str:
    """`It is `, `Done: `, or a run of the question's words with `is`, `are` or a colon behind it."""
    words = words_of(question)[:40]
    rules: dict[int, str] = {}
    for i in range(len(words) - 1, -1, -1):
        if words[i].lower in _NO_SUBJECT:
            continue
        ways = ["end"] if words[i].lower not in _NO_END else []
        if i + 1 in rules:
            ways.append(f"{literal(question[words[i].end : words[i + 1].start])} w{i + 1}")
        if ways:
            rules[i] = f"w{i} ::= {literal(words[i].text)} ({' | '.join(ways)})"
    starts = [i for i in sorted(rules) if words[i].lower not in _NO_START]
    openings = [] if several else ['"It is "', '"Done: "']
    openings += [f"w{i}" for i in starts]
    openings += [f'"The " w{i}' for i in starts if _takes_article(words, i)]
    if not openings:
        openings = ['"Result: "']
    end = 'end ::= ": "' if several else 'end ::= " is " | " are " | ": "'
    return "\n".join([f'root ::= " " ({" | ".join(openings)})', end, *rules.values()])


def _takes_article(words: Sequence[Word], at: int) -> bool:
    return words[at].text.isalpha() and words[at].text.islower() and words[at].lower not in _NO_END


async def _gist(asker: Asker, question: str, text: str, limit: int) -> AsyncGenerator[str, None]:
    """What the model reads in a long text: one line, with no number that is in neither text nor question."""
    shown = text if len(text) <= READ else text[:READ].rsplit(None, 1)[0] + " ..."
    numbers = sorted(set(re.findall(r"\d+", shown + " " + question)))
    given = f" | {' | '.join(map(literal, numbers))}" if numbers else ""
    grammar = f'root ::= " " ([^0-9\\n]{given})+ "\\n"'
    first = True
    async with aclosing(
        asker.stream(reading_prompt(question, shown), Slot.WORDS, limit, grammar=grammar, stop=("\n",))
    ) as pieces:
        async for piece in pieces:
            shown = piece.lstrip() if first else piece
            first = first and not shown
            if shown:
                yield shown
