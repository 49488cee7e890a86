"""The back end's side of the proxy: an ASGI app that holds the keys and lends its models to clients with a token.

    app = proxy_app({"fast": "openai:gpt-5-mini"}, check_token=fixed_tokens(os.environ["APP_TOKEN"]))

It is served by any ASGI server, alone or mounted in another app; `antiphon.providers.proxy.ProxyModel` is the client, and
`antiphon.providers.proxy_wire` says what they tell each other. A client names a model and never an address. When it goes
away, its request to the model ends.
"""

import hashlib
import hmac
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import aclosing, nullcontext
from typing import Any, Final, TypeAlias, cast

import anyio
import anyio.lowlevel
import msgspec
from msgspec.structs import replace

from antiphon.errors import Dropped, ModelError, UsageError
from antiphon.providers.proxy_wire import ProxyRequest, decode_request, encode_delta, encode_error
from antiphon.providers.resolve import resolve_model
from antiphon.types.cancel import CancelToken
from antiphon.types.request import Delta, FinishChunk, Model, ModelFunction, ModelInfo, ModelRequest, UsageChunk
from antiphon.types.thinking import effective_thinking
from antiphon.wire.sse import encode_comment, encode_event

try:
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route
    from starlette.types import Receive, Scope, Send
except ImportError as error:  # pragma: no cover - the tests have it
    raise ImportError("the back end's side of the proxy needs starlette; pip install 'antiphon[serve]'") from error

__all__ = ["ModelFinder", "TokenCheck", "fixed_tokens", "proxy_app"]

logger = logging.getLogger(__name__)

TokenCheck: TypeAlias = Callable[[str], Any]
"""Says who a token belongs to, at once or later: anything that is true. What is false is refused."""

ModelFinder: TypeAlias = Callable[[str, Any], Any]
"""The model of a name for one who asks (what the token check gave), at once or later; `None` if there is none."""

_BODY_SECONDS: Final = 60.0
_PATIENCE: Final = 4  # times the largest body is read to its end before it is refused: who still writes hears no answer
_STREAM: Final = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold the events back
]


def proxy_app(
    models: Mapping[str, str | Model | ModelFunction] | ModelFinder,
    check_token: TokenCheck,
    *,
    allow: Collection[str] | None = None,
    allow_extras: bool = False,
    max_body: int = 16 * 1024 * 1024,
    keep_alive: float = 15.0,
) -> Starlette:
    """An app with `POST /stream` and `GET /models`.

    `models` are the models by the names that clients use, or a function that finds one for a name and a user; `allow`
    leaves only these names. `check_token` gets the bearer token of every request. `allow_extras` passes a client's
    `extra_body` and `extra_headers` on, which can change anything in the request to the provider, the model included:
    for clients that are trusted. `max_body` is in bytes; `keep_alive` the seconds of silence after which a comment is
    sent, below the patience of the servers in between.
    """
    if max_body < 1 or keep_alive <= 0:
        raise UsageError(f"limits above 0, please: max_body={max_body!r}, keep_alive={keep_alive!r}")
    back = _BackEnd(*_finder_of(models, allow), check_token, allow_extras)

    async def stream(request: Request) -> Response:
        user = await back.user(request)
        asked = _understood(await _body(request, max_body))
        model = await back.model(asked.model, user)
        cancel = CancelToken()
        return _Reply(model, back.request(asked, model, cancel), cancel, keep_alive)

    async def listing(request: Request) -> Response:
        return _json(200, {"models": await back.listing(await back.user(request))})

    return Starlette(
        routes=[Route("/stream", stream, methods=["POST"]), Route("/models", listing, methods=["GET"])],
        exception_handlers={_Refusal: _refuse},
    )


def fixed_tokens(*tokens: str) -> Callable[[str], bool]:
    """A token check against these tokens, in a time that does not depend on how much of one is right."""
    if not tokens or not all(token.strip() for token in tokens):
        raise UsageError("no token to check against; give at least one, and none that is empty")
    known = [hashlib.sha256(token.encode()).digest() for token in tokens]

    def check(token: str) -> bool:
        given = hashlib.sha256(token.encode(errors="replace")).digest()
        return any([hmac.compare_digest(given, each) for each in known])  # noqa: C419 - all of them, every time

    return check


def _finder_of(
    models: Mapping[str, str | Model | ModelFunction] | ModelFinder, allow: Collection[str] | None
) -> tuple[ModelFinder, list[str]]:
    """What finds a model, and the names that can be told beforehand: with a function, those that were allowed."""
    if callable(models):

        def of_allowed(name: str, user: Any) -> Any:
            return models(name, user) if allow is None or name in allow else None

        return of_allowed, sorted(allow or ())
    named = {name: resolve_model(model) for name, model in models.items() if allow is None or name in allow}
    return lambda name, _: named.get(name), sorted(named)


class _Refusal(Exception):
    """No to a request, before a stream began."""

    def __init__(self, status: int, code: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.code = code


class _BackEnd:
    """Who may ask, and whom."""

    def __init__(self, finder: ModelFinder, names: list[str], check_token: TokenCheck, allow_extras: bool) -> None:
        self._finder = finder
        self._names = names
        self._check_token = check_token
        self._allow_extras = allow_extras

    async def user(self, request: Request) -> Any:
        """Who asks. Refuses a request whose token is missing or is nobody's."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        user = await _settled(self._check_token(token)) if token and scheme.lower() == "bearer" else None
        if not user:
            raise _Refusal(401, "invalid_token", "this token opens nothing here; sign in again")
        return user

    async def find(self, name: str, user: Any) -> Model | None:
        """The model of a name for this user, if there is one."""
        found = await _settled(self._finder(name, user))
        return None if found is None else resolve_model(found)

    async def model(self, name: str, user: Any) -> Model:
        """The model of a name. Refuses one that this user does not have."""
        model = await self.find(name, user)
        if model is None:
            raise _Refusal(404, "model_not_found", f"there is no model named {name!r} here for this token")
        return model

    async def listing(self, user: Any) -> dict[str, ModelInfo | None]:
        """What the user may ask, as far as the names are known, and what is known of each."""
        found = {name: await self.find(name, user) for name in self._names}
        return {name: getattr(model, "info", None) for name, model in found.items() if model is not None}

    def request(self, asked: ProxyRequest, model: Model, cancel: CancelToken) -> ModelRequest:
        """The request as the model gets it. Refuses what a client may not say."""
        settings = asked.settings
        extras = [name for name in ("extra_body", "extra_headers") if getattr(settings, name)]
        if extras and not self._allow_extras:
            raise _Refusal(
                400,
                "not_allowed",
                f"this back end passes no {extras[0]} on, which could change the model; leave it out",
            )
        info: ModelInfo | None = getattr(model, "info", None)
        try:
            request = asked.request(info, cancel)
        except UsageError as error:
            raise _Refusal(400, "invalid_request", str(error)) from error
        level = effective_thinking(settings.thinking, info)
        return replace(request, settings=replace(settings, thinking=level))


class _Reply(Response):
    """A model's reply as events: one task reads it, one watches for the client to leave, one keeps the line warm."""

    def __init__(self, model: Model, request: ModelRequest, cancel: CancelToken, keep_alive: float) -> None:
        super().__init__()
        self._model = model
        self._request = request
        self._cancel = cancel
        self._keep_alive = keep_alive
        self._lock = anyio.Lock(fast_acquire=True)
        self._said = 0  # events so far
        self._over = False  # servers report a disconnection after the last byte too

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the shape of ASGI
        await send({"type": "http.response.start", "status": 200, "headers": _STREAM})
        async with anyio.create_task_group() as group:

            async def say(data: bytes, *, more: bool = True) -> None:
                try:
                    async with self._lock:
                        await send({"type": "http.response.body", "body": data, "more_body": more})
                except OSError:  # some servers tell so that the client has gone
                    self._leave(group.cancel_scope)
                    await anyio.lowlevel.checkpoint()

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                self._leave(group.cancel_scope)

            group.start_soon(watch)
            group.start_soon(self._keep_warm, say)
            await self._tell(say)
            self._over = True
            await say(b"", more=False)
            group.cancel_scope.cancel()

    def _leave(self, scope: anyio.CancelScope) -> None:
        if not self._over:
            self._cancel.cancel("the client went away")
        scope.cancel()

    async def _keep_warm(self, say: Callable[[bytes], Awaitable[None]]) -> None:
        while True:
            before = self._said
            await anyio.sleep(self._keep_alive)
            if self._said == before:
                await say(encode_comment("still here"))

    async def _tell(self, say: Callable[[bytes], Awaitable[None]]) -> None:
        """Say the reply, up to its finish or its error."""
        finished = False
        try:
            stream: Any = self._model.stream(self._request)
            async with aclosing(stream) if hasattr(stream, "aclose") else nullcontext():
                async for delta in stream:
                    self._said += 1
                    await say(encode_event(encode_delta(self._priced(delta))))
                    if isinstance(delta, FinishChunk):
                        finished = True
                        break
            if not finished:
                await say(encode_event(encode_error(Dropped("the model's stream ended without its terminal marker"))))
        except ModelError as error:
            if not finished:
                await say(encode_event(encode_error(error)))
        except Exception:
            logger.exception("a model behind the proxy failed")
            if not finished:
                await say(encode_event(encode_error(ModelError("the back end failed; its log says why"))))

    def _priced(self, delta: Delta) -> Delta:
        """Usage with its cost: the back end knows the prices, a client perhaps not."""
        if not isinstance(delta, UsageChunk) or delta.usage.cost is not None:
            return delta
        info: ModelInfo | None = getattr(self._model, "info", None)
        if info is None or info.prices is None:
            return delta
        return UsageChunk(replace(delta.usage, cost=info.prices.cost(delta.usage)))


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _body(request: Request, limit: int) -> bytes:
    """The body, up to the limit. What is a little larger is read and thrown away, so that the client hears why."""
    too_large = _Refusal(413, "too_large", f"this back end takes requests of up to {limit} bytes")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit * _PATIENCE:
        raise too_large
    body, size = bytearray(), 0
    with anyio.move_on_after(_BODY_SECONDS) as scope:
        try:
            async for chunk in request.stream():
                size += len(chunk)
                if size <= limit:
                    body += chunk
                elif size > limit * _PATIENCE:
                    break
        except ClientDisconnect as error:
            raise _Refusal(400, "incomplete", "the request ended before its end") from error
    if scope.cancelled_caught:
        raise _Refusal(408, "too_slow", f"the request did not arrive within {_BODY_SECONDS:g} s; send it again")
    if size > limit:
        raise too_large
    return bytes(body)


def _understood(body: bytes) -> ProxyRequest:
    try:
        return decode_request(body)
    except UsageError as error:
        raise _Refusal(400, "invalid_request", str(error)) from error


async def _refuse(request: Request, refusal: Exception) -> Response:  # noqa: ARG001 - the shape of a handler
    said = cast("_Refusal", refusal)
    response = _json(said.status, {"error": {"message": str(said), "code": said.code}})
    if said.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


def _json(status: int, value: Any) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
