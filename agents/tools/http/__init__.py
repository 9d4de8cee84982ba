"""HTTP tools: an OpenAI-style definition with an HTTP endpoint."""

from .tool import HttpTool

__all__ = ["HttpTool"]
