"""A model in this process: the built-in one, or any GGUF file."""

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final, Literal

from anyio import to_thread

from antiphon.errors import Rejected, UsageError
from antiphon.providers.llama_cpp._asker import Slot
from antiphon.providers.llama_cpp.engine import Engine, EngineOptions, require_engine
from antiphon.providers.llama_cpp.small import Called, Said, SmallModel, Turn
from antiphon.providers.llama_cpp.weights import Progress, assemble, require_weights
from antiphon.providers.raw_stream import RawStreamModel
from antiphon.types.cancel import CancelSignal
from antiphon.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from antiphon.types.request import (
    Delta,
    FinishChunk,
    ModelInfo,
    ModelRequest,
    TextChunk,
    UsageChunk,
    WarningChunk,
    WholeCall,
)

__all__ = ["BUILT_IN", "LlamaCppModel", "Way", "local_model"]

Way = Literal["auto", "chat", "small"]
"""How a file is asked: by its chat template, or by the short prompts of the small model; `auto` takes the template if it
knows tools."""

PROVIDER: Final = "local"
BUILT_IN: Final = "gemma3-270m"
"""The name of the built-in model."""
SMALL_CONTEXT: Final = 1536
"""Tokens of each of the small model's short prompts."""
CONTEXT: Final = 8192


class LlamaCppModel:
    """A model that answers in this process, through llama.cpp. Models of one file share it.

    Without `path` it is the built-in model: small, deaf to instructions and settings, good for trying things out. Its
    weights are put together at the first request (`progress` is told, in a worker thread). `context` is in tokens;
    `threads` more than 1 only helps on cores that nobody else uses. Raises `UsageError` when a package or the file is
    missing.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        context: int | None = None,
        threads: int = 1,
        chat_template: str | None = None,
        way: Way = "auto",
        progress: Progress | None = None,
        info: ModelInfo | None = None,
    ) -> None:
        require_engine()
        if path is None:
            require_weights()
        elif not Path(path).is_file():
            what = "is a folder" if Path(path).is_dir() else "is not there"
            raise UsageError(f"{str(path)!r} {what}; give the path of a GGUF file")
        self._path = None if path is None else str(path)
        self._way: Way = "small" if path is None else way
        self._context = context or CONTEXT
        self._threads = threads
        self._template = chat_template
        self._progress = progress
        name = BUILT_IN if path is None else Path(path).stem
        window = None if self._way == "small" else self._context  # the small model looks at the last question alone
        self.info = info or ModelInfo(provider=PROVIDER, id=name, context_window=window)
        self._engine: Engine | None = None
        self._small: SmallModel | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Delta, None]:
        """The reply, token by token. Leaving early stops the model at its next token. Raises only `ModelError`."""
        engine = await self._open()
        if self._way == "small":
            deltas = self._ask_small(request, engine)
        else:
            deltas = RawStreamModel(self._ask_chat, model=self.info.id, info=self.info).stream(request)
        async with aclosing(deltas):
            async for delta in deltas:
                yield delta

    async def warm(self) -> None:
        """Load the file, so that the first request need not wait for it."""
        await (await self._open()).template_supports_tools()

    async def aclose(self) -> None:
        """Free the model, if nobody else uses its file. A later request loads it again."""
        engine, self._engine, self._small = self._engine, None, None
        if engine is not None:
            await engine.aclose()

    async def _open(self) -> Engine:
        """The engine, when it is settled which way to ask it."""
        if self._engine is not None:
            return self._engine
        path = self._path or await self._assembled()
        engine = Engine.shared(self._options(path, small=self._way == "small"))
        try:
            if self._way == "auto":
                self._way = "chat" if await engine.template_supports_tools() else "small"
                if self._way == "small":
                    await engine.aclose()
                    engine = Engine.shared(self._options(path, small=True))
        finally:
            if self._engine is None and self._way != "auto":
                self._engine = engine
            else:  # it failed, or another request was faster
                await engine.aclose()
        return self._engine or engine

    def _options(self, path: str, *, small: bool) -> EngineOptions:
        return EngineOptions(
            path,
            context=min(self._context, SMALL_CONTEXT) if small else self._context,
            threads=self._threads,
            slots=len(Slot) if small else 1,
            chat_template=self._template,
            whole_window=True,
        )

    async def _assembled(self) -> str:
        try:
            return str(await to_thread.run_sync(lambda: assemble(progress=self._progress)))
        except UsageError as error:
            raise Rejected(str(error), provider=self.info.provider) from error

    def _ask_chat(self, body: Any, _: CancelSignal) -> AsyncIterable[dict[str, Any]]:
        engine = self._engine
        assert engine is not None  # `stream` has opened it
        return engine.chat({**body, "stream_options": {"include_usage": True}})

    async def _ask_small(self, request: ModelRequest, engine: Engine) -> AsyncGenerator[Delta, None]:
        if self._small is None:
            self._small = SmallModel(engine)
        if request.settings.response_schema is not None:
            yield WarningChunk(
                "unsupported_setting", f"{self.info.id!r} cannot answer by a schema; it answers in words"
            )
        called = False
        async with aclosing(self._small.reply(turn_of(request))) as steps:
            async for step in steps:
                match step:
                    case Said(text):
                        yield TextChunk(text)
                    case Called(name, arguments):
                        called = True
                        yield WholeCall(name, arguments)
                    case _:
                        yield UsageChunk(step.usage)
                        reason = "tool_calls" if called else "length" if step.cut else "stop"
                        yield FinishChunk(reason, model=self.info.id)


def local_model(name: str = "", **options: Any) -> LlamaCppModel:
    """The model that `local:` stands for: the built-in one, or that of the GGUF file whose path follows the colon."""
    return LlamaCppModel(None if name in {"", BUILT_IN} else name, **options)


def turn_of(request: ModelRequest) -> Turn:
    """What of a request the small model can take in: the last question, what its calls gave, the questions before."""
    questions = [i for i, message in enumerate(request.messages) if isinstance(message, UserMessage)]
    last = questions[-1] if questions else -1
    asked = request.messages[last] if questions else None
    return Turn(
        question=asked.text if isinstance(asked, UserMessage) else "",
        results=tuple(
            [
                (message.text, message.is_error)
                for message in request.messages[last + 1 :]
                if isinstance(message, ToolResultMessage)
            ]
        ),
        history=tuple(_pairs(request.messages[: max(last, 0)])),
        tools=request.tools,
        instructions=request.instructions,
        choice=request.tool_choice,
        limit=request.settings.max_output_tokens,
    )


def _pairs(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Each question with the last words of its answer."""
    pairs: list[tuple[str, str]] = []
    for message in messages:
        if isinstance(message, UserMessage):
            pairs.append((message.text, ""))
        elif isinstance(message, AssistantMessage) and pairs and message.text:
            pairs[-1] = (pairs[-1][0], message.text)
    return [pair for pair in pairs if all(pair)]
