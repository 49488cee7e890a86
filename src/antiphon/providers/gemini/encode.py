"""A request as the JSON of Gemini's `generateContent`. Pure.

Fields: ai.google.dev/api/generate-content, "Request body" and "GenerationConfig". The contents stand last in the body, so
that the next request of the same transcript begins with the same bytes.
"""

from typing import Any

import msgspec

from antiphon.providers.gemini._contents import ContentEncoder
from antiphon.providers.gemini._json import dumps, merged
from antiphon.providers.gemini._thinking import family_of, thinking_config
from antiphon.providers.prefix import encoded_prefix
from antiphon.types.request import ModelInfo, ModelRequest, ModelSettings, ToolSpec

__all__ = ["GeminiEncoder", "encode", "left_out"]

# What the schema of a tool without parameters may have.
_SAYS_NOTHING = frozenset({"$schema", "additionalProperties", "properties", "required", "title", "type"})


def encode(request: ModelRequest, model: str, info: ModelInfo | None = None) -> bytes:
    """The body of a request to `model`. For many requests keep a `GeminiEncoder`."""
    return GeminiEncoder(model, info).encode(request)


def left_out(settings: ModelSettings) -> list[str]:
    """The names of the settings that are given and that this API has no field for."""
    return ["parallel_tool_calls"] if settings.parallel_tool_calls is False else []


class GeminiEncoder:
    """Encodes the requests to one model; what repeats from one to the next (tools, messages) is encoded once.

    `info` tells what is known of the model; its origin is where signatures go back to.
    """

    __slots__ = ("_contents", "_family", "_info", "_key", "_tools", "model")

    def __init__(self, model: str, info: ModelInfo | None = None) -> None:
        self.model = model
        self._info = info or ModelInfo(provider="gemini", id=model)
        self._family = family_of(model)
        origin, newer = self._info.origin, self._family.has_levels
        self._contents = ContentEncoder(origin, signs=newer, media_results=newer)
        self._key = ("gemini", origin, newer)
        self._tools: tuple[tuple[ToolSpec, ...], msgspec.Raw] = ((), msgspec.Raw(b"[]"))

    def encode(self, request: ModelRequest) -> bytes:
        """The body. Raises `UsageError` for settings that JSON cannot hold."""
        body = self._fields(request)
        extra = request.settings.extra_body
        if extra and "contents" in extra:
            return dumps(body)
        pieces = encoded_prefix(request.messages, self._key, self._contents.encode)
        opening = dumps(body)[:-1] + b"," if body else b"{"
        return b"".join((opening, b'"contents":[', *pieces, b"]}"))

    def _fields(self, request: ModelRequest) -> dict[str, Any]:
        """Everything but the contents. The model stands in the address."""
        settings = request.settings
        body: dict[str, Any] = {}
        if request.instructions:
            body["systemInstruction"] = {"parts": [{"text": request.instructions}]}
        if request.tools and request.tool_choice != "none":
            body["tools"] = [{"functionDeclarations": self._declarations(request.tools)}]
            body["toolConfig"] = {"functionCallingConfig": _calling(request.tool_choice)}
        generation = self._generation(settings)
        if generation:
            body["generationConfig"] = generation
        return merged(body, settings.extra_body, ("tools",)) if settings.extra_body else body

    def _generation(self, settings: ModelSettings) -> dict[str, Any]:
        given = (
            ("temperature", settings.temperature),
            ("topP", settings.top_p),
            ("maxOutputTokens", settings.max_output_tokens),
            ("stopSequences", settings.stop),
            ("seed", settings.seed),
            ("responseJsonSchema", settings.response_schema),
            ("responseMimeType", "application/json" if settings.response_schema is not None else None),
            ("thinkingConfig", thinking_config(self._family, settings, self._info) or None),
        )
        return {name: value for name, value in given if value is not None}

    def _declarations(self, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        known, encoded = self._tools
        if tools != known:
            encoded = msgspec.Raw(dumps([_declaration(tool) for tool in tools]))
            self._tools = (tools, encoded)
        return encoded


def _declaration(tool: ToolSpec) -> dict[str, Any]:
    """ai.google.dev/api/caching, "FunctionDeclaration": a function without parameters has no schema at all."""
    declaration: dict[str, Any] = {"name": tool.name}
    if tool.description:
        declaration["description"] = tool.description
    schema = tool.parameters
    takes_none = schema.keys() <= _SAYS_NOTHING and not (schema.get("properties") or schema.get("additionalProperties"))
    return declaration if takes_none else {**declaration, "parametersJsonSchema": schema}


def _calling(choice: str) -> dict[str, Any]:
    """docs/function-calling, "Function calling modes"."""
    if choice in {"auto", "required"}:
        return {"mode": "AUTO" if choice == "auto" else "ANY"}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}
