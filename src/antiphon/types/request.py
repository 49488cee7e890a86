"""A request to a model, and what a model answers with: the protocol every provider speaks."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct, field

from antiphon.types.cancel import CancelSignal
from antiphon.types.messages import Message, StopReason
from antiphon.types.usage import Usage

__all__ = [
    "CallChunk",
    "Delta",
    "FinishChunk",
    "Model",
    "ModelFunction",
    "ModelInfo",
    "ModelRequest",
    "ModelSettings",
    "PriceTier",
    "Prices",
    "TextChunk",
    "ThinkingChunk",
    "ThinkingLevel",
    "ToolSpec",
    "UsageChunk",
    "WarningChunk",
    "WholeCall",
]

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How hard to think, from not at all to as hard as a model can."""


class ToolSpec(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request says of a tool. `parameters` is its JSON Schema, always the same bytes for the same tool.

    `instructions` is the tool's own text for the system prompt while it is advertised.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool | None = None
    instructions: str | None = None


class ModelSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a model should answer. Every field may be left to the provider's own default."""

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    thinking: ThinkingLevel | None = None
    thinking_budgets: dict[ThinkingLevel, int] | None = None
    thinking_display: Literal["summarized", "omitted"] | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    parallel_tool_calls: bool | None = None
    cache: Literal["none", "short", "long"] | None = None
    response_schema: dict[str, Any] | None = None
    extra_body: dict[str, Any] | None = None
    extra_headers: dict[str, str] | None = None

    def merged(self, over: "ModelSettings | None") -> "ModelSettings":
        """These settings with every field that `over` sets replaced."""
        if over is None:
            return self
        fields = self.__struct_fields__
        mine = {name: getattr(self, name) for name in fields}
        theirs = {name: value for name in fields if (value := getattr(over, name)) is not None}
        return ModelSettings(**(mine | theirs))


PayloadHook: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | Awaitable[dict[str, Any] | None] | None]


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request. `messages` is never changed after it was handed over; `meta` is carried untouched.

    `tool_choice` is `auto`, `none`, `required`, or the name of a tool. `on_payload` may look at the JSON body that goes
    to the provider, and replace it by returning another.
    """

    messages: Sequence[Message]
    instructions: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    settings: ModelSettings = ModelSettings()
    session_id: str | None = None
    meta: Any = None
    cancel: CancelSignal = field(default_factory=CancelSignal)
    on_payload: PayloadHook | None = None


class TextChunk(Struct, frozen=True, gc=False):
    """Text goes on. `signature` closes the text with the provider's mark."""

    text: str
    signature: str | None = None


class ThinkingChunk(Struct, frozen=True, gc=False):
    """Thinking goes on. `signature` closes it; `redacted` is a whole thought of which only the signature is known."""

    text: str = ""
    signature: str | None = None
    redacted: bool = False


class CallChunk(Struct, frozen=True):
    """A tool call goes on: `key` says which one (its place among the reply's calls).

    The first chunk of a key has `id` and `name` as far as they are known; every chunk's `arguments` are appended.
    """

    key: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    opaque: dict[str, Any] | None = None


class WholeCall(Struct, frozen=True):
    """A complete tool call, its arguments as JSON text or as an object (encoded once)."""

    name: str
    arguments: str | dict[str, Any] = "{}"
    id: str = ""
    opaque: dict[str, Any] | None = None


class UsageChunk(Struct, frozen=True):
    """What the request consumed so far; the last one counts."""

    usage: Usage


class WarningChunk(Struct, frozen=True, gc=False):
    """Something odd that does not end the reply."""

    code: str
    text: str


class FinishChunk(Struct, frozen=True, gc=False):
    """The terminal marker: without it a stream was dropped. `detail` is the provider's own word."""

    reason: StopReason = "stop"
    detail: str | None = None
    response_id: str | None = None
    model: str | None = None


Delta: TypeAlias = TextChunk | ThinkingChunk | CallChunk | WholeCall | UsageChunk | WarningChunk | FinishChunk
"""What a stream is made of."""


class PriceTier(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all tokens of a request cost that reads more than `above` tokens; the fields as in `Prices`."""

    above: int
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_long: float | None = None


class Prices(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """US dollars for a million tokens; what is not known is `None`, never 0.

    `cache_write_long` is for what a cache keeps for the longer of two times. Large requests have prices of their own in
    some places: `tiers`, each for all that is above its size.
    """

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_long: float | None = None
    tiers: tuple[PriceTier, ...] = ()

    @property
    def known(self) -> bool:
        """Whether what every request consumes has a price."""
        return self.input is not None and self.output is not None

    def cost(self, usage: Usage) -> float | None:
        """What the usage of one request costs in US dollars; `None` if the price of what every request consumes is not
        known. Cached tokens without a price of their own cost what others do. A sum of requests belongs to no tier.
        """
        reached = [tier for tier in self.tiers if usage.input > tier.above]
        rate = max(reached, key=lambda tier: tier.above) if reached else self
        if rate.input is None or rate.output is None:
            return None
        kept_long = usage.cache_write_long or 0
        read, written = usage.cache_read or 0, max(usage.cache_write or 0, kept_long)
        write = rate.input if rate.cache_write is None else rate.cache_write
        dollars = max(0, usage.input - read - written) * rate.input + usage.output * rate.output
        dollars += read * (rate.input if rate.cache_read is None else rate.cache_read)
        dollars += (written - kept_long) * write
        dollars += kept_long * (write if rate.cache_write_long is None else rate.cache_write_long)
        return dollars / 1_000_000


class ModelInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a model, `None` where nothing is. `context_window` and `output_limit` are in tokens.

    A model with no `thinking_levels` but an empty tuple does not think. `modalities` are what it reads: "text", "image",
    "file", "audio", "video".
    """

    provider: str
    id: str
    name: str | None = None
    context_window: int | None = None
    output_limit: int | None = None
    thinking_levels: tuple[ThinkingLevel, ...] | None = None
    modalities: tuple[str, ...] | None = None
    prices: Prices | None = None

    @property
    def origin(self) -> str:
        """`provider:id`, the key under which signatures go back."""
        return f"{self.provider}:{self.id}"


class Model(Protocol):
    """Who answers. `stream` yields deltas and ends after a `FinishChunk`; its only failure is a `ModelError`.

    A model may also have `info` (a `ModelInfo`) and `aclose()`.
    """

    def stream(self, request: ModelRequest, /) -> AsyncIterator[Delta]:
        """The reply to `request`, as it comes."""
        ...


ModelFunction: TypeAlias = Callable[
    [ModelRequest],
    Awaitable[str | AsyncIterator[Delta] | AsyncIterator[str]] | AsyncIterator[Delta] | AsyncIterator[str] | str,
]
"""A plain function as a model: it answers with text, or with an async iterable of text or deltas."""
