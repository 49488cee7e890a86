"""The list of differences from this reference."""

from pathlib import Path

from .. import listing
from ..listing import Entry, TableEntry, Verdict, judge
from .causes import CAUSES
from .compare import FIELDS

__all__ = ["Entry", "TableEntry", "Verdict", "judge", "read_entries", "read_table_entries"]

LIST = Path(__file__).with_name("differences.toml")


def read_entries() -> list[Entry]:
    """The scenarios' entries. Raises `ValueError` for one that says too little, or the wrong thing."""
    return listing.read_entries(LIST, CAUSES, FIELDS)


def read_table_entries() -> list[TableEntry]:
    """The tables' entries. Raises `ValueError` for one that says too little."""
    return listing.read_table_entries(LIST)
