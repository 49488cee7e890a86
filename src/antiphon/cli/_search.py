"""Looking for text in a folder, as a process of its own: a hard pattern can be ended, which a thread cannot be.

Run as a script, on its own and without the package: reads a question as JSON from its input, writes the answer as JSON.
"""

import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

MATCHES = 100
FILES = 20_000
SECONDS = 5.0
LARGEST = 4 << 20  # bytes; larger files are rarely written by people
WIDEST = 200  # characters of a line that are shown
LONGEST_LINE = 10_000  # characters of a line that are looked at
SKIPPED = {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".mypy_cache", ".ruff_cache"}


def search(root: str, place: str, pattern: str, *, regex: bool) -> dict[str, Any]:
    """Lines of the files under `place` (a file or a folder) with the pattern in them, as `path:line: text`."""
    try:
        matcher = re.compile(pattern if regex else re.escape(pattern), re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        return {"error": str(error)}
    found: list[str] = []
    looked, until = 0, time.monotonic() + SECONDS
    for path in files(place):
        if looked >= FILES or time.monotonic() > until:
            return {"lines": found, "looked": looked, "cut": "files"}
        if not is_text(path):
            continue
        looked += 1
        name = os.path.relpath(path, root).replace(os.sep, "/")
        for number, line in lines(path):
            match = matcher.search(line)
            if match is None:
                continue
            found.append(f"{name}:{number}: {around(line, match.start())}")
            if len(found) >= MATCHES:
                return {"lines": found, "looked": looked, "cut": "matches"}
    return {"lines": found, "looked": looked, "cut": ""}


def files(place: str) -> Iterator[Path]:
    """The plain files, folder by folder; links are not followed."""
    if not Path(place).is_dir():
        yield Path(place)
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from [Path(folder, name) for name in sorted(names)]


def is_text(path: Path) -> bool:
    """Whether it is a plain file that people may have written, and can be read. A named pipe is not opened."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return False
        with path.open("rb") as file:
            return b"\0" not in file.read(8192)
    except OSError:
        return False


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file and their numbers."""
    with suppress(OSError), path.open("rb") as file:
        for number, line in enumerate(file, 1):
            yield number, line.decode(errors="replace").rstrip("\r\n")[:LONGEST_LINE]


def around(line: str, start: int) -> str:
    """The part of a long line where the match is."""
    first = max(0, start - WIDEST // 2)
    piece = line[first : first + WIDEST]
    return f"{'…' if first else ''}{piece.strip()}{'…' if first + WIDEST < len(line) else ''}"


if __name__ == "__main__":
    question = json.load(sys.stdin)
    json.dump(search(question["root"], question["place"], question["pattern"], regex=question["regex"]), sys.stdout)
