"""What tells that a request was too long for the model: an application compacts then, and asks again."""

import json
from typing import Any

import pytest

from antiphon import (
    Agent,
    AssistantMessage,
    ContextOverflow,
    Dropped,
    ModelError,
    RateLimited,
    Rejected,
    RunError,
    Usage,
)
from antiphon.providers.overflow import is_context_overflow
from antiphon.testing import Scripted
from antiphon.wire.status import error_for_status

SAID = [
    "prompt is too long: 213462 tokens > 200000 maximum",
    "Your input exceeds the context window of this model",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
    "Please reduce the length of the messages or completion",
    "the request exceeds the available context size, try increasing it",
    "tokens to keep from the initial prompt is greater than the context length",
    "Provider finish_reason: model_context_window_exceeded",
    "context_length_exceeded",
    "token limit exceeded",
    "400 status code (no body)",
    "413 (no body)",
]
NOT_SAID = [
    "429 status code (no body)",
    "429 Too Many Requests",
    "rate limit exceeded",
    "Too many tokens, please wait before trying again",
    "the reply was cut off by the output limit (after 3 attempts)",
    "max_tokens must be less than 8192",
    "500 internal server error",
    "",
]


def failed(text: str, **more: Any) -> AssistantMessage:
    return AssistantMessage(**{"parts": (), "stop_reason": "error", "error": text, **more})


@pytest.mark.parity("C21")
@pytest.mark.parametrize("text", SAID)
def test_an_overflow_is_known_by_its_words(text: str) -> None:
    """Servers have no common code for it."""
    assert is_context_overflow(failed(text))
    assert is_context_overflow(Rejected(text))


@pytest.mark.parity("C21")
@pytest.mark.parametrize("text", NOT_SAID)
def test_what_is_no_overflow(text: str) -> None:
    """Compacting does not help against throttling, and costs the conversation."""
    assert not is_context_overflow(failed(text))
    assert not is_context_overflow(Rejected(text))


@pytest.mark.parity("C21")
def test_an_error_says_it_by_kind_or_code_as_well() -> None:
    assert is_context_overflow(ContextOverflow("whatever it said"))
    assert is_context_overflow(Rejected("odd words", code="context_length_exceeded"))
    assert not is_context_overflow(RateLimited("too many tokens"))
    assert not is_context_overflow(ValueError("prompt is too long"))


@pytest.mark.parity("C21")
def test_only_a_failed_message_says_it_by_words() -> None:
    """A model may speak about long prompts."""
    for reason in ("stop", "aborted", "length"):
        assert not is_context_overflow(failed("prompt is too long: 2 tokens > 1 maximum", stop_reason=reason))


@pytest.mark.parity("C21")
@pytest.mark.parametrize(
    ("reason", "used", "window", "overflow"),
    [
        ("stop", 1001, 1000, True),
        ("stop", 1000, 1000, False),
        ("stop", 1001, None, False),
        ("tool_calls", 1001, 1000, False),
        ("length", 1001, 1000, False),
    ],
)
def test_a_server_that_cuts_in_silence_is_known_by_its_count(
    reason: str, used: int, window: int | None, overflow: bool
) -> None:
    """Cached tokens are in the input already."""
    message = failed("", stop_reason=reason, error=None, usage=Usage(input=used, cache_read=500))
    assert is_context_overflow(message, window) is overflow


@pytest.mark.parity("C21")
def test_without_a_count_nothing_is_known() -> None:
    assert not is_context_overflow(failed("", stop_reason="stop", error=None), 1000)


@pytest.mark.parity("C21")
@pytest.mark.parametrize(
    ("status", "body", "overflow"),
    [
        (400, {"error": {"message": "strange words", "code": "context_length_exceeded"}}, True),
        (400, {"error": {"message": "prompt is too long"}}, True),
        (400, {"error": {"message": "bad schema"}}, False),
        (400, None, True),
        (413, None, True),
        (404, None, False),
        (429, {"error": {"message": "Too many tokens"}}, False),
    ],
)
@pytest.mark.anyio
async def test_the_sentence_that_a_run_keeps_still_says_it(status: int, body: Any, overflow: bool) -> None:
    """The kind of the error is lost in the transcript; the words are not, and the cause is still there."""
    error = error_for_status(status, {}, json.dumps(body).encode() if body else b"", "p")
    with pytest.raises(RunError) as caught:
        await Agent(Scripted(error)).run("long")
    last = caught.value.result.messages[-1]
    assert isinstance(last, AssistantMessage)
    assert is_context_overflow(last) is overflow
    assert is_context_overflow(error) is overflow
    assert is_context_overflow(caught.value) is overflow


def test_a_failure_in_passing_is_none() -> None:
    assert not is_context_overflow(Dropped("cut"))
    assert not is_context_overflow(ModelError("no"))
