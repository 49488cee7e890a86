"""The command with the built-in model: no key, no server, a real model."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from antiphon.cli._embedded import EMBEDDED, is_installed

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


def test_the_demonstration_calls_a_tool_and_tells_its_result(
    start: Start, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `make demo` shows. The licence is told the first time, and only then."""
    monkeypatch.setitem(os.environ, "XDG_CACHE_HOME", str(cache))
    first = start("ask", "--model", EMBEDDED, "--seed", "7", "What is 1234 * 56?").end()
    again = start("ask", "--model", EMBEDDED, "--seed", "7", "What is 1234 * 56?").end()
    assert (first.code, again.code) == (0, 0)
    assert "→ calculate(expression='1234 * 56')" in first.err.splitlines()
    assert "← calculate: 69104" in first.err.splitlines()
    assert "69104" in first.out
    assert first.out == again.out
    assert "Gemma Terms of Use" in first.err
    assert "Gemma Terms of Use" not in again.err
