"""The public nouns: Agent, Run, Conversation."""

from antiphon.agent.agent import Agent
from antiphon.agent.conversation import Conversation
from antiphon.agent.modes import ApprovalModes
from antiphon.agent.portal import run_sync, stream_sync
from antiphon.agent.run import Run
from antiphon.agent.view import View

__all__ = ["Agent", "ApprovalModes", "Conversation", "Run", "View", "run_sync", "stream_sync"]
