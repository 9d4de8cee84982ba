"""Search: full text and vectors, within a scope."""

from .finder import SearchResult, find
from .passages import to_passage

__all__ = ["SearchResult", "find", "to_passage"]
