"""A request as the JSON of Gemini's `generateContent`. Pure.

Fields: ai.google.dev/api/generate-content, "Request body" and "GenerationConfig". The contents stand last in the body, so
that the next request of the same transcript begins with the same bytes.
"""

from typing import Any

import msgspec

from antiphon.providers.dialect import DIALECTS
from antiphon.providers.dialects import Schemas, Translated
from antiphon.providers.gemini._contents import ContentWriter, history_rules
from antiphon.providers.gemini._thinking import family_of, thinking_config
from antiphon.providers.history import ForeignThinking, HistoryEncoder
from antiphon.providers.json_text import dumps
from antiphon.providers.payload import merged
from antiphon.providers.prefix_watch import PrefixWatch
from antiphon.providers.remarks import Remarks
from antiphon.types.request import ModelInfo, ModelRequest, ModelSettings, ToolSpec, WarningChunk

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

    `info` tells what is known of the model; its origin is where signatures go back to. `foreign_thinking` says what
    becomes of other models' thoughts.
    """

    __slots__ = ("_family", "_histories", "_info", "_remarks", "_tools", "model", "schemas", "watch")

    def __init__(
        self, model: str, info: ModelInfo | None = None, *, foreign_thinking: ForeignThinking = "omit"
    ) -> None:
        self.model = model
        self.watch = PrefixWatch()
        self._info = info = info or ModelInfo(provider="gemini", id=model)
        self._family = family_of(model)
        newer = self._family.has_levels
        writer = ContentWriter(signs=newer, media_results=newer)
        self._histories = HistoryEncoder("gemini", history_rules(info, foreign_thinking), writer.write, (newer,))
        self.schemas = Schemas(DIALECTS["gemini"])
        self._remarks = Remarks(self.schemas)
        self._tools: tuple[tuple[ToolSpec, ...], msgspec.Raw] = ((), msgspec.Raw(b"[]"))

    def encode(self, request: ModelRequest) -> bytes:
        """The body. Raises `UsageError` for settings that JSON cannot hold."""
        body = self._fields(request)
        extra = request.settings.extra_body
        if extra and "contents" in extra:
            return dumps(body)
        pieces = self._histories.pieces(request, self.watch)
        opening = dumps(body)[:-1] + b"," if body else b"{"
        return b"".join((opening, b'"contents":[', *pieces, b"]}"))

    def remarks(self, request: ModelRequest) -> list[WarningChunk]:
        """What the body cannot say of the request, schemas once."""
        return self._remarks.on(request, answers=True, left_out=left_out(request.settings), api="the Gemini API")

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
        schema = settings.response_schema
        given = (
            ("temperature", settings.temperature),
            ("topP", settings.top_p),
            ("maxOutputTokens", settings.max_output_tokens),
            ("stopSequences", settings.stop),
            ("seed", settings.seed),
            ("responseJsonSchema", None if schema is None else self.schemas.answer(schema).schema),
            ("responseMimeType", None if schema is None else "application/json"),
            ("thinkingConfig", thinking_config(self._family, settings, self._info) or None),
        )
        return {name: value for name, value in given if value is not None}

    def _declarations(self, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        known, encoded = self._tools
        if tools != known:
            schemas = self.schemas.tools(tools)
            encoded = msgspec.Raw(dumps([_declaration(tool, told) for tool, told in zip(tools, schemas, strict=True)]))
            self._tools = (tools, encoded)
        return encoded


def _declaration(tool: ToolSpec, told: Translated) -> dict[str, Any]:
    """ai.google.dev/api/caching, "FunctionDeclaration": a function without parameters has no schema at all."""
    declaration: dict[str, Any] = {"name": tool.name}
    if tool.description:
        declaration["description"] = tool.description
    schema = tool.parameters
    takes_none = schema.keys() <= _SAYS_NOTHING and not (schema.get("properties") or schema.get("additionalProperties"))
    return declaration if takes_none else {**declaration, "parametersJsonSchema": told.schema}


def _calling(choice: str) -> dict[str, Any]:
    """docs/function-calling, "Function calling modes"."""
    if choice in {"auto", "required"}:
        return {"mode": "AUTO" if choice == "auto" else "ANY"}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}
