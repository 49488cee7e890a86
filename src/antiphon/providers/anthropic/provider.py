"""The Messages API over HTTP: Anthropic, and every server that speaks its API."""

from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import urlsplit

from antiphon.errors import UsageError
from antiphon.providers.anthropic.decode import AnthropicDecoder
from antiphon.providers.anthropic.encode import AnthropicEncoder
from antiphon.providers.framing import endpoint
from antiphon.providers.history import ForeignThinking
from antiphon.providers.http_model import Address, HttpModel
from antiphon.providers.keys import ApiKey, find_key, missing_key
from antiphon.types.request import ModelInfo, ModelRequest
from antiphon.wire.http import DEFAULT_LIMITS, HttpLimits

__all__ = ["Anthropic"]

_HOME = "api.anthropic.com"
_KEYS = ("ANTHROPIC_API_KEY",)
_TOKENS = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_OAUTH_TOKEN")
_TOKEN_PREFIX = "sk-ant-oat"  # noqa: S105 - of a token, none itself
# platform.claude.com/docs/en/api/versioning. This version is the one that other servers know too, and that still has
# temperature; another may be asked for in `headers`.
_VERSION = "2023-06-01"
_ENDS = ("/messages", "/v1")  # that a base URL may have already


class Anthropic(HttpModel):
    """A model behind `/v1/messages`.

    `base_url` is what the path is added to, with or without `/v1`; a query stays. `api_key` is a key or a function of the
    provider's name; else, at every request, the environment is read: ANTHROPIC_API_KEY, then ANTHROPIC_AUTH_TOKEN and
    ANTHROPIC_OAUTH_TOKEN. A key goes into `x-api-key`; a token (from the latter, one that begins with "sk-ant-oat" or with
    "Bearer ") into `authorization`. `headers` go with every request, those of the request's settings over them.

    `info` tells what is known of the model. Its provider's name is used in errors and in the origin of thoughts, which go
    back only there; for one other than "anthropic" the environment is not read. `foreign_thinking` says
    what the model sees of other models' thoughts: nothing, or their text. Raises `UsageError` for an address or a
    model that cannot be one.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = f"https://{_HOME}",
        api_key: ApiKey = None,
        headers: Mapping[str, str] | None = None,
        limits: HttpLimits = DEFAULT_LIMITS,
        info: ModelInfo | None = None,
        foreign_thinking: ForeignThinking = "omit",
    ) -> None:
        if not model:
            raise UsageError("a model needs a name; give the one that the server lists")
        info = info or ModelInfo(provider="anthropic", id=model)
        url, models_url = [
            endpoint(base_url, f"/v1{path}", known=_ENDS, example=f"https://{_HOME}")
            for path in ("/messages", "/models")
        ]
        home = urlsplit(url).hostname == _HOME
        address = Address(url=url, models_url=models_url, key_header="x-api-key", key_names=_KEYS, needs_key=home)
        encoder = AnthropicEncoder(model, info, eager=home, foreign_thinking=foreign_thinking)
        self.schema_mode = encoder.keeps_schemas
        super().__init__(address, info, encoder, api_key=api_key, headers=headers, limits=limits)

    _standing_headers: ClassVar[Mapping[str, str]] = {"anthropic-version": _VERSION}

    def _decoder(self, request: ModelRequest, request_id: str | None) -> AnthropicDecoder:  # noqa: ARG002 - the reply tells all
        return AnthropicDecoder(self.info.provider, request_id=request_id)

    async def _add_key(self, headers: dict[str, str]) -> None:
        """A key, or a token in its place, which is known by how it begins."""
        provider = self.info.provider
        ours = provider == "anthropic"
        key = await find_key(self._api_key, provider, _KEYS if ours else ())
        if key and not key.startswith((_TOKEN_PREFIX, "Bearer ")):
            headers["x-api-key"] = key
        elif token := key or (await find_key(None, provider, _TOKENS) if ours else None):
            headers["authorization"] = f"Bearer {token.removeprefix('Bearer ')}"
        elif self._address.needs_key:
            raise missing_key(provider, _KEYS)
