"""Model servers that the environment names: where they are, and which models they list."""

from collections.abc import Mapping
from typing import Any, Final, cast

from antiphon.errors import ModelError
from antiphon.providers.keys import find_key
from antiphon.providers.resolve import Provider
from antiphon.wire.http import HttpLimits, fetch_json

__all__ = ["address_of", "key_of", "models_at"]

PATIENCE: Final = 2.0
"""Seconds for a server that the user named: it may be far away."""
NO_CHAT: Final = ("embed", "rerank", "whisper", "tts")
"""What the names of models have in them that do not answer in words."""


def key_of(provider: Provider, environ: Mapping[str, str]) -> str | None:
    """The variable that holds the key, if one does."""
    return next((name for name in provider.keys if environ.get(name, "").strip()), None)


def address_of(provider: Provider, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The variable that holds another address than the usual one, and the base URL that it means."""
    for name in provider.addresses:
        value = environ.get(name, "").strip().rstrip("/")
        if value and name == "OLLAMA_HOST":  # "host:port", as the server itself reads it
            value = value if "://" in value else f"http://{value}"
            value = value.replace("//0.0.0.0", "//127.0.0.1") + "/v1"
        if value:
            return name, value
    return None


async def models_at(base_url: str, provider: Provider, environ: Mapping[str, str]) -> list[str]:
    """The models for chat that a server lists, none if it does not answer (docs of OpenAI, "List models")."""
    key = await find_key(None, "", provider.keys, environ)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        listed: Any = await fetch_json(f"{base_url}/models", headers, limits=HttpLimits(connect=None, total=PATIENCE))
    except ModelError:
        return []
    data: Any = cast("dict[str, Any]", listed).get("data") if isinstance(listed, dict) else None
    entries = cast("list[Any]", data) if isinstance(data, list) else []
    names = [cast("dict[str, Any]", entry).get("id") for entry in entries if isinstance(entry, dict)]
    return [name for name in names if isinstance(name, str) and not any(word in name.lower() for word in NO_CHAT)]
