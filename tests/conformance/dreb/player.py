"""Plays recorded scenarios with antiphon: the same input, the same moments, and what was seen in the same words."""

import json
from pathlib import Path
from typing import Any

from ..clock import run_in_virtual_time
from ..listing import Report, play_scenarios, recordings
from .agent_player import AgentPlayer
from .compare import differing
from .differences import Entry, Verdict, judge, read_entries
from .loop_player import LoopPlayer
from .proxy_player import play_proxy

__all__ = ["Report", "judged", "play", "play_all", "recordings"]


def play_all(folder: Path) -> Report:
    """Play every scenario of a folder and hold it against the list of differences."""
    entries = read_entries()
    return play_scenarios(folder, lambda scenario: judged(scenario, entries))


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
