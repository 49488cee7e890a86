"""A request's body under the eyes of the application: its extra fields, and the hook that sees what would go out."""

import inspect
from typing import Any, cast

import msgspec

from antiphon.types.request import PayloadHook

__all__ = ["merged", "seen_body", "seen_payload"]


def merged(body: dict[str, Any], extra: dict[str, Any], joined: tuple[str, ...] = ()) -> dict[str, Any]:
    """`extra` over `body`; where both have an object, its fields are merged, and the lists named in `joined` appended."""
    over = dict(extra)
    for name, value in extra.items():
        under = body.get(name)
        if isinstance(under, dict) and isinstance(value, dict):
            over[name] = {**cast("dict[str, Any]", under), **cast("dict[str, Any]", value)}
        elif name in joined and isinstance(under, list) and isinstance(value, list):
            over[name] = [*cast("list[Any]", under), *cast("list[Any]", value)]
    return {**body, **over}


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
