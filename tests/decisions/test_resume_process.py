"""A run begins in one process, is decided on in two others, out of order, and each body has run once in total."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).with_name("resumable.py")


class Desk:
    """Starts a new process for each step, and keeps what it left behind."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "ran.txt"
        self.stored = folder / "state.json"
        self.last: dict[str, Any] = {}

    def step(self, **decisions: Any) -> dict[str, Any]:
        """One process: the first begins, the others resume with these decisions."""
        state = str(self.stored) if self.last else ""
        done = subprocess.run(
            [sys.executable, str(PROGRAM), str(self.log), state, json.dumps(decisions)],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        if done.returncode:
            return {"error": done.stderr.strip().splitlines()[-1]}
        self.last = json.loads(done.stdout)
        self.stored.write_text(json.dumps(self.last["state"]))
        return self.last

    @property
    def ran(self) -> list[str]:
        """The bodies that ran, in order."""
        return self.log.read_text().splitlines()


@pytest.mark.parity("B9")
def test_three_paused_calls_are_answered_out_of_order_in_two_steps_by_other_processes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first = desk.step()
    assert first["status"] == "paused"
    assert first["pending"] == ["g1", "g2", "q", "far"]
    assert first["questions"] == {"q": "may q?"}
    assert desk.ran == ["free f", "free f2"]

    second = desk.step(far=["answer", {"seen": 1}], q=["answer", "yes"])
    assert (second["status"], second["pending"]) == ("paused", ["g1", "g2"])
    assert desk.ran == ["free f", "free f2", "asks q"]

    stale = desk.step(q=["answer", "again"])
    assert stale["error"].endswith("no call waits for a decision under 'q'; pending are: 'g1', 'g2'")

    third = desk.step(g2=["approve"], g1=["approve", {"name": "edited"}])
    assert (third["status"], third["text"], third["pending"]) == ("done", "all done", [])
    assert sorted(desk.ran) == sorted(["free f", "free f2", "asks q", "gated edited", "gated g2"])
    assert third["results"] == [
        ["f", "free f"],
        ["g1", "gated edited"],
        ["g2", "gated g2"],
        ["q", "q: yes"],
        ["f2", "free f2"],
        ["far", '{"seen":1}'],
    ]
