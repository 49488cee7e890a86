"""What a broken connection means: the HTTP client's exceptions to `ModelError`, by one table.

The table goes by the names of the exceptions, along their base classes, so that it can be read and tested without
loading the client, and does not mind in which of its versions a class came.
"""

from antiphon.errors import Dropped, Garbled, ModelError, Recovery, Stalled, Unreachable
from antiphon.wire._address import NO_ADDRESS
from antiphon.wire._redact import public_url

__all__ = ["failure_for", "lost_before_answer"]

_CERTIFICATE = "the server's certificate is not trusted; check the address, or name the CA's file in SSL_CERT_FILE"
_TLS = "no TLS connection came about; check whether the address wants http:// or https://"
_NAME = "the name of the host is not known; check the address and the network"
_PROXY = "the proxy that the environment names does not answer; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
_TUNNEL = "the proxy that the environment names refuses to connect; check its address and its credentials"
_LATE = "no connection within the time limit; check the address and the network, or raise the `connect` limit"

# The first name along the exception's base classes decides: kind, recovery if not the usual one, sentence.
_TABLE: dict[str, tuple[type[ModelError], Recovery | None, str]] = {
    "ClientConnectorCertificateError": (Unreachable, "never", _CERTIFICATE),
    "ServerFingerprintMismatch": (Unreachable, "never", _CERTIFICATE),
    "ClientConnectorSSLError": (Unreachable, "never", _TLS),
    "ClientSSLError": (Unreachable, "never", _TLS),
    "ClientConnectorDNSError": (Unreachable, None, _NAME),
    "ClientProxyConnectionError": (Unreachable, None, _PROXY),
    "ClientHttpProxyError": (Unreachable, "never", _TUNNEL),
    "ClientConnectorError": (Unreachable, None, "nobody answers there; is the server running?"),
    "ConnectionTimeoutError": (Unreachable, None, _LATE),
    "InvalidURL": (Unreachable, "never", NO_ADDRESS),
    "NonHttpUrlClientError": (Unreachable, "never", NO_ADDRESS),
    "UnicodeError": (Unreachable, "never", NO_ADDRESS),  # a host name that cannot be looked up
    "ClientResponseError": (Garbled, None, "what came back is not HTTP; check the address and the port"),
    "ClientPayloadError": (Dropped, None, "the answer was cut off in the middle; ask again"),
    "ServerDisconnectedError": (Dropped, None, "the server closed the connection before it answered; ask again"),
    "TimeoutError": (Stalled, None, "not done within the time limit; ask again, or raise the `total` limit"),
    "ClientError": (Dropped, None, "the connection was lost; ask again"),
    "OSError": (Dropped, None, "the connection was lost; ask again"),
}


def failure_for(error: Exception, url: str, provider: str | None = None) -> ModelError | None:
    """The error to raise for what the client raised, `None` for what is no failure of the connection."""
    for base in type(error).__mro__:
        if base.__name__ in _TABLE:
            kind, recovery, text = _TABLE[base.__name__]
            return kind(f"{public_url(url)!r}: {text}", recovery=recovery, provider=provider)
    return None


def lost_before_answer(error: Exception) -> bool:
    """Whether a connection that stood was lost before a head came: on a kept one, that is how its end shows."""
    names = {base.__name__ for base in type(error).__mro__}
    if names & {"ClientConnectorError", "ClientPayloadError", "TimeoutError"}:
        return False
    return bool(names & {"ServerDisconnectedError", "ConnectionError"})
