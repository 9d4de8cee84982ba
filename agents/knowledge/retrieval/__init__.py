"""Search: full text and vectors, within a scope."""

from .finder import SearchResult, find

__all__ = ["SearchResult", "find"]
