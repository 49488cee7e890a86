"""A request's body under the eyes of the application: `on_payload` sees the JSON that would go out, and may replace it."""

import inspect
from typing import Any

import msgspec

from antiphon.types.request import PayloadHook

__all__ = ["seen_body", "seen_payload"]


async def seen_payload(payload: dict[str, Any], hook: PayloadHook) -> dict[str, Any]:
    """What the hook makes of the payload; itself if the hook returns nothing. What the hook raises passes through."""
    changed = hook(payload)
    if inspect.isawaitable(changed):
        changed = await changed
    return payload if changed is None else changed


async def seen_body(body: bytes, hook: PayloadHook | None) -> bytes:
    """As `seen_payload`, for a body that is encoded already."""
    if hook is None:
        return body
    return msgspec.json.encode(await seen_payload(msgspec.json.decode(body), hook))
