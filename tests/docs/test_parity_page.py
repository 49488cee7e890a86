"""The page of parity names every row, and tests that exist and carry the row's id."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from .pages import ROOT

PAGE = ROOT / "docs" / "parity.md"
IDS = [*[f"A{n}" for n in range(1, 23)], *[f"B{n}" for n in range(1, 20)], *[f"C{n}" for n in range(1, 22)]]
LATER = {"A22": "MCP", "B19": "compaction"}
"""What a row speaks of and is not there yet."""

TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows() -> dict[str, list[str]]:
    """The cells of each row, by its id."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in lines if re.match(r"\| [ABC]\d+ \|", line)
    ]
    assert len(cells) == len({row[0] for row in cells}), f"{PAGE.name} has a row twice"
    return {row[0]: row[1:] for row in cells}


def marks(node: ast.AST) -> set[str]:
    """The ids of the parity marks inside of a decorator, or of a module's marks."""
    return {
        argument.value
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.parity"
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


@cache
def carried_by(path: Path) -> dict[str, set[str]]:
    """The tests of a file, each with the ids that it carries."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    of_all = {mark for node in body if isinstance(node, ast.Assign) for mark in marks(node)}
    return {
        node.name: of_all.union(*[marks(decorator) for decorator in node.decorator_list])
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def places(test: str) -> list[str]:
    """The files that have a test of this name."""
    files = [file for file in (ROOT / "tests").rglob("test_*.py") if f"def {test}(" in file.read_text(encoding="utf-8")]
    return [file.relative_to(ROOT).as_posix() for file in files]


def test_every_row_stands_on_the_page_in_order() -> None:
    """A row that is left out is a promise that nobody checks."""
    assert list(rows()) == IDS


@pytest.mark.parametrize("row", IDS)
def test_a_row_is_told_in_full(row: str) -> None:
    """Who compares wants to know the name, the proof, and the difference."""
    what, here, proof, difference = rows()[row]
    assert what
    assert here
    assert TEST.search(proof)
    assert difference


@pytest.mark.parametrize("row", IDS)
def test_the_tests_of_a_row_exist_and_carry_its_id(row: str) -> None:
    """A proof that was renamed or taken away proves nothing."""
    for file, name in TEST.findall(rows()[row][2]):
        carried = carried_by(ROOT / file) if (ROOT / file).is_file() else {}
        assert name in carried, f"{file} has no {name}; it is in: {places(name) or 'no file'}"
        assert row in carried[name], f"{file}::{name} does not carry {row}; it carries {sorted(carried[name])}"


@pytest.mark.parametrize("row", LATER)
def test_what_is_not_there_yet_is_said_to_come_later(row: str) -> None:
    """A page that promises what is not there costs trust in all of its rows."""
    assert re.search(rf"{LATER[row]}[^.|;]* later", " | ".join(rows()[row]), re.IGNORECASE)
