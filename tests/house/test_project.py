"""The files around the library agree with each other."""

import tomllib
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def asked_for() -> list[Requirement]:
    project = PROJECT["project"]
    groups = [*project["optional-dependencies"].values(), *PROJECT["dependency-groups"].values()]
    return [Requirement(line) for lines in [project["dependencies"], *groups] for line in lines]


def test_every_dependency_is_pinned_within_its_range() -> None:
    """A set-up that takes whatever is newest fails one morning without a change; 'make constraints' writes the pins."""
    pinned = pins()
    wrong = [
        str(requirement)
        for requirement in asked_for()
        if not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"))
    ]
    assert not wrong, f"constraints.txt has no pin that satisfies {wrong}; run 'make constraints'"


def test_the_pins_are_what_is_tested_here() -> None:
    """A pin that this environment does not hold has been proven by nobody; 'make setup' brings them together."""
    installed: dict[str, str] = {canonicalize_name(found.name): found.version for found in distributions()}
    elsewhere = {name: pin for name, pin in pins().items() if installed.get(name, pin) != pin}
    assert not elsewhere, f"other versions are installed than pinned: {elsewhere}"


def test_the_changelog_knows_the_version() -> None:
    """Who upgrades looks there first."""
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines() if line[:3] == "## "]
    assert headings[0] == "## Unreleased"
    assert f"## {PROJECT['project']['version']}" in headings
