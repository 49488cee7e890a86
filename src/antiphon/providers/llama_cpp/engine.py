"""llama.cpp in this process: one GGUF file, loaded once, asked in turn, its answers streamed to any event loop.

The engine is llama.cpp's own server as the package xllamacpp carries it (github.com/xorbitsai/xllamacpp). Requests and
chunks are the JSON objects of its `/v1/completions` and `/v1/chat/completions` (llama.cpp, tools/server/README.md). It
blocks the calling thread without holding the interpreter's lock, so a thread of its own asks it.
"""

import asyncio
import http.client
import json
import secrets
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from msgspec import Struct

from antiphon.errors import ContextOverflow, ModelError, Overloaded, Rejected, UsageError
from antiphon.providers.llama_cpp._job import LEAVE, Job

__all__ = ["Engine", "EngineOptions", "require_engine"]

PROVIDER: Final = "llama_cpp"
BATCH: Final = 64
"""Prompt tokens between two looks at whether the request was cancelled."""

Door = Literal["handle_completions", "handle_chat_completions"]


class EngineOptions(Struct, frozen=True):
    """Which file, and how it is run. `context` is in tokens, for each of `slots`, the prompts that are kept at once.

    `chat_template` (Jinja) stands in for the file's own. `whole_window` keeps the cache of models with a sliding window
    whole, so that a prompt's beginning is found again.
    """

    path: str
    context: int = 8192
    threads: int = 1
    slots: int = 1
    chat_template: str | None = None
    whole_window: bool = False


class Engine:
    """One GGUF file in this process. Loading waits for the first request; any number of event loops may ask.

    Loading holds the interpreter's lock (about a second for a small file), answering does not. Requests are answered one
    at a time, in the order asked. The file stays loaded until `aclose()`, or until nobody holds the engine any more.
    """

    def __init__(self, options: EngineOptions) -> None:
        self.options = options
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._finalizer: weakref.finalize[[SimpleQueue[Job | None]], Engine] | None = None
        self._running: set[Job] = set()
        self._template: dict[str, Any] = {}
        self._users = 1

    @classmethod
    def shared(cls, options: EngineOptions) -> "Engine":
        """The process's one engine for these options. Every user closes it; the last one frees the model."""
        with _sharing:
            engine = _shared.get(options)
            if engine is None:
                engine = _shared[options] = cls(options)
            else:
                with engine._lock:
                    engine._users += 1
            return engine

    def completions(self, body: dict[str, Any], *, keep: str | None = None) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of a plain completion. Leaving the iteration ends the request. Raises `ModelError`.

        `keep` is the beginning of the prompt that others in the same slot (`id_slot`) have too. It stays evaluated, and
        exactly it: then the answer depends on the prompt alone, and not on what was asked before (rounding depends on
        how many tokens are evaluated at once).
        """
        return self._ask("handle_completions", body, keep)

    def chat(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of a chat completion, as `completions`."""
        return self._ask("handle_chat_completions", body)

    async def template_supports_tools(self) -> bool:
        """Whether the chat template takes tools; loads the file. Without it llama.cpp drops them silently."""
        if not self._template:
            job = Job(_inspect, asyncio.get_running_loop())
            self._submit(job)
            try:
                while await job.more():
                    self._template = job.chunks.popleft()
            finally:
                await self._leave(job)
        return self._template.get("supports_tools", False)

    async def aclose(self) -> None:
        """Free the model once its last user has closed it. What still runs is cut off; a later request loads it again."""
        with self._lock:
            self._users -= self._users > 0
            if self._users or self._thread is None:
                return
            thread, self._thread = self._thread, None
            if self._finalizer is not None:
                self._finalizer()  # puts the end mark into this thread's queue
            self._jobs = SimpleQueue()
            for job in self._running:
                job.cut_off()
        with anyio.move_on_after(LEAVE, shield=True):
            await to_thread.run_sync(thread.join, LEAVE, abandon_on_cancel=True)

    async def _ask(
        self, door: Door, body: dict[str, Any], keep: str | None = None
    ) -> AsyncGenerator[dict[str, Any], None]:
        sent = {**body, "stream": True, "return_progress": True}

        def work(server: _Server, put: Callable[[dict[str, Any]], bool]) -> None:
            if keep is not None:
                server.settle(keep, int(body.get("id_slot", 0)), lambda _: job.left)
            if not job.left:
                getattr(server, door)(sent, put)

        job = Job(work, asyncio.get_running_loop())
        self._submit(job)
        try:
            while await job.more():
                chunk = job.chunks.popleft()
                if error := chunk.get("error"):
                    raise _translated(error)
                if "prompt_progress" not in chunk:
                    yield chunk
        finally:
            await self._leave(job)

    async def _leave(self, job: Job) -> None:
        with self._lock:
            self._running.discard(job)
        await job.leave()

    def _submit(self, job: Job) -> None:
        with self._lock:
            if self._thread is None:
                jobs = self._jobs
                self._thread = threading.Thread(
                    target=_serve, args=(self.options, jobs), name="antiphon-llama.cpp", daemon=True
                )
                self._finalizer = weakref.finalize(self, _dismiss, jobs)
                self._thread.start()
            self._running.add(job)
            self._jobs.put(job)


_sharing = threading.Lock()
_shared: "weakref.WeakValueDictionary[EngineOptions, Engine]" = weakref.WeakValueDictionary()


def require_engine() -> None:
    """Raises `UsageError` when the package that carries llama.cpp is not installed. Loads nothing."""
    if find_spec("xllamacpp") is None:
        raise UsageError(
            "a model in this process needs llama.cpp, which is not installed; pip install 'antiphon[local]'"
        )


def _dismiss(jobs: SimpleQueue[Job | None]) -> None:
    jobs.put(None)


def _serve(options: EngineOptions, jobs: SimpleQueue[Job | None]) -> None:
    """The thread: load at the first job, answer one after the other, free the model at the end mark."""
    server: _Server | None = None
    while (job := jobs.get()) is not None:
        if job.left:
            job.end()
            continue
        job.begun = True
        try:
            server = server or _load(options)
            job.work(server, job.put)
        except (ModelError, UsageError) as error:
            job.failure = error
        except Exception as error:  # noqa: BLE001 - carried to the one who asked; the thread serves the others
            failure = Rejected(f"llama.cpp failed: {error}", provider=PROVIDER)
            failure.__cause__ = error
            job.failure = failure
        job.end()
        del job
    if server is not None:
        server.let_begin()


def enough(_chunk: dict[str, Any]) -> bool:
    """Asks a stream to end."""
    return True


class _Server:
    """llama.cpp's server and the key to its port."""

    def __init__(self, server: Any, key: str) -> None:
        self._begun = False
        self.handle_completions = self._heard(server.handle_completions)
        self.handle_chat_completions = self._heard(server.handle_chat_completions)
        self.address: str = server.listening_address
        self.key = key
        self._kept: dict[int, str] = {}

    def _heard(self, handle: Callable[..., Any]) -> Callable[..., Any]:
        """`handle`, noting that the server's loop has said something."""

        def heard(body: dict[str, Any], put: Callable[[dict[str, Any]], Any]) -> Any:
            def note(chunk: dict[str, Any]) -> Any:
                self._begun = True
                return put(chunk)

            return handle(body, note)

        return heard

    def let_begin(self) -> None:
        """Wait until the server's loop runs, which the server must do before it is freed.

        A stop that comes before the loop has begun is lost: freeing then waits for the loop for ever, and holds the
        interpreter's lock while it waits.
        """
        if not self._begun:
            self.handle_completions({"prompt": ".", "max_tokens": 1, "stream": True}, enough)

    def settle(self, keep: str, slot: int, left: Callable[[dict[str, Any]], bool]) -> None:
        """Bring a slot to the state in which it has evaluated `keep` and nothing else, always by the same two steps."""
        body = {"prompt": keep, "max_tokens": 1, "id_slot": slot, "stream": True, "return_progress": True}
        if self._kept.get(slot) != keep:
            self._kept.pop(slot, None)
            ended: list[dict[str, Any]] = []

            def note(chunk: dict[str, Any]) -> bool:
                ended.extend([chunk] if "usage" in chunk else [])
                return left(chunk)

            self.handle_completions({**body, "cache_prompt": False}, note)
            if not ended:  # cut off, or refused: the request itself will say why
                return
            self._kept[slot] = keep
        self.handle_completions({**body, "cache_prompt": True}, left)


def _load(options: EngineOptions) -> _Server:
    require_engine()
    _check_file(options.path)
    import xllamacpp  # pyright: ignore[reportMissingTypeStubs] - an extension module without stubs

    llama: Any = xllamacpp
    params = llama.CommonParams()
    params.model.path = options.path
    params.model_alias = {Path(options.path).stem}  # else replies tell the path
    params.n_ctx = options.context * options.slots
    params.n_parallel = options.slots
    params.kv_unified = False
    params.swa_full = options.whole_window
    params.n_batch = params.n_ubatch = BATCH
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.cache_ram_mib = 0  # prompts that left their slot are not kept
    params.verbosity = -1
    params.warmup = False
    params.use_jinja = True
    if options.chat_template is not None:
        params.chat_template = options.chat_template
    # The server listens on a free port of 127.0.0.1, which cannot be turned off: a secret keeps other users out.
    params.ui = False
    params.api_keys = [secrets.token_urlsafe(32)]
    try:
        return _Server(llama.Server(params), params.api_keys[0])
    except RuntimeError as error:
        raise Rejected(
            f"{options.path!r} cannot be loaded; it is broken, or of a kind that this llama.cpp does not know: "
            "fetch it again, or update xllamacpp",
            provider=PROVIDER,
        ) from error


def _check_file(path: str) -> None:
    try:
        with Path(path).open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise Rejected(f"{path!r} cannot be read: {error.strerror}; give the path of a GGUF file") from error
    if magic != b"GGUF":
        raise Rejected(f"{Path(path).name!r} is not a GGUF file; give the path of one", provider=PROVIDER)


def _inspect(server: _Server, put: Callable[[dict[str, Any]], bool]) -> None:
    """What llama.cpp found out about the template (`chat_template_caps` of `GET /props`)."""
    connection = http.client.HTTPConnection(urlsplit(server.address).netloc, timeout=LEAVE)
    try:
        connection.request("GET", "/props", headers={"Authorization": f"Bearer {server.key}"})
        props: dict[str, Any] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    put(props.get("chat_template_caps") or {"supports_tools": False})


def _translated(error: dict[str, Any]) -> ModelError:
    """llama.cpp's error object: `code` is an HTTP status, `type` its own word."""
    text, code, kind = str(error.get("message", error)), error.get("code"), error.get("type")
    status = code if isinstance(code, int) else None
    if kind == "exceed_context_size_error":
        failure: type[ModelError] = ContextOverflow
    else:
        failure = Overloaded if status is not None and status >= 500 else Rejected
    return failure(f"llama.cpp refused the request: {text}", status=status, code=kind, provider=PROVIDER)
