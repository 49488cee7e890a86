"""Answers from a tool's result: the model says how, the result is quoted.

A model of this size alters what it repeats and makes up what it sums up. So a result is put into the answer as it is, and
the model only finds the words before it, out of those of the question. Of a long text the sentences are quoted that share
words with the question, else its beginning.
"""

import html
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final, cast

from antiphon.providers.llama_cpp._asker import Asker
from antiphon.providers.llama_cpp._grammar import literal
from antiphon.providers.llama_cpp._prompts import answer_prompt
from antiphon.providers.llama_cpp._words import Word, stems, word_set, words_of

__all__ = ["answer", "excerpt", "plain_result"]

QUOTED: Final = 1200
"""Characters of a result that are quoted whole."""
QUOTED_LINES: Final = 24
EXCERPT: Final = 480
"""Characters of a longer one that are quoted."""
RARE: Final = 0.3
"""What a sentence must know of the question: a word that three others know at most."""
SHOWN: Final = 300
"""Characters of a result that the model sees to find the words before it."""
LEAD: Final = 40
"""Tokens before a quoted result."""

_DONE: Final = frozenset({"", "ok", "okay", "done", "true", "null", "none", "success", "sent", "{}"})
_NO_SUBJECT: Final = word_set(
    """what which who where when how why show tell list give please can could do does did is are was were me i you it
    what's who's where's say says said contain contains mean means open read"""
)
_NO_START: Final = word_set("of to for with and or by that")
_NO_END: Final = word_set("a an the of in on at to for from by with and or please my our your much many")
_ERROR: Final = re.compile(r"\s*<tool_error[^>]*>(.*?)</tool_error>\s*", re.DOTALL)


async def answer(asker: Asker, question: str, results: Sequence[tuple[str, bool]]) -> AsyncGenerator[str, None]:
    """The answer, piece by piece. `results` are the texts of the tools and whether they are errors."""
    errors = [plain_result(text) for text, is_error in results if is_error]
    texts = [plain_result(text) for text, is_error in results if not is_error]
    for error in errors:
        yield f"That did not work: {error.rstrip('.')}.{' ' if texts else ''}"
    if not texts:
        return
    whole = "\n".join([text for text in texts if text.lower().rstrip(".!") not in _DONE])
    if not whole:
        yield "Done."
        return
    below = "\n" in whole or len(whole) > QUOTED
    if len(whole) > QUOTED or whole.count("\n") >= QUOTED_LINES or _wants_gist(question):
        whole = excerpt(question, whole)
    async with aclosing(_lead(asker, question, whole, below=below)) as pieces:
        async for piece in pieces:
            yield piece
    yield f"\n{whole}" if below else f"{whole}." if whole[-1].isalnum() or whole[-1] in ")%" else whole


def excerpt(question: str, text: str) -> str:
    """Of a long text: up to three sentences that know the question's words best, else the beginning."""
    sentences = [" ".join(each.split()) for each in re.split(r"(?<=[.!?])\s+|\n+", text)]
    sentences = [each for each in sentences if re.search(r"\w", each)]
    known = [stems(each) for each in sentences]
    asked = stems(re.sub(r"\S*[./]\S*\w", " ", question))  # the file's own name says nothing about its content
    weights = [
        sum(1 / sum(word in other for other in known) for word in asked & own) if len(asked) else 0.0 for own in known
    ]
    best = sorted(range(len(sentences)), key=lambda i: (-weights[i], i))[:3]
    if _wants_gist(question) or not best or weights[best[0]] < RARE:
        best = range(len(sentences))
    picked: list[str] = []
    for i in sorted(best):
        if sum(map(len, picked)) + len(sentences[i]) > EXCERPT and picked:
            break
        if weights[i] > 0 or len(best) == len(sentences):
            picked.append(sentences[i][:EXCERPT])
    return " ".join(picked) + (" …" if len(picked) < len(sentences) else "")


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


async def _lead(asker: Asker, question: str, result: str, *, below: bool) -> AsyncGenerator[str, None]:
    """The words before the result, like `The price of tea is `: streamed, without the blank in front.

    With `below` the result stands in lines of its own, and the words end in a colon.
    """
    prompt = answer_prompt(question, " ".join(result.split())[:SHOWN])
    first, last = True, ""
    async with aclosing(asker.stream(prompt, LEAD, grammar=_lead_grammar(question, below=below))) as pieces:
        async for piece in pieces:
            shown = piece.lstrip() if first else piece
            first = first and not shown
            if below:  # no blank at the line's end
                shown, last = last + shown, ""
                if shown.endswith(" "):
                    shown, last = shown[:-1], " "
            if shown:
                yield shown


def _lead_grammar(question: str, *, below: bool) -> str:
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
    openings = [] if below else ['"It is "', '"Done: "']
    openings += [f"w{i}" for i in starts]
    openings += [f'"The " w{i}' for i in starts if _takes_article(words, i)]
    if not openings:
        openings = ['"Result: "']
    end = 'end ::= ": "' if below else 'end ::= " is " | " are " | ": "'
    return "\n".join([f'root ::= " " ({" | ".join(openings)})', end, *rules.values()])


def _takes_article(words: Sequence[Word], at: int) -> bool:
    return words[at].text.isalpha() and words[at].text.islower() and words[at].lower not in _NO_END
