"""The tables of moongazer, row by row: equal, or listed."""

from ..folder import recordings_folder
from .differences import read_table_entries
from .tables import Row, judge_rows, rows

FOUND = list(rows(recordings_folder("moongazer")))
ENTRIES = read_table_entries()


def test_every_row_is_equal_or_listed() -> None:
    """A row that differs without a decision is a fault of ours; one that became equal must leave the list."""
    unlisted, stale = judge_rows(FOUND, ENTRIES)
    assert not unlisted, "\n".join(unlisted)
    assert not stale, f"listed, and equal: {stale}"


def test_most_of_what_is_built_is_equal() -> None:
    """The list is for decisions: were it to grow over the tables, they would prove nothing."""
    built = [row for row in FOUND if not row.name.startswith("mcp_")]
    assert len([row for row in built if row.equal]) > 0.8 * len(built)


def test_a_row_without_an_entry_is_told_with_both_sides() -> None:
    unlisted, stale = judge_rows([Row("a table: a row", {"x": 1}, {"x": 2})], ENTRIES)
    assert (unlisted, stale) == (["a table: a row\n  recorded {'x': 1}\n  antiphon {'x': 2}"], [])
