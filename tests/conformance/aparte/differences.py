"""The list of differences: read, and held against what was played."""

import tomllib
from pathlib import Path
from typing import NamedTuple

from .causes import CAUSES
from .expected import FIELDS, Expected, differing
from .projection import Json
from .stage import Played

__all__ = ["Entry", "Verdict", "expect", "judge", "read_entries"]

LIST = Path(__file__).with_name("differences.toml")
NAMED = {cause.__name__: cause for cause in CAUSES}


class Entry(NamedTuple):
    """One cause, and the fields in which it may show."""

    when: str
    only: tuple[str, ...]
    design: str
    why: str


class Verdict(NamedTuple):
    """What was found of one scenario: the entries that explain it, what nothing explains, and entries without effect."""

    entries: tuple[Entry, ...]
    unlisted: dict[str, str]
    stale: tuple[Entry, ...]


def read_entries(path: Path = LIST) -> dict[str, Entry]:
    """The list, by cause. Raises `ValueError` for an entry that says too little, or the wrong thing."""
    entries: dict[str, Entry] = {}
    for group in tomllib.loads(path.read_text())["group"]:
        entry = Entry(group["when"], tuple(group["only"]), group["design"], group["why"])
        known = entry.when in NAMED and entry.when not in entries and entry.only and set(entry.only) <= set(FIELDS)
        if not known or not entry.design.startswith("section ") or not entry.why:
            raise ValueError(
                f"an entry names one known cause, its fields, a section of the design and a reason: {group}"
            )
        entries[entry.when] = entry
    return entries


def expect(recording: Json, entries: dict[str, Entry], without: str = "") -> tuple[Expected, list[Entry]]:
    """What must come here, and the entries that changed it."""
    expected, applied = Expected(recording), list[Entry]()
    for name, cause in NAMED.items():
        if name in entries and name != without:
            before = expected.copy()
            cause(expected)
            if not expected.same_as(before):
                applied.append(entries[name])
    return expected, applied


def judge(recording: Json, played: Played, entries: dict[str, Entry]) -> Verdict:
    """Hold what was played against what the list lets us expect.

    A field that differs from the recording and is named by no entry that applies is not explained. An entry is stale
    when what came is as expected without it too.
    """
    expected, applied = expect(recording, entries)
    unlisted = differing(expected, played)
    named = {field for entry in applied for field in entry.only}
    raw = differing(Expected(recording), played)
    unlisted |= {field: diff for field, diff in raw.items() if field not in named and field not in unlisted}
    stale = [entry for entry in applied if not differing(expect(recording, entries, entry.when)[0], played)]
    return Verdict(tuple(applied), unlisted, tuple(stale))
