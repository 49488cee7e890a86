"""Asking the engine for a few tokens, and counting them."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from enum import IntEnum
from math import exp, log
from typing import Any, Final, Protocol

from antiphon.types.usage import Usage

__all__ = ["Asker", "Completions", "Slot"]

SEEN: Final = 500
"""How many of the most likely next tokens are looked at."""


class Slot(IntEnum):
    """Where a prompt's tokens are kept until the next prompt of its kind comes. The engine needs as many slots."""

    CHOICE = 0
    ARGUMENTS = 1
    WORDS = 2


class Completions(Protocol):
    """What is needed of an engine."""

    def completions(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The chunks of one completion."""
        ...


class Asker:
    """One request's way to the engine: always the most likely token, never chance. `usage` sums what was asked."""

    def __init__(self, engine: Completions) -> None:
        self._engine = engine
        self.usage = Usage(total=0, cache_read=0)
        self.cut = False  # whether the last text reached its limit

    async def stream(
        self, prompt: str, slot: Slot, limit: int, *, grammar: str | None = None, stop: Sequence[str] = ()
    ) -> AsyncGenerator[str, None]:
        """What follows the prompt, token by token: at most `limit` tokens, up to a text of `stop`."""
        body: dict[str, Any] = {"prompt": prompt, "max_tokens": limit, "stop": list(stop), "id_slot": int(slot)}
        if grammar is not None:
            body["grammar"] = grammar
        async with aclosing(self._engine.completions(_plain(body))) as chunks:
            async for chunk in chunks:
                choice = self._note(chunk)
                if text := choice.get("text"):
                    yield text

    async def text(self, prompt: str, slot: Slot, limit: int, *, grammar: str | None = None) -> str:
        """What follows the prompt, whole. Under a grammar that ends, it ends there."""
        async with aclosing(self.stream(prompt, slot, limit, grammar=grammar)) as pieces:
            return "".join([piece async for piece in pieces])

    async def names(self, prompt: str, names: Sequence[str]) -> dict[str, float]:
        """The log probability that each name, followed by a bracket, comes next.

        Names are taken apart into words, so that `get_order` and `get_user` differ where they differ; each parting of
        the ways costs one token.
        """
        parts = {name: [*re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+|[^A-Za-z0-9]+", name), "("] for name in names}
        return await self._walk(prompt, "", parts)

    async def _walk(self, prompt: str, prefix: str, parts: dict[str, list[str]]) -> dict[str, float]:
        if len(parts) == 1:
            return dict.fromkeys(parts, 0.0)
        branches: dict[str, dict[str, list[str]]] = {}
        for name, (head, *rest) in parts.items():
            branches.setdefault(head, {})[name] = rest
        likely = [0.0]
        if len(branches) > 1:
            blank = "" if prefix else " "
            likely = await self._likely(prompt + (f" {prefix}" if prefix else ""), [blank + head for head in branches])
        found: dict[str, float] = {}
        for (head, names), weight in zip(branches.items(), likely, strict=True):
            for name, rest in (await self._walk(prompt, prefix + head, names)).items():
                found[name] = weight + rest
        return found

    async def _likely(self, prompt: str, texts: Sequence[str]) -> list[float]:
        """The log probability that each text begins, by the next tokens that fit it and no other."""
        seen: list[tuple[str, float]] = []
        body = {"prompt": prompt, "max_tokens": 1, "n_probs": SEEN, "id_slot": int(Slot.CHOICE)}
        async with aclosing(self._engine.completions(_plain(body))) as chunks:
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


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "temperature": 0, "seed": 1, "cache_prompt": True}


def _table(holder: dict[str, Any], key: str) -> dict[str, Any]:
    return holder.get(key) or {}
