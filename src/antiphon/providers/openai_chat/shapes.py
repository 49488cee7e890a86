"""The wire's shapes as types, for applications that bring their own connection. No client is needed to use them.

Shape: platform.openai.com/docs/api-reference/chat and chat-streaming. In chunks every field is optional: real servers
send less than the documentation says, and more.
"""

from typing import Any, Literal, NotRequired, TypedDict

__all__ = [
    "CallFragment",
    "ChatCall",
    "ChatCallFunction",
    "ChatChoice",
    "ChatChunk",
    "ChatDelta",
    "ChatMessage",
    "ChatRequest",
    "ChatTool",
    "ChatToolFunction",
    "FunctionFragment",
]


class FunctionFragment(TypedDict, total=False):
    """A piece of a call: its name, once, and the next part of its arguments' JSON text."""

    name: str | None
    arguments: str | None


class CallFragment(TypedDict, total=False):
    """A piece of a tool call; `index` says which one."""

    index: int
    id: str | None
    type: Literal["function"]
    function: FunctionFragment


class ChatDelta(TypedDict, total=False):
    """What a chunk adds to the reply."""

    role: str
    content: str | None
    reasoning_content: str | None
    refusal: str | None
    tool_calls: list[CallFragment] | None


class ChatChoice(TypedDict, total=False):
    """One candidate reply; the first one is read."""

    index: int
    delta: ChatDelta
    finish_reason: str | None


class ChatChunk(TypedDict, total=False):
    """One chunk of the stream."""

    id: str
    model: str
    choices: list[ChatChoice]
    usage: dict[str, Any] | None


class ChatCallFunction(TypedDict):
    """Name and arguments, the latter as JSON text."""

    name: str
    arguments: str


class ChatCall(TypedDict):
    """A whole tool call in a message."""

    id: str
    type: Literal["function"]
    function: ChatCallFunction


class ChatMessage(TypedDict):
    """A message of a request. Content may be `None` beside calls, and a list of parts in user messages."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: NotRequired[str | list[dict[str, Any]] | None]
    tool_calls: NotRequired[list[ChatCall]]
    tool_call_id: NotRequired[str]


class ChatToolFunction(TypedDict):
    """What a tool is called, what it is for, and the JSON Schema of its arguments."""

    name: str
    description: NotRequired[str]
    parameters: dict[str, Any]
    strict: NotRequired[bool]


class ChatTool(TypedDict):
    """A tool of a request."""

    type: Literal["function"]
    function: ChatToolFunction


class ChatRequest(TypedDict, total=False):
    """A request's body, before the application adds what is its own (model, stream flag, key).

    Fields of the settings (temperature, stop, …) are there too if they are set.
    """

    model: str
    messages: list[ChatMessage]
    tools: list[ChatTool]
    tool_choice: str | dict[str, Any]
