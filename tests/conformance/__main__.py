"""Plays the recordings of the three references: `python -m tests.conformance`.

Prints for each reference how many scenarios are equal, how many differ as listed, and how many differ unlisted; exits
with 1 when there is an unlisted difference or an entry that does not hold any more.
"""

import logging
import sys

from .aparte import player as aparte
from .dreb import player as dreb
from .folder import folder_of
from .moongazer import player as moongazer

REFERENCES = {"moongazer": moongazer, "aparte": aparte, "dreb": dreb}


def main() -> int:
    logging.disable()  # scenarios in which a listener or a hook raises are many, and each is logged
    faults = 0
    for name, player in REFERENCES.items():
        folder = folder_of(name)
        if not folder.is_dir():
            print(f"{name}: no recordings in {folder}; name their folder in ANTIPHON_CONFORMANCE")
            faults += 1
            continue
        report = player.play_all(folder)
        differing = {scenario for scenario, _ in report.differs}
        print(f"{name}: equal {len(report.equal)}, differs {len(differing)}, unlisted {len(report.unlisted)}")
        for scenario, difference in report.unlisted:
            print(f"  unlisted: {scenario}: {difference}")
        for entry in report.stale:
            print(f"  listed, and equal now: {entry}")
        faults += len(report.unlisted) + len(report.stale)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
