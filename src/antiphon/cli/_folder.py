"""One folder, seen through the paths that a model gives: what leads out of it is refused, what is no text is not read."""

import os
import stat
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

from antiphon.errors import ToolError

__all__ = ["Folder"]

MOST_ENTRIES: Final = 500
READ_LIMIT: Final = 64 * 1024
"""Bytes of a file that are given at once."""
LARGEST: Final = 64 << 20
"""Bytes of a file that are gone through to find a line."""


class Folder:
    """The files under `root`. Everything raises `ToolError`, whose text tells the model what to do instead."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def place(self, path: str) -> Path:
        """Where a path really leads, links followed."""
        try:
            place = (self.root / path).resolve()
            inside = place.is_relative_to(self.root)
            exists = inside and place.exists()
        except (OSError, RuntimeError, ValueError):  # too long, a ring of links, a zero byte
            raise ToolError(f"{path!r} leads nowhere; give a path as list_files shows it") from None
        if not inside:
            raise ToolError(f"{path!r} is outside the current folder, and only what is in it can be seen; start at '.'")
        if not exists:
            raise ToolError(f"there is no {path!r}; {self._near(place)}")
        return place

    def entries(self, path: str) -> str:
        """The names in a folder, one a line."""
        place = self.place(path)
        if not place.is_dir():
            raise ToolError(f"{path!r} is a file; read it with read_file, or give the path of a folder")
        try:
            with os.scandir(place) as entries:
                names = sorted([self._entry(entry) for entry in entries])
        except OSError as error:
            raise _unreadable(path, error) from error
        shown = names[:MOST_ENTRIES]
        if len(names) > len(shown):
            shown.append(f"[{len(names) - len(shown)} more; look for text in them with search_text]")
        return "\n".join(shown) or f"[the folder {path!r} is empty]"

    def lines(self, path: str, start: int | None, end: int | None) -> str:
        """The text of a file, or of the lines from `start` to `end`, counted from 1."""
        if start is not None and end is not None and end < start:
            raise ToolError(f"end={end} is before start={start}; give the first line as start, the last as end")
        place = self.place(path)
        if place.is_dir():
            raise ToolError(f"{path!r} is a folder; list it with list_files, or give the path of a file in it")
        try:
            with os.fdopen(_open(place), "rb") as file:
                _check(file, path)
                return _taken(file, path, start or 1, end)
        except OSError as error:
            raise _unreadable(path, error) from error

    def _entry(self, entry: "os.DirEntry[str]") -> str:
        """A name as the model reads it: folders end in a slash, links that lead out say so."""
        name = entry.name if entry.name.isprintable() else repr(entry.name)
        try:
            if entry.is_symlink() and not Path(entry.path).resolve().is_relative_to(self.root):
                return f"{name} (a link that leads outside)"
            return f"{name}/" if entry.is_dir() else name
        except (OSError, RuntimeError):  # a ring of links
            return name

    def _near(self, place: Path) -> str:
        """What to do about a name that is not there."""
        try:
            names = [entry.name for entry in islice(place.parent.iterdir(), 10_000)]
        except OSError:
            names = []
        near = get_close_matches(place.name, names, n=1)
        if not near:
            return "see what there is with list_files"
        return f"did you mean {(place.parent / near[0]).relative_to(self.root).as_posix()!r}?"


def _open(place: Path) -> int:
    """A link that was put there meanwhile is not followed, a named pipe is not waited for."""
    extra: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return os.open(place, os.O_RDONLY | extra)


def _check(file: BinaryIO, path: str) -> None:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise ToolError(f"{path!r} is no plain file; take another")
    if found.st_size > LARGEST:
        raise ToolError(f"{path!r} has {found.st_size >> 20} MiB, and only {LARGEST >> 20} can be read; take another")
    if b"\0" in file.read(8192):
        raise ToolError(f"{path!r} is binary, and only text can be read; take another")
    file.seek(0)


def _taken(file: BinaryIO, path: str, start: int, end: int | None) -> str:
    """The lines, at most `READ_LIMIT` bytes of them; a mark says where to read on. A long line comes in pieces."""
    taken: list[bytes] = []
    number, size, whole, mark = 0, 0, True, ""
    while piece := file.readline(READ_LIMIT):
        begins, whole = whole, piece.endswith(b"\n")
        number += begins
        if number < start:
            continue
        if end is not None and number > end:
            break
        if size + len(piece) > READ_LIMIT:
            mark = f"\n[cut at line {number}; read on with start={number if begins else number + 1}]"
            break
        taken.append(piece)
        size += len(piece)
    if not taken:
        if start == 1:
            return f"[the file {path!r} is empty]"
        raise ToolError(f"{path!r} has only {number} lines; give a start up to {number}")
    return b"".join(taken).decode("utf-8-sig", errors="replace") + mark


def _unreadable(path: str, error: OSError) -> ToolError:
    return ToolError(f"{path!r} cannot be read: {error.strerror or error}; take another")
