"""Every recorded run of the aparte loop goes the same way here, or as the list of differences says it must."""

import pytest

from ..folder import recordings_folder
from .causes import CAUSES
from .differences import judge, read_entries
from .expected import Expected, differing
from .player import play_all, recordings
from .stage import play

FOLDER = recordings_folder("aparte")
RECORDINGS = recordings(FOLDER)
ENTRIES = read_entries()


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_scenario_is_equal_or_listed(name: str) -> None:
    """A difference that nobody decided is a fault of ours; one that is gone must leave the list."""
    verdict = judge(RECORDINGS[name], play(RECORDINGS[name]), ENTRIES)
    assert not verdict.unlisted, "\n".join([f"{field}: {diff}" for field, diff in verdict.unlisted.items()])
    assert not verdict.stale, f"listed, and equal: {[entry.when for entry in verdict.stale]}"


def test_every_cause_is_listed() -> None:
    """A cause without its sentence of the design explains nothing."""
    assert list(ENTRIES.keys() ^ {cause.__name__ for cause in CAUSES}) == []


def test_playing_twice_gives_the_same() -> None:
    """Moments follow events and a clock of their own: nothing depends on how fast the machine is."""
    for name in list(RECORDINGS)[::7]:
        once, again = play(RECORDINGS[name]), play(RECORDINGS[name])
        assert (once.steps, once.outcome) == (again.steps, again.outcome), name


def test_the_report_names_each_scenario_once_as_equal_or_differing() -> None:
    report = play_all(FOLDER)
    differing_names = {name for name, _ in report.differs}
    assert sorted([*report.equal, *differing_names]) == sorted(RECORDINGS)
    assert (report.unlisted, report.stale) == ([], [])


def test_what_a_cause_cannot_explain_is_seen() -> None:
    """An entry is about one thing; whatever else changes in its scenarios is told."""
    recording = RECORDINGS["tool-single"]
    played = play(recording)
    played.steps.remove(("append", recording["observed"]["history_appends"][1]))
    assert "history_appends" in judge(recording, played, ENTRIES).unlisted


def test_a_listed_difference_that_is_gone_is_told() -> None:
    recording = RECORDINGS["tool-single"]
    played = play(recording)
    played.steps = Expected(recording).steps
    assert not differing(Expected(recording), played)
    assert "events" in judge(recording, played, ENTRIES).unlisted
