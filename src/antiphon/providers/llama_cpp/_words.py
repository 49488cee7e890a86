"""Words of a text: where they are, their stems, and which of them look like numbers, paths, addresses.

Nothing here knows a tool. The lists are for English, the language of the small model's demonstrations; other languages
lose the help of stems and stop words, nothing else.
"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

__all__ = [
    "DETERMINERS",
    "FOLDERS",
    "STOP",
    "Word",
    "mentioned",
    "number_of",
    "quoted",
    "stem",
    "stems",
    "word_set",
    "words_of",
]


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as a text."""
    return frozenset(text.split())


DETERMINERS: Final = word_set("a an the")
STOP: Final = DETERMINERS | word_set("""about all and any are as at be by can could did do does every for from get give has have had here how i in into is
    it just like many me much my need not now of on one only or our please show some tell that there these they this
    those to today us want was we were what when where which who whom why will with would you your currently there's
    what's who's where's it's i'm current s t m re ve ll d let lets""")
"""Words that say nothing about what is asked for."""

FOLDERS: Final = word_set("folder folders directory directories dir dirs")
"""Different words for the same thing: their stem is one."""
_SUFFIXES: Final = (
    "ations",
    "ation",
    "ating",
    "ates",
    "ated",
    "ate",
    "ings",
    "ing",
    "ies",
    "ers",
    "er",
    "es",
    "ed",
    "s",
    "e",
    "y",
)
_NUMERALS: Final = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS: Final = {word: value for value, word in enumerate(_NUMERALS.split())}
_NUMBER: Final = re.compile(r"[-+]?\d+(?:\.\d+)?")
_ADDRESS: Final = re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE)
_PATH: Final = re.compile(r"\S*[/\\]\S*|\S*\w\.[A-Za-z]\w{0,5}")
_OPENING: Final = "\"'`“”\u2018\u2019«[{<"
_CLOSING: Final = ".,?!;:\"'`“”\u2018\u2019»]}>"


class Word(Struct, frozen=True):
    """A word as the text has it, without the punctuation around it, and where it lies."""

    text: str
    start: int
    end: int

    @property
    def lower(self) -> str:
        return self.text.lower()

    @property
    def is_address(self) -> bool:
        return _ADDRESS.fullmatch(self.text) is not None

    @property
    def is_path(self) -> bool:
        """Whether it has a slash or a file ending: `src/main.py`, `notes.txt`, `Europe/Berlin`."""
        return _PATH.fullmatch(self.text) is not None and not self.is_address and number_of(self.text) is None


def words_of(text: str) -> list[Word]:
    """The words between the blanks, stripped of quotes and of the punctuation of sentences."""
    found: list[Word] = []
    for match in re.finditer(r"\S+", text):
        start, end = match.span()
        while start < end and text[start] in _OPENING:
            start += 1
        while end > start and text[end - 1] in _CLOSING:
            end -= 1
        if start < end:
            found.append(Word(text[start:end], start, end))
    return found


def number_of(text: str) -> int | float | None:
    """The number that a word is, in digits or as a small English numeral (never `one`, which is mostly a pronoun)."""
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    value = _NUMBER_WORDS.get(text.lower())
    return None if value == 1 else value


def stem(word: str) -> str:
    """A rough stem: enough to find `files` in `file` and `translation` in `translate`."""
    word = word.lower()
    if word in FOLDERS:
        return "folder"
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)]
    return word


def stems(*texts: str) -> set[str]:
    """The stems of all telling words; names are taken apart at `_`, `-` and capitals."""
    found: set[str] = set()
    for text in texts:
        for word in re.findall(r"[^\W\d_]+|\d+(?:\.\d+)?", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)):
            if word.lower() not in STOP:
                found.add(stem(word))
    return found


def mentioned(values: Iterable[object], text: str) -> list[object]:
    """Those of the values whose text stands in `text` as whole words."""
    low = text.lower()
    return [value for value in values if re.search(rf"(?<!\w){re.escape(str(value).lower())}(?!\w)", low)]


def quoted(text: str) -> list[str]:
    """What stands between double quotes or backticks."""
    return [a or b or c for a, b, c in re.findall(r'"([^"\n]+)"|“([^”\n]+)”|`([^`\n]+)`', text)]
