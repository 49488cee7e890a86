"""Not given, where `None` is a value."""

from typing import Final

from msgspec import UNSET as _UNSET
from msgspec import UnsetType as Unset

__all__ = ["UNSET", "Unset"]

UNSET: Final = _UNSET
"""The field was not given."""
