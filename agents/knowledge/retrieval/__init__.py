"""Search: full text and vectors, within a scope."""

from .finder import find
from .passages import to_passage

__all__ = ["find", "to_passage"]
