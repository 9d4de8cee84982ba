"""Asks a model and reads its reply: the planner and the ReAct dialect."""

from .message_attachments import Sense
from .react_parser import parse_react
from .react_planner import LLM, Dialect, ReActPlanner, for_short_reply
from .stream_batches import Deadlines, batched, open_stream

__all__ = [
    "Deadlines",
    "Dialect",
    "LLM",
    "ReActPlanner",
    "Sense",
    "batched",
    "for_short_reply",
    "open_stream",
    "parse_react",
]
