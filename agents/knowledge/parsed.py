"""The text of a document in parts: what parsers return and the index takes."""

from .parsing import ParsedPart

__all__ = ["ParsedPart"]
