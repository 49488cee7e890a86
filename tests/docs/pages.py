"""The documentation as blocks: every fenced piece of a page, with what its HTML comments say about it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<indent>[ >]*)(?P<fence>`{3,}|~{3,})[ ]*(?P<language>[\w+-]*)")
_COMMENT = re.compile(r"<!--\s*(?P<word>[a-z]+)\s*(?::(?P<value>.*?))?-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block. `line` is that of its first line of code, counted from 1."""

    page: Path
    line: int
    language: str
    code: str
    fresh: bool = False
    """`<!-- fresh -->` stands before it: it shares no names with the blocks above."""
    script: tuple[Any, ...] | None = None
    """`<!-- script: [...] -->` stands before it: what the model answers in this block, one entry for each request."""

    @property
    def at(self) -> str:
        return f"{self.page.name}:{self.line}"


def pages() -> list[Path]:
    """Every page that readers are sent to."""
    return [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if page.exists()]


def blocks(page: Path, *languages: str) -> list[Block]:
    """The page's blocks in these languages, in order."""
    return [block for block in read(page, page.read_text(encoding="utf-8")) if block.language in languages]


def read(page: Path, text: str) -> Iterator[Block]:
    """All blocks of a page's text. A comment belongs to the next block, whatever stands between them."""
    lines = text.splitlines()
    comments: list[str] = []
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        number += 1
        if opened is None:
            comments.append(lines[number - 1])
            continue
        first = number
        closing = re.compile(rf"^[ >]*{opened['fence'][0]}{{{len(opened['fence'])},}}\s*$")
        while number < len(lines) and not closing.match(lines[number]):
            number += 1
        code = dedent("\n".join(lines[first:number])) + "\n"
        yield _block(page, first + 1, opened["language"], code, "\n".join(comments))
        comments.clear()
        number += 1


def _block(page: Path, line: int, language: str, code: str, comments: str) -> Block:
    said = {found["word"]: found["value"] for found in _COMMENT.finditer(comments)}
    script = None
    if "script" in said:
        try:
            script = tuple(json.loads(said["script"] or ""))
        except ValueError as error:
            message = f"{page.name}:{line}: the script before this block is no JSON list: {error}"
            raise ValueError(message) from error
    return Block(page, line, language, code, "fresh" in said, script)
