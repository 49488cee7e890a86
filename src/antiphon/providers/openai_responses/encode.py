"""A request as the JSON of OpenAI's Responses API. Pure.

Fields: platform.openai.com/docs/api-reference/responses/create. Nothing is stored at the server (`store`): the transcript
is here. The items stand last in the body, so that the next request of the same transcript begins with the same bytes.
"""

import hashlib
import re
from typing import Any

import msgspec

from antiphon.providers.dialect import DIALECTS
from antiphon.providers.dialects import Schemas, Translated, schema_name
from antiphon.providers.history import ForeignThinking, HistoryEncoder
from antiphon.providers.json_text import dumps
from antiphon.providers.openai_responses._items import history_rules, write
from antiphon.providers.payload import merged
from antiphon.providers.prefix_watch import PrefixWatch
from antiphon.providers.remarks import Remarks
from antiphon.types.request import ModelInfo, ModelRequest, ModelSettings, ThinkingLevel, ToolSpec, WarningChunk
from antiphon.types.thinking import effective_thinking

__all__ = ["ResponsesEncoder", "encode", "left_out"]

# OpenAI's models that reason (docs/models), should nothing else be known of a model.
_REASONS = re.compile(r"(?:o\d|gpt-[5-9]|gpt-oss|codex)(?!.*-chat)")
_CACHE_KEY_LIMIT = 64
_ENCRYPTED = "reasoning.encrypted_content"


def encode(request: ModelRequest, model: str, info: ModelInfo | None = None) -> bytes:
    """The body of a request to `model`. For many requests keep a `ResponsesEncoder`."""
    return ResponsesEncoder(model, info).encode(request)


def left_out(settings: ModelSettings) -> list[str]:
    """The names of the settings that are given and that this API has no field for."""
    return [name for name in ("stop", "seed") if getattr(settings, name) is not None]


class ResponsesEncoder:
    """Encodes the requests to one model; what repeats from one to the next (tools, messages) is encoded once.

    `info` tells what is known of the model; its origin is where reasoning and opaque data of calls go back to.
    `long_cache`: whether the server knows `prompt_cache_retention`. `foreign_thinking` says what becomes of other models'
    thoughts.
    """

    __slots__ = ("_histories", "_info", "_long_cache", "_remarks", "_tools", "model", "schemas", "watch")

    def __init__(
        self,
        model: str,
        info: ModelInfo | None = None,
        *,
        long_cache: bool = False,
        foreign_thinking: ForeignThinking = "omit",
    ) -> None:
        self.model = model
        self.watch = PrefixWatch()
        self._info = info = info or ModelInfo(provider="openai", id=model)
        self._long_cache = long_cache
        self._histories = tuple([
            HistoryEncoder(
                "openai_responses", history_rules(info, thinks=thinks, foreign=foreign_thinking), write
            )
            for thinks in (False, True)
        ])  # fmt: skip
        self.schemas = Schemas(DIALECTS["openai"])
        self._remarks = Remarks(self.schemas)
        self._tools: tuple[tuple[ToolSpec, ...], list[msgspec.Raw]] = ((), [])

    def encode(self, request: ModelRequest) -> bytes:
        """The body. Raises `UsageError` for settings that JSON cannot hold."""
        level = effective_thinking(request.settings.thinking, self._info)
        body = self._fields(request, level)
        extra = request.settings.extra_body
        if extra and "input" in extra:
            return dumps(body)
        thinks = level != "off" and self._info.thinking_levels != ()
        pieces = self._histories[thinks].pieces(request, self.watch)
        return b"".join((dumps(body)[:-1], b',"input":[', *pieces, b"]}"))

    def remarks(self, request: ModelRequest) -> list[WarningChunk]:
        """What the body cannot say of the request, schemas once."""
        return self._remarks.on(request, answers=True, left_out=left_out(request.settings), api="the Responses API")

    def _fields(self, request: ModelRequest, level: ThinkingLevel | None) -> dict[str, Any]:
        """Everything but the items."""
        settings = request.settings
        body: dict[str, Any] = {"model": self.model, "stream": True, "store": False}
        if request.instructions:
            body["instructions"] = request.instructions
        given = (
            ("temperature", settings.temperature),
            ("top_p", settings.top_p),
            ("max_output_tokens", settings.max_output_tokens),
        )
        body |= {name: value for name, value in given if value is not None}
        self._add_cache(body, request)
        self._add_reasoning(body, settings, level)
        if settings.response_schema is not None:
            body["text"] = {"format": self._format(settings.response_schema)}
        if request.tools and request.tool_choice != "none":
            self._add_tools(body, request)
        return merged(body, settings.extra_body, ("include", "tools")) if settings.extra_body else body

    def _add_cache(self, body: dict[str, Any], request: ModelRequest) -> None:
        """docs/guides/prompt-caching: requests of one session find each other's prefix by a key of their own."""
        cache, session = request.settings.cache, request.session_id
        if session and cache != "none":
            too_long = len(session) > _CACHE_KEY_LIMIT
            body["prompt_cache_key"] = (
                hashlib.sha256(session.encode(errors="replace")).hexdigest() if too_long else session
            )
        if cache == "long" and self._long_cache:
            body["prompt_cache_retention"] = "24h"

    def _add_reasoning(self, body: dict[str, Any], settings: ModelSettings, level: ThinkingLevel | None) -> None:
        """docs/guides/reasoning: efforts, summaries, encrypted items.

        A model that does not reason refuses all of it. Not to reason is only said to a model that is known to take it,
        since most would refuse it.
        """
        levels = self._info.thinking_levels
        if levels == ():
            return
        reasoning: dict[str, Any] = {}
        if level == "off":
            if levels is not None and "off" in levels:
                reasoning["effort"] = "none"
        else:
            if level is not None:
                reasoning["effort"] = level
            display = settings.thinking_display or ("summarized" if level else "omitted")
            if display == "summarized":
                reasoning["summary"] = "auto"
            if levels or level or _REASONS.match(self.model.rpartition("/")[2]):
                body["include"] = [_ENCRYPTED]
        if reasoning:
            body["reasoning"] = reasoning

    def _add_tools(self, body: dict[str, Any], request: ModelRequest) -> None:
        choice = request.tool_choice
        body["tool_choice"] = choice if choice in {"auto", "required"} else {"type": "function", "name": choice}
        if request.settings.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.settings.parallel_tool_calls
        known, encoded = self._tools
        if request.tools != known:
            schemas = self.schemas.tools(request.tools)
            encoded = [msgspec.Raw(dumps(_tool(tool, told))) for tool, told in zip(request.tools, schemas, strict=True)]
            self._tools = (request.tools, encoded)
        body["tools"] = encoded

    def _format(self, schema: dict[str, Any]) -> dict[str, Any]:
        """docs/guides/structured-outputs: without `strict`, the schema is no more than advice."""
        told = self.schemas.answer(schema)
        wanted = {"type": "json_schema", "name": schema_name(schema), "schema": told.schema}
        return {**wanted, "strict": True} if told.strict else wanted


def _tool(tool: ToolSpec, told: Translated) -> dict[str, Any]:
    """docs/guides/function-calling, "Strict mode": what is not said counts as strict here, and most schemas are not."""
    function: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        function["description"] = tool.description
    return function | {"parameters": told.schema, "strict": told.strict}
