"""What a server's refusal means: status, headers and body to a `ModelError`, by tables. Pure."""

from collections.abc import Mapping

from antiphon.errors import (
    ContextOverflow,
    Filtered,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Recovery,
    Rejected,
    Unauthorized,
)
from antiphon.wire._complaint import Complaint, read_complaint
from antiphon.wire._duration import retry_after
from antiphon.wire._redact import public_url
from antiphon.wire.overflow import tells_overflow

__all__ = ["error_for_event", "error_for_status", "request_id_in"]

_MAX_TEXT = 500
_REQUEST_IDS = ("x-request-id", "request-id")
_CANNOT_BE_OVERFLOW = frozenset({401, 402, 403, 404, 408, 429})

# A code says more than the status: what it means whatever the status is, and the recovery if it is not the usual one.
_BY_CODE: dict[str, tuple[type[ModelError], Recovery | None]] = {
    "insufficient_quota": (RateLimited, "never"),  # OpenAI, with 429: no money, and waiting brings none
    "billing_hard_limit_reached": (RateLimited, "never"),  # OpenAI
    "exceeded_current_quota_error": (RateLimited, "never"),  # Moonshot, with 429
    "enforced_spend_limit_reached": (RateLimited, "never"),  # Anthropic, with 429, in the details
    "engine_overloaded_error": (Overloaded, None),  # Moonshot, with 429
    "invalid_api_key": (Unauthorized, None),  # OpenAI
    "API_KEY_INVALID": (Unauthorized, None),  # Google, with 400
    "content_filter": (Filtered, None),  # Azure
    "ResponsibleAIPolicyViolation": (Filtered, None),  # Azure, inner error
    "content_policy_violation": (Filtered, None),  # OpenAI
}

_BY_STATUS: dict[int, type[ModelError]] = {
    401: Unauthorized,
    403: Unauthorized,
    408: Overloaded,
    425: Overloaded,
    429: RateLimited,
}

# The status that a code stands for, for errors that come in the middle of a stream and have none.
_STATUS_OF_CODE = {
    "invalid_request_error": 400,  # Anthropic, "Errors"; OpenAI
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,  # OpenAI
    "api_error": 500,
    "server_error": 500,  # OpenAI
    "timeout_error": 504,
    "overloaded_error": 529,
    "INVALID_ARGUMENT": 400,  # Google, google.rpc.Code and its HTTP mapping
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}

_HINT_BY_STATUS = {
    402: "check the account's balance",
    404: "check the base URL and the name of the model",
    413: "send less",
}
_HINT_BY_KIND: dict[type[ModelError], str] = {
    ContextOverflow: "shorten the conversation, or take a model with a larger window",
    Filtered: "say it differently, or take another model",
    Overloaded: "wait and ask again",
    RateLimited: "wait and ask again",
    Unauthorized: "check the API key and what it may do",
}


def error_for_status(status: int, headers: Mapping[str, str], body: bytes, provider: str | None = None) -> ModelError:
    """The error that an answer other than 2xx stands for.

    It carries the server's own message (at most 500 characters), its code, the request id and the wait it asks for.
    401 and 403 are `Unauthorized`, 408, 425 and 5xx `Overloaded`, 429 `RateLimited`, a redirect or another 4xx
    `Rejected`; a code or words in the body that say more (overflow, filter, quota) decide first.
    """
    headers = {name.lower(): value for name, value in headers.items()}
    complaint = read_complaint(body)
    kind, recovery = _judge(status, complaint)
    hint = _hint(kind, status, recovery)
    if 300 <= status < 400:
        target = public_url(headers.get("location", ""))
        hint = f"it points to {target!r}: use the final address as the base URL"
    wait = retry_after(headers)
    return kind(
        _sentence(provider, f"answered {status}", complaint, hint),
        recovery=_asked_recovery(headers.get("x-should-retry")) if recovery is None else recovery,
        retry_after=complaint.wait if wait is None else wait,
        status=status,
        code=next(iter(complaint.codes), None),
        provider=provider,
        request_id=request_id_in(headers),
    )


def error_for_event(body: bytes, provider: str | None = None, request_id: str | None = None) -> ModelError:
    """The error that an error object in the middle of a stream stands for, by its code or the status in it.

    What neither tells is `Overloaded`: the server took the request and then failed.
    """
    complaint = read_complaint(body)
    named = (_STATUS_OF_CODE[code] for code in complaint.codes if code in _STATUS_OF_CODE)
    status = complaint.status or next(named, 500)
    kind, recovery = _judge(status, complaint)
    return kind(
        _sentence(provider, "broke off its reply", complaint, _hint(kind, status, recovery)),
        recovery=recovery,
        retry_after=complaint.wait,
        status=complaint.status,
        code=next(iter(complaint.codes), None),
        provider=provider,
        request_id=request_id,
    )


def request_id_in(headers: Mapping[str, str]) -> str | None:
    """The id under which the server's people find the request (`x-request-id`, or Anthropic's `request-id`)."""
    return next((headers[name] for name in _REQUEST_IDS if name in headers), None)


def _judge(status: int, complaint: Complaint) -> tuple[type[ModelError], Recovery | None]:
    if status not in _CANNOT_BE_OVERFLOW and (
        tells_overflow(complaint.text) or any(tells_overflow("", code) for code in complaint.codes)
    ):
        return ContextOverflow, None
    for code in complaint.codes:
        if code in _BY_CODE:
            return _BY_CODE[code]
    if status >= 500:
        return Overloaded, None
    return _BY_STATUS.get(status, Rejected if status >= 300 else Garbled), None


def _hint(kind: type[ModelError], status: int, recovery: Recovery | None) -> str:
    if kind is Rejected:
        return _HINT_BY_STATUS.get(status, "change the request")
    if kind is RateLimited and recovery == "never":
        return "the quota is used up: raise it, or take another key or model"
    return _HINT_BY_KIND.get(kind, "check the base URL")


def _asked_recovery(should_retry: str | None) -> Recovery | None:
    """`x-should-retry`, which OpenAI and Anthropic send where they know better than the status tells."""
    if should_retry == "true":
        return "wait"
    return "never" if should_retry == "false" else None


def _sentence(provider: str | None, did: str, complaint: Complaint, hint: str) -> str:
    who = repr(provider) if provider else "the server"
    text = complaint.text if len(complaint.text) <= _MAX_TEXT else complaint.text[: _MAX_TEXT - 1] + "…"
    return f"{who} {did}: {text!r}; {hint}" if text else f"{who} {did}; {hint}"
