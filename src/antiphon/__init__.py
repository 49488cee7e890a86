"""antiphon: an agent engine. A model calls, tools answer, until nothing is left to say."""

from typing import TYPE_CHECKING, Any

from antiphon.agent.agent import Agent
from antiphon.agent.conversation import Conversation
from antiphon.agent.modes import ApprovalModes
from antiphon.agent.portal import run_sync, stream_sync
from antiphon.agent.run import Run
from antiphon.agent.view import View
from antiphon.errors import (
    AntiphonError,
    ContextOverflow,
    Dropped,
    Empty,
    FatalToolError,
    Filtered,
    Garbled,
    IllegalMove,
    ModelError,
    Overloaded,
    RateLimited,
    Rejected,
    Stalled,
    ToolError,
    Truncated,
    Unauthorized,
    Unreachable,
    UsageError,
)
from antiphon.loop.hooks import (
    Block,
    Hooks,
    ModelContext,
    ReplyContext,
    RoundContext,
    RunContext,
    RunEndContext,
    RunStartContext,
    Stop,
    ToolCallContext,
    ToolOutcomeContext,
    ToolsContext,
    UseContext,
    UseReply,
    UseRequest,
    UseTools,
)
from antiphon.loop.limits import DEFAULT_MAX_TURNS, Limits
from antiphon.loop.spec import Allow, ApprovalContext, Ask, ForcedCall, Recovery, ToolOptions
from antiphon.loop.state import Answer, Approve, Deny
from antiphon.providers.overflow import is_context_overflow
from antiphon.providers.resolve import get_model
from antiphon.tools.context import ToolContext
from antiphon.tools.function import tool
from antiphon.tools.hooks import CallInfo, ToolHooks, UseArguments, UseResult
from antiphon.tools.registry import ToolRegistry
from antiphon.tools.result import ToolResult
from antiphon.tools.source import ListedTools, ToolSource
from antiphon.tools.tool import Tool
from antiphon.types.cancel import CancelSignal, CancelToken
from antiphon.types.codec import dump_event, dump_messages, load_event, load_messages
from antiphon.types.content import File, Image, Text, Thinking, ToolCall, Unknown
from antiphon.types.custom import CustomKind
from antiphon.types.emitter import Emitter
from antiphon.types.events import (
    ApprovalDecided,
    ApprovalRequested,
    AttemptDiscarded,
    ContextReplaced,
    Event,
    LimitReached,
    MessageDelivered,
    MessageFinished,
    MessageQueued,
    MessageReturned,
    MessageStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    ToolProgress,
    ToolRequested,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    Warned,
)
from antiphon.types.history import History
from antiphon.types.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from antiphon.types.request import Model, ModelInfo, ModelRequest, ModelSettings, Prices, ThinkingLevel
from antiphon.types.result import RunError, RunResult
from antiphon.types.transcript import repair, validate
from antiphon.types.usage import Usage
from antiphon.wire.http import aclose

if TYPE_CHECKING:
    from antiphon.tools.field import Field

__all__ = [
    "DEFAULT_MAX_TURNS",
    "Agent",
    "Allow",
    "Answer",
    "AntiphonError",
    "ApprovalContext",
    "ApprovalDecided",
    "ApprovalModes",
    "ApprovalRequested",
    "Approve",
    "Ask",
    "AssistantMessage",
    "AttemptDiscarded",
    "Block",
    "CallInfo",
    "CancelSignal",
    "CancelToken",
    "ContextOverflow",
    "ContextReplaced",
    "Conversation",
    "CustomKind",
    "CustomMessage",
    "Deny",
    "Dropped",
    "Emitter",
    "Empty",
    "Event",
    "FatalToolError",
    "Field",
    "File",
    "Filtered",
    "ForcedCall",
    "Garbled",
    "History",
    "Hooks",
    "IllegalMove",
    "Image",
    "LimitReached",
    "Limits",
    "ListedTools",
    "Message",
    "MessageDelivered",
    "MessageFinished",
    "MessageQueued",
    "MessageReturned",
    "MessageStarted",
    "Model",
    "ModelContext",
    "ModelError",
    "ModelInfo",
    "ModelRequest",
    "ModelSettings",
    "Overloaded",
    "Prices",
    "RateLimited",
    "Recovery",
    "Rejected",
    "ReplyContext",
    "RoundContext",
    "Run",
    "RunContext",
    "RunEndContext",
    "RunError",
    "RunFinished",
    "RunResult",
    "RunStartContext",
    "RunStarted",
    "Stalled",
    "Stop",
    "SystemMessage",
    "Text",
    "TextDelta",
    "Thinking",
    "ThinkingDelta",
    "ThinkingLevel",
    "Tool",
    "ToolCall",
    "ToolCallContext",
    "ToolCallDelta",
    "ToolContext",
    "ToolError",
    "ToolFinished",
    "ToolHooks",
    "ToolOptions",
    "ToolOutcomeContext",
    "ToolProgress",
    "ToolRegistry",
    "ToolRequested",
    "ToolResult",
    "ToolResultMessage",
    "ToolSource",
    "ToolStarted",
    "ToolsContext",
    "Truncated",
    "TurnFinished",
    "TurnStarted",
    "Unauthorized",
    "Unknown",
    "Unreachable",
    "Usage",
    "UsageError",
    "UseArguments",
    "UseContext",
    "UseReply",
    "UseRequest",
    "UseResult",
    "UseTools",
    "UserMessage",
    "View",
    "Warned",
    "aclose",
    "dump_event",
    "dump_messages",
    "get_model",
    "is_context_overflow",
    "load_event",
    "load_messages",
    "repair",
    "run_sync",
    "stream_sync",
    "tool",
    "validate",
]


def __getattr__(name: str) -> Any:
    """`Field` comes with pydantic, which is not loaded before somebody needs it."""
    if name == "Field":
        from antiphon.tools.field import Field

        return Field
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
