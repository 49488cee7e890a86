"""Grammars that hold the small model to what the user said (GBNF, llama.cpp, grammars/README.md).

A model of this size makes up values; copied ones are mostly right. So an argument is a run of words of the question, a
number that stands in it, or one of the schema's own choices.
"""

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from antiphon.providers.llama_cpp._shape import bare_schema
from antiphon.providers.llama_cpp._words import DETERMINERS, STOP, Word, number_of, word_set

__all__ = ["MOST_WORDS", "any_json", "literal", "one_of", "span_rules", "spans"]

MOST_WORDS: Final = 80
"""How many words of a question can be copied from: each is a rule of the grammar."""

_LINKS: Final = DETERMINERS | word_set(
    "of in on at to for from by with about under over than and or please my our your"
)
_NO_START: Final = _LINKS | STOP | word_set("that say")
_NO_END: Final = _LINKS | word_set("which what is are")
_BREAKS: Final = re.compile(r"[:?!;\n]")
_DEPTH: Final = 4


def literal(text: str) -> str:
    """A text as a terminal."""
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{body}"'


def one_of(values: Iterable[Any]) -> str:
    """A grammar for the JSON of one of the values."""
    return "root ::= " + " | ".join([literal(_json(value)) for value in values])


def spans(text: str, words: Sequence[Word], free: Collection[int], edges: Collection[int]) -> str | None:
    """A grammar for a JSON string that copies neighbouring free words; `None` when there is none to copy.

    The copy begins and ends with one of the words `edges`.
    """
    rules, starts = span_rules(text, words, free, edges)
    if not starts:
        return None
    return "\n".join([f'root ::= "\\"" ({" | ".join(starts)})', *rules])


def span_rules(
    text: str, words: Sequence[Word], free: Collection[int], edges: Collection[int]
) -> tuple[list[str], list[str]]:
    """Rules, one for each word that can be copied, and the names of those that a copy may begin with.

    A copy keeps what stands between its words, does not go over the end of a clause, and neither begins nor ends with a
    word that only links. Each rule ends with the closing quote of a JSON string.
    """
    rules: dict[int, str] = {}
    for i in range(min(len(words), MOST_WORDS) - 1, -1, -1):
        if i not in free:
            continue
        ways: list[str] = []
        if i in edges and words[i].lower not in _NO_END:
            ways.append('"\\""')
        if i + 1 in rules:
            between = text[words[i].end : words[i + 1].start]
            if not _BREAKS.search(between):
                ways.append(f"{literal(_inner(between))} w{i + 1}")
        if ways:
            rules[i] = f"w{i} ::= {literal(_inner(words[i].text))} ({' | '.join(ways)})"
    starts = [f"w{i}" for i in sorted(rules) if i in edges and not _is_weak(words[i])]
    return list(rules.values()), starts


def _is_weak(word: Word) -> bool:
    """Whether no copy begins with it: a word that says nothing, unless a capital inside a sentence makes it a name."""
    return word.lower in _NO_START and not (word.start > 0 and word.text[:1].isupper() and len(word.text) > 1)


def any_json(schema: dict[str, Any], definitions: dict[str, Any], text: str, words: Sequence[Word]) -> str:
    """A grammar for arrays and objects: their shape from the schema, the values in them from the text."""
    rules, starts = span_rules(text, words, range(len(words)), range(len(words)))
    text_rule = f'"\\"" ({" | ".join(starts)})' if starts else '"\\"\\""'
    numbers = [value for word in words if (value := number_of(word.text)) is not None]
    atoms = _Atoms(text_rule, numbers, definitions)
    return "\n".join([f"root ::= {atoms.rule(schema, 0)}", *rules])


class _Atoms:
    """Writes the rule of a schema, nested."""

    def __init__(self, text: str, numbers: list[int | float], definitions: dict[str, Any]) -> None:
        self._text = text
        self._numbers = numbers
        self._definitions = definitions

    def rule(self, schema: Any, depth: int) -> str:
        bare, _ = bare_schema(schema, self._definitions)
        choices: list[Any] = [bare["const"]] if "const" in bare else list(bare.get("enum") or ())
        if choices:
            return "(" + " | ".join([literal(_json(choice)) for choice in choices]) + ")"
        match bare.get("type"):
            case "integer":
                return self._number([value for value in self._numbers if isinstance(value, int)])
            case "number":
                return self._number(self._numbers)
            case "boolean":
                return '("true" | "false")'
            case "null":
                return '"null"'
            case "array":
                return self._array(bare, depth)
            case "object":
                return self._object(bare, depth)
            case _:
                return f"({self._text})"

    def _number(self, numbers: Sequence[int | float]) -> str:
        found = [literal(_json(number)) for number in numbers]
        return f"({' | '.join(found)})" if found else "([1-9] [0-9]?)"

    def _array(self, schema: dict[str, Any], depth: int) -> str:
        if depth >= _DEPTH:
            return '"[]"'
        item = self.rule(schema.get("items"), depth + 1)
        return f'("[" {item} (", " {item})? (", " {item})? (", " {item})? "]")'

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        properties: dict[str, Any] = schema.get("properties") or {}
        names = [name for name in properties if name in (schema.get("required") or ())]
        if depth >= _DEPTH or not names:
            return '"{}"'
        members = [f"{literal(_json(name) + ': ')} {self.rule(properties[name], depth + 1)}" for name in names]
        return '("{" ' + ' ", " '.join(members) + ' "}")'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _inner(text: str) -> str:
    """A text as it stands inside a JSON string."""
    return _json(text)[1:-1]
