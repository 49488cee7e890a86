"""What the documentation tells readers to type is there: `make` targets, `antiphon` commands and options, extras, links."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from .pages import ROOT, blocks, pages, read

COMMAND = Path(sys.executable).parent / "antiphon"
SHELLS = ("sh", "bash", "shell", "console")

each_page = pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())


def commands(code: str, language: str) -> Iterator[list[str]]:
    """The commands of a shell block, as words; in a console only what follows a prompt was typed."""
    joined = code.replace("\\\n", " ")
    for line in joined.splitlines():
        typed = line.strip()
        if language == "console":
            if not typed.startswith("$ "):
                continue
            typed = typed[2:]
        lexer = shlex.shlex(typed, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = "#"
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set(";&|()"):
                if words:
                    yield words
                words = []
            elif words or "=" not in word:  # assignments before a command are not its name
                words.append(word)


def typed_on(page: Path) -> list[list[str]]:
    return [words for block in blocks(page, *SHELLS) for words in commands(block.code, block.language)]


def make_targets() -> set[str]:
    """The targets that the Makefile offers."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


@cache
def help_of(command: str | None) -> str:
    """What `antiphon [command] --help` says; it must end well."""
    asked = [str(COMMAND), *([command] if command else []), "--help"]
    plain = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30, env=plain)
    assert done.returncode == 0, f"{' '.join(asked[1:])!r} ended with {done.returncode}: {done.stderr}"
    return done.stdout


@each_page
def test_make_targets_exist(page: Path) -> None:
    """The first thing that a newcomer types must work."""
    named = {
        word for words in typed_on(page) if words[0] == "make" for word in words[1:] if re.match(r"[a-z-]+$", word)
    }
    assert named <= make_targets(), f"the Makefile has no {sorted(named - make_targets())}"


@each_page
def test_commands_and_options_exist(page: Path) -> None:
    """A renamed option is found here before a reader finds it."""
    for words in typed_on(page):
        if Path(words[0]).name != "antiphon":
            continue
        command = next((word for word in words[1:] if not word.startswith("-")), None)
        text = help_of(command)
        for option in (word.split("=")[0] for word in words[1:] if word.startswith("-")):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", text), f"{' '.join(words[:2])} has no option {option!r}"


@each_page
def test_extras_exist(page: Path) -> None:
    """pip only warns about an extra that is not there, and installs too little."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"antiphon\[([\w, -]+)\]", page.read_text(encoding="utf-8"))
    extras = {extra.strip() for group in named for extra in group.split(",")}
    assert extras <= set(project["optional-dependencies"]), "no such extra in pyproject.toml"


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    """Pages are moved; links to them are forgotten."""
    text = page.read_text(encoding="utf-8")
    for block in read(page, text):
        text = text.replace(block.code, "")
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text) if ":" not in target]
    missing = [target for target in targets if target and not (page.parent / target).exists()]
    assert not missing, f"no such file: {missing}"


def test_commands_are_read_as_a_shell_would() -> None:
    """A command that the reader of blocks misses is a command that nobody checks."""
    code = 'KEY=1 make demo && antiphon ask --model local "a; b" \\\n  --seed 7 | cat  # make nothing\n'
    assert list(commands(code, "sh")) == [
        ["make", "demo"],
        ["antiphon", "ask", "--model", "local", "a; b", "--seed", "7"],
        ["cat"],
    ]
    assert list(commands("$ make test\nmake: ok\n", "console")) == [["make", "test"]]


def test_the_makefile_offers_the_usual_targets() -> None:
    """These names are in people's fingers."""
    assert make_targets() >= {"clean", "demo", "lint", "test", "types"}
