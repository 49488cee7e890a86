"""The tables of the documentation say what the code says: every event, hook, option, default and provider, and no other."""

import re
from collections.abc import Iterable
from typing import Any, get_args

import pytest

from antiphon.agent.modes import VERDICTS
from antiphon.agent.options import RunOptions
from antiphon.loop.hooks import Hooks
from antiphon.loop.limits import Limits
from antiphon.loop.spec import Recovery, ToolOptions
from antiphon.providers.resolve import PROVIDERS
from antiphon.tools.tool import ToolTraits
from antiphon.types.events import Event
from antiphon.types.request import ModelSettings
from antiphon.types.result import RunResult

from .pages import ROOT, pages, read

DOCS = ROOT / "docs"
EVENTS = {kind.__name__: kind for kind in get_args(Event)}
EVERY_EVENT_HAS = {"run_id", "seq", "parent_run_id"}


def table(page: str, head: str) -> dict[str, str]:
    """The rows of the table whose first heading is `head`, by what stands in their first cell."""
    lines = iter((DOCS / page).read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(f"| {head} |"):
            break
    else:
        pytest.fail(f"{page} has no table with the first heading {head!r}")
    found: dict[str, str] = {}
    for line in lines:
        if not line.startswith("|"):
            break
        first, rest = line.strip("|").split("|", 1)
        found[first.strip()] = rest.strip()
    return {first: rest for first, rest in found.items() if set(first) != {"-", " "} and first != "---"}


def names(text: str) -> list[str]:
    """The words that are marked as code."""
    return re.findall(r"`([^`\n]+)`", text)


def named_on(page: str) -> set[str]:
    return {word for found in names((DOCS / page).read_text(encoding="utf-8")) for word in re.findall(r"\w+", found)}


def default(value: Any) -> str:
    """A default as the pages write it."""
    match value:
        case None:
            return "none"
        case str():
            return f'`"{value}"`'
        case _:
            return f"{value:.15g}"


def missing(wanted: Iterable[str], there: Iterable[str]) -> list[str]:
    return sorted(set(wanted) - set(there))


def test_every_event_has_a_row_with_its_fields() -> None:
    """An event that no page tells of is one that nobody handles."""
    rows = {names(first)[0]: rest for first, rest in table("events.md", "event").items()}
    assert list(rows) == list(EVENTS), "one row for each event, in the order of the union"
    for name, kind in EVENTS.items():
        fields = [field for field in kind.__struct_fields__ if field not in EVERY_EVENT_HAS]
        assert names(rows[name].split("|")[0]) == fields, f"the fields of {name}"


def test_every_hook_has_a_row() -> None:
    """A decision point that is not in the table is one that nobody finds."""
    rows = [names(first)[0] for first in table("hooks.md", "hook")]
    assert sorted(rows) == sorted(Hooks.__struct_fields__)


@pytest.mark.parametrize("record", [Limits, ToolOptions, Recovery], ids=lambda record: record.__name__)
def test_every_limit_has_a_row_with_its_default(record: Any) -> None:
    """A number that is told and does not hold is worse than none."""
    given = record()
    wanted = {f"`{name}`": default(getattr(given, name)) for name in record.__struct_fields__}
    rows = table("limits-and-recovery.md", f"`{record.__name__}(…)`")
    assert {first: rest.split("|")[0].strip() for first, rest in rows.items()} == wanted


def test_every_provider_has_a_row() -> None:
    """Who looks up the variable of a key sets what is read."""

    def cell(items: Iterable[str | None]) -> str:
        return ", ".join([f"`{item}`" for item in items if item]) or "-"

    wanted = {
        f"`{name}`": f"{cell(provider.keys)} | {cell(provider.addresses)} | {cell([provider.base_url])}"
        for name, provider in PROVIDERS.items()
    }
    assert table("providers.md", "provider") == wanted


def test_every_approval_mode_has_a_row() -> None:
    """What a mode allows is looked up before it is trusted."""
    rows = {names(first)[0]: rest.split(" | ") for first, rest in table("approval.md", "mode").items()}
    assert rows == {
        mode: [type(verdicts[kind]).__name__.lower() for kind in ("read", "write", "exec")]
        for mode, verdicts in VERDICTS.items()
    }


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("runs.md", RunOptions.__annotations__),
        ("runs.md", [name for name in RunResult.__struct_fields__ if name not in {"run_id", "snapshot"}]),
        ("tools.md", ToolTraits.__annotations__),
        ("providers.md", ModelSettings.__struct_fields__),
    ],
    ids=["run options", "result fields", "tool traits", "model settings"],
)
def test_every_option_is_named_on_its_page(page: str, words: Iterable[str]) -> None:
    """An option that is on no page is found by reading the source, or not at all."""
    assert not missing(words, named_on(page)), f"{page} does not name them"


def test_the_readme_counts_right() -> None:
    """Two numbers that change whenever an event or a hook is added."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"{len(EVENTS)} frozen types" in readme
    assert f"{len(Hooks.__struct_fields__)} decision points" in readme


def test_every_page_is_in_the_index() -> None:
    """A page without a link to it is read by nobody."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    others = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page.name != "index.md"]
    assert not [page for page in others if f"]({page})" not in index]


def headings(text: str) -> set[str]:
    """The anchors that a page's headings make."""
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_anchors_lead_to_a_heading(page: Any) -> None:
    """A link into a page that was rewritten leads to its top, and says nothing."""
    text = page.read_text(encoding="utf-8")
    for block in read(page, text):
        text = text.replace(block.code, "")
    lost: list[str] = []
    for target, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", text):
        other = (page.parent / target) if target else page
        if anchor not in headings(other.read_text(encoding="utf-8")):
            lost.append(f"{target}#{anchor}")
    assert not lost
