"""What can go wrong, as one tree.

Three kinds stand under `AntiphonError`: the caller is wrong (`UsageError`), the model's side failed (`ModelError`), the
run failed (`RunError`, in `antiphon.types.result`, because it carries a result). A tool that fails is a result for the
model, not a raise; `ToolError` and `FatalToolError` are how a tool says which of the two it means.
"""

from typing import ClassVar, Literal

__all__ = [
    "AntiphonError",
    "ContextOverflow",
    "Dropped",
    "Empty",
    "FatalToolError",
    "Filtered",
    "Garbled",
    "IllegalMove",
    "ModelError",
    "Overloaded",
    "RateLimited",
    "Recovery",
    "Rejected",
    "Stalled",
    "ToolError",
    "Truncated",
    "Unauthorized",
    "Unreachable",
    "UsageError",
]

Recovery = Literal["never", "wait", "now", "other_model"]
"""What may help after a model failed: nothing, waiting, asking again at once, another model."""


class AntiphonError(Exception):
    """Whatever this library raises on purpose."""


class UsageError(AntiphonError):
    """The caller did something that cannot work; the text says what to do instead."""


class IllegalMove(AntiphonError):
    """An input came that the machine's phase does not take; the text names what was expected."""


class ToolError(AntiphonError):
    """Raise it in a tool to tell the *model* what went wrong, so that it can repair its call. The run goes on."""


class FatalToolError(AntiphonError):
    """Raise it in a tool to tell the *caller* that the run cannot go on. The run ends in `error`."""


class ModelError(AntiphonError):
    """The model's side failed: the only failure a `Model` may show.

    `recovery` says what may help. `retry_after` is the server's own hint in seconds, if it gave one. `status` is the
    HTTP status, `provider` and `request_id` name whom to ask, `code` is the server's word for the failure.
    """

    default_recovery: ClassVar[Recovery] = "never"

    def __init__(
        self,
        message: str,
        *,
        recovery: Recovery | None = None,
        retry_after: float | None = None,
        status: int | None = None,
        code: str | None = None,
        provider: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.recovery: Recovery = recovery or self.default_recovery
        self.retry_after = retry_after
        self.status = status
        self.code = code
        self.provider = provider
        self.request_id = request_id


class Unreachable(ModelError):
    """No connection came about: wrong address, nobody listens, no route, TLS refused."""

    default_recovery = "wait"


class Overloaded(ModelError):
    """The server is too busy or broken for the moment (5xx, 408, 425, overload)."""

    default_recovery = "wait"


class RateLimited(ModelError):
    """Too many requests or tokens for this key; `retry_after` holds the server's hint, if any."""

    default_recovery = "wait"


class Unauthorized(ModelError):
    """The key is missing, wrong, or not allowed to do this."""


class Rejected(ModelError):
    """The server understood the request and refused it (most 4xx)."""


class ContextOverflow(ModelError):
    """The request does not fit the model's context window."""


class Filtered(ModelError):
    """A content filter of the provider stopped the request or the reply."""

    default_recovery = "other_model"


class Garbled(ModelError):
    """The server's answer cannot be understood."""

    default_recovery = "wait"


class Dropped(ModelError):
    """The stream ended without its terminal marker: the connection was lost in the middle of a reply."""

    default_recovery = "wait"


class Stalled(ModelError):
    """Nothing meaningful came for too long."""

    default_recovery = "wait"


class Truncated(ModelError):
    """The reply was cut off by the output limit."""

    default_recovery = "now"


class Empty(ModelError):
    """The reply holds neither text nor calls."""

    default_recovery = "now"
