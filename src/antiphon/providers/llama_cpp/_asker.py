"""Asking the engine for a few tokens, and counting them."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from enum import IntEnum
from math import exp, log
from typing import Any, Final, Protocol

from msgspec import Struct

from antiphon.types.usage import Usage

__all__ = ["Asker", "Completions", "Prompt", "Slot"]

SEEN: Final = 500
"""How many of the most likely next tokens are looked at."""


class Slot(IntEnum):
    """Where the beginning of a kind of prompt is kept. The engine needs as many slots."""

    CHOICE = 0
    ARGUMENTS = 1
    FORMULA = 2
    ANSWER = 3
    TALK = 4


class Prompt(Struct, frozen=True):
    """A text to go on from: the part that many prompts of its kind have, and the rest."""

    slot: Slot
    kept: str
    rest: str

    def plus(self, more: str) -> "Prompt":
        return Prompt(self.slot, self.kept, self.rest + more)


class Completions(Protocol):
    """What is needed of an engine."""

    def completions(self, body: dict[str, Any], *, keep: str | None = None) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of one completion. `keep` is the beginning of the prompt that stays evaluated in its slot."""
        ...


class Asker:
    """One request's way to the engine: always the most likely token, never chance. `usage` sums what was asked."""

    def __init__(self, engine: Completions) -> None:
        self._engine = engine
        self.usage = Usage(total=0, cache_read=0)
        self.cut = False  # whether the last text reached its limit

    async def stream(
        self, prompt: Prompt, limit: int, *, grammar: str | None = None, stop: Sequence[str] = ()
    ) -> AsyncGenerator[str, None]:
        """What follows the prompt, token by token: at most `limit` tokens, up to a text of `stop`."""
        more: dict[str, Any] = {"stop": list(stop)} if grammar is None else {"grammar": grammar}
        async with aclosing(self._complete(prompt, max_tokens=limit, **more)) as chunks:
            async for chunk in chunks:
                choice = self._note(chunk)
                if text := choice.get("text"):
                    yield text

    async def text(self, prompt: Prompt, limit: int, *, grammar: str | None = None) -> str:
        """What follows the prompt, whole. Under a grammar that ends, it ends there."""
        async with aclosing(self.stream(prompt, limit, grammar=grammar)) as pieces:
            return "".join([piece async for piece in pieces])

    async def names(self, prompt: Prompt, names: Sequence[str]) -> dict[str, float]:
        """The log probability that each name, followed by a bracket, comes next.

        Names are taken apart into words, so that `get_order` and `get_user` differ where they differ; each parting of
        the ways costs one token.
        """
        parts = {name: [*re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+|[^A-Za-z0-9]+", name), "("] for name in names}
        return await self._walk(prompt, "", parts)

    async def _walk(self, prompt: Prompt, prefix: str, parts: dict[str, list[str]]) -> dict[str, float]:
        if len(parts) == 1:
            return dict.fromkeys(parts, 0.0)
        branches: dict[str, dict[str, list[str]]] = {}
        for name, (head, *rest) in parts.items():
            branches.setdefault(head, {})[name] = rest
        likely = [0.0]
        if len(branches) > 1:
            blank = "" if prefix else " "
            likely = await self._likely(
                prompt.plus(f" {prefix}" if prefix else ""), [blank + head for head in branches]
            )
        found: dict[str, float] = {}
        for (head, names), weight in zip(branches.items(), likely, strict=True):
            for name, rest in (await self._walk(prompt, prefix + head, names)).items():
                found[name] = weight + rest
        return found

    async def _likely(self, prompt: Prompt, texts: Sequence[str]) -> list[float]:
        """The log probability that each text begins, by the next tokens that fit it and no other."""
        seen: list[tuple[str, float]] = []
        async with aclosing(self._complete(prompt, max_tokens=1, n_probs=SEEN)) as chunks:
            async for chunk in chunks:
                choice = self._note(chunk)
                tokens: list[Any] = _table(choice, "logprobs").get("content") or []
                for token in tokens[:1]:
                    seen = [(item["token"], item["logprob"]) for item in token["top_logprobs"]]
        floor = seen[-1][1] - 1 if seen else -20.0
        found: list[float] = []
        for text in texts:
            fits = [
                weight
                for token, weight in seen
                if token.strip() and text.startswith(token) and sum(other.startswith(token) for other in texts) == 1
            ]
            found.append(log(sum(map(exp, fits))) if fits else floor)
        return found

    def _complete(self, prompt: Prompt, **more: Any) -> AsyncGenerator[dict[str, Any], None]:
        body = {"prompt": prompt.kept + prompt.rest, "id_slot": int(prompt.slot), "temperature": 0, "seed": 1, **more}
        return self._engine.completions(body, keep=prompt.kept)

    def _note(self, chunk: dict[str, Any]) -> dict[str, Any]:
        """The chunk's one choice; its usage is counted."""
        if usage := chunk.get("usage"):
            read, wrote = int(usage["prompt_tokens"]), int(usage["completion_tokens"])
            cached = int(_table(usage, "prompt_tokens_details").get("cached_tokens") or 0)
            self.usage += Usage(input=read, output=wrote, total=read + wrote, cache_read=cached)
        choices: list[dict[str, Any]] = chunk.get("choices") or [{}]
        choice = choices[0]
        if reason := choice.get("finish_reason"):
            self.cut = reason == "length"
        return choice


def _table(holder: dict[str, Any], key: str) -> dict[str, Any]:
    return holder.get(key) or {}
