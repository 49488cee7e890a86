"""For tests, the users' own too: scripted models, recorded events, faulty transports."""

from antiphon.providers.scripted import Scripted, ScriptedReply
from antiphon.testing.approving import ScriptedApproval, ScriptedApprover
from antiphon.testing.recording import Recording, check_events, record

__all__ = [
    "Recording",
    "Scripted",
    "ScriptedApproval",
    "ScriptedApprover",
    "ScriptedReply",
    "check_events",
    "record",
]
