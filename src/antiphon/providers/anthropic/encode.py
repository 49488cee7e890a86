"""A request as the JSON of the Messages API. Pure.

Fields: platform.claude.com/docs/en/api/messages/create (version 2023-06-01); what differs between models is in `_models`.
The messages stand last in the body, so that the next request of the same transcript begins with the same bytes.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from antiphon.providers.anthropic._cache import mark_for, marked_list, marked_messages
from antiphon.providers.anthropic._content import text_block
from antiphon.providers.anthropic._messages import (
    ASSISTANT,
    goes_on_without_thought,
    history_rules,
    leading_system,
    write,
)
from antiphon.providers.anthropic._models import rules_for
from antiphon.providers.anthropic._thinking import sampling_fields, silenced, thinking_fields
from antiphon.providers.dialect import DIALECTS
from antiphon.providers.dialects import Schemas, Translated
from antiphon.providers.history import ForeignThinking, HistoryEncoder
from antiphon.providers.json_text import dumps
from antiphon.providers.payload import merged
from antiphon.providers.prefix_watch import PrefixWatch
from antiphon.providers.remarks import Remarks
from antiphon.types.request import ModelInfo, ModelRequest, ToolSpec, WarningChunk
from antiphon.types.thinking import effective_thinking

__all__ = ["AnthropicEncoder", "encode"]

# "Requests which include `tool_use` or `tool_result` blocks must define tools": for one that has none any more.
_NO_TOOL = ToolSpec(name="none", description="There is no tool to call now.")
_CALLED = b'{"type":"tool_use","id":'
_OPENING = b'\n{"role":"user","content":[{"type":"text","text":"(The assistant begins.)"}]}'


def encode(request: ModelRequest, model: str, info: ModelInfo | None = None) -> bytes:
    """The body of a request to `model`. For many requests keep an `AnthropicEncoder`."""
    return AnthropicEncoder(model, info).encode(request)


class AnthropicEncoder:
    """Encodes the requests to one model; what repeats from one to the next (tools, messages) is encoded once.

    `info` tells the origin of thoughts that may go back, the output limit and the thinking levels. `eager`: the server
    knows the wish for arguments that are not held back until they are whole (agents-and-tools/tool-use/
    fine-grained-tool-streaming); others refuse the field. `foreign_thinking` says what becomes of other models' thoughts.
    """

    __slots__ = (
        "_eager", "_histories", "_history_rules", "_info", "_remarks", "_rules", "_tools", "model", "schemas",
        "watch",
    )  # fmt: skip

    def __init__(
        self,
        model: str,
        info: ModelInfo | None = None,
        *,
        eager: bool = False,
        foreign_thinking: ForeignThinking = "omit",
    ) -> None:
        self.model = model
        self.watch = PrefixWatch()
        self._info = info or ModelInfo(provider="anthropic", id=model)
        self._eager = eager
        self._rules = rules_for(model)
        self._history_rules = history_rules(self._info, foreign_thinking)
        self._histories = HistoryEncoder("anthropic", self._history_rules, write)
        self.schemas = Schemas(DIALECTS["anthropic"])
        self._remarks = Remarks(self.schemas)
        self._tools: tuple[tuple[ToolSpec, ...], bytes] = ((), b"[]")  # one value: runs in several threads may share it

    @property
    def keeps_schemas(self) -> bool:
        """Whether the model keeps to a schema: its reply's, and tools' strict mode."""
        return self._rules.schemas

    def encode(self, request: ModelRequest) -> bytes:
        """The body. Raises `UsageError` for settings that JSON cannot hold."""
        leading = leading_system(request.messages)
        pieces = self._histories.pieces(request, self.watch, len(leading))
        mark = mark_for(request.settings)
        body = self._fields(request)
        self._add_tools(body, request, pieces, mark)
        blocks = [text_block(text) for text in (request.instructions, *leading)]
        if system := [block for block in blocks if block]:
            body["system"] = msgspec.Raw(marked_list(dumps(system), mark))
        extra = request.settings.extra_body
        if extra:
            body = merged(body, extra)
            if "messages" in extra:
                return dumps(body)
        return b"".join((dumps(body)[:-1], b',"messages":[', *_opened(pieces, mark), b"]}"))

    def remarks(self, request: ModelRequest) -> list[WarningChunk]:
        """What the body cannot say of the request, schemas once."""
        return self._remarks.on(
            request,
            answers=self._rules.schemas,
            left_out=[] if request.settings.seed is None else ["seed"],
            api="the Messages API",
        )

    def _fields(self, request: ModelRequest) -> dict[str, Any]:
        """Everything but tools, system and messages."""
        rules, info = self._rules, self._info
        settings = replace(request.settings, thinking=effective_thinking(request.settings.thinking, info))
        max_tokens = settings.max_output_tokens or info.output_limit or rules.max_tokens
        body: dict[str, Any] = {"model": self.model, "max_tokens": max_tokens, "stream": True}
        if _demands_call(request) and rules.forced:
            thoughts = silenced(rules)
        else:
            budgets = rules.thinking in {"budget", "either"}
            blocked = budgets and goes_on_without_thought(request.messages, self._history_rules)
            thoughts = thinking_fields(settings, rules, max_tokens, blocked=blocked)
        body |= thoughts
        thinks = thoughts.get("thinking", {}).get("type") in {"enabled", "adaptive"}
        body |= sampling_fields(settings, rules, thinks=thinks)
        # "each stop sequence must contain non-whitespace"
        if stop := [text for text in settings.stop or () if text.strip()]:
            body["stop_sequences"] = stop
        if settings.response_schema is not None and rules.schemas:
            schema = self.schemas.answer(settings.response_schema).schema
            wanted = {"format": {"type": "json_schema", "schema": schema}}
            body["output_config"] = {**body.get("output_config", {}), **wanted}
        return body

    def _add_tools(self, body: dict[str, Any], request: ModelRequest, pieces: list[bytes], mark: bytes) -> None:
        tools, choice = request.tools, _choice(request, forced=self._rules.forced)
        if not tools:
            if not any(_CALLED in piece for piece in pieces):
                return
            tools, choice = (_NO_TOOL,), {"type": "none"}
        body["tool_choice"] = choice
        body["tools"] = msgspec.Raw(marked_list(self._encoded_tools(tools), mark))

    def _encoded_tools(self, tools: tuple[ToolSpec, ...]) -> bytes:
        known, encoded = self._tools
        if tools != known:
            schemas = self.schemas.tools(tools)
            encoded = dumps([self._tool(tool, told) for tool, told in zip(tools, schemas, strict=True)])
            self._tools = (tools, encoded)
        return encoded

    def _tool(self, tool: ToolSpec, told: Translated) -> dict[str, Any]:
        wire: dict[str, Any] = {"name": tool.name}
        if tool.description:
            wire["description"] = tool.description
        wire["input_schema"] = told.schema
        if self._rules.schemas and tool.strict is not None:
            wire["strict"] = told.strict
        if self._eager and not tool.strict:
            wire["eager_input_streaming"] = True
        return wire


def _demands_call(request: ModelRequest) -> bool:
    return bool(request.tools) and request.tool_choice not in {"auto", "none"}


def _choice(request: ModelRequest, *, forced: bool) -> dict[str, Any]:
    """How tools may be used. A model that refuses to be forced is left to decide, with the same tools as ever.

    Fewer tools would be another way, but thoughts are bound to the tools that were there when they were thought.
    """
    name = request.tool_choice
    if name == "none":
        return {"type": "none"}
    choice: dict[str, Any] = {"type": "auto"}
    if forced and name != "auto":
        choice = {"type": "any"} if name == "required" else {"type": "tool", "name": name}
    if request.settings.parallel_tool_calls is not None:
        choice["disable_parallel_tool_use"] = not request.settings.parallel_tool_calls
    return choice


def _opened(pieces: list[bytes], mark: bytes) -> tuple[bytes | memoryview, ...]:
    """The messages with their marks. Some servers refuse a conversation that the assistant begins."""
    first = next((piece for piece in pieces if piece), b"")
    opening = (_OPENING, b",") if first.startswith(ASSISTANT) else ()
    return (*opening, *marked_messages(pieces, mark))
