"""How long a server asks to wait, in the forms that servers use. Always seconds."""

import re
import time
from collections.abc import Mapping

__all__ = ["retry_after", "seconds_in"]

_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|us|µs|h|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "µs": 1e-6}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The wait that the headers ask for, in seconds; `None` if they name none that can be understood.

    `headers` have lower-case names. In order: `retry-after-ms` (OpenAI, Azure); `retry-after`, a number or a date (RFC
    9110, section 10.2.3), the date measured against the server's own `date`; `x-ratelimit-reset-requests` and
    `-tokens`, as in "6m0s" (OpenAI and Groq, "rate limits in headers"), for those of which nothing remains.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    given = headers.get("retry-after")
    if (seconds := _number(given)) is not None:
        return seconds
    if given and (due := _timestamp(given)) is not None:
        now = _timestamp(headers.get("date", ""))
        return max(0.0, due - (time.time() if now is None else now))
    resets = (
        seconds_in(headers.get(f"x-ratelimit-reset-{what}", ""))
        for what in ("requests", "tokens")
        if _number(headers.get(f"x-ratelimit-remaining-{what}")) == 0
    )
    return max((reset for reset in resets if reset is not None), default=None)


def seconds_in(text: str) -> float | None:
    """The seconds in "1.5s", "6m0s", "120ms"; `None` for other text."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and _NUMBER.fullmatch(text := text.strip()) else None


def _timestamp(date: str) -> float | None:
    from email.utils import parsedate_to_datetime  # here: rarely needed, and it loads the whole mail package

    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None
