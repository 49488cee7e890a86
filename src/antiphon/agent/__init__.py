"""The public nouns: Agent, Run, Conversation."""

from antiphon.agent.agent import Agent
from antiphon.agent.portal import run_sync, stream_sync
from antiphon.agent.run import Run

__all__ = ["Agent", "Run", "run_sync", "stream_sync"]
