"""Every file in `examples/` runs by itself: no key, no network, and something to see."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def without_secrets() -> dict[str, str]:
    """The environment of a reader who has just installed the library: no keys, nobody to ask."""
    secret = ("_API_KEY", "_TOKEN", "_SECRET")
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(secret)}
    return {**kept, "ANTIPHON_OFFLINE": "1", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_runs_and_shows_something(example: Path, tmp_path: Path) -> None:
    """People copy examples before they read about them."""
    done = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env=without_secrets(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 0, f"{example.name} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    assert done.stdout.strip(), f"{example.name} printed nothing"
