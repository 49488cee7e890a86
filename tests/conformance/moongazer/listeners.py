"""The listeners of a scenario besides the one that records."""

from collections.abc import Callable
from typing import Any

from antiphon import Event, Run

from .projection import Teller
from .stage import Boom

__all__ = ["ExtraListeners"]


class ExtraListeners:
    """Each hears the run's events, and does what the scenario says; `heard` has the types of what they got."""

    def __init__(self, run: Run[str], declared: list[dict[str, Any]]) -> None:
        self._run = run
        self._declared = declared
        self.heard: dict[str, list[str]] = {}

    def subscribe(self, position: str) -> None:
        """Subscribe those whose place is `before_main` or `after_main`."""
        for declared in self._declared:
            if declared["position"] == position:
                self.add(declared)

    def late(self) -> list[tuple[float, Callable[[], None]]]:
        """When, in milliseconds, the late ones come, and how."""
        found = [declared for declared in self._declared if declared["position"] == "late"]
        for declared in found:
            self.heard.setdefault(declared["name"], [])
        return [(declared["subscribe_after_ms"], lambda declared=declared: self.add(declared)) for declared in found]

    def add(self, declared: dict[str, Any]) -> None:
        """Subscribe one, or the same function twice."""
        heard = self.heard.setdefault(declared["name"], [])
        teller = Teller(self._run.run_id)
        unsubscribes: list[Callable[[], None]] = []

        def listen(event: Event) -> None:
            told = teller.told(event)
            if told is None:
                return
            kind = told["type"]
            heard.append(kind)
            if declared.get("subscribe_new_on") == kind:
                child = {"name": f"{declared['name']}_child"}
                if child["name"] not in self.heard:
                    self.add(child)
            if declared.get("unsubscribe_on") == kind:
                unsubscribes[0]()
            if declared.get("raises_on") in (kind, "*"):
                raise Boom(declared.get("raises", "listener boom"))

        for _ in range(2 if declared.get("subscribe_twice") else 1):
            unsubscribes.append(self._run.subscribe(listen))
        if declared.get("unsubscribe_first_handle"):
            unsubscribes[0]()
