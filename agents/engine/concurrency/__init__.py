"""Threads for heavy work, and event streams that are merged."""

from .thread import MAX_INLINE_CHARS

__all__ = [
    "MAX_INLINE_CHARS",
]
