"""Whether a request did not fit the model's context window: what an application asks before it compacts and tries again."""

import re

from antiphon.errors import ContextOverflow, ModelError, RateLimited, Unauthorized
from antiphon.types.messages import AssistantMessage
from antiphon.wire.overflow import OVERFLOW_CODES, tells_overflow

__all__ = ["is_context_overflow"]

_BARE = re.compile(r"^\s*(?:400|413)\b[\w\s]*\(no body\)|answered (?:400|413); ", re.IGNORECASE)
"""How a refusal without a word reads, a client's and ours; servers that answer so do it for what is too long."""

_OWN = re.compile(
    "|".join(["take a model with a larger window", r"(?:context|token) (?:length|limit) exceeded", *OVERFLOW_CODES])
)
"""What stays of our own errors when only their sentence was kept."""


def is_context_overflow(given: BaseException | AssistantMessage, window: int | None = None) -> bool:
    """Whether `given` says that the input was too long for the model.

    An error says it by its kind, its code or its words, or one of its causes does (so a `RunError` may be given). A
    message says it when it failed with such words; with `window`, the model's context window in tokens, also when it
    ended normally and its request had more input than that: some servers cut what is too long and tell nobody.
    Throttling speaks of tokens too, and is no overflow.
    """
    if isinstance(given, AssistantMessage):
        return _message_tells(given, window)
    error: BaseException | None = given
    while error is not None:
        if isinstance(error, ContextOverflow):
            return True
        if isinstance(error, ModelError):
            return _error_tells(error)
        error = error.__cause__
    return False


def _message_tells(message: AssistantMessage, window: int | None) -> bool:
    if message.stop_reason == "error":
        return _words_tell(message.error or "")
    used = message.usage.input if message.usage is not None else 0
    return message.stop_reason == "stop" and window is not None and used > window


def _error_tells(error: ModelError) -> bool:
    if isinstance(error, RateLimited | Unauthorized):
        return False
    return error.code in OVERFLOW_CODES or _words_tell(str(error))


def _words_tell(text: str) -> bool:
    return tells_overflow(text) or _OWN.search(text) is not None or _BARE.search(text) is not None
