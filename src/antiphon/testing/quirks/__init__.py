"""What servers really send: odd replies as data, and a player, to test an engine's reading with. Ours is tested with it."""

from antiphon.testing.quirks.corpus import FORMATS, Expected, ExpectedCall, ExpectedError, Quirk, load
from antiphon.testing.quirks.player import Played, differences, model_for, play, serving

__all__ = [
    "FORMATS",
    "Expected",
    "ExpectedCall",
    "ExpectedError",
    "Played",
    "Quirk",
    "differences",
    "load",
    "model_for",
    "play",
    "serving",
]
