"""What the server attached to its items, kept as JSON text with the parts, so that it can go back where it came from.

platform.openai.com/docs/guides/reasoning, "Keeping reasoning items in context" and "Encrypted reasoning items": without
a stored response, a reasoning item goes back whole, its `encrypted_content` in it; docs/api-reference/responses/create,
"input": an assistant message's `phase` should go back, ids of messages and calls may.
"""

import re
from typing import Any

import msgspec

from antiphon.providers.lenient import text_in
from antiphon.providers.marks import fields_of, mark_of

__all__ = ["HOSTED", "item_in", "kept_item", "text_mark", "usable_id"]

HOSTED = frozenset(
    {
        "code_interpreter_call",
        "compaction",
        "file_search_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "web_search_call",
    }
)
"""Items of which all is done by the server: they go back as they came, since reasoning items refer to them."""

# An id that the server would not take back is worse than none. Gateways send encrypted text of any length as ids.
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def kept_item(item: dict[str, Any]) -> str | None:
    """A reasoning item, or one of a hosted tool, as the signature that is replayed; `None` for what cannot be.

    A reasoning item without encrypted content refers to a stored response, and nothing is stored; its plain content is
    what servers of open models read. Both at once are refused. `status` is no field of an input.
    """
    if item.get("type") in HOSTED:
        return _text(item)
    kept = {name: value for name, value in item.items() if name not in ("status", "content") and value is not None}
    if not kept.get("encrypted_content"):
        kept.pop("encrypted_content", None)
        if not item.get("content"):
            return None
        kept["content"] = item["content"]
    return _text({"type": "reasoning", "summary": [], **kept})


def item_in(signature: str | None) -> dict[str, Any] | None:
    """The item that a signature holds; `None` if it is of another kind."""
    item = fields_of(signature)
    kind = text_in(item.get("type"))
    return item if kind == "reasoning" or kind in HOSTED else None


def text_mark(item: dict[str, Any], origin: str | None, *, with_id: bool) -> str | None:
    """What a message item has beside its text, as the text's signature; `None` if there is nothing worth keeping."""
    mark: dict[str, Any] = {}
    if with_id and (known := usable_id(item.get("id"))):
        mark["id"] = known
    if isinstance(phase := item.get("phase"), str):
        mark["phase"] = phase
    return mark_of(origin, mark) if mark else None


def usable_id(value: Any) -> str:
    """The id if it can be sent back, else an empty one."""
    return value if isinstance(value, str) and _ID.match(value) else ""


def _text(value: dict[str, Any]) -> str | None:
    """JSON text; `None` for what is nested too deep for it."""
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, OverflowError, RecursionError):
        return None
