"""One turn of a model: chunks in, text, thoughts and tool calls out."""

from .assembly import (
    KEEP_ALIVE,
    Assembler,
    Chunk,
    PlanResult,
    TextChunk,
    ToolCall,
    Turn,
    assemble,
    has_content,
)
from .reasoning import portable_message
from .usage_report import has_counts, reported_usage

__all__ = [
    "KEEP_ALIVE",
    "Assembler",
    "Chunk",
    "PlanResult",
    "TextChunk",
    "ToolCall",
    "Turn",
    "assemble",
    "has_content",
    "has_counts",
    "portable_message",
    "reported_usage",
]
