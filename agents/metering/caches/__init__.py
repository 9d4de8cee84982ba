"""Saved results of read-only tools and replies of models: keys, storage, limits, figures."""

from . import hits
from .clearing import clear
from .groups import GROUPS, connect, evict, group_name
from .replies import ReplyStore
from .results import ToolResultStore, tool_version

__all__ = [
    "ReplyStore",
    "ToolResultStore",
    "GROUPS",
    "clear",
    "connect",
    "evict",
    "group_name",
    "hits",
    "tool_version",
]
