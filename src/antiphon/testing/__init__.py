"""For tests, the users' own too: scripted models, recorded events, faulty transports."""

from antiphon.providers.scripted import Scripted, ScriptedReply
from antiphon.testing.approving import ScriptedApproval, ScriptedApprover
from antiphon.testing.chaos import FAULTS, Chaos, ChaosModel, Fault, Rolled
from antiphon.testing.chaos_server import ChaosServer, Served, ServedReply, chaos_server
from antiphon.testing.recording import Recording, check_events, record

__all__ = [
    "FAULTS",
    "Chaos",
    "ChaosModel",
    "ChaosServer",
    "Fault",
    "Recording",
    "Rolled",
    "Scripted",
    "ScriptedApproval",
    "ScriptedApprover",
    "ScriptedReply",
    "Served",
    "ServedReply",
    "chaos_server",
    "check_events",
    "record",
]
