"""Chat Completions over HTTP: OpenAI and every server that speaks its older API."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from antiphon.errors import UsageError
from antiphon.providers.framing import endpoint
from antiphon.providers.history import ForeignThinking
from antiphon.providers.http_model import Address, HttpModel
from antiphon.providers.keys import ApiKey
from antiphon.providers.openai_chat.decode import ChatDecoder
from antiphon.providers.openai_chat.encode import ChatEncoder
from antiphon.providers.openai_chat.profiles import PROFILES, Profile, detect, for_model, is_home
from antiphon.providers.openai_models import keeps_schemas
from antiphon.types.request import ModelInfo, ModelRequest
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits

__all__ = ["OpenAIChat", "chat_model"]

_EXAMPLE = "http://127.0.0.1:8000/v1"
_PATH = "/chat/completions"


class OpenAIChat(HttpModel):
    """A model behind an OpenAI-compatible `/chat/completions`.

    `base_url` is what the path is added to, "https://api.openai.com/v1" if neither it nor a profile is given; a query
    (Azure's `api-version`) stays. `api_key` is a key or a function of the provider's name, else the profile's variables
    in the environment are read, at every request. `profile` says what the server accepts; it is found by the address if
    not given. `headers` go with every request, those of the request's settings over them.

    `info` tells what is known of the model; its provider's name is used in errors and as the origin of opaque data.
    `foreign_thinking` says what the model sees of other models' thoughts: nothing, or their text. Raises `UsageError` for
    an address or a model that cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: ApiKey = None,
        profile: Profile | None = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
        info: ModelInfo | None = None,
        foreign_thinking: ForeignThinking = "omit",
    ) -> None:
        if not model:
            raise UsageError("a model needs a name; give the one that the server lists")
        base = base_url or (profile.base_url if profile else PROFILES["openai"].base_url) or ""
        url, models_url = [endpoint(base, path, known=(_PATH,), example=_EXAMPLE) for path in (_PATH, "/models")]
        profile = profile or detect(base)
        info = info or ModelInfo(provider=profile.name, id=model)
        if info.provider != profile.name:
            profile = replace(profile, name=info.provider)
        address = Address(
            url=url,
            models_url=models_url,
            key_header=profile.key_header,
            key_names=profile.keys,
            needs_key=is_home(profile, base),
        )
        self._profile = for_model(profile, info)
        self.schema_mode = self._profile.keeps_schemas and keeps_schemas(model)
        encoder = ChatEncoder(model, self._profile, info, foreign_thinking=foreign_thinking)
        super().__init__(address, info, encoder, api_key=api_key, headers=headers, limits=limits)

    def _decoder(self, request: ModelRequest, request_id: str | None) -> ChatDecoder:
        return ChatDecoder(self._profile, origin=self.info.origin, request_id=request_id, tools=request.tools)


def chat_model(model: str, *, provider: str, **options: Any) -> OpenAIChat:
    """A model of one of the known providers. `options` are those of `OpenAIChat`.

    At another address than its own, OpenAI's name stands for any compatible server: what that one accepts is found by the
    address, and the key is OpenAI's.
    """
    profile = PROFILES[provider]
    base_url = options.get("base_url")
    if provider == "openai" and base_url and (found := detect(base_url)) is not profile:
        profile = replace(found, name=provider, keys=profile.keys)
    given: dict[str, Any] = {"profile": profile, **options}
    return OpenAIChat(model, **given)
