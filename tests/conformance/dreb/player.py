"""Plays recorded scenarios with antiphon: the same input, the same moments, and what was seen in the same words."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from ..clock import run_in_virtual_time
from .agent_player import AgentPlayer
from .compare import differing
from .differences import Entry, Verdict, judge, read_entries
from .loop_player import LoopPlayer
from .proxy_player import play_proxy

__all__ = ["Report", "judged", "play", "play_all", "recordings"]


class Report(NamedTuple):
    """What came of all scenarios of a folder."""

    equal: list[str]
    differs: list[tuple[str, Entry]]
    unlisted: list[tuple[str, str]]
    stale: list[str]


def recordings(folder: Path) -> list[Path]:
    """The scenario files of a folder, in order."""
    return sorted(folder.glob("*.json"))


def play_all(folder: Path) -> Report:
    """Play every scenario of a folder and hold it against the list of differences."""
    report, entries = Report([], [], [], []), read_entries()
    for path in recordings(folder):
        scenario = json.loads(path.read_text())
        verdict = judged(scenario, entries)
        name = scenario["name"]
        if verdict.equal:
            report.equal.append(name)
        report.differs.extend([(name, entry) for entry in verdict.entries])
        report.stale.extend([f"{name}: {entry.name}" for entry in verdict.stale])
        if verdict.unlisted:
            report.unlisted.append((name, "\n".join(verdict.unlisted.values())))
    return report


def judged(scenario: dict[str, Any], entries: list[Entry]) -> Verdict:
    """Play one scenario and hold it against the entries."""
    try:
        observed = json.loads(json.dumps(play(scenario["input"])))
        loose = scenario["input"].get("error_text_is_platform_specific", False)
        found = differing(scenario["observed"], observed, any_error_text=loose)
    except Exception as error:  # noqa: BLE001 - a fault of the player is one of this scenario, not of the others
        return Verdict((), {"player": f"it could not be played: {error!r}"}, ())
    return judge(scenario, found, entries)


def play(given: dict[str, Any]) -> dict[str, Any]:
    """What happens for a scenario's `input`, in the shape of its `observed`."""
    if given["surface"] == "proxy":
        return play_proxy(given)
    player = AgentPlayer(given) if given["surface"] == "agent" else LoopPlayer(given)
    return run_in_virtual_time(player.play())
