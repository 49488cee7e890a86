"""`antiphon models`: what can be used here, and how."""

import os
from collections.abc import Mapping
from textwrap import wrap as wrapped
from typing import Final

from rich.console import Console
from rich.text import Text as Line

from antiphon.cli._codes import DONE
from antiphon.cli._embedded import EMBEDDED, is_installed
from antiphon.cli._servers import address_of, key_of, models_at
from antiphon.cli.choose import choose
from antiphon.cli.render import terminal
from antiphon.errors import UsageError
from antiphon.providers.resolve import PROVIDERS, LocalServer, configured, probe_local

__all__ = ["show_models"]

MEASURED: Final = "Measured on 24 questions for unknown tools: the right tool for 20, tool and arguments for 18 (docs/embedded-model.md)."
"""What was measured of the built-in model, as one sentence."""

EMBEDDED_IS: Final = (
    "Gemma 3 270M, in this process, without a key or a network. It is there to try the engine out: it calls one tool "
    "for a plain question and tells its result. It does not know much, and cannot follow instructions."
)
USE: Final = """\
To use a real model, do one of these:
  set a key:                     export OPENAI_API_KEY=…
  start a local server:          ollama run qwen3:4b
  name a server of your own:     export OPENAI_BASE_URL=http://127.0.0.1:9000/v1
  choose for one command:        antiphon ask --model openai:gpt-5-mini "…"
  choose for all of them:        export ANTIPHON_MODEL=ollama:qwen3:4b
  load a GGUF file:              antiphon ask --model local:/path/to/model.gguf "…"
  see a provider's models:       antiphon models openai
"""


async def show_models(environ: Mapping[str, str] = os.environ) -> int:
    """Print the providers, the servers that answer here, the built-in model, and which one would be taken."""
    out = terminal()
    servers = await probe_local(environ=environ)

    async def probed() -> list[LocalServer]:
        return servers

    show_providers(out, environ)
    await show_servers(out, environ, {server.provider: server for server in servers})
    show_embedded(out)
    out.print()
    try:
        choice = await choose(None, environ=environ, probe=probed)
        out.print(Line.assemble("taken when nobody chooses: ", (choice.name, "bold"), f" ({choice.reason})"))
    except UsageError as error:
        out.print(Line(str(error), "yellow"))
    out.print(f"\n{USE}", end="")
    return DONE


def show_providers(out: Console, environ: Mapping[str, str]) -> None:
    """Who answers over the network, and whether there is a key. A key itself is never shown."""
    out.print(Line("providers", "bold"))
    ready = configured(environ)
    for name, provider in PROVIDERS.items():
        if provider.port is not None or not provider.keys:
            continue
        key, address = key_of(provider, environ), address_of(provider, environ)
        said = f"{key} is set" if key else f"no key: set {' or '.join(provider.keys)}"
        place = address[1] if address else provider.base_url or f"no address: set {' or '.join(provider.addresses)}"
        row(out, name, said, place, ready=name in ready)


async def show_servers(out: Console, environ: Mapping[str, str], answered: Mapping[str, LocalServer]) -> None:
    """Which servers run on this machine, or where the environment says. One is known by what it says of itself."""
    out.print(Line("\nservers of your own", "bold"))
    for name, provider in PROVIDERS.items():
        if provider.port is None:
            continue
        server, address = answered.get(name), address_of(provider, environ)
        place = server.base_url if server else f"http://127.0.0.1:{provider.port}/v1"
        models = [server.model] if server else []
        if address is not None:
            place, models = address[1], await models_at(address[1], provider, environ)
        said = f"answers with {models[0]}" if models else "does not answer"
        row(out, name, said, place, ready=bool(models))


def show_embedded(out: Console) -> None:
    out.print(Line("\nbuilt in", "bold"))
    installed = is_installed()
    said = "installed" if installed else "not installed: pip install 'antiphon[local]'"
    row(out, "local", said, EMBEDDED, ready=installed)
    for line in wrapped(f"{EMBEDDED_IS} {MEASURED}", width=100):
        out.print(Line(f"  {line}", "dim"))


def row(out: Console, name: str, said: str, place: str, *, ready: bool) -> None:
    """One provider on one line, in columns wide enough for most."""
    out.print(Line.assemble(f"  {name:<15} ", (f"{said:<42} ", "green" if ready else "dim"), place))
