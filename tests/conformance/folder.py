"""Where the recordings are."""

import os
from pathlib import Path

import pytest

__all__ = ["folder_of", "recordings_folder"]

ROOT = Path(__file__).parents[2]


def folder_of(reference: str) -> Path:
    """Where the recordings of one reference should be: in `ANTIPHON_CONFORMANCE`, or beside the repository."""
    return Path(os.environ.get("ANTIPHON_CONFORMANCE") or ROOT / ".." / "shared" / "conformance") / reference


def recordings_folder(reference: str) -> Path:
    """The recordings of one reference; without them, skip the module and say so."""
    folder = folder_of(reference)
    if not folder.is_dir():
        pytest.skip(
            f"no recordings in {folder}: put them there, or name their folder with ANTIPHON_CONFORMANCE",
            allow_module_level=True,
        )
    return folder
