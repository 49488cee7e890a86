"""A request as the JSON of Chat Completions. Pure.

Fields: platform.openai.com/docs/api-reference/chat/create; what other servers want otherwise is in `profiles`. The
messages stand last in the body, so that the next request of the same transcript begins with the same bytes.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from antiphon.providers.openai_chat._details import details_in
from antiphon.providers.openai_chat._json import dumps
from antiphon.providers.openai_chat.content import content_of, joined_text, note, shown_parts
from antiphon.providers.openai_chat.profiles import Profile
from antiphon.providers.prefix import encoded_prefix
from antiphon.types.content import File, Image, Part, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from antiphon.types.request import ModelRequest, ToolSpec

__all__ = ["ChatEncoder", "encode"]

# A tool without parameters: an empty closed object, since a bare `{}` is refused by strict validators.
_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
_NINE = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def encode(request: ModelRequest, model: str, profile: Profile) -> bytes:
    """The body of a request to `model`. For many requests keep a `ChatEncoder`."""
    return ChatEncoder(model, profile).encode(request)


class ChatEncoder:
    """Encodes the requests to one model; what repeats from one to the next (tools, messages) is encoded once.

    `origin` is the `provider:model` under which thinking and opaque data of calls go back; by default the profile's name
    and the model.
    """

    __slots__ = ("_keys", "_messages", "_tools", "_tools_json", "model", "profile")

    def __init__(self, model: str, profile: Profile, origin: str | None = None) -> None:
        self.model = model
        self.profile = profile
        origin = origin or f"{profile.name}:{model}"
        thinks, quiet = _MessageEncoder(profile, origin, thinks=True), _MessageEncoder(profile, origin, thinks=False)
        self._messages = (quiet, thinks)
        rules = tuple([getattr(profile, name) for name in _MESSAGE_RULES])
        self._keys = tuple([("openai_chat", origin, encoder.thinks, rules) for encoder in self._messages])
        self._tools: tuple[ToolSpec, ...] = ()
        self._tools_json = msgspec.Raw(b"[]")

    def encode(self, request: ModelRequest) -> bytes:
        """The body. Raises `UsageError` for settings that JSON cannot hold."""
        body = self._fields(request)
        extra = request.settings.extra_body
        if extra and "messages" in extra:
            return dumps(body)
        head = dumps(body) if body else b"{}"
        thinks = request.settings.thinking != "off"
        encoder = self._messages[thinks]
        pieces = encoded_prefix(request.messages, self._keys[thinks], encoder.encode)
        first = b""
        if request.instructions:
            first = dumps({"role": self.profile.system_role, "content": request.instructions})
            if any(pieces):
                first += b","
        opening = b"{" if head == b"{}" else head[:-1] + b","
        return b"".join((opening, b'"messages":[', first, *pieces, b"]}"))

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
            body["response_format"] = _response_format(settings.response_schema, profile)
        if request.tools and request.tool_choice != "none":
            self._add_tools(body, request)
        return _merged(body, settings.extra_body) if settings.extra_body else body

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
        if tools != self._tools:
            self._tools_json = msgspec.Raw(dumps([_tool(tool, self.profile) for tool in tools]))
            self._tools = tools
        return self._tools_json


# The fields of a profile that the bytes of messages depend on.
_MESSAGE_RULES = (
    "name", "system_role", "empty_content", "replay", "replay_required", "call_ids",
    "tool_name", "images", "files", "tool_images", "extras",
)  # fmt: skip


class _MessageEncoder:
    """Encodes messages by the rules of a profile. `thinks`: the model is not told to leave thinking off."""

    __slots__ = ("origin", "profile", "provider", "thinks")

    def __init__(self, profile: Profile, origin: str, *, thinks: bool) -> None:
        self.profile = profile
        self.origin = origin
        self.provider = origin.partition(":")[0]
        self.thinks = thinks

    def encode(self, messages: Sequence[Message]) -> bytes:
        """The messages with commas between them. What a tool has to show comes after all results of its exchange."""
        encoded: list[bytes] = []
        pictures: list[dict[str, Any]] = []
        for message in messages:
            if type(message) is ToolResultMessage:
                encoded.append(dumps(self._result(message, pictures)))
                continue
            wire = _plain(message) or self._encoded(message)
            if wire is None:
                continue
            if pictures:
                encoded.append(dumps({"role": "user", "content": pictures}))
                pictures = []
            encoded.append(wire)
        if pictures:
            encoded.append(dumps({"role": "user", "content": pictures}))
        return b",".join(encoded)

    def _encoded(self, message: Message) -> bytes | None:
        wire = self._wire(message)
        return None if wire is None else dumps(wire)

    def _wire(self, message: Message) -> dict[str, Any] | None:
        """One message, `None` for what no model may see, or what says nothing: servers refuse empty messages."""
        if type(message) is AssistantMessage:
            return self._assistant(message)
        if type(message) is UserMessage:
            content = content_of(message.parts, self.profile)
            return {"role": "user", "content": content} if content else None
        if type(message) is SystemMessage:
            text = joined_text(message.parts)
            return {"role": self.profile.system_role, "content": text} if text else None
        return None

    def _assistant(self, message: AssistantMessage) -> dict[str, Any] | None:
        text, calls = message.text, message.calls
        if not text and not calls:
            return None
        wire: dict[str, Any] = {"role": "assistant"}
        if text or self.profile.empty_content != "absent":
            wire["content"] = text or (None if self.profile.empty_content == "null" else "")
        if self.profile.replay and self.thinks:
            self._replay(message, wire, required=self.profile.replay_required and bool(calls))
        if calls:
            wire["tool_calls"] = [self._call(call, message) for call in calls]
        return wire

    def _replay(self, message: AssistantMessage, wire: dict[str, Any], *, required: bool) -> None:
        """The model's own reasoning, given back. Text goes to the provider it came from, signed parts to the model."""
        field = self.profile.replay
        thoughts = [part for part in message.parts if type(part) is Thinking]
        if field == "reasoning_details":
            signed = [part.signature for part in thoughts if part.signature and part.origin == self.origin]
            if details := [detail for signature in signed for detail in details_in(signature)]:
                wire[field] = details
        elif field:
            text = "".join([part.text for part in thoughts if (part.origin or "").partition(":")[0] == self.provider])
            if text or required:
                wire[field] = text

    def _call(self, call: ToolCall, message: AssistantMessage) -> dict[str, Any]:
        function = {"name": call.name, "arguments": _sendable_arguments(call)}
        wire: dict[str, Any] = {"id": self._id(call.id), "type": "function", "function": function}
        if call.opaque and call.opaque.get("origin", f"{message.provider}:{message.model}") == self.origin:
            wire |= {name: call.opaque[name] for name in self.profile.extras if name in call.opaque}
        return wire

    def _id(self, call_id: str) -> str:
        if self.profile.call_ids is None or (len(call_id) == 9 and call_id.isascii() and call_id.isalnum()):
            return call_id
        number = int.from_bytes(hashlib.sha256(call_id.encode(errors="replace")).digest()[:8], "big")
        return "".join([_NINE[number // 62**place % 62] for place in range(9)])

    def _result(self, message: ToolResultMessage, pictures: list[dict[str, Any]]) -> dict[str, Any]:
        """A tool's answer. There is no field for errors, the text says so itself."""
        wire: dict[str, Any] = {"role": "tool", "tool_call_id": self._id(message.call_id)}
        text = joined_text(message.parts)
        others = tuple([part for part in message.parts if type(part) in {Image, File}])
        wire["content"] = self._with_others(text, others, message, pictures) if others else text
        if self.profile.tool_name and message.tool_name:
            wire["name"] = message.tool_name
        return wire

    def _with_others(
        self, text: str, others: tuple[Part, ...], message: ToolResultMessage, pictures: list[dict[str, Any]]
    ) -> str | list[dict[str, Any]]:
        """The content of a tool's answer with pictures or files, which tool messages cannot have in most dialects."""
        if self.profile.tool_images == "note":
            notes = [note(part, self.profile) for part in others]
            return "\n".join([text, *notes] if text else notes)
        shown = shown_parts(others, self.profile)
        if self.profile.tool_images == "inline":
            return [{"type": "text", "text": text}, *shown] if text else shown
        label = f"[what the tool {message.tool_name!r} returned beside text, call {self._id(message.call_id)!r}:]"
        pictures.extend(({"type": "text", "text": label}, *shown))
        return text


def _plain(message: Message) -> bytes | None:
    """The bytes of a message that is one text, as most are: what `_wire` would give, without its questions."""
    if type(message) is UserMessage:
        role, parts = b"user", message.parts
    elif type(message) is AssistantMessage:
        role, parts = b"assistant", message.parts
    else:
        return None
    part = parts[0] if len(parts) == 1 else None
    if type(part) is not Text or not part.text:
        return None
    return b'{"role":"%b","content":%b}' % (role, dumps(part.text))


def _sendable_arguments(call: ToolCall) -> str:
    """The arguments as the model wrote them; an empty object for what is not a JSON object, which servers refuse."""
    try:
        call.parse()
    except (ValueError, RecursionError):
        return "{}"
    return call.arguments if call.arguments.strip() else "{}"


def _tool(tool: ToolSpec, profile: Profile) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters or _NO_PARAMETERS
    if profile.strict and tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _response_format(schema: dict[str, Any], profile: Profile) -> dict[str, Any]:
    if profile.response_format == "json_object":
        return {"type": "json_object"}
    name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title") or "answer"))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def _merged(body: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """`extra` over `body`; where both have an object, its fields are merged."""
    over: dict[str, Any] = {}
    for name, value in extra.items():
        under = body.get(name)
        over[name] = (
            {**cast("dict[str, Any]", under), **value} if isinstance(under, dict) and isinstance(value, dict) else value
        )
    return {**body, **over}
