"""Messages as input items of the Responses API. Pure.

Shapes: platform.openai.com/docs/api-reference/responses/create, "input": messages, `function_call`,
`function_call_output`, `reasoning`.
"""

from collections.abc import Sequence
from typing import Any

from antiphon.providers.call_ids import IdRule, NameRule
from antiphon.providers.history import ForeignThinking, HistoryRules, Visible
from antiphon.providers.json_text import dumps
from antiphon.providers.marks import fields_of
from antiphon.providers.openai_responses._content import content_of, output_of
from antiphon.providers.openai_responses._marks import item_in
from antiphon.types.content import Text, Thinking, ToolCall
from antiphon.types.messages import AssistantMessage, SystemMessage, ToolResultMessage, UserMessage
from antiphon.types.request import ModelInfo

__all__ = ["history_rules", "write"]


def history_rules(info: ModelInfo, *, thinks: bool, foreign: ForeignThinking) -> HistoryRules:
    """What the API takes of a transcript. `thinks`: the model is not told to leave thinking off."""
    return HistoryRules(
        origin=info.origin,
        thoughts="signed" if thinks else "never",
        gaps=True,
        foreign=foreign,
        ids=IdRule(unique=True),
        names=NameRule(),
        modalities=info.modalities,
    )


def write(messages: Sequence[Visible]) -> bytes:
    """The items of the messages with commas between them."""
    return b",".join([dumps(item) for message in messages for item in _items(message)])


def _items(message: Visible) -> list[dict[str, Any]]:
    """The items of one message; none for what says nothing."""
    match message:
        case AssistantMessage():
            return _reply(message)
        case ToolResultMessage():  # there is no field for errors, the text says so itself
            return [{"type": "function_call_output", "call_id": message.call_id, "output": output_of(message.parts)}]
        case UserMessage() | SystemMessage():
            role = "user" if isinstance(message, UserMessage) else "developer"
            content = content_of(message.parts)
            return [{"type": "message", "role": role, "content": content}] if content else []


def _reply(message: AssistantMessage) -> list[dict[str, Any]]:
    """A reply. Ids go along only if all of its reasoning does: the server looks for what an id was paired with.

    A thought that stays behind has left an empty one.
    """
    thoughts = [item_in(part.signature) for part in message.parts if type(part) is Thinking]
    paired = bool(thoughts) and None not in thoughts
    ahead = iter(thoughts)
    items: list[dict[str, Any]] = []
    for part in message.parts:
        if type(part) is Thinking:
            item = next(ahead)
            if item is not None:
                items.append(item)
        elif type(part) is Text and part.text:
            items.append(_said(part, fields_of(part.signature), paired=paired))
        elif type(part) is ToolCall:
            items.append(_call(part, paired=paired))
    while items and items[-1]["type"] == "reasoning":
        items.pop()  # a reasoning item without the item that it led to is refused
    return items


def _call(call: ToolCall, *, paired: bool) -> dict[str, Any]:
    own = {name: value for name, value in (call.opaque or {}).items() if name != "origin" and (paired or name != "id")}
    return {
        "type": "function_call", **own, "call_id": call.id, "name": call.name, "arguments": call.arguments,
    }  # fmt: skip


def _said(part: Text, mark: dict[str, Any], *, paired: bool) -> dict[str, Any]:
    """A reply's text: as an output item if its id goes along, else in the short form, which needs none."""
    item: dict[str, Any] = {"type": "message", "role": "assistant"}
    if "phase" in mark:
        item["phase"] = mark["phase"]
    if paired and "id" in mark:
        content: dict[str, Any] = {"type": "output_text", "text": part.text, "annotations": []}
        return item | {"id": mark["id"], "status": "completed", "content": [content]}
    return item | {"content": part.text}
