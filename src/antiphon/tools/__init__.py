"""What can be called: tools, their schemas, and where they come from."""

from typing import TYPE_CHECKING, Any

from antiphon.tools.arguments import ArgumentError, Prepared, Problem
from antiphon.tools.context import ToolContext
from antiphon.tools.function import tool
from antiphon.tools.hooks import CallInfo, ToolHookCall, ToolHookOutcome, ToolHooks, UseArguments, UseResult
from antiphon.tools.registry import ToolRegistry
from antiphon.tools.result import RESULT_LIMIT, Shaped, ToolResult, cap_text, error_text, shape
from antiphon.tools.source import ListedTools, ToolSource, combined, filtered, renamed
from antiphon.tools.tool import FunctionTool, Tool, ToolTraits

if TYPE_CHECKING:
    from antiphon.tools.field import Field

__all__ = [
    "RESULT_LIMIT",
    "ArgumentError",
    "CallInfo",
    "Field",
    "FunctionTool",
    "ListedTools",
    "Prepared",
    "Problem",
    "Shaped",
    "Tool",
    "ToolContext",
    "ToolHookCall",
    "ToolHookOutcome",
    "ToolHooks",
    "ToolRegistry",
    "ToolResult",
    "ToolSource",
    "ToolTraits",
    "UseArguments",
    "UseResult",
    "cap_text",
    "combined",
    "error_text",
    "filtered",
    "renamed",
    "shape",
    "tool",
]


def __getattr__(name: str) -> Any:
    """`Field` comes with pydantic, which is not loaded before somebody needs it."""
    if name == "Field":
        from antiphon.tools.field import Field

        return Field
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
