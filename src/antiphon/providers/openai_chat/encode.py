"""A request as the JSON of Chat Completions. Pure.

Fields: platform.openai.com/docs/api-reference/chat/create; what other servers want otherwise is in `profiles`. The
messages stand last in the body, so that the next request of the same transcript begins with the same bytes.
"""

from typing import Any

import msgspec

from antiphon.providers.dialect import DIALECTS
from antiphon.providers.dialects import Schemas, Translated, schema_name
from antiphon.providers.history import ForeignThinking, HistoryEncoder
from antiphon.providers.json_text import dumps
from antiphon.providers.openai_chat._writer import WRITER_RULES, ChatWriter, history_rules
from antiphon.providers.openai_chat.profiles import Profile
from antiphon.providers.payload import merged
from antiphon.providers.prefix_watch import PrefixWatch
from antiphon.providers.remarks import Remarks
from antiphon.types.request import ModelInfo, ModelRequest, ToolSpec, WarningChunk

__all__ = ["ChatEncoder", "encode"]


def encode(request: ModelRequest, model: str, profile: Profile) -> bytes:
    """The body of a request to `model`. For many requests keep a `ChatEncoder`."""
    return ChatEncoder(model, profile).encode(request)


class ChatEncoder:
    """Encodes the requests to one model; what repeats from one to the next (tools, messages) is encoded once.

    `info` tells what is known of the model; its origin, by default the profile's name and the model, is where thinking
    and opaque data of calls go back to. `foreign_thinking` says what becomes of other models' thoughts.
    """

    __slots__ = ("_histories", "_remarks", "_tools", "model", "profile", "schemas", "watch")

    def __init__(
        self,
        model: str,
        profile: Profile,
        info: ModelInfo | None = None,
        *,
        foreign_thinking: ForeignThinking = "omit",
    ) -> None:
        self.model = model
        self.profile = profile
        self.watch = PrefixWatch()
        info = info or ModelInfo(provider=profile.name, id=model)
        more = tuple([getattr(profile, name) for name in WRITER_RULES])
        self._histories = tuple([
            HistoryEncoder(
                "openai_chat",
                history_rules(profile, info, thinks=thinks, foreign=foreign_thinking),
                ChatWriter(profile, thinks=thinks).write,
                (thinks, *more),
            )
            for thinks in (False, True)
        ])  # fmt: skip
        self.schemas = Schemas(DIALECTS[profile.dialect])
        self._remarks = Remarks(self.schemas)
        self._tools: tuple[tuple[ToolSpec, ...], msgspec.Raw] = ((), msgspec.Raw(b"[]"))  # one value: threads share it

    def encode(self, request: ModelRequest) -> bytes:
        """The body. Raises `UsageError` for settings that JSON cannot hold."""
        body = self._fields(request)
        extra = request.settings.extra_body
        if extra and "messages" in extra:
            return dumps(body)
        head = dumps(body) if body else b"{}"
        pieces = self._histories[request.settings.thinking != "off"].pieces(request, self.watch)
        first = b""
        if request.instructions:
            first = dumps({"role": self.profile.system_role, "content": request.instructions})
            if any(pieces):
                first += b","
        opening = b"{" if head == b"{}" else head[:-1] + b","
        return b"".join((opening, b'"messages":[', first, *pieces, b"]}"))

    def remarks(self, request: ModelRequest) -> list[WarningChunk]:
        """What the body cannot say of the request, each once."""
        return self._remarks.on(request, answers=self.profile.response_format == "json_schema")

    def _fields(self, request: ModelRequest) -> dict[str, Any]:
        """Everything but the messages."""
        profile, settings = self.profile, request.settings
        body: dict[str, Any] = {"model": self.model} if self.model else {}
        body["stream"] = True
        if profile.stream_options:
            body["stream_options"] = {"include_usage": True}
        given = (
            ("temperature", settings.temperature),
            ("top_p", settings.top_p),
            (profile.max_tokens, settings.max_output_tokens),
            ("stop", settings.stop),
            (profile.session, request.session_id if settings.cache != "none" else None),
            (profile.seed, settings.seed),
        )
        body |= {name: value for name, value in given if name and value is not None}
        if settings.thinking is not None:
            body |= profile.thinking.get(settings.thinking, {})
        if settings.response_schema is not None and profile.response_format is not None:
            body["response_format"] = self._response_format(settings.response_schema)
        if request.tools and request.tool_choice != "none":
            self._add_tools(body, request)
        return merged(body, settings.extra_body) if settings.extra_body else body

    def _add_tools(self, body: dict[str, Any], request: ModelRequest) -> None:
        profile, tools, choice = self.profile, request.tools, request.tool_choice
        if choice in {"auto", "required"}:
            body["tool_choice"] = choice
        elif profile.named_choice == "object":
            body["tool_choice"] = {"type": "function", "function": {"name": choice}}
        else:
            body["tool_choice"] = "required"
            tools = tuple([tool for tool in tools if tool.name == choice])
        if request.settings.parallel_tool_calls is not None and profile.parallel:
            body["parallel_tool_calls"] = request.settings.parallel_tool_calls
        body["tools"] = self._encoded_tools(tools)

    def _encoded_tools(self, tools: tuple[ToolSpec, ...]) -> msgspec.Raw:
        known, encoded = self._tools
        if tools != known:
            schemas = self.schemas.tools(tools)
            encoded = msgspec.Raw(
                dumps([self._tool(tool, told) for tool, told in zip(tools, schemas, strict=True)]),
            )
            self._tools = (tools, encoded)
        return encoded

    def _tool(self, tool: ToolSpec, told: Translated) -> dict[str, Any]:
        function: dict[str, Any] = {"name": tool.name}
        if tool.description:
            function["description"] = tool.description
        function["parameters"] = told.schema
        if self.profile.strict and tool.strict is not None:
            function["strict"] = told.strict
        return {"type": "function", "function": function}

    def _response_format(self, schema: dict[str, Any]) -> dict[str, Any]:
        if self.profile.response_format == "json_object":
            return {"type": "json_object"}
        told = self.schemas.answer(schema)
        wanted: dict[str, Any] = {"name": schema_name(schema), "schema": told.schema}
        if told.strict and self.profile.strict:
            wanted["strict"] = True
        return {"type": "json_schema", "json_schema": wanted}
