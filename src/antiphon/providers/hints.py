"""A model of which nothing is known, but whose name resembles another's: a refusal says which."""

from collections.abc import AsyncIterator
from typing import Any, Self

from antiphon.errors import Rejected
from antiphon.types.request import Delta, Model, ModelRequest

__all__ = ["Hinted"]


class Hinted:
    """The model as it is; when the server does not know its name, the error suggests another.

    Servers say so with 404 (OpenAI, Anthropic, Google) or with 400 and a word about the model (Mistral, DeepSeek).
    """

    def __init__(self, model: Model, suggestion: str) -> None:
        self._model: Any = model
        self._suggestion = suggestion

    def __getattr__(self, name: str) -> Any:
        """Whatever else the model has: `info`, `aclose`, `warm`."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)

    def stream(self, request: ModelRequest) -> AsyncIterator[Delta]:
        """The model's own reply."""
        return _Deltas(self._model.stream(request), self._suggestion)


class _Deltas:
    """Iterates over a reply without a generator of its own: every delta passes here."""

    __slots__ = ("_deltas", "_suggestion")

    def __init__(self, deltas: Any, suggestion: str) -> None:
        self._deltas = deltas
        self._suggestion = suggestion

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        try:
            return await anext(self._deltas)
        except Rejected as error:
            if error.status != 404 and not (error.status == 400 and "model" in str(error).lower()):
                raise
            raise self._suggesting(error) from error

    async def aclose(self) -> None:
        """End the reply, as with the model itself."""
        await self._deltas.aclose()

    def _suggesting(self, error: Rejected) -> Rejected:
        return Rejected(
            f"{error}; did you mean the model {self._suggestion!r}?",
            recovery=error.recovery,
            retry_after=error.retry_after,
            status=error.status,
            code=error.code,
            provider=error.provider,
            request_id=error.request_id,
        )
