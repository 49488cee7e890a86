"""Every recorded scenario of the dreb runtime ends here as it did there, or as the list of differences says it should."""

import json
from pathlib import Path
from typing import Any

import pytest

from ..folder import recordings_folder
from .causes import CAUSES
from .compare import differing
from .differences import judge, read_entries
from .player import judged, play, recordings
from .proxy_player import ProxyPlayer

FOLDER = recordings_folder("dreb")
FILES = recordings(FOLDER)
ENTRIES = read_entries()


def scenario_of(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text())


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
    for path in FILES[::8]:
        given = json.loads(path.read_text())["input"]
        if given["surface"] != "proxy":
            assert not differing(play(given), play(given)), path.stem


def test_a_difference_outside_the_listed_fields_is_not_excused() -> None:
    """An entry is about one thing; whatever else changes in its scenarios is seen."""
    verdict = judge(scenario_of("tools-sequential"), {"order": "listed", "events": "not listed"}, ENTRIES)
    assert verdict.unlisted == {"events": "not listed"}


def test_a_listed_difference_that_is_gone_is_told() -> None:
    verdict = judge(scenario_of("tools-sequential"), {}, ENTRIES)
    assert [entry.when for entry in verdict.stale] == ["several_calls"]


def test_a_fault_of_the_player_is_told_as_one_of_its_scenario() -> None:
    """One file that cannot be played must not hide what the others say."""
    for faulty in ({"actions": [{"do": "dance"}]}, {"llm": [{"steps": [{"type": "dance_delta"}]}]}):
        scenario = scenario_of("prompt-text-deltas")
        scenario["input"] |= faulty
        assert "could not be played" in judged(scenario, ENTRIES).unlisted["player"]


FAILURES = [
    ("proxy-no-server", "Unreachable"),
    ("proxy-http-error-json", "Unauthorized"),
    ("proxy-http-error-json-without-error", "Rejected"),
    ("proxy-malformed-json", "Garbled"),
    ("proxy-ends-without-terminal", "Dropped"),
    ("proxy-error-event", "ModelError"),
]


@pytest.mark.parametrize(("name", "kind"), FAILURES)
def test_a_proxy_that_fails_gives_an_error_of_its_kind(name: str, kind: str) -> None:
    """Who retries must know what failed; the recorded client has texts alone."""
    assert failure_of(scenario_of(name)["input"]) == kind


def test_a_proxy_whose_connection_is_cut_gives_a_drop() -> None:
    """The recorded client takes it for a plain error, which nobody repeats."""
    given = scenario_of("proxy-ends-without-terminal")["input"]
    given["server"]["chunks"].append("cut")
    assert failure_of(given) == "Dropped"


def failure_of(given: dict[str, Any]) -> str:
    """The kind of the error that ended the proxied reply."""
    player = ProxyPlayer(given)
    player.run()
    return type(player.failure).__name__
