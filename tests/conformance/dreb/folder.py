"""Where the recordings are."""

import os
from pathlib import Path

import pytest

__all__ = ["recordings_folder"]

ROOT = Path(__file__).parents[3]


def recordings_folder(reference: str) -> Path:
    """The recordings of one reference, from `ANTIPHON_CONFORMANCE` or beside the repository; without them, skip."""
    folder = Path(os.environ.get("ANTIPHON_CONFORMANCE") or ROOT / ".." / "shared" / "conformance") / reference
    if not folder.is_dir():
        pytest.skip(
            f"no recordings in {folder}: put them there, or name their folder with ANTIPHON_CONFORMANCE",
            allow_module_level=True,
        )
    return folder
