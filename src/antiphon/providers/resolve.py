"""From `"provider:name"` to a model, and which providers can be used here."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, cast

import anyio
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import ModelError, UsageError
from antiphon.providers.catalogue import Catalogue, ProviderSpec, WireFormat, builtin_catalogue
from antiphon.providers.function import as_model
from antiphon.providers.hints import Hinted
from antiphon.providers.keys import ApiKey, find_key, missing_key
from antiphon.providers.openai_chat.profiles import PROFILES
from antiphon.providers.stand_in import ProviderFunction, StandIn
from antiphon.types.request import Model, ModelFunction, ModelInfo

__all__ = [
    "PROVIDERS",
    "LocalServer",
    "Provider",
    "configured",
    "get_model",
    "list_models",
    "list_providers",
    "probe_local",
    "resolve_model",
]

_CHAT = "antiphon.providers.openai_chat.provider:chat_model"
_RESPONSES = "antiphon.providers.openai_responses.provider:OpenAIResponses"
_ANTHROPIC = "antiphon.providers.anthropic.provider:Anthropic"
_GEMINI = "antiphon.providers.gemini.provider:Gemini"
_BY_WIRE: dict[WireFormat, str] = {
    "openai_chat": "antiphon.providers.openai_chat.provider:OpenAIChat",
    "openai_responses": _RESPONSES,
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
}


class Provider(Struct, frozen=True, kw_only=True):
    """How the models of a provider are made.

    `factory` is `module:function`, loaded when the first model is made; it is called with the model's name, `options`
    and those of the caller. `keys` are the environment variables that may hold the key, `addresses` those that may hold
    the base URL, `base_url` the one to use without them. `port` is where a server of this kind listens by default.
    `any_name`: the name may be left out.

    `family` is the provider whose models these are in a catalogue; its models are made with what is known of them. `says`
    is the name that they give as their provider, if not the row's.
    """

    factory: str
    options: dict[str, Any] = {}
    keys: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    base_url: str | None = None
    needs_address: bool = False
    port: int | None = None
    any_name: bool = False
    family: str | None = None
    says: str | None = None


def _chat(
    name: str, *, port: int | None = None, addresses: tuple[str, ...] = (), family: str | None = None
) -> Provider:
    """A provider that speaks Chat Completions."""
    profile = PROFILES[name]
    return Provider(
        factory=_CHAT,
        options={"provider": name},
        keys=profile.keys,
        addresses=(f"{name.upper()}_BASE_URL", *addresses),
        base_url=profile.base_url,
        needs_address=profile.base_url is None,
        port=port,
        family=family or name,
    )


PROVIDERS: dict[str, Provider] = {
    "anthropic": Provider(
        factory=_ANTHROPIC,
        keys=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN"),
        addresses=("ANTHROPIC_BASE_URL",),
        base_url="https://api.anthropic.com",
        family="anthropic",
    ),
    "openai": _chat("openai"),
    "openai_responses": Provider(
        factory=_RESPONSES,
        keys=("OPENAI_API_KEY",),
        addresses=("OPENAI_BASE_URL",),
        base_url="https://api.openai.com/v1",
        family="openai",
        says="openai",
    ),
    "gemini": Provider(
        factory=_GEMINI,
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        addresses=("GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
        base_url="https://generativelanguage.googleapis.com/v1beta",
        family="gemini",
    ),
    "azure": _chat("azure", addresses=("AZURE_OPENAI_ENDPOINT",)),
    "deepseek": _chat("deepseek"),
    "fireworks": _chat("fireworks"),
    "gemini_openai": _chat("gemini_openai", family="gemini"),
    "groq": _chat("groq"),
    "mistral": _chat("mistral"),
    "openrouter": _chat("openrouter"),
    "together": _chat("together"),
    "xai": _chat("xai"),
    "ollama": _chat("ollama", port=11434, addresses=("OLLAMA_HOST",)),
    "llamacpp": _chat("llamacpp", port=8080),
    "lmstudio": _chat("lmstudio", port=1234),
    "vllm": _chat("vllm", port=8000),
    "sglang": _chat("sglang", port=30000),
    "local": Provider(factory="antiphon.providers.llama_cpp.provider:local_model", any_name=True),
}
"""The providers by the name that stands before the colon. Which to take first: see `configured`."""

_OWNERS = {"llamacpp": "llamacpp", "library": "ollama", "vllm": "vllm", "sglang": "sglang"}


class LocalServer(Struct, frozen=True, kw_only=True):
    """A model server that answered on this machine, and the first model that it lists."""

    provider: str
    model: str
    base_url: str

    @property
    def name(self) -> str:
        """What `get_model` takes."""
        return f"{self.provider}:{self.model}"


def get_model(
    name: str, *, catalogue: Catalogue | None = None, via: ProviderFunction | None = None, **options: Any
) -> Model:
    """The model that `"provider:name"` stands for, as in "anthropic:claude-sonnet-4-5" or "ollama:llama3.2:3b".

    `options` go to the provider: `api_key`, `base_url`, `headers`, `limits`, `info` and what else it takes. Keys are looked
    up at every request; a missing one is an `Unauthorized` then. What is known of the model comes from `catalogue` (else
    the built-in one), which may bring providers of its own; a model that is not in it can be used without facts, and a
    refusal of one that resembles another says so. `via` is a function that answers in the provider's place: it gets the
    model's facts, the request, and the key.

    Raises `UsageError` for a name that says no known provider, and where an address is needed and missing.
    """
    prefix, colon, model = name.strip().partition(":")
    if not colon:
        raise UsageError(
            f"no provider in {name!r}; {_whose(name, catalogue)}write 'provider:name', as in 'openai:gpt-5'; {_known(catalogue)}"
        )
    spec = catalogue.provider(prefix) if catalogue else None
    provider = _from_spec(spec) if spec else PROVIDERS.get(prefix)
    if provider is None:
        raise UsageError(_no_provider(prefix, catalogue))
    if not model and not provider.any_name:
        raise UsageError(f"no model in {name!r}; write '{prefix}:name' with a model that {prefix} has")
    looked_up = None if provider.family is None or options.get("info") else _info(provider, prefix, model, catalogue)
    if looked_up is not None:
        options = {**options, "info": looked_up}
    if via is not None:
        return _replaced(via, name, provider, options)
    if spec is not None:
        options = _with_spec(spec, options)
    made = _make(provider, prefix, model, options)
    suggestion = _suggestion(provider, looked_up.id, options, catalogue) if looked_up else None
    return Hinted(made, suggestion) if suggestion else made


def list_providers(catalogue: Catalogue | None = None) -> list[str]:
    """The names that may stand before the colon, in the order of the table; those of `catalogue` come last."""
    more = [name for name in (catalogue.providers() if catalogue else ()) if catalogue and catalogue.provider(name)]
    return list(dict.fromkeys([*PROVIDERS, *more]))


def list_models(provider: str, catalogue: Catalogue | None = None) -> list[ModelInfo]:
    """What is known of the models of a provider, by their names; none of one whose models nobody can know.

    Raises `UsageError` for a name that is no provider's.
    """
    if provider not in list_providers(catalogue):
        raise UsageError(_no_provider(provider, catalogue))
    row = None if catalogue and catalogue.provider(provider) else PROVIDERS.get(provider)
    known = (catalogue or builtin_catalogue()).models(row.family or provider if row else provider)
    return [replace(info, provider=row.says or provider) for info in known] if row else known


def resolve_model(model: str | Model | ModelFunction) -> Model:
    """A model from whatever an application may give for one. Raises `UsageError` for anything else."""
    return get_model(model) if isinstance(model, str) else as_model(model)


def configured(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The providers that the environment has a key for, or an address, in the order of the table."""
    return [name for name, provider in PROVIDERS.items() if _is_configured(provider, environ)]


async def probe_local(
    timeout: float = 0.2,  # noqa: ASYNC109 - a limit in seconds for all ports at once, not for the caller's patience
    *,
    environ: Mapping[str, str] = os.environ,
    ports: Mapping[str, int] | None = None,
) -> list[LocalServer]:
    """The model servers that answer on this machine's usual ports, all asked at once, in the order of the table.

    `ports` replaces the usual ones. Nothing is asked if `ANTIPHON_PROBE` is "0" in the environment. Never raises.
    """
    if environ.get("ANTIPHON_PROBE") == "0":
        return []
    if ports is None:
        ports = {name: provider.port for name, provider in PROVIDERS.items() if provider.port is not None}
    found: dict[str, LocalServer] = {}

    async def ask(name: str, base_url: str) -> None:
        server = await _ask(name, base_url, timeout)
        if server is not None:
            found[name] = server

    async with anyio.create_task_group() as group:
        for name, port in ports.items():
            group.start_soon(ask, name, f"http://127.0.0.1:{port}/v1")
    return [found[name] for name in ports if name in found]


async def _ask(name: str, base_url: str, seconds: float) -> LocalServer | None:
    """The server at this address, if it lists a model (platform.openai.com/docs/api-reference/models/list)."""
    from antiphon.wire.http import HttpLimits, fetch_json

    try:
        listed: Any = await fetch_json(f"{base_url}/models", limits=HttpLimits(connect=None, total=seconds))
    except ModelError:
        return None
    models: Any = cast("dict[str, Any]", listed).get("data") if isinstance(listed, dict) else None
    entries = cast("list[Any]", models) if isinstance(models, list) else []
    if not entries or not isinstance(entries[0], dict):
        return None
    entry = cast("dict[str, Any]", entries[0])
    model = entry.get("id")
    if not isinstance(model, str) or not model:
        return None
    return LocalServer(provider=_OWNERS.get(str(entry.get("owned_by")), name), model=model, base_url=base_url)


def _from_spec(spec: ProviderSpec) -> Provider:
    return Provider(factory=_BY_WIRE[spec.wire], keys=spec.keys, base_url=spec.base_url, family=spec.name)


def _with_spec(spec: ProviderSpec, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a model of a provider that an application added: its headers, and where its keys are."""
    given: ApiKey = options.get("api_key")

    async def key_of(provider: str) -> str | None:
        key = await find_key(given, provider, spec.keys)
        if not key and spec.keys:
            raise missing_key(provider, spec.keys)
        return key

    headers = dict(spec.headers) | dict(cast("Mapping[str, str]", options.get("headers") or {}))
    return {**options, "headers": headers, "api_key": key_of}


def _info(provider: Provider, prefix: str, model: str, catalogue: Catalogue | None) -> ModelInfo:
    """What is known of the model, under the names that are used here."""
    name = model.removeprefix("models/") if provider.factory == _GEMINI else model  # as its own lists write it
    found = (catalogue or builtin_catalogue()).model_info(provider.family or prefix, name)
    says = provider.says or prefix
    return replace(found, provider=says, id=name) if found else ModelInfo(provider=says, id=name)


def _make(provider: Provider, prefix: str, model: str, options: dict[str, Any]) -> Model:
    if not options.get("base_url"):
        address = _address(provider, os.environ) or provider.base_url
        if provider.needs_address and not address:
            variables = " or ".join(provider.addresses)
            raise UsageError(f"{prefix!r} needs the address of your deployment; set {variables}, or pass base_url=")
        options = {**options, "base_url": address} if address else options
    module, _, attribute = provider.factory.partition(":")
    return getattr(import_module(module), attribute)(model, **{**provider.options, **options})


def _replaced(via: ProviderFunction, name: str, provider: Provider, options: dict[str, Any]) -> StandIn:
    strange = sorted(options.keys() - {"api_key", "info"})
    if strange:
        raise UsageError(
            f"{strange[0]}= is for the provider itself, and via= stands in its place; leave one of them out"
        )
    info = options.get("info") or ModelInfo(provider=name.partition(":")[0], id=name.partition(":")[2])
    return StandIn(via, info=info, api_key=options.get("api_key"), keys=provider.keys)


def _suggestion(provider: Provider, model: str, options: dict[str, Any], catalogue: Catalogue | None) -> str | None:
    """The model that was probably meant. A server of one's own has names of its own, and so do Azure's deployments."""
    elsewhere = options.get("base_url") or _address(provider, os.environ)
    if provider.family is None or provider.needs_address or (elsewhere and elsewhere != provider.base_url):
        return None
    return (catalogue or builtin_catalogue()).suggest(provider.family, model)


def _whose(name: str, catalogue: Catalogue | None) -> str:
    """Whose model a name without a provider is, as a question; empty if nobody's."""
    known = catalogue or builtin_catalogue()
    owner = next((each for each in known.providers() if name and known.model_info(each, name.strip())), None)
    return f"did you mean '{owner}:{name.strip()}'? " if owner else ""


def _is_configured(provider: Provider, environ: Mapping[str, str]) -> bool:
    address = _address(provider, environ)
    if provider.port is not None:
        return address is not None
    has_key = any(environ.get(key) for key in provider.keys)
    return has_key and (address is not None or not provider.needs_address)


def _address(provider: Provider, environ: Mapping[str, str]) -> str | None:
    """The base URL that the environment gives."""
    for variable in provider.addresses:
        value = environ.get(variable, "").strip().rstrip("/")
        if value and variable == "OLLAMA_HOST":  # "host:port", as the server itself reads it; 0.0.0.0 is no destination
            value = value if "://" in value else f"http://{value}"
            return value.replace("//0.0.0.0", "//127.0.0.1") + "/v1"
        if value and variable == "AZURE_OPENAI_ENDPOINT":
            return value if "/openai" in value else f"{value}/openai/v1"
        if value:
            return value
    return None


def _no_provider(name: str, catalogue: Catalogue | None) -> str:
    near = get_close_matches(name.lower(), list_providers(catalogue), n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"no provider named {name!r}; {hint}{_known(catalogue)}"


def _known(catalogue: Catalogue | None) -> str:
    return f"providers: {', '.join(sorted(list_providers(catalogue)))}"
