"""What a server's refusal means."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import (
    ContextOverflow,
    Dropped,
    Filtered,
    Garbled,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Stalled,
    Unauthorized,
    Unreachable,
)
from antiphon.wire._address import Proxy, origin_of, proxy_for
from antiphon.wire._failures import failure_for
from antiphon.wire._redact import public_url, without_secrets
from antiphon.wire.overflow import tells_overflow
from antiphon.wire.status import error_for_event, error_for_status


def refuse(status: int, body: Any = b"", headers: dict[str, str] | None = None) -> ModelError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return error_for_status(status, headers or {}, raw, "acme")


TEXTS = st.sampled_from(["", "error", "message", "detail", "details", "metadata", "raw", "loc", "code", "{}", "[", "{"])


class TestStatus:
    @pytest.mark.parametrize(
        ("status", "kind", "recovery"),
        [
            (400, Rejected, "never"),
            (401, Unauthorized, "never"),
            (402, Rejected, "never"),
            (403, Unauthorized, "never"),
            (404, Rejected, "never"),
            (408, Overloaded, "wait"),
            (409, Rejected, "never"),
            (413, Rejected, "never"),
            (422, Rejected, "never"),
            (425, Overloaded, "wait"),
            (429, RateLimited, "wait"),
            (500, Overloaded, "wait"),
            (502, Overloaded, "wait"),
            (503, Overloaded, "wait"),
            (504, Overloaded, "wait"),
            (529, Overloaded, "wait"),
            (307, Rejected, "never"),
        ],
    )
    def test_each_status_has_one_meaning(self, status: int, kind: type[ModelError], recovery: str) -> None:
        error = refuse(status, {"error": {"message": "no", "code": "why"}}, {"X-Request-Id": "r1"})
        assert type(error) is kind
        assert (error.recovery, error.status, error.code) == (recovery, status, "why")
        assert (error.provider, error.request_id) == ("acme", "r1")
        assert str(error).startswith(f"'acme' answered {status}: 'no'; ")

    def test_the_error_says_what_to_do(self) -> None:
        assert str(refuse(404)) == "'acme' answered 404; check the base URL and the name of the model"
        assert str(error_for_status(401, {}, b"")).startswith("the server answered 401; check the API key")
        assert str(refuse(307, b"", {"Location": "https://u:p@new.example/v2?key=1"})) == (
            "'acme' answered 307; it points to 'https://new.example/v2': use the final address as the base URL"
        )

    @pytest.mark.parametrize(
        ("body", "text", "code"),
        [
            ({"error": {"message": "no", "type": "t", "code": "c"}}, "no", "c"),
            ({"error": {"message": "no", "type": "t", "code": None}}, "no", "t"),
            ({"type": "error", "error": {"type": "t", "message": "no"}, "request_id": "r"}, "no", "t"),
            ([{"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}], "no", "INVALID_ARGUMENT"),
            ({"error": "no"}, "no", None),
            ({"error": "no", "error_type": "validation"}, "no", "validation"),
            ({"object": "error", "message": "no", "type": "BadRequestError", "code": 400}, "no", "BadRequestError"),
            ({"message": "no"}, "no", None),
            ({"detail": "no"}, "no", None),
            ({"detail": [{"loc": ["body", "model"], "msg": "missing", "type": "t"}]}, "body.model: missing", "t"),
            ({"detail": {"error": {"message": "no"}}}, "no", None),
            ({"success": False, "errors": [{"code": 7003, "message": "no"}, {"message": "way"}]}, "no; way", None),
            ({"error": {"message": '{"error": {"message": "no", "status": "S"}}', "code": 429}}, "no", "S"),
            ({"error": "unauthorized", "error_description": "no"}, "no", None),
            (
                {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"detail":"no"}'}}},
                "Provider returned error; no",
                None,
            ),
            (b"<html>\n<h1>Bad   Gateway</h1></html>", "<html> <h1>Bad Gateway</h1></html>", None),
            (b'{"error": {"message": "cut', '{"error": {"message": "cut', None),
            ({"unknown": 1}, '{"unknown": 1}', None),
            ("no", "no", None),
            (b"null", "null", None),
        ],
    )
    def test_the_servers_words_are_found_in_every_common_shape(self, body: Any, text: str, code: str | None) -> None:
        error = refuse(400, body)
        assert f"answered 400: {text!r}; " in str(error)
        assert error.code == code

    def test_long_words_are_cut_to_500_characters(self) -> None:
        assert f"{'x' * 499}…'" in str(refuse(400, {"error": "x" * 5000}))
        assert f"{'x' * 499}…'" in str(refuse(502, b"x" * 5000))

    @given(
        st.binary()
        | st.recursive(TEXTS | st.integers(), lambda x: st.lists(x) | st.dictionaries(TEXTS, x), max_leaves=8)
    )
    def test_any_body_gives_an_error(self, body: Any) -> None:
        """The error of an error would hide the first."""
        assert refuse(400, body).status == 400

    def test_a_body_nested_beyond_reason_gives_an_error(self) -> None:
        assert type(refuse(500, b"[" * 60_000)) is Overloaded
        assert type(refuse(500, b'{"error":' * 50 + b'"deep"' + b"}" * 50)) is Overloaded


class TestCode:
    @pytest.mark.parametrize(
        ("status", "body", "kind", "recovery"),
        [
            (429, {"error": {"message": "m", "type": "insufficient_quota", "code": None}}, RateLimited, "never"),
            (429, {"error": {"message": "m", "type": "exceeded_current_quota_error"}}, RateLimited, "never"),
            (
                429,
                {"error": {"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}},
                RateLimited,
                "never",
            ),
            (429, {"error": {"message": "m", "type": "engine_overloaded_error"}}, Overloaded, "wait"),
            (400, {"error": {"code": "content_filter", "message": "m"}}, Filtered, "other_model"),
            (
                400,
                {"error": {"code": None, "message": "m", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
                Filtered,
                "other_model",
            ),
            (
                400,
                {"error": {"status": "INVALID_ARGUMENT", "message": "m", "details": [{"reason": "API_KEY_INVALID"}]}},
                Unauthorized,
                "never",
            ),
            (400, {"error": {"code": "context_length_exceeded", "message": "m"}}, ContextOverflow, "never"),
            (400, {"error": {"type": "exceed_context_size_error", "message": "m"}}, ContextOverflow, "never"),
            (
                413,
                {"error": {"message": "prompt is too long: 213462 tokens > 200000 maximum"}},
                ContextOverflow,
                "never",
            ),
            (413, {"error": {"type": "request_too_large", "message": "more than 32 MB"}}, Rejected, "never"),
            (429, {"error": {"message": "Too many tokens"}}, RateLimited, "wait"),
        ],
    )
    def test_a_code_or_words_that_say_more_than_the_status_decide(
        self, status: int, body: Any, kind: type[ModelError], recovery: str
    ) -> None:
        """To wait for a quota that is used up, or to repeat what is too long, would cost time for nothing."""
        error = refuse(status, body)
        assert (type(error), error.recovery) == (kind, recovery)

    def test_a_server_that_knows_better_is_obeyed(self) -> None:
        assert refuse(409, b"", {"x-should-retry": "true"}).recovery == "wait"
        assert refuse(429, b"", {"x-should-retry": "false"}).recovery == "never"
        assert refuse(429, {"error": {"code": "insufficient_quota"}}, {"x-should-retry": "true"}).recovery == "never"

    @pytest.mark.parametrize(
        ("body", "kind", "status"),
        [
            ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, Overloaded, None),
            ({"error": {"type": "rate_limit_error", "message": "m"}}, RateLimited, None),
            ({"error": {"code": "server_error", "message": "m"}}, Overloaded, None),
            ({"error": {"type": "invalid_request_error", "message": "m"}}, Rejected, None),
            ({"error": {"code": 429, "message": "m"}}, RateLimited, 429),
            ({"error": {"code": 401, "message": "m"}}, Unauthorized, 401),
            ({"error": {"code": "402", "message": "m"}}, Rejected, 402),
            ({"error": {"message": "m"}}, Overloaded, None),
            ({"error": {"message": "maximum context length is 8192 tokens"}}, ContextOverflow, None),
        ],
    )
    def test_an_error_in_a_stream_is_judged_by_its_code(
        self, body: Any, kind: type[ModelError], status: int | None
    ) -> None:
        error = error_for_event(json.dumps(body).encode(), "acme", "r2")
        assert (type(error), error.status, error.provider, error.request_id) == (kind, status, "acme", "r2")
        assert str(error).startswith("'acme' broke off its reply: 'm")


class TestOverflow:
    @pytest.mark.parametrize(
        "text",
        [
            "prompt is too long: 213462 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            "Input is too long for requested model.",
            "Your input exceeds the context window of this model",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            "Please reduce the length of the messages or completion",
            "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens",
            "prompt token count of 200001 exceeds the limit of 128000",
            "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
            "tokens to keep from the initial prompt is greater than the context length",
            "invalid params, context window exceeds limit",
            "Your request exceeded model token limit: 100 (requested: 200)",
            "Prompt contains 9 tokens, too large for model with 8 maximum context length",
            "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
            "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
            "the input length exceeds the context length",
            "`inputs` tokens + `max_new_tokens` must be <= 4096",
            "Provider finish_reason: model_context_window_exceeded",
            "context_length_exceeded",
            "context length exceeded",
            "too many tokens",
            "token limit exceeded",
        ],
    )
    def test_what_servers_say_of_a_full_window_is_known(self, text: str) -> None:
        assert tells_overflow(text)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "429 Too Many Requests",
            "rate limit exceeded",
            "Too many tokens, please wait before trying again.",
            "Rate limit reached for m on tokens per min (TPM): token limit exceeded",
            "Response truncated at the configured output token limit after 3 attempts",
            "max_tokens must be less than 8192",
            "500 internal server error",
        ],
    )
    def test_throttling_and_other_limits_are_no_overflow(self, text: str) -> None:
        """A conversation would be cut down for nothing."""
        assert not tells_overflow(text)


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({"Retry-After-Ms": "1500", "Retry-After": "2"}, 1.5),
            ({"Retry-After": "20"}, 20.0),
            ({"retry-after": " 0.5 "}, 0.5),
            ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
            ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
            ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"}, 360.0),
            (
                {
                    "x-ratelimit-remaining-requests": "0",
                    "x-ratelimit-reset-requests": "120ms",
                    "x-ratelimit-remaining-tokens": "0",
                    "x-ratelimit-reset-tokens": "1m2.5s",
                },
                62.5,
            ),
            ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "6m0s"}, None),
            ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1760000000"}, None),
            ({"retry-after": "soon"}, None),
            ({"retry-after": "nan"}, None),
            ({"retry-after": "-5"}, None),
            ({"retry-after": "Wed, 99 Oct 2015"}, None),
            ({}, None),
        ],
    )
    def test_the_wait_a_server_asks_for_is_read_in_its_forms(
        self, headers: dict[str, str], seconds: float | None
    ) -> None:
        """A date is measured against the server's own clock, which need not be ours."""
        assert refuse(429, b"", headers).retry_after == seconds

    def test_a_wait_in_the_body_is_read_too(self) -> None:
        details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
        body = {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}}
        assert refuse(429, body).retry_after == 34.5
        assert refuse(429, body, {"retry-after": "3"}).retry_after == 3.0
        assert error_for_event(json.dumps(body).encode()).retry_after == 34.5


class TestSecrets:
    @pytest.mark.parametrize(
        ("url", "shown"),
        [
            ("https://host/v1/chat", "https://host/v1/chat"),
            ("https://user:pass@host:8/v1/@cf/m?key=secret#part", "https://host:8/v1/@cf/m"),
            ("http://user:pass@[bad", "http://[bad"),
            ("?key=secret", ""),
            ("", ""),
        ],
    )
    def test_only_the_harmless_part_of_a_url_is_shown(self, url: str, shown: str) -> None:
        assert public_url(url) == shown

    def test_keys_that_a_server_repeats_are_put_out(self) -> None:
        headers = {"Authorization": "Bearer sk-123456", "x-goog-api-key": "AIza-42", "accept": "application/json"}
        text = b"bad key sk-123456 / AIza-42 / q-secret in application/json"
        shown = without_secrets(text, headers, "https://host/?key=q-secret&alt=sse")
        assert shown == b"bad key *** / *** / *** in application/json"

    def test_a_value_too_short_for_a_key_is_left(self) -> None:
        """Local servers take any key; to hide "x" everywhere would leave no text."""
        assert without_secrets(b"max exceeded", {"authorization": "Bearer x"}, "http://h") == b"max exceeded"


class TestFailure:
    def test_the_first_base_class_in_the_table_decides(self) -> None:
        class ClientConnectorError(OSError):
            pass

        class New(ClientConnectorError):
            pass

        assert type(failure_for(New(), "http://h")) is Unreachable
        assert type(failure_for(ConnectionResetError(), "http://h")) is Dropped
        assert type(failure_for(TimeoutError(), "http://h")) is Stalled

    def test_what_is_no_failure_of_a_connection_has_none(self) -> None:
        assert failure_for(TypeError(), "http://h") is None

    def test_every_name_in_the_table_is_known_to_the_client(self) -> None:
        """A misspelt name would let a failure through as something else."""
        import aiohttp

        from antiphon.wire._failures import _TABLE

        known = {*dir(aiohttp), *dir(aiohttp.client_exceptions), "TimeoutError", "OSError", "UnicodeError"}
        assert not set(_TABLE) - known

    def test_a_garbled_answer_is_told_from_a_lost_one(self) -> None:
        import aiohttp

        assert type(failure_for(aiohttp.ClientPayloadError(), "http://h")) is Dropped
        assert type(failure_for(aiohttp.ClientResponseError(None, ()), "http://h")) is Garbled  # type: ignore[arg-type] - unused


class TestAddress:
    @pytest.mark.parametrize(
        "url",
        ["", "nohost", "ftp://h/", "ftp://h:80/", "http:///x", "http://[bad/", "http://h:99999999/", "http://h:x/"],
    )
    def test_what_is_no_address_is_said_so(self, url: str) -> None:
        with pytest.raises(Unreachable, match="no address of an HTTP server; give one like") as caught:
            origin_of(url)
        assert caught.value.recovery == "never"

    def test_an_origin_is_scheme_host_and_port(self) -> None:
        assert origin_of("https://u:p@Host.example/v1?x") == "https://host.example:443"
        assert origin_of("http://[::1]:8080/") == "http://::1:8080"

    @pytest.fixture
    def environment(self, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
        for name in ("http", "https", "all", "no"):
            monkeypatch.delenv(f"{name}_proxy", raising=False)
            monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
        return monkeypatch

    def test_the_environment_names_the_proxy_of_a_scheme(self, environment: pytest.MonkeyPatch) -> None:
        assert proxy_for("https://host:443") is None
        environment.setenv("HTTPS_PROXY", "http://us%40er:p%3Aw@proxy:3128")
        assert proxy_for("https://host:443") == Proxy(url="http://proxy:3128", authorization="Basic dXNAZXI6cDp3")
        assert proxy_for("http://host:80") is None
        environment.setenv("ALL_PROXY", "other:1")
        assert proxy_for("http://host:80") == Proxy(url="http://other:1")

    def test_exempt_hosts_and_the_machine_itself_are_reached_directly(self, environment: pytest.MonkeyPatch) -> None:
        """A proxy somewhere else could not reach the server on this machine."""
        environment.setenv("ALL_PROXY", "http://proxy:3128")
        environment.setenv("NO_PROXY", "inner.example,odd.example:8000")
        assert proxy_for("http://outer.example:80") is not None
        for origin in (
            "inner.example:80",
            "a.inner.example:1",
            "odd.example:8000",
            "127.0.0.1:80",
            "localhost:1",
            "::1:8080",
        ):
            assert proxy_for(f"http://{origin}") is None, origin

    def test_a_proxy_of_another_kind_is_refused_not_gone_around(self, environment: pytest.MonkeyPatch) -> None:
        for address in ("socks5://user:pass@proxy:1080", "http://user:pass@[bad"):
            environment.setenv("ALL_PROXY", address)
            with pytest.raises(Unreachable, match="only http and https proxies can be used; name another") as caught:
                proxy_for("https://host:443")
            assert "pass" not in str(caught.value)
