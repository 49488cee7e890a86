"""A request as the JSON of OpenAI's Responses API. Pure.

Fields: platform.openai.com/docs/api-reference/responses/create. Nothing is stored at the server (`store`): the transcript
is here. The items stand last in the body, so that the next request of the same transcript begins with the same bytes.
"""

import hashlib
import re
from typing import Any

import msgspec

from antiphon.providers.openai_responses._items import ItemEncoder
from antiphon.providers.openai_responses._json import dumps, merged
from antiphon.providers.prefix import encoded_prefix
from antiphon.types.request import ModelInfo, ModelRequest, ModelSettings, ThinkingLevel, ToolSpec
from antiphon.types.thinking import effective_thinking

__all__ = ["ResponsesEncoder", "encode", "left_out"]

# A tool without parameters: an empty closed object, since a bare `{}` is refused by strict validators.
_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
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
    `long_cache`: whether the server knows `prompt_cache_retention`.
    """

    __slots__ = ("_info", "_items", "_keys", "_long_cache", "_tools", "model")

    def __init__(self, model: str, info: ModelInfo | None = None, *, long_cache: bool = False) -> None:
        self.model = model
        self._info = info or ModelInfo(provider="openai", id=model)
        self._long_cache = long_cache
        origin = self._info.origin
        self._items = (ItemEncoder(origin, thinks=False), ItemEncoder(origin, thinks=True))
        self._keys = tuple([("openai_responses", origin, encoder.thinks) for encoder in self._items])
        self._tools: tuple[tuple[ToolSpec, ...], list[msgspec.Raw]] = ((), [])

    def encode(self, request: ModelRequest) -> bytes:
        """The body. Raises `UsageError` for settings that JSON cannot hold."""
        level = effective_thinking(request.settings.thinking, self._info)
        body = self._fields(request, level)
        extra = request.settings.extra_body
        if extra and "input" in extra:
            return dumps(body)
        thinks = level != "off" and self._info.thinking_levels != ()
        pieces = encoded_prefix(request.messages, self._keys[thinks], self._items[thinks].encode)
        return b"".join((dumps(body)[:-1], b',"input":[', *pieces, b"]}"))

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
            body["text"] = {"format": _format(settings.response_schema)}
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
            encoded = [msgspec.Raw(dumps(_tool(tool))) for tool in request.tools]
            self._tools = (request.tools, encoded)
        body["tools"] = encoded


def _tool(tool: ToolSpec) -> dict[str, Any]:
    """docs/guides/function-calling, "Strict mode": what is not said counts as strict here, and most schemas are not."""
    function: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        function["description"] = tool.description
    return function | {"parameters": tool.parameters or _NO_PARAMETERS, "strict": tool.strict is True}


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    """docs/guides/structured-outputs: the schema needs a name of letters, digits, underscores and dashes."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title") or "answer"))[:64]
    return {"type": "json_schema", "name": name, "schema": schema}
