"""Write `constraints.txt`: the versions that this environment holds and the tests passed with.

Run it with the environment's own interpreter (`make constraints`) after upgrading something on purpose. The walk starts
at what `pyproject.toml` asks for (its dependencies, every extra, every dependency group) and follows the installed
metadata, so that a package that merely happens to lie in the environment is not pinned.
"""

import tomllib
from collections import deque
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
HEAD = "# Known-good versions, for `make`. Written by scripts/constraints.py; the ranges that users get are in pyproject.toml.\n"


def asked_for() -> list[Requirement]:
    """Everything that the project names itself."""
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = data["project"]
    lists = [
        data["build-system"]["requires"],
        project["dependencies"],
        *project.get("optional-dependencies", {}).values(),
        *data.get("dependency-groups", {}).values(),
    ]
    return [Requirement(line) for lines in lists for line in lines]


def needed_by(found: Distribution, extras: set[str]) -> list[Requirement]:
    """What one installed distribution needs on this machine when asked for with these extras."""
    requirements = [Requirement(line) for line in found.requires or ()]
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in {"", *extras})
    ]


def pins() -> dict[str, str]:
    """Distribution name to version, over everything that can be reached."""
    versions: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    queue = deque(asked_for())
    while queue:
        requirement = queue.popleft()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # the build backend lives in a build environment of its own
        versions[name] = found.version
        queue.extend(needed_by(found, set(requirement.extras)))
    return versions


def main() -> None:
    """Write the file and say how many packages it pins."""
    lines = [f"{name}=={version}\n" for name, version in sorted(pins().items())]
    (ROOT / "constraints.txt").write_text(HEAD + "".join(lines), encoding="utf-8")
    print(f"constraints.txt: {len(lines)} packages")


if __name__ == "__main__":
    main()
