"""Messages as the API's turns. Pure.

Shape: platform.claude.com/docs/en/api/messages/create, "messages"; agents-and-tools/tool-use/handle-tool-calls (all results
of a reply in one user message, straight after it); build-with-claude/thinking (thoughts go back unchanged). Turns of one
role in a row are allowed, the API joins them.

Each message stands behind a line end, and the bytes hold no other one, since JSON needs none: so that one can be found
again among them without being decoded.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from antiphon.providers.anthropic._content import blocks_of, text_block
from antiphon.providers.anthropic._ids import first_uses, wire_id, wire_name
from antiphon.providers.anthropic._json import dumps
from antiphon.providers.anthropic._thinking import replayable
from antiphon.providers.prefix import encoded_prefix
from antiphon.types.content import Part, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage

__all__ = ["ASSISTANT", "USER", "MessageEncoder", "leading_system"]

USER = b'\n{"role":"user",'
ASSISTANT = b'\n{"role":"assistant",'

_LINE_ENDS = str.maketrans("\n\r", "  ")
_SILENT_FAILURE = "the tool failed and said nothing"
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


def leading_system(messages: Sequence[Message]) -> list[str]:
    """The texts of the system messages that a transcript begins with: they can stand where the API wants such text."""
    leading: list[str] = []
    for message in messages:
        if type(message) is not SystemMessage:
            break
        leading.append(_system_text(message))
    return leading


class MessageEncoder:
    """Encodes the messages of requests to one model. `origin` is the `provider:model` whose thoughts may go back."""

    __slots__ = ("_key", "_origin")

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._key = ("anthropic", origin)

    def encode(self, messages: Sequence[Message], leading: int) -> list[bytes]:
        """The messages' bytes in pieces, without the `leading` ones. Pieces of a history that grows are made once."""
        first = first_uses(messages)

        def encode_new(run: Sequence[Message]) -> bytes:
            begin = len(messages) - len(run)  # a run is always the end of the messages
            return self._run(run[max(0, leading - begin) :], max(begin, leading), first)

        return encoded_prefix(messages, self._key, encode_new)

    def goes_on_without_thought(self, messages: Sequence[Message]) -> bool:
        """Whether the request goes on with a turn that did not begin with a thought that may go back.

        A turn is a chain of replies and their results; what a user says between the two does not end it. With a thinking
        budget such a request is refused: "a final assistant message must start with a thinking block".
        """
        first: AssistantMessage | None = None
        answered = False  # calls, by the user's side that comes behind the next reply
        for index in range(len(messages) - 1, -1, -1):
            message = messages[index]
            if type(message) is ToolResultMessage:
                answered = True
            elif type(message) is AssistantMessage:
                if not answered:
                    break
                first, answered = message, False
        blocks = self._reply_blocks(first, {}) if first else []
        return bool(blocks) and blocks[0]["type"] not in _THOUGHTS

    def _run(self, messages: Sequence[Message], begin: int, first: dict[str, int]) -> bytes:
        """Messages with commas between them; the results of a reply are one. `begin` is the place of the first."""
        encoded: list[bytes] = []
        results: list[dict[str, Any]] = []
        ids: dict[str, str] = {}
        for index, message in enumerate(messages, begin):
            if type(message) is ToolResultMessage:
                results.append(_result(message, ids.get(message.call_id) or wire_id(message.call_id)))
                continue
            if type(message) is AssistantMessage:
                _close(results, ids, encoded)
                ids = {call.id: wire_id(call.id, index if first[call.id] < index else None) for call in message.calls}
                _add("assistant", self._reply_blocks(message, ids), encoded)
            elif type(message) is UserMessage or type(message) is SystemMessage:
                _close(results, ids, encoded)
                _add("user", _said(message), encoded)
        _close(results, ids, encoded)
        return b",".join(encoded)

    def _reply_blocks(self, message: AssistantMessage, ids: dict[str, str]) -> list[dict[str, Any]]:
        blocks = [
            block for part in message.parts if (block := self._reply_block(part, message.partial, ids)) is not None
        ]
        # "The final block in an assistant message cannot be `thinking`."
        while blocks and blocks[-1]["type"] in _THOUGHTS:
            blocks.pop()
        return blocks

    def _reply_block(self, part: Part, partial: bool, ids: dict[str, str]) -> dict[str, Any] | None:
        match part:
            case Text(text=text):
                return text_block(text)
            case ToolCall(id=call_id, name=name):
                own = ids.get(call_id) or wire_id(call_id)
                return {"type": "tool_use", "id": own, "name": wire_name(name), "input": _sendable_input(part)}
            case Thinking(signature=signature) if replayable(part, self._origin) and not partial:
                if part.redacted:
                    return {"type": "redacted_thinking", "data": signature}
                return {"type": "thinking", "thinking": part.text, "signature": signature}
            case _:  # what is not signed by this model is refused; a model does not send pictures
                return None


def _add(role: str, blocks: list[dict[str, Any]], encoded: list[bytes]) -> None:
    """Add a message; one that says nothing is left out, since the API refuses it."""
    if blocks:
        encoded.append(b"\n" + dumps({"role": role, "content": blocks}))


def _close(results: list[dict[str, Any]], ids: dict[str, str], encoded: list[bytes]) -> None:
    """Add the results of the reply whose ids these are, in the order of its calls."""
    if results:
        order = {own: place for place, own in enumerate(ids.values())}
        _add("user", sorted(results, key=lambda result: order.get(result["tool_use_id"], len(order))), encoded)
        results.clear()


def _said(message: UserMessage | SystemMessage) -> list[dict[str, Any]]:
    """What a user said. System text within a transcript is marked as such.

    Only the newest models take system messages there, and only before a reply, which the next message may not be; moved to
    the top, it would change the beginning of a prompt that the server has already read.
    """
    if type(message) is UserMessage:
        return blocks_of(message.parts)
    text = _system_text(message)
    return [{"type": "text", "text": f"<system>\n{text}\n</system>"}] if text_block(text) else []


def _system_text(message: SystemMessage | UserMessage) -> str:
    return "\n".join([part.text for part in message.parts if type(part) is Text])


def _result(message: ToolResultMessage, own: str) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "tool_result", "tool_use_id": own}
    blocks = blocks_of(message.parts)
    if message.is_error and not blocks:  # "content cannot be empty if `is_error` is true"
        blocks = [{"type": "text", "text": _SILENT_FAILURE}]
    if blocks:
        wire["content"] = blocks
    if message.is_error:
        wire["is_error"] = True
    return wire


def _sendable_input(call: ToolCall) -> msgspec.Raw:
    """The arguments as the model wrote them; an empty object for what is not a JSON object, which the API refuses."""
    try:
        call.parse()
    except (ValueError, RecursionError):
        return msgspec.Raw(b"{}")
    return msgspec.Raw((call.arguments.strip() or "{}").translate(_LINE_ENDS).encode())
