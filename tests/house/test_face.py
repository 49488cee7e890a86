"""What a user may import: `__all__` of the package and of every room, kept in step with what is there."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .source import PACKAGE, Module, Tree, bindings, listed

ROOT = Path(__file__).resolve().parents[2] / "src" / "antiphon"
LIBRARY = Tree.read(ROOT)
FACES = sorted(module.name for module in LIBRARY if module.is_package or module.name == f"{PACKAGE}.errors")

HEAVY = ("aiohttp", "docstring_parser", "jsonschema_rs", "prompt_toolkit", "pydantic", "rich", "typer", "xllamacpp")
"""Packages that a program pays for when it uses them, not when it imports the library."""


def public(module: Module) -> set[str]:
    """The names without an underscore that a face defines or takes from the library; tools of its own do not count."""
    return {
        name
        for name, bound in bindings(module).items()
        if not name.startswith("_") and (bound.origin is None or bound.origin.split(".")[0] == PACKAGE)
    }


def sorting(name: str) -> tuple[int, list[tuple[int, int | str]]]:
    """Constants, classes, functions; digits by their number: the order that the linter writes."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    words = [word for word in re.split(r"(\d+)", name) if word]
    return kind, [(0, int(word)) if word.isdigit() else (1, word) for word in words]


def documented(library: Tree, module_name: str, name: str) -> bool:
    """The name has a docstring in the file that defines it, however many faces it passed through.

    What is adopted from a foreign package is documented there.
    """
    if module_name.split(".", 1)[0] != PACKAGE:
        return True
    module = library.modules.get(module_name)
    bound = bindings(module).get(name) if module else None
    if bound is None:
        inner = library.modules.get(f"{module_name}.{name}")
        return inner is not None and ast.get_docstring(inner.tree) is not None
    return bound.documented if bound.origin is None else documented(library, bound.origin, name)


@pytest.mark.parametrize("name", FACES)
def test_a_face_lists_what_it_shows(name: str) -> None:
    """What is bound but not listed is found by users all the same; what is listed but not bound breaks their import."""
    module = LIBRARY.modules[name]
    names = listed(module)
    shown = public(module)
    if not shown and names is None:
        return
    assert names is not None, f"{module.path}: write an __all__ with {sorted(shown, key=sorting)}"
    assert set(names) == shown, (
        f"{module.path}: in __all__ only: {sorted(set(names) - shown)}; bound only: {sorted(shown - set(names))}"
    )
    assert len(names) == len(set(names)), f"{module.path}: a name stands twice in __all__"


@pytest.mark.parametrize("name", FACES)
def test_a_face_is_sorted(name: str) -> None:
    """Two people who add a name to the end of a list have a conflict; in a sorted one they seldom do."""
    module = LIBRARY.modules[name]
    names = listed(module) or []
    assert names == sorted(names, key=sorting), f"{module.path}: run 'make format'"


@pytest.mark.parametrize("name", FACES)
def test_every_listed_name_is_there(name: str) -> None:
    """A face may load a name late, but it must have it when asked."""
    face = importlib.import_module(name)
    missing = [listed_name for listed_name in listed(LIBRARY.modules[name]) or [] if not hasattr(face, listed_name)]
    assert not missing, f"{name} lists {missing} but does not have them"


@pytest.mark.parametrize("name", FACES)
def test_every_public_name_says_what_it_is_for(name: str) -> None:
    """A docstring is all that an editor shows; for a constant it is the string after the assignment."""
    silent = [each for each in listed(LIBRARY.modules[name]) or [] if not documented(LIBRARY, name, each)]
    assert not silent, f"{name}: no docstring at {silent}"


def test_what_counts_as_public() -> None:
    """The checks above are worth as much as their reading of a face."""
    face = "import os\nfrom typing import Any\nfrom .content import Text, Other as _other\nLIMIT = 1\ndef _f(): ...\n"
    lazy = "if TYPE_CHECKING:\n    from antiphon.types.late import Late\n"
    library = Tree.of({"types/__init__.py": face + lazy + "__all__ = ['Text']"})
    module = library.modules["antiphon.types"]
    assert public(module) == {"Text", "LIMIT", "Late"}
    assert listed(module) == ["Text"]


def test_a_docstring_is_found_through_the_faces() -> None:
    """Where it belongs is where the thing is defined."""
    texts = {
        "content.py": 'class A:\n    """Said."""\nclass B: ...\nC = 1\n"""Said."""\nD: int = 2\nE = 3\n"""Said."""',
        "types/__init__.py": "from ..content import A, B, C, D, E",
        "__init__.py": "from antiphon.types import A, B, C, D, E, absent",
    }
    assert [name for name in "ABCDE" if documented(Tree.of(texts), "antiphon", name)] == ["A", "C", "E"]
    assert not documented(Tree.of(texts), "antiphon", "absent")


def test_names_are_sorted_as_the_linter_sorts_them() -> None:
    """Two tools that disagree about an order can never both pass."""
    names = ["DEFAULT_MAX_TURNS", "Agent", "Part2", "Part10", "Text", "TextDelta", "aclose", "tool"]
    shuffled = names[::-1]
    assert sorted(shuffled, key=sorting) == names
    source = f"__all__ = {names}\n"
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "RUF022", "--stdin-filename", "a.py", "-"]
    done = subprocess.run(ruff, input=source, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_library_loads_nothing_heavy() -> None:
    """A command that only prints its help, or a program with one fixed tool, must not wait for what it never uses."""
    code = f"import sys, antiphon; print([name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert found.stdout.strip() == "[]"
