"""The command with the built-in model: no key, no server, a real model."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.cli._embedded import is_installed

from .conftest import Start

pytestmark = [
    pytest.mark.local,
    pytest.mark.skipif(not is_installed(), reason="the extra `local` is not installed"),
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache for the tests of this file: 241 MiB are put together once."""
    folder = tmp_path_factory.mktemp("weights")
    yield folder
    for path in folder.rglob("*.gguf"):
        path.unlink()


def demonstration() -> list[str]:
    """The arguments of the command that `make demo` runs."""
    makefile = (Path(__file__).resolve().parents[2] / "Makefile").read_text()
    recipe = re.search(r"^demo:.*\n\t@\S+/antiphon (.*)$", makefile, re.MULTILINE)
    assert recipe, "the Makefile has a target `demo` that runs the command"
    return shlex.split(recipe[1])


def test_the_demonstration_calls_a_tool_and_tells_its_result(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `make demo` shows. The licence is told the first time, and only then."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    first, again = start(*demonstration()).end(), start(*demonstration()).end()
    assert (first.code, again.code) == (0, 0), first.err
    assert "→ calculate(expression='1234 * 56')" in first.err.splitlines()
    assert "← calculate: 69104" in first.err.splitlines()
    assert "69104" in first.out
    assert first.out == again.out
    assert "Gemma Terms of Use" in first.err
    assert "Gemma Terms of Use" not in again.err
