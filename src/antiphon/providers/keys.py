"""Where a provider's key comes from: the argument, which may be a function, then the environment."""

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from antiphon.errors import ModelError, Unauthorized

__all__ = ["ApiKey", "find_key", "missing_key"]

ApiKey: TypeAlias = str | Callable[[str], str | Awaitable[str | None] | None] | None
"""A key, or a function of the provider's name that gives one, at once or later; it is asked for every request."""


async def find_key(
    given: ApiKey, provider: str, names: Sequence[str], environ: Mapping[str, str] = os.environ
) -> str | None:
    """The key for one request: what was given, else the first of these variables that is set, else `None`.

    Raises `Unauthorized` when the function fails.
    """
    if callable(given):
        try:
            key = given(provider)
            if inspect.isawaitable(key):
                key = await key
        except ModelError:
            raise
        except Exception as error:
            raise Unauthorized(
                f"no API key for {provider!r}: api_key() failed: {error!r}", provider=provider
            ) from error
        given = key
    key = given or next((environ[name] for name in names if environ.get(name)), None)
    return key.strip() if key else None


def missing_key(provider: str, names: Sequence[str]) -> Unauthorized:
    """The error of a request that cannot be made without a key."""
    variable = " or ".join(names)
    return Unauthorized(f"no API key for {provider!r}; set {variable}, or pass api_key=", provider=provider)
