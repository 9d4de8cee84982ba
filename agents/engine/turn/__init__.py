"""One turn of a model: chunks in, text, thoughts and tool calls out."""

from .assembly import PlanResult, Turn, assemble

__all__ = ["PlanResult", "Turn", "assemble"]
