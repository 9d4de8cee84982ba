"""One turn of a model: chunks in, text, thoughts and tool calls out."""

from .assembly import Assembler, Chunk, PlanResult, TextChunk, ToolCall, Turn, assemble
from .reasoning import portable_message
from .usage_report import reported_usage

__all__ = [
    "Assembler",
    "Chunk",
    "PlanResult",
    "TextChunk",
    "ToolCall",
    "Turn",
    "assemble",
    "portable_message",
    "reported_usage",
]
