"""How the command ends: one number for each ending, so that a script can tell them apart."""

from typing import Final

from antiphon.types.events import Status

__all__ = ["BROKEN_PIPE", "DONE", "ERROR", "INTERRUPTED", "OF_STATUS", "USAGE"]

DONE: Final = 0
ERROR: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
"""Ctrl-C, as shells count it: 128 and the number of the signal."""
BROKEN_PIPE: Final = 141
"""Nobody reads the output any more; counted in the same way."""

OF_STATUS: Final[dict[Status, int]] = {
    "done": DONE,
    "error": ERROR,
    "stopped": 3,
    "aborted": 3,
    "limit": 4,
    "paused": 5,
}
