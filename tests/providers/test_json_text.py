"""What goes onto the wire is JSON that every server reads."""

import json

import pytest

from antiphon.errors import UsageError
from antiphon.providers.json_text import dumps


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("plain", "plain"),
        ("a\0b", "ab"),
        ("half \ud83d of a character", "half \ufffd of a character"),
        ("\0 and \udc00 together", " and \ufffd together"),
        ({"k\0": ["x\0", 1, None]}, {"k": ["x", 1, None]}),
        ("the text \\u0000 itself", "the text \\u0000 itself"),
    ],
)
def test_what_no_server_takes_is_left_out_of_what_is_sent(value, sent) -> None:
    """A NUL or half a character that a tool read from a file would make a server refuse the whole conversation."""
    assert json.loads(dumps(value)) == sent


def test_what_json_cannot_hold_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="extra_body"):
        dumps({"x": object()})
