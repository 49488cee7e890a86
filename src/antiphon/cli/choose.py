"""Which model answers, and why: what was asked for, what the environment has a key for, what runs here, the built-in."""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from antiphon.cli._embedded import EMBEDDED, is_installed
from antiphon.cli._servers import address_of, key_of, models_at
from antiphon.errors import UsageError
from antiphon.providers.resolve import PROVIDERS, LocalServer, configured, get_model, probe_local
from antiphon.types.request import Model

__all__ = ["USUAL", "Choice", "choose"]

USUAL: Final = {
    "anthropic": "claude-sonnet-4-5",
    "deepseek": "deepseek-chat",
    "fireworks": "accounts/fireworks/models/gpt-oss-120b",
    "gemini": "gemini-flash-latest",
    "gemini_openai": "gemini-flash-latest",
    "groq": "openai/gpt-oss-120b",
    "mistral": "mistral-medium-latest",
    "openai": "gpt-5-mini",
    "openai_responses": "gpt-5-mini",
    "openrouter": "openrouter/auto",
    "together": "openai/gpt-oss-120b",
    "xai": "grok-4",
}
"""The model that is taken of a provider when there is a key for it and nobody named a model. Azure has none: its names
are those of a customer's own deployments."""

Probe = Callable[[], Awaitable[Sequence[LocalServer]]]


class Choice(Struct, frozen=True, kw_only=True):
    """A model by its name, and the reason. `base_url` is said where a server was found by looking for it."""

    name: str
    reason: str
    base_url: str | None = None

    def model(self) -> Model:
        """The model itself. Raises `UsageError` for a name that means none."""
        return get_model(self.name, base_url=self.base_url) if self.base_url else get_model(self.name)


async def choose(
    asked: str | None,
    *,
    environ: Mapping[str, str] = os.environ,
    probe: Probe | None = None,
    embedded: bool | None = None,
) -> Choice:
    """The first that there is: `asked`, `ANTIPHON_MODEL`, a key or an address in the environment, a local server, the
    embedded model. Raises `UsageError` when there is none. `probe` and `embedded` stand in for a look at this machine.
    """
    if asked is not None:
        return Choice(name=asked, reason="asked for with --model")
    if named := environ.get("ANTIPHON_MODEL", "").strip():
        return Choice(name=named, reason="named by ANTIPHON_MODEL")
    for provider in configured(environ):
        if choice := await of_environment(provider, environ):
            return choice
    for server in await (probe() if probe is not None else probe_local(environ=environ)):
        reason = f"a server answers at {server.base_url}"
        return Choice(name=server.name, reason=reason, base_url=server.base_url)
    if is_installed() if embedded is None else embedded:
        return Choice(name=EMBEDDED, reason="the small built-in one, because no key is set and no local server answers")
    raise UsageError(
        "no model is there: set a key such as OPENAI_API_KEY, start a local server such as Ollama, "
        "name a model with --model, or take the built-in one with pip install 'antiphon[local]'"
    )


async def of_environment(name: str, environ: Mapping[str, str]) -> Choice | None:
    """What the key or the address of a provider leads to; `None` if no model of it is known."""
    provider = PROVIDERS[name]
    if provider.needs_address:
        return None
    key, address = key_of(provider, environ), address_of(provider, environ)
    told = [f"{key} is set"] if key else []
    if address is not None:
        told.append(f"{address[0]} leads to {address[1]}")
        listed = await models_at(address[1], provider, environ)
        if listed:
            return Choice(name=f"{name}:{listed[0]}", reason=" and ".join(told))
    if name in USUAL:
        return Choice(name=f"{name}:{USUAL[name]}", reason=" and ".join(told))
    return None
