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
from antiphon.providers.call_ids import IdRule, NameRule
from antiphon.providers.history import ForeignThinking, HistoryRules, Visible, visible_messages
from antiphon.providers.json_text import dumps
from antiphon.types.content import Part, Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, Message, SystemMessage, ToolResultMessage, UserMessage
from antiphon.types.request import ModelInfo

__all__ = ["ASSISTANT", "USER", "goes_on_without_thought", "history_rules", "leading_system", "write"]

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


def history_rules(info: ModelInfo, foreign: ForeignThinking) -> HistoryRules:
    """What the API takes of a transcript.

    Ids and names with other characters than letters, digits, "_" and "-" are refused ("String should match pattern"), and
    so is an id that stands in a request twice ("`tool_use` ids must be unique"). Ids are kept to 64 characters, which all
    servers take; names of tools may be longer on some.
    """
    return HistoryRules(
        origin=info.origin,
        foreign=foreign,
        ids=IdRule(unique=True),
        names=NameRule(longest=128),
        modalities=info.modalities,
    )


def write(messages: Sequence[Visible]) -> bytes:
    """Messages with commas between them; the results of a reply are one."""
    encoded: list[bytes] = []
    results: list[dict[str, Any]] = []
    ids: list[str] = []
    for message in messages:
        if type(message) is ToolResultMessage:
            results.append(_result(message))
            continue
        _close(results, ids, encoded)
        if type(message) is AssistantMessage:
            ids = [call.id for call in message.calls]
            _add("assistant", _reply_blocks(message), encoded)
        elif type(message) is UserMessage or type(message) is SystemMessage:
            _add("user", _said(message), encoded)
    _close(results, ids, encoded)
    return b",".join(encoded)


def goes_on_without_thought(messages: Sequence[Message], rules: HistoryRules) -> bool:
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
    if first is None:
        return False
    [seen] = visible_messages([first], rules)
    assert type(seen) is AssistantMessage
    blocks = _reply_blocks(seen)
    return bool(blocks) and blocks[0]["type"] not in _THOUGHTS


def _reply_blocks(message: AssistantMessage) -> list[dict[str, Any]]:
    blocks = [block for part in message.parts if (block := _reply_block(part)) is not None]
    # "The final block in an assistant message cannot be `thinking`."
    while blocks and blocks[-1]["type"] in _THOUGHTS:
        blocks.pop()
    return blocks


def _reply_block(part: Part) -> dict[str, Any] | None:
    match part:
        case Text(text=text):
            return text_block(text)
        case ToolCall():
            given = msgspec.Raw(part.arguments.strip().translate(_LINE_ENDS).encode())
            return {"type": "tool_use", "id": part.id, "name": part.name, "input": given}
        case Thinking(signature=signature):
            if part.redacted:
                return {"type": "redacted_thinking", "data": signature}
            return {"type": "thinking", "thinking": part.text, "signature": signature}
        case _:  # a model does not send pictures
            return None


def _add(role: str, blocks: list[dict[str, Any]], encoded: list[bytes]) -> None:
    """Add a message; one that says nothing is left out, since the API refuses it."""
    if blocks:
        encoded.append(b"\n" + dumps({"role": role, "content": blocks}))


def _close(results: list[dict[str, Any]], ids: list[str], encoded: list[bytes]) -> None:
    """Add the results of the reply whose ids these are, in the order of its calls."""
    if results:
        order = {own: place for place, own in enumerate(ids)}
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


def _result(message: ToolResultMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.call_id}
    blocks = blocks_of(message.parts)
    if message.is_error and not blocks:  # "content cannot be empty if `is_error` is true"
        blocks = [{"type": "text", "text": _SILENT_FAILURE}]
    if blocks:
        wire["content"] = blocks
    if message.is_error:
        wire["is_error"] = True
    return wire
