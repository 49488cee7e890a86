"""OpenAI's Responses API over HTTP."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from antiphon.errors import UsageError
from antiphon.providers.framing import endpoint
from antiphon.providers.history import ForeignThinking
from antiphon.providers.http_model import Address, HttpModel
from antiphon.providers.keys import ApiKey, find_key
from antiphon.providers.openai_models import keeps_schemas
from antiphon.providers.openai_responses.decode import ResponsesDecoder
from antiphon.providers.openai_responses.encode import ResponsesEncoder
from antiphon.types.request import ModelInfo, ModelRequest
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits

__all__ = ["OpenAIResponses", "responses_model"]

_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_BASE_URL = "https://api.openai.com/v1"
_EXAMPLE = "http://127.0.0.1:8000/v1"
_PATH = "/responses"


class _Server(Struct, frozen=True, kw_only=True):
    """Who is asked: where it is, where a key is found and goes, whether prompts can be kept for a day, and schemas are."""

    name: str
    base_url: str | None = None
    hosts: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    key_header: str = "authorization"
    long_cache: bool = False
    keeps_schemas: bool = False


_SERVERS = (
    # platform.openai.com/docs/api-reference/authentication; docs/guides/prompt-caching, "Prompt cache retention".
    _Server(
        name="openai",
        base_url=_BASE_URL,
        hosts=("api.openai.com",),
        keys=("OPENAI_API_KEY",),
        long_cache=True,
        keeps_schemas=True,
    ),
    # learn.microsoft.com/azure/ai-foundry/openai/how-to/responses: the key in a header of its own.
    _Server(
        name="azure",
        hosts=(".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"),
        keys=("AZURE_OPENAI_API_KEY",),
        key_header="api-key",
        keeps_schemas=True,
    ),
    # openrouter.ai/docs/api-reference/responses-api
    _Server(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        hosts=("openrouter.ai",),
        keys=("OPENROUTER_API_KEY",),
    ),
    # docs.x.ai/docs/api-reference, "Create new response"
    _Server(name="xai", base_url="https://api.x.ai/v1", hosts=("api.x.ai",), keys=("XAI_API_KEY",), keeps_schemas=True),
)
_ANY = _Server(name="generic")


class OpenAIResponses(HttpModel):
    """A model behind `/responses`.

    `base_url` is what the path is added to, "https://api.openai.com/v1" if not given; a query (Azure's `api-version`)
    stays. `api_key` is a key or a function of the provider's name, else the server's variable in the environment is read,
    at every request. `headers` go with every request, those of the request's settings over them.

    `info` tells what is known of the model; its provider's name is used in errors and as the origin of what must go back
    to the server. `foreign_thinking` says what the model sees of other models' thoughts: nothing, or their text. Raises
    `UsageError` for an address or a model that cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
        info: ModelInfo | None = None,
        foreign_thinking: ForeignThinking = "omit",
    ) -> None:
        if not model:
            raise UsageError("a model needs a name; give the one that the server lists")
        base = base_url or _BASE_URL
        url, models_url = [endpoint(base, path, known=(_PATH,), example=_EXAMPLE) for path in (_PATH, "/models")]
        host = (urlsplit(base).hostname or "").lower()
        server = next((row for row in _SERVERS if _is_at(row, host)), _ANY)
        info = info or ModelInfo(provider=server.name, id=model)
        address = Address(
            url=url,
            models_url=models_url,
            key_header=server.key_header,
            key_names=server.keys,
            needs_key=bool(server.keys) and host not in _HERE,
        )
        self.schema_mode = server.keeps_schemas and keeps_schemas(model)
        encoder = ResponsesEncoder(model, info, long_cache=server.long_cache, foreign_thinking=foreign_thinking)
        super().__init__(address, info, encoder, api_key=api_key, headers=headers, limits=limits)

    def _decoder(self, request: ModelRequest, request_id: str | None) -> ResponsesDecoder:  # noqa: ARG002 - the reply tells all
        return ResponsesDecoder(self.info.provider, origin=self.info.origin, request_id=request_id)


def responses_model(model: str, *, provider: str = "openai", **options: Any) -> OpenAIResponses:
    """A model of one of the known providers (openai, azure, openrouter, xai). `options` are those of `OpenAIResponses`.

    At another address than its own, the provider's name stands for a server in its place: the key is the provider's.
    Raises `UsageError` for a provider that is not known, and for one whose address is missing.
    """
    server = next((row for row in _SERVERS if row.name == provider), None)
    if server is None:
        names = ", ".join([row.name for row in _SERVERS])
        raise UsageError(f"no server with the Responses API is named {provider!r}; known: {names}")
    if not options.get("base_url") and server.base_url is None:
        raise UsageError(f"{provider!r} needs the address of your deployment; pass base_url=")
    given: dict[str, Any] = {"base_url": server.base_url, "info": ModelInfo(provider=provider, id=model), **options}
    given["base_url"] = given["base_url"] or server.base_url
    if given.get("api_key") is None:

        async def from_environment(_: str) -> str | None:
            return await find_key(None, provider, server.keys)

        given["api_key"] = from_environment
    return OpenAIResponses(model, **given)


def _is_at(server: _Server, host: str) -> bool:
    return any(host == ending.lstrip(".") or host.endswith("." + ending.lstrip(".")) for ending in server.hosts)
