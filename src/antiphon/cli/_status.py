"""The status line of a chat: pure, numbers in, one line out."""

from antiphon.cli._lines import one_line
from antiphon.types.events import Event, MessageFinished, RunFinished, RunStarted
from antiphon.types.messages import AssistantMessage
from antiphon.types.request import ThinkingLevel
from antiphon.types.usage import Usage

__all__ = ["Meter", "status_line"]


class Meter:
    """What a chat has used, over all its runs; right after each reply of the one that goes on."""

    def __init__(self) -> None:
        self.thinking: ThinkingLevel | None = None
        self._before = Usage()
        self._now = Usage()

    @property
    def usage(self) -> Usage:
        return self._before + self._now

    def apply(self, event: Event) -> None:
        """Take one event. The end of a run says the sum, which has discarded attempts and sub-agents in it."""
        match event:
            case RunStarted(parent_run_id=None, thinking=thinking):
                self.thinking = thinking
            case MessageFinished(parent_run_id=None, message=AssistantMessage(usage=Usage() as usage)):
                self._now = self._now + usage
            case RunFinished(parent_run_id=None, usage=usage):
                self._before, self._now = self._before + usage, Usage()
            case _:
                pass


def status_line(model: str, meter: Meter, *, running: bool, queued: int) -> str:
    """One line: the model, how hard it thinks, tokens and money so far, what waits."""
    usage = meter.usage
    parts = [one_line(model)]
    if meter.thinking not in {None, "off"}:
        parts.append(f"thinking {meter.thinking}")
    if usage.input or usage.output:
        parts.append(f"{usage.input:,} in, {usage.output:,} out")
    if usage.cost is not None:
        parts.append(f"${usage.cost:.4f}")
    if queued:
        parts.append(f"{queued} queued")
    if running:
        parts.append("answering, Ctrl-C stops")
    return " | ".join(parts)
