"""What may be shown of a URL and of a server's words. No error text holds a key."""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl

__all__ = ["public_url", "without_secrets"]

_SECRET = re.compile(r"auth|key|token|secret|password|cookie|signature", re.IGNORECASE)
_SHORTEST = 6  # a shorter value is no key, and hiding it would spoil the text


def public_url(url: str) -> str:
    """The URL without what may be secret: user, password, query, fragment. Never raises, whatever the text is."""
    scheme, separator, rest = url.partition("?")[0].partition("#")[0].rpartition("://")
    authority, slash, path = rest.partition("/")
    return scheme + separator + authority.rpartition("@")[2] + slash + path


def without_secrets(text: bytes, headers: Mapping[str, str], url: str) -> bytes:
    """`text` with the keys of a request put out: a server may repeat them where it says what is wrong."""
    named = [*headers.items(), *parse_qsl(url.partition("?")[2])]
    for value in (value for name, value in named if _SECRET.search(name)):
        secret = value.rpartition(" ")[2].encode()  # "Bearer …": the scheme is no secret
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, b"***")
    return text
