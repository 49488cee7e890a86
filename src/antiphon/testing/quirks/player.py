"""Plays a quirk through a real socket on this machine into a model, and tells what came out otherwise."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import ModelError
from antiphon.providers.anthropic.provider import Anthropic
from antiphon.providers.gemini.provider import Gemini
from antiphon.providers.openai_chat.profiles import PROFILES, ThinkTags
from antiphon.providers.openai_chat.provider import OpenAIChat
from antiphon.providers.openai_responses.provider import OpenAIResponses
from antiphon.testing.quirks.corpus import Expected, ExpectedCall, ExpectedError, Quirk
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.joiner import Joiner
from antiphon.types.messages import AssistantMessage, UserMessage
from antiphon.types.request import CallChunk, Delta, Model, ModelRequest, ToolSpec, WarningChunk

__all__ = ["Played", "differences", "model_for", "play", "serving"]

MODELS = {"openai_responses": "gpt-5", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-3-pro", "openai_chat": "m"}
LOST = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)


class Played(Struct, frozen=True):
    """What came out: the deltas, the message that they make, and the error that ended them."""

    deltas: tuple[Delta, ...]
    message: AssistantMessage
    error: ModelError | None


def model_for(quirk: Quirk, url: str) -> Model:
    """This library's model for a server at `url` that answers with the quirk."""
    name = MODELS[quirk.format]
    match quirk.format:
        case "openai_chat":
            fields: dict[str, Any] = dict(quirk.profile)
            if (tags := fields.get("think_tags")) is not None:
                fields["think_tags"] = ThinkTags(**tags)
            return OpenAIChat(name, base_url=f"{url}/v1", api_key="k", profile=replace(PROFILES["generic"], **fields))
        case "openai_responses":
            return OpenAIResponses(name, base_url=f"{url}/v1", api_key="k")
        case "anthropic":
            return Anthropic(name, base_url=url, api_key="k")
        case "gemini":
            return Gemini(name, base_url=f"{url}/v1beta", api_key="k")


@asynccontextmanager
async def serving(quirk: Quirk, pieces: Sequence[bytes] | None = None) -> AsyncGenerator[str, None]:
    """A server on this machine that answers every request with the quirk; its address. Any client may ask it.

    `pieces` are the same bytes cut otherwise.
    """
    body = quirk.body() if pieces is None else pieces
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)

    async def answer(stream: SocketStream) -> None:
        async with stream:
            with suppress(*LOST):
                await _read_request(stream)
                await _send(stream, quirk, body)

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        port = listener.extra(SocketAttribute.local_port)  # noqa: S610 - no database here
        yield f"http://127.0.0.1:{port}"
        group.cancel_scope.cancel()


async def play(
    quirk: Quirk, pieces: Sequence[bytes] | None = None, make: Callable[[Quirk, str], Model] = model_for
) -> Played:
    """Ask a model whose server answers with the quirk. `make` makes it, given the server's address."""
    tools = tuple([ToolSpec(name=name, parameters=schema) for name, schema in quirk.tools.items()])
    request = ModelRequest(messages=(UserMessage.of("go"),), tools=tools)
    minted = iter(range(1_000_000))
    joiner = Joiner(lambda: f"minted-{next(minted)}")
    deltas: list[Delta] = []
    error: ModelError | None = None
    async with serving(quirk, pieces) as url:
        stream: Any = make(quirk, url).stream(request)
        try:
            async with aclosing(stream):
                async for delta in stream:
                    deltas.append(delta)
                    joiner.add(delta)
        except ModelError as caught:
            error = caught
    return Played(tuple(deltas), joiner.message(), error)


def differences(quirk: Quirk, played: Played) -> list[str]:
    """What came out otherwise than it must; empty if all is well."""
    wanted, message = quirk.expect, played.message
    thinking = "".join([part.text for part in message.parts if isinstance(part, Thinking)])
    found = [
        *_unequal("text", wanted.text, message.text),
        *_unequal("thinking", wanted.thinking, thinking),
        *_call_differences(wanted.calls, message.calls),
        *_told_differences(wanted, played),
        *_error_differences(wanted.error, played.error),
    ]
    if wanted.error is None and wanted.stop is not None:
        found += _unequal("stop reason", wanted.stop, message.stop_reason)
    return found


def _told_differences(wanted: Expected, played: Played) -> list[str]:
    found = _unequal(
        "warnings", sorted(wanted.warnings), sorted([each.code for each in played.deltas if type(each) is WarningChunk])
    )
    if wanted.fragments is not None:
        live = [each for each in played.deltas if isinstance(each, CallChunk) and each.arguments]
        found += _unequal("fragments of arguments", wanted.fragments, len(live))
    kept = [part.signature or "" for part in played.message.parts if isinstance(part, Text | Thinking)]
    found += [f"not kept: {each!r} in {kept!r}" for each in wanted.signatures if not any(each in one for one in kept)]
    for name, count in (wanted.usage or {}).items():
        found += _unequal(f"usage.{name}", count, getattr(played.message.usage, name, None))
    return found


def _call_differences(wanted: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> list[str]:
    found = _unequal("calls", [call.name for call in wanted], [call.name for call in calls])
    if found:
        return found
    ids = [call.id for call in calls]
    if "" in ids or len(set(ids)) != len(ids):
        found.append(f"ids of calls are empty or not unique: {ids!r}")
    for one, call in zip(wanted, calls, strict=True):
        if one.id is not None:
            found += _unequal(f"id of {one.name!r}", one.id, call.id)
        found += _unequal(f"arguments of {one.name!r}", _read(one.arguments), _read(call.arguments))
        opaque = call.opaque or {}
        found += [
            f"not kept with {one.name!r}: {name!r}: {value!r}, but {opaque!r}"
            for name, value in one.opaque.items()
            if opaque.get(name) != value
        ]
    return found


def _error_differences(wanted: ExpectedError | None, error: ModelError | None) -> list[str]:
    if wanted is None or error is None:
        return _unequal("error", wanted, error)
    found = _unequal("error", wanted.kind, type(error).__name__)
    if wanted.says not in str(error):
        found.append(f"the error does not say {wanted.says!r}: {str(error)!r}")
    if wanted.recovery is not None:
        found += _unequal("recovery", wanted.recovery, error.recovery)
    return found + (_unequal("code", wanted.code, error.code) if wanted.code is not None else [])


def _unequal(what: str, wanted: object, got: object) -> list[str]:
    return [] if wanted == got else [f"{what}: wanted {wanted!r}, got {got!r}"]


def _read(arguments: str) -> Any:
    """Arguments compared as JSON; text that is none as it is. Blank ones are an empty object."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


async def _read_request(stream: SocketStream) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    fields = [line.partition(b":") for line in head.lower().split(b"\r\n")]
    length = next((int(value) for name, _, value in fields if name == b"content-length"), 0)
    while len(body) < length:
        body += await stream.receive()


async def _send(stream: SocketStream, quirk: Quirk, body: Sequence[bytes]) -> None:
    head = f"HTTP/1.1 {quirk.status} X\r\ncontent-type: {quirk.content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    await stream.send(head.encode())
    for piece in body:
        if piece:
            await stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    if quirk.end == "whole":
        await stream.send(b"0\r\n\r\n")
