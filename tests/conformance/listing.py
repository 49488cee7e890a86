"""A reference's list of differences: read, and held against what was played."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "Entry",
    "Report",
    "TableEntry",
    "Verdict",
    "judge",
    "play_scenarios",
    "read_entries",
    "read_table_entries",
    "recordings",
]

Scenario = dict[str, Any]
Causes = Mapping[str, Callable[[Scenario], bool]]


class Entry(NamedTuple):
    """One cause, and the fields in which it may show."""

    when: str | None
    pattern: tuple[str, ...]
    only: tuple[str, ...]
    design: str
    why: str
    cause: Callable[[Scenario], bool] | None

    def matches(self, scenario: Scenario) -> bool:
        if self.cause is not None:
            return self.cause(scenario)
        return any(fnmatch(scenario["name"], pattern) for pattern in self.pattern)

    @property
    def name(self) -> str:
        return self.when or ", ".join(self.pattern)


class TableEntry(NamedTuple):
    """One cause of differing rows in the tables."""

    rows: tuple[str, ...]
    design: str
    why: str


class Verdict(NamedTuple):
    """What was found of one scenario: the entries that explain it, what nothing explains, and entries without effect."""

    entries: tuple[Entry, ...]
    unlisted: dict[str, str]
    stale: tuple[Entry, ...]

    @property
    def equal(self) -> bool:
        return not self.entries and not self.unlisted


def read_entries(path: Path, causes: Causes, fields: Sequence[str]) -> list[Entry]:
    """The list. Raises `ValueError` for an entry that says too little, or the wrong thing."""
    return [entry_of(group, causes, fields) for group in tomllib.loads(path.read_text())["group"]]


def read_table_entries(path: Path) -> list[TableEntry]:
    """The list for the tables. Raises `ValueError` for an entry that says too little."""
    found = tomllib.loads(path.read_text()).get("rows", [])
    for group in found:
        if not group["rows"] or not group.get("design", "").startswith("section ") or not group.get("why"):
            raise ValueError(f"an entry names rows, a section of DESIGN.md and a reason: {json.dumps(group)}")
    return [TableEntry(tuple(group["rows"]), group["design"], group["why"]) for group in found]


def entry_of(group: dict[str, Any], causes: Causes, fields: Sequence[str]) -> Entry:
    when, pattern = group.get("when"), tuple(group.get("pattern", ()))
    if (when is None) == (not pattern) or (when is not None and when not in causes):
        raise ValueError(f"an entry has either a known cause as when=, or a pattern=: {json.dumps(group)}")
    only = tuple(group.get("only", fields))
    if not set(only) <= set(fields) or not group.get("design", "").startswith("section ") or not group.get("why"):
        raise ValueError(f"an entry names known fields, a section of DESIGN.md and a reason: {json.dumps(group)}")
    return Entry(when, pattern, only, group["design"], group["why"], causes[when] if when is not None else None)


def judge(scenario: Scenario, differing: dict[str, str], entries: list[Entry]) -> Verdict:
    """Hold what differs against the entries that apply to the scenario."""
    matching = [entry for entry in entries if entry.matches(scenario)]
    explaining = [entry for entry in matching if not set(entry.only).isdisjoint(differing)]
    explained = {field for entry in explaining for field in entry.only}
    unlisted = {field: diff for field, diff in differing.items() if field not in explained}
    return Verdict(tuple(explaining), unlisted, tuple([entry for entry in matching if entry not in explaining]))


class Report(NamedTuple):
    """What came of all scenarios of a folder."""

    equal: list[str]
    differs: list[tuple[str, Entry]]
    unlisted: list[tuple[str, str]]
    stale: list[str]


def recordings(folder: Path) -> list[Path]:
    """The scenario files of a folder, in order."""
    return sorted(folder.glob("*.json"))


def play_scenarios(folder: Path, judged: Callable[[Scenario], Verdict]) -> Report:
    """Play every scenario of a folder and gather what was found of each."""
    report = Report([], [], [], [])
    for path in recordings(folder):
        scenario = json.loads(path.read_text())
        verdict, name = judged(scenario), scenario["name"]
        if verdict.equal:
            report.equal.append(name)
        report.differs.extend([(name, entry) for entry in verdict.entries])
        report.stale.extend([f"{name}: {entry.name}" for entry in verdict.stale])
        if verdict.unlisted:
            report.unlisted.append((name, "\n".join(verdict.unlisted.values())))
    return report
