"""Tool selection: which of many tools a model is sent, and how it reaches the others."""

from .index import ToolIndex, ToolText, describe
from .search_tools import CallToolTool, FindToolsTool, argument_error, unwrap
from .selection import (
    CALL_TOOL,
    CONSTANT_TOOLS,
    FIND_TOOLS,
    SelectionLimits,
    SentTool,
    Situation,
    ToolSelection,
    ToolSelector,
    fuse,
    mentioned,
)

__all__ = [
    "CALL_TOOL",
    "CONSTANT_TOOLS",
    "CallToolTool",
    "FIND_TOOLS",
    "FindToolsTool",
    "SelectionLimits",
    "SentTool",
    "Situation",
    "ToolIndex",
    "ToolSelection",
    "ToolSelector",
    "ToolText",
    "argument_error",
    "describe",
    "fuse",
    "mentioned",
    "unwrap",
]
