"""The machine's table in the documentation is the machine's table."""

from antiphon.loop.machine import print_table

from .pages import ROOT

PAGE = ROOT / "docs" / "architecture.md"
PRINT = "python -c 'from antiphon.loop import print_table; print(*print_table(), sep=\"\\n\")'"


def test_the_page_shows_the_table_that_runs() -> None:
    """Who learns the machine from the page must learn the one that is there."""
    table = list(print_table())
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert table[0] in lines, f"{PAGE.name} has no line {table[0]!r}; put there what this prints: {PRINT}"
    start = lines.index(table[0])
    end = next((n for n in range(start, len(lines)) if not lines[n].startswith("|")), len(lines))
    shown = lines[start:end]
    assert shown == table, f"the table in {PAGE.name} is another one; put in its place what this prints: {PRINT}"
