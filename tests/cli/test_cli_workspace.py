"""The built-in tools: they see one folder, and nothing outside of it by whatever road."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.cli import workspace as tools
from antiphon.cli.workspace import workspace
from antiphon.errors import ToolError, UsageError
from antiphon.tools.arguments import ArgumentError
from antiphon.tools.context import ToolContext

pytestmark = pytest.mark.anyio

SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with files, beside one with a secret, and with links that lead there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(SECRET)
    inside = tmp_path / "inside"
    (inside / "src").mkdir(parents=True)
    (inside / "notes.txt").write_text("one\ntwo\nthree\n")
    (inside / "src" / "main.py").write_text("def main() -> None:\n    return\n")
    (inside / "picture.png").write_bytes(b"\x89PNG\0\0")
    (inside / "link").symlink_to(outside)
    (inside / "link.txt").symlink_to(outside / "secret.txt")
    (inside / "ring").symlink_to(inside / "ring")
    (inside / "src" / "notes").symlink_to(inside / "notes.txt")
    return inside


async def call(root: Path, name: str, **arguments: Any) -> str:
    """What a tool gives back, called as the engine calls it."""
    tool = next(tool for tool in workspace(root) if tool.name == name)
    given = tool.invoke(tool.prepare_object(arguments), ToolContext())
    return await given if tool.is_async else given


async def refusal(root: Path, name: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as raised:
        await call(root, name, **arguments)
    assert "\n" not in str(raised.value)
    return str(raised.value)


async def test_all_tools_only_read(root: Path) -> None:
    """What a policy or a person allows by kind must be true."""
    assert {tool.kind for tool in workspace(root)} == {"read"}
    assert [tool.name for tool in workspace(root)] == [
        "list_files",
        "read_file",
        "search_text",
        "calculate",
        "current_time",
    ]


async def test_every_argument_is_described(root: Path) -> None:
    """A model sees nothing else of a tool."""
    for tool in workspace(root):
        assert tool.description
        for schema in tool.parameters["properties"].values():
            assert schema["description"]


async def test_a_folder_is_listed(root: Path) -> None:
    assert (await call(root, "list_files")).splitlines() == [
        "link (a link that leads outside)",
        "link.txt (a link that leads outside)",
        "notes.txt",
        "picture.png",
        "ring",
        "src/",
    ]
    assert await call(root, "list_files", path="src") == "main.py\nnotes"


async def test_a_large_folder_is_cut(root: Path) -> None:
    (root / "many").mkdir()
    for number in range(510):
        (root / "many" / f"{number:04}").touch()
    lines = (await call(root, "list_files", path="many")).splitlines()
    assert len(lines) == 501
    assert lines[-1] == "[10 more; look for text in them with search_text]"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "one\ntwo\nthree\n"),
        ({"start": 2}, "two\nthree\n"),
        ({"end": 1}, "one\n"),
        ({"start": 2, "end": 2}, "two\n"),
        ({"start": 3, "end": 99}, "three\n"),
    ],
)
async def test_lines_of_a_file_are_read(root: Path, arguments: dict[str, int], text: str) -> None:
    assert await call(root, "read_file", path="notes.txt", **arguments) == text


async def test_a_link_inside_may_be_followed(root: Path) -> None:
    assert await call(root, "read_file", path="src/notes") == "one\ntwo\nthree\n"


async def test_a_long_file_comes_in_parts_that_join(root: Path) -> None:
    """The mark says where to read on, and reading on gives the rest, nothing twice and nothing lost."""
    whole = "".join([f"{number}: {'x' * 80}\n" for number in range(3000)])
    (root / "long.txt").write_text(whole)
    read, start = "", 1
    for _ in range(10):
        text, _, mark = (await call(root, "read_file", path="long.txt", start=start)).partition("\n[cut at line ")
        read += text
        if not mark:
            break
        start = int(mark.rpartition("start=")[2].rstrip("]"))
    assert read == whole


async def test_a_line_without_end_is_cut(root: Path) -> None:
    (root / "wide.txt").write_text("x" * 200_000 + "\nlast\n")
    text = await call(root, "read_file", path="wide.txt")
    assert len(text) < 70_000
    assert text.endswith("\n[cut at line 1; read on with start=2]")
    assert await call(root, "read_file", path="wide.txt", start=2) == "last\n"


async def test_bytes_that_are_no_text_are_no_failure(root: Path) -> None:
    (root / "latin.txt").write_bytes(b"caf\xe9\n")
    assert await call(root, "read_file", path="latin.txt") == "caf\ufffd\n"


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("read_file", {"path": "src"}, "'src' is a folder; list it with list_files"),
        ("list_files", {"path": "notes.txt"}, "'notes.txt' is a file; read it with read_file"),
        ("read_file", {"path": "note.txt"}, "there is no 'note.txt'; did you mean 'notes.txt'?"),
        ("read_file", {"path": "src/mian.py"}, "did you mean 'src/main.py'?"),
        ("read_file", {"path": "no/such/thing"}, "see what there is with list_files"),
        ("read_file", {"path": "picture.png"}, "'picture.png' is binary"),
        ("read_file", {"path": "notes.txt", "start": 9}, "'notes.txt' has only 3 lines; give a start up to 3"),
        ("read_file", {"path": "notes.txt", "start": 3, "end": 2}, "end=2 is before start=3"),
        ("read_file", {"path": "ring"}, "leads nowhere"),
        ("read_file", {"path": "a\0b"}, "leads nowhere"),
        ("read_file", {"path": "x" * 5000}, "leads nowhere"),
        ("search_text", {"pattern": ""}, "the pattern is empty"),
        ("search_text", {"pattern": "(", "regex": True}, "is no regular expression"),
        ("search_text", {"pattern": "x", "path": "no-such"}, "there is no 'no-such'"),
        ("current_time", {"timezone": "Atlantis"}, "there is no time zone 'Atlantis'"),
    ],
)
async def test_a_wrong_call_is_answered_with_what_to_do(
    root: Path, name: str, arguments: dict[str, Any], says: str
) -> None:
    """The model reads it in the place of a result, and calls again."""
    assert says in await refusal(root, name, **arguments)


async def test_lines_are_counted_from_one(root: Path) -> None:
    with pytest.raises(ArgumentError, match="start"):
        await call(root, "read_file", path="notes.txt", start=0)


@pytest.mark.parametrize("name", ["read_file", "list_files", "search_text"])
@pytest.mark.parametrize(
    "path",
    ["..", "../outside", "../outside/secret.txt", "src/../../outside/secret.txt", "link", "link/secret.txt", "link.txt",
     "/", "/etc/passwd", "src/../link/../outside/secret.txt", "{root}/../outside/secret.txt"],
)  # fmt: skip
async def test_no_road_leads_outside(root: Path, name: str, path: str) -> None:
    """Whoever asks, the model included, sees what the person chose to show."""
    pattern = {"pattern": "secret"} if name == "search_text" else {}
    said = await refusal(root, name, path=path.format(root=root), **pattern)
    assert SECRET not in said
    assert "outside the current folder" in said


STEPS = st.sampled_from(
    ["..", ".", "", "/", "src", "link", "link.txt", "secret.txt", "outside", "inside", "notes.txt", "ring", "~"]
)


@given(st.lists(STEPS, max_size=6).map("/".join))
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_path_of_any_steps_shows_the_secret(root: Path, path: str) -> None:
    try:
        text = anyio.run(lambda: call(root, "read_file", path=path))
    except ToolError as error:
        text = str(error)
    assert SECRET not in text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of Unix")
async def test_a_named_pipe_is_not_waited_for(root: Path) -> None:
    """Nobody may ever write into it."""
    os.mkfifo(root / "pipe")
    assert "no plain file" in await refusal(root, "read_file", path="pipe")
    assert "no line has" in await call(root, "search_text", pattern="x", path="pipe")


async def test_lines_with_a_text_are_found(root: Path) -> None:
    (root / "node_modules").mkdir()
    (root / "node_modules" / "x.js").write_text("main")
    assert await call(root, "search_text", pattern="MAIN") == "src/main.py:1: def main() -> None:"
    assert await call(root, "search_text", pattern="main(") == "src/main.py:1: def main() -> None:"
    assert await call(root, "search_text", pattern="t(wo|hree)", regex=True) == "notes.txt:2: two\nnotes.txt:3: three"
    assert await call(root, "search_text", pattern="two", path="notes.txt") == "notes.txt:2: two"
    assert await call(root, "search_text", pattern="secret") == "[no line has 'secret'; 2 files were looked at]"


async def test_what_is_found_is_bounded(root: Path) -> None:
    (root / "many.txt").write_text(f"{'x' * 500} needle {'y' * 500}\n" * 1000)
    lines = (await call(root, "search_text", pattern="needle")).splitlines()
    assert len(lines) == 101
    assert all("needle" in line and len(line) < 230 for line in lines[:100])
    assert lines[100] == "[more lines have it; give a longer pattern or a narrower path]"


async def test_a_pattern_without_end_is_given_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Backtracking can take longer than the universe; a thread could not be ended, and would hold the interpreter."""
    monkeypatch.setattr(tools, "SEARCH_SECONDS", 0.5)
    (root / "evil.txt").write_text("a" * 60 + "!\n")
    said = await refusal(root, "search_text", pattern="(a+)+$", regex=True)
    assert said == "looking for '(a+)+$' takes too long; give a simpler pattern or a narrower path"


async def test_a_search_that_is_cancelled_ends_at_once(root: Path) -> None:
    """The engine cancels a tool's task once, and waits for it."""
    (root / "evil.txt").write_text("a" * 60 + "!\n")
    searching = asyncio.create_task(call(root, "search_text", pattern="(a+)+$", regex=True))
    await asyncio.sleep(0.3)  # however far it has come
    began = time.monotonic()
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert time.monotonic() - began < 2.0


@pytest.mark.parametrize(
    ("timezone", "ends"),
    [
        ("Europe/Oslo", ("CET (UTC+01:00)", "CEST (UTC+02:00)")),
        ("Tokyo", ("JST (UTC+09:00)",)),
        ("UTC", ("UTC (UTC+00:00)",)),
    ],
)
async def test_the_time_is_told_where_it_is_asked_for(root: Path, timezone: str, ends: tuple[str, ...]) -> None:
    assert (await call(root, "current_time", timezone=timezone)).endswith(ends)


async def test_the_time_of_this_machine_has_its_distance_from_utc(root: Path) -> None:
    assert "(UTC" in await call(root, "current_time")


async def test_a_root_that_is_no_folder_is_refused(root: Path) -> None:
    with pytest.raises(UsageError, match=r"is a file; name a folder"):
        workspace(root / "notes.txt")
    with pytest.raises(UsageError, match=r"name one that exists"):
        workspace(root / "no-such")
