"""Runs heavy work in threads and merges event streams."""

from .thread import MAX_INLINE_CHARS

__all__ = [
    "MAX_INLINE_CHARS",
]
