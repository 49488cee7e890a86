"""What a server says went wrong: the words, codes and hints in the body of an error, whatever its shape."""

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from antiphon.wire._duration import seconds_in

__all__ = ["Complaint", "read_complaint"]

_DEPTH = 6  # of nesting that is looked into; real bodies have four
_NESTED = ("error", "errors", "message", "detail")
_SPOKEN = ("message", "msg", "error_description", "detail", "error", "title")
_CODES = ("code", "type", "status", "error_code", "error_type", "reason")
_STATUS = re.compile(r"[45]\d\d")
_MORE = ("details", "innererror", "metadata")


class Complaint(Struct, kw_only=True):
    """The content of an error body.

    `text` is what a person may read, `codes` the server's words for the failure, the most telling first. `status` is an
    HTTP status named in the body, `wait` the seconds to wait, each if there is one.
    """

    text: str = ""
    codes: list[str] = []
    status: int | None = None
    wait: float | None = None


def read_complaint(body: bytes) -> Complaint:
    """Read an error body. JSON in the shapes that servers use, else text as it is (HTML of a proxy, for instance).

    Shapes: `{"error": {"message", "type", "code"}}` (OpenAI, Anthropic, Google, llama.cpp), `{"error": "text"}` (Ollama,
    TGI), `{"message": "text"}` (Mistral, vLLM, Bedrock), `{"detail": "text" or [{"loc", "msg"}]}` (FastAPI),
    `{"errors": [..]}` (Cloudflare), any of them in a list (Google) or as JSON text in a message (gateways).
    """
    complaint = Complaint()
    said = _listen(_decoded(body), complaint, 0)
    complaint.text = " ".join((said or body.decode(errors="replace")).split())
    return complaint


def _decoded(text: bytes | str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _listen(node: Any, complaint: Complaint, depth: int) -> str:
    """What `node` says, its codes and hints noted; the innermost first, because the outer ones only wrap."""
    if depth > _DEPTH:
        return ""
    if isinstance(node, str):
        inner = _decoded(node) if node.lstrip()[:1] in ("{", "[") else None
        return _listen(inner, complaint, depth + 1) or node
    if isinstance(node, list):
        heard = (_listen(item, complaint, depth + 1) for item in cast("list[Any]", node)[:20])
        return "; ".join(dict.fromkeys(text for text in heard if text))
    if isinstance(node, dict):
        return _listen_to_object(cast("dict[str, Any]", node), complaint, depth + 1)
    return ""


def _listen_to_object(node: dict[str, Any], complaint: Complaint, depth: int) -> str:
    said = ""
    for key in _NESTED:
        if isinstance(node.get(key), dict | list):
            said = said or _listen(node[key], complaint, depth)
    for key in _SPOKEN:
        if not said and isinstance(node.get(key), str):
            said = _listen(node[key], complaint, depth)
    _note(node, complaint)
    for key in _MORE:
        for item in _objects(node.get(key)):
            _note(item, complaint)
            if isinstance(raw := item.get("raw"), str):  # OpenRouter: what the provider behind it said
                said = "; ".join(filter(None, (said, _listen(raw, complaint, depth))))
    place = cast("list[Any]", node["loc"]) if isinstance(node.get("loc"), list) else []
    return f"{'.'.join(map(str, place))}: {said}" if place and said else said


def _note(node: Mapping[str, Any], complaint: Complaint) -> None:
    for key in _CODES:
        value = node.get(key)
        number = int(value) if isinstance(value, str) and _STATUS.fullmatch(value) else value
        if isinstance(number, int) and 400 <= number < 600:
            complaint.status = complaint.status or number
        elif isinstance(value, str) and value and value != "error" and value not in complaint.codes:
            complaint.codes.append(value)
    if complaint.wait is None and isinstance(delay := node.get("retryDelay"), str):  # Google: google.rpc.RetryInfo
        complaint.wait = seconds_in(delay)


def _objects(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
