"""Messages as Chat Completions wants them, by the rules of a profile. Pure.

Shapes: platform.openai.com/docs/api-reference/chat/create, "messages".
"""

from collections.abc import Sequence
from typing import Any

from antiphon.providers.call_ids import IdRule, NameRule
from antiphon.providers.history import ForeignThinking, HistoryRules, Visible
from antiphon.providers.json_text import dumps
from antiphon.providers.openai_chat._details import details_in
from antiphon.providers.openai_chat.content import content_of, joined_text, note, shown_parts
from antiphon.providers.openai_chat.profiles import Profile
from antiphon.types.content import File, Image, Part, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from antiphon.types.request import ModelInfo

__all__ = ["WRITER_RULES", "ChatWriter", "history_rules"]

WRITER_RULES = (
    "name", "system_role", "empty_content", "replay", "replay_required", "tool_name", "images", "files", "file_urls", "tool_images",
    "extras",
)  # fmt: skip
"""The fields of a profile that the bytes of messages depend on, beside the rules of history."""

_IDS = {"nine": IdRule(longest=9, style="nine"), "forty": IdRule(longest=40), None: None}


def history_rules(profile: Profile, info: ModelInfo, *, thinks: bool, foreign: ForeignThinking) -> HistoryRules:
    """What a server of this profile may see. `thinks`: the model is not told to leave thinking off."""
    replays: dict[str | None, Any] = {None: "never", "reasoning_details": "signed"}
    return HistoryRules(
        origin=info.origin,
        thoughts=replays.get(profile.replay, "readable") if thinks else "never",
        foreign=foreign,
        ids=_IDS[profile.call_ids],
        names=NameRule() if profile.plain_names else None,
        modalities=info.modalities,
    )


class ChatWriter:
    """Writes messages. `thinks` as above."""

    __slots__ = ("profile", "thinks")

    def __init__(self, profile: Profile, *, thinks: bool) -> None:
        self.profile = profile
        self.thinks = thinks

    def write(self, messages: Sequence[Visible]) -> bytes:
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

    def _encoded(self, message: Visible) -> bytes | None:
        wire = self._wire(message)
        return None if wire is None else dumps(wire)

    def _wire(self, message: Visible) -> dict[str, Any] | None:
        """One message, `None` for what says nothing: servers refuse empty messages."""
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
            wire["tool_calls"] = [self._call(call) for call in calls]
        return wire

    def _replay(self, message: AssistantMessage, wire: dict[str, Any], *, required: bool) -> None:
        """The model's own reasoning, given back."""
        field = self.profile.replay
        thoughts = [part for part in message.parts if type(part) is Thinking]
        if field == "reasoning_details":
            if details := [detail for part in thoughts for detail in details_in(part.signature or "")]:
                wire[field] = details
        elif field:
            text = "".join([part.text for part in thoughts])
            if text or required:
                wire[field] = text

    def _call(self, call: ToolCall) -> dict[str, Any]:
        function = {"name": call.name, "arguments": call.arguments}
        wire: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
        if call.opaque:
            wire |= {name: call.opaque[name] for name in self.profile.extras if name in call.opaque}
        return wire

    def _result(self, message: ToolResultMessage, pictures: list[dict[str, Any]]) -> dict[str, Any]:
        """A tool's answer. There is no field for errors, the text says so itself."""
        wire: dict[str, Any] = {"role": "tool", "tool_call_id": message.call_id}
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
        label = f"[what the tool {message.tool_name!r} returned beside text, call {message.call_id!r}:]"
        pictures.extend(({"type": "text", "text": label}, *shown))
        return text


def _plain(message: Visible) -> bytes | None:
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
