"""The model that answers in the documentation: it says what the page's scripts say, under whatever name it is asked for."""

import importlib
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from antiphon import errors
from antiphon.types.request import Delta, FinishChunk, ModelRequest, TextChunk, ThinkingChunk, UsageChunk, WholeCall
from antiphon.types.usage import Usage

RESOLVER = "antiphon.providers.resolve"
"""The file whose `get_model` turns a string into a model."""

UNSCRIPTED = "A scripted reply."
"""What the model says in a block without a script."""


class Stage:
    """Answers each request with the next reply of the block's script.

    A reply is a string (text), an object, or a list of those. An object is `{"text": "..."}`, `{"thinking": "..."}`,
    `{"tool": "name", "arguments": {...}}`, or `{"error": "Overloaded", "message": "..."}`, which raises that error.
    """

    def __init__(self) -> None:
        self._replies: deque[Any] | None = None
        self.info: Any = None

    def play(self, script: Sequence[Any] | None) -> None:
        """Take the script of the next block; without one, every request gets the same text."""
        self._replies = None if script is None else deque(script)

    @property
    def unplayed(self) -> list[Any]:
        """The replies that nobody asked for."""
        return list(self._replies or ())

    async def stream(self, request: ModelRequest, /) -> AsyncIterator[Delta]:
        """The next reply, in small pieces, with a usage and a terminal marker."""
        pieces = self._next()
        for piece in pieces:
            match piece:
                case str(text) | {"text": str(text)}:
                    for place, word in enumerate(text.split(" ")):
                        yield TextChunk(f" {word}" if place else word)
                case {"thinking": str(text)}:
                    yield ThinkingChunk(text)
                case {"tool": str(name), **rest}:
                    yield WholeCall(name, rest.get("arguments", {}))
                case {"error": str(name), **rest}:
                    raise getattr(errors, name)(rest.get("message", "as the script says"))
                case _:
                    message = f"no such reply in a script: {piece!r}; see {Stage.__name__}"
                    raise ValueError(message)
        yield UsageChunk(Usage(input=len(request.messages) * 10, output=len(pieces) * 5))
        calls = any(isinstance(piece, dict) and "tool" in piece for piece in pieces)
        yield FinishChunk("tool_calls" if calls else "stop")

    def _next(self) -> list[Any]:
        if self._replies is None:
            return [UNSCRIPTED]
        if not self._replies:
            raise errors.Rejected("the script before this block has no reply left; add one for each request")
        reply = self._replies.popleft()
        return reply if isinstance(reply, list) else [reply]


@contextmanager
def on_stage() -> Iterator[Stage]:
    """Put a scripted model in the place of every named one, and shut the network.

    The name is still looked up, so that a page cannot show a model that does not exist. `get_model` is replaced wherever
    a module holds it, and put back wherever one holds the replacement: modules that were loaded in between do too.
    """
    stage = Stage()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", _only_here(socket.getaddrinfo))
        try:
            real: Callable[..., Any] = importlib.import_module(RESOLVER).get_model
        except ModuleNotFoundError as error:
            if error.name != RESOLVER:
                raise
            yield stage  # no name can be resolved, so none can be used
            return

        def get_model(*args: Any, **kwargs: Any) -> Stage:
            stage.info = getattr(real(*args, **kwargs), "info", None)
            return stage

        _replace(real, get_model)
        try:
            yield stage
        finally:
            _replace(get_model, real)


def _replace(old: object, new: object) -> None:
    for module in [module for name, module in sys.modules.items() if name.split(".")[0] == "antiphon"]:
        for name in [name for name, value in vars(module).items() if value is old]:
            setattr(module, name, new)


def _only_here(real: Callable[..., Any]) -> Callable[..., Any]:
    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if (host.decode() if isinstance(host, bytes) else host) not in {None, "localhost", "127.0.0.1", "::1"}:
            message = f"a documentation block asked for {host!r}; name the model by a string, or use 127.0.0.1"
            raise OSError(message)
        return real(host, *args, **kwargs)

    return getaddrinfo
