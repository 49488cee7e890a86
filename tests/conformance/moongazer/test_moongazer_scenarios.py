"""Every recorded scenario of moongazer ends here as it did there, or as the list of differences says it should."""

import json
from pathlib import Path

import pytest

from ..folder import recordings_folder
from .causes import CAUSES
from .compare import differing
from .differences import judge, read_entries
from .player import judged, play, recordings

FOLDER = recordings_folder("moongazer")
FILES = recordings(FOLDER)
ENTRIES = read_entries()


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_scenario_is_equal_or_listed(path: Path) -> None:
    """A difference that nobody decided is a fault of ours; one that is gone must leave the list."""
    verdict = judged(json.loads(path.read_text()), ENTRIES)
    assert not verdict.unlisted, "\n".join([f"{field}:\n{diff}" for field, diff in verdict.unlisted.items()])
    assert not verdict.stale, f"listed, and equal: {[entry.name for entry in verdict.stale]}"


def test_every_cause_is_listed() -> None:
    """A predicate that no entry uses explains nothing."""
    assert sorted(CAUSES) == sorted([entry.when for entry in ENTRIES if entry.when])


def test_playing_twice_gives_the_same() -> None:
    """Moments follow events and a clock of their own: nothing depends on how fast the machine is."""
    for path in FILES[::10]:
        given = json.loads(path.read_text())["input"]
        assert not differing(play(given), play(given)), path.stem


def test_a_difference_outside_the_listed_fields_is_not_excused() -> None:
    """An entry is about one thing; whatever else changes in its scenarios is seen."""
    scenario = json.loads((FOLDER / "abort_during_text.json").read_text())
    verdict = judge(scenario, {"run_end": "listed", "events": "not listed"}, ENTRIES)
    assert verdict.unlisted == {"events": "not listed"}


def test_a_listed_difference_that_is_gone_is_told() -> None:
    scenario = json.loads((FOLDER / "abort_during_text.json").read_text())
    verdict = judge(scenario, {}, ENTRIES)
    assert [entry.when for entry in verdict.stale] == ["stopped_amid_a_reply"]
