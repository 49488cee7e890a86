"""Addresses: whether a URL is one, and which proxy leads there."""

import ipaddress
from base64 import b64encode
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from antiphon.errors import Unreachable
from antiphon.wire._redact import public_url

__all__ = ["NO_ADDRESS", "Proxy", "origin_of", "proxy_for"]

NO_ADDRESS = "this is no address of an HTTP server; give one like 'https://host/v1'"
_PORTS = {"http": 80, "https": 443}


class Proxy(Struct, frozen=True, kw_only=True):
    """A proxy's address without its credentials, and the header value that carries them."""

    url: str
    authorization: str | None = None


def origin_of(url: str) -> str:
    """Scheme, host and port. Raises `Unreachable` if the URL is not that of an HTTP server."""
    try:
        parts = urlsplit(url)
        usual = _PORTS[parts.scheme]
        if parts.hostname:
            return f"{parts.scheme}://{parts.hostname}:{parts.port or usual}"
    except (ValueError, KeyError):
        pass
    raise Unreachable(f"{public_url(url)!r}: {NO_ADDRESS}", recovery="never")


def proxy_for(origin: str) -> Proxy | None:
    """The proxy that the environment names for an origin (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`).

    The machine itself is always reached directly: a model server on it is no business of a proxy. Raises `Unreachable`
    for a kind of proxy that cannot be used: going around it in silence could break the rules of the place.
    """
    from urllib.request import getproxies, proxy_bypass  # here: it loads an HTTP client of its own

    scheme, _, place = origin.partition("://")
    if _is_loopback(place.rpartition(":")[0]):
        return None
    proxies = getproxies()
    address = proxies.get(scheme) or proxies.get("all")
    if not address or proxy_bypass(place):
        return None
    return _read_proxy(address)


def _read_proxy(address: str) -> Proxy:
    if "://" not in address:
        address = "http://" + address
    try:
        origin_of(address)
    except Unreachable:
        raise Unreachable(
            f"the environment names the proxy {public_url(address)!r}, and only http and https proxies can be used; "
            "name another one, or add the host to NO_PROXY",
            recovery="never",
        ) from None
    parts = urlsplit(address)
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + b64encode(pair.encode()).decode()
    return Proxy(url=public_url(address), authorization=authorization)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
