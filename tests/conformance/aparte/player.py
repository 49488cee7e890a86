"""Plays the recorded runs of the aparte loop, and holds what came of them against the list of differences."""

import json
from pathlib import Path
from typing import NamedTuple

from .differences import Entry, judge, read_entries
from .projection import Json
from .stage import play

__all__ = ["Report", "play_all", "recordings"]


class Report(NamedTuple):
    """What came of all scenarios of a folder."""

    equal: list[str]
    differs: list[tuple[str, Entry]]
    unlisted: list[tuple[str, str]]
    stale: list[str]


def recordings(folder: Path) -> dict[str, Json]:
    """The recordings of a folder, by file name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}


def play_all(folder: Path) -> Report:
    """Play every scenario of a folder and hold it against the list of differences."""
    report, entries = Report([], [], [], []), read_entries()
    for name, recording in recordings(folder).items():
        verdict = judge(recording, play(recording), entries)
        if not verdict.entries and not verdict.unlisted:
            report.equal.append(name)
        report.differs.extend([(name, entry) for entry in verdict.entries])
        report.stale.extend([f"{name}: {entry.when}" for entry in verdict.stale])
        if verdict.unlisted:
            report.unlisted.append((name, "\n".join([f"{field}: {diff}" for field, diff in verdict.unlisted.items()])))
    return report
