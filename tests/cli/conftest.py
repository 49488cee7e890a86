import functools
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol

import pytest

from antiphon.agent.agent import Agent
from antiphon.cli import _setup
from antiphon.cli.main import run
from antiphon.loop.spec import Recovery
from antiphon.providers.resolve import PROVIDERS

from .server import ModelServer, serving

COMMAND = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from antiphon.cli.main import main; main()"
"""As a shell starts it: a runner in the background may have interrupts turned off, which children inherit."""


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty current folder, a cache of its own, and no key, address, proxy or server of this machine."""
    variables = {"ANTIPHON_MODEL", "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
    for provider in PROVIDERS.values():
        variables |= {*provider.keys, *provider.addresses}
    for name in variables:
        monkeypatch.delenv(name, raising=False)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ANTIPHON_PROBE", "0")
    monkeypatch.setenv("NO_COLOR", "1")
    return here


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model server, to be reached as `openai:test`."""
    with serving() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "a key of the tests")
        yield running


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed attempts are repeated at once."""
    monkeypatch.setattr(_setup, "Agent", functools.partial(Agent, recovery=Recovery(delay=0.0)))


class Ended:
    """What a command left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def complaint(self) -> str:
        """The last line on stderr."""
        return self.err.splitlines()[-1] if self.err else ""


class Started:
    """The command as a process. What `out` and `err` have not been asked for is in `end`."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self.popen = popen

    @property
    def out(self) -> IO[bytes]:
        assert self.popen.stdout is not None
        return self.popen.stdout

    def read_until(self, text: bytes) -> bytes:
        """What comes on stdout, up to and including a text."""
        seen = b""
        while text not in seen and (byte := self.out.read(1)):
            seen += byte
        return seen

    def type(self, given: bytes) -> None:
        """Write to its stdin."""
        assert self.popen.stdin is not None
        self.popen.stdin.write(given)

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.popen.send_signal(signal.SIGINT)

    def end(self, given: bytes | None = None) -> Ended:
        """Wait for the end; `given` goes to stdin."""
        if self.out.closed:
            assert self.popen.stderr is not None
            return Ended(self.popen.wait(30), "", self.popen.stderr.read().decode())
        out, err = self.popen.communicate(given, timeout=30)
        return Ended(self.popen.returncode, out.decode(), err.decode())


class Command(Protocol):
    def __call__(self, *arguments: str) -> Ended: ...


class Start(Protocol):
    def __call__(self, *arguments: str, code: str = COMMAND) -> Started: ...


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Command:
    """Run the command in this process."""

    def call(*arguments: str) -> Ended:
        code = run(arguments)
        out, err = capfd.readouterr()
        return Ended(code, out, err)

    return call


@pytest.fixture
def talk(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """Run a chat with `openai:test` in this process, lines as from a pipe."""

    def call(*lines: str) -> Ended:
        typed = tmp_path / "typed"
        typed.write_text("".join([f"{line}\n" for line in lines]))
        with typed.open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            return command("chat", "-m", "openai:test")

    return call


@pytest.fixture
def start() -> Iterator[Start]:
    """Start the command as a process of its own, which does not outlive the test."""
    started: list[subprocess.Popen[bytes]] = []

    def call(*arguments: str, code: str = COMMAND) -> Started:
        pipe = subprocess.PIPE
        popen = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0
        )
        started.append(popen)
        return Started(popen)

    yield call
    for popen in started:
        if popen.poll() is None:
            popen.kill()
        with popen:  # waits, and closes the pipes
            pass
