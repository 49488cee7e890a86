"""The reference's proxy protocol said in ours: the same events, losses and faults, in our words."""

import json
from collections.abc import Iterator
from typing import Any

from .words import Json, reason_in

__all__ = ["chunks_in_ours"]

BREAKS = ("\r\n", "\n")


def chunks_in_ours(chunks: list[str]) -> list[bytes | str]:
    """What the server sends, cut as often as theirs was. `WAIT` and `cut` stay what they are."""
    said: list[bytes | str] = []
    run: list[str] = []
    for chunk in [*chunks, None]:
        if chunk is None or chunk in ("WAIT", "cut"):
            said += in_pieces(run)
            run = []
            said += [chunk] if chunk is not None else []
        else:
            run.append(chunk)
    return said


def in_pieces(chunks: list[str]) -> list[bytes]:
    if all(chunk.endswith("\n") for chunk in chunks[:-1]):
        return ["".join(translated(chunk)).encode() for chunk in chunks]
    whole = "".join(translated("".join(chunks))).encode()
    size = max(1, len(whole) // (len(chunks) + 1))  # lines are cut anywhere, and so are characters
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def translated(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        end = next((mark for mark in BREAKS if line.endswith(mark)), "")
        content = line.removesuffix(end)
        if not content.startswith("data:"):
            yield line
            continue
        mark = "data: " if content.startswith("data: ") else "data:"
        events = list(events_of(content.removeprefix(mark)))
        for event in events[:-1]:
            yield f"{mark}{event}\n\n"
        for event in events[-1:]:
            yield f"{mark}{event}{end}{end}"


def events_of(data: str) -> Iterator[str]:
    """One event of theirs as those of ours; what cannot be read stays as it is."""
    try:
        event = json.loads(data)
    except ValueError:
        yield data
        return
    known = isinstance(event, dict) and event.get("type") in TRANSLATIONS
    for told in TRANSLATIONS[event["type"]](event) if known else [event]:
        yield json.dumps(told, ensure_ascii=False)


def usage_event(event: Json) -> Json:
    given: Json = event.get("usage") or {}
    read, write = given.get("cacheRead", 0), given.get("cacheWrite", 0)
    usage: Json = {"input": given.get("input", 0) + read + write, "output": given.get("output", 0)}
    usage |= {"total": given["totalTokens"]} if "totalTokens" in given else {}
    usage |= {"cache_read": read} if read else {}
    usage |= {"cache_write": write} if write else {}
    cost = (given.get("cost") or {}).get("total")
    return {"type": "usage", "usage": usage | ({"cost": cost} if cost is not None else {})}


def signed(kind: str) -> Any:
    def ended(event: Json) -> list[Json]:
        signature = event.get("contentSignature")
        return [{"type": kind, "text": "", "signature": signature}] if signature else []

    return ended


def failed(event: Json) -> list[Json]:
    text = event.get("errorMessage") or event.get("reason") or "the reply failed"
    return [usage_event(event), {"type": "error", "kind": "ModelError", "text": text, "recovery": "never"}]


TRANSLATIONS: dict[str, Any] = {
    "start": lambda event: [usage_event({})],
    "text_start": lambda event: [],
    "text_delta": lambda event: [{"type": "text", "text": event["delta"]}],
    "text_end": signed("text"),
    "thinking_start": lambda event: [],
    "thinking_delta": lambda event: [{"type": "thinking", "text": event["delta"]}],
    "thinking_end": signed("thinking"),
    "toolcall_start": lambda event: [
        {"type": "call", "key": event["contentIndex"], "id": event["id"], "name": event["toolName"]}
    ],
    "toolcall_delta": lambda event: [{"type": "call", "key": event["contentIndex"], "arguments": event["delta"]}],
    "toolcall_end": lambda event: [],
    "done": lambda event: [usage_event(event), {"type": "finish", "reason": reason_in(event["reason"])}],
    "error": failed,
}
