from .catalog import Agent, GuardrailPattern, ToolRegistration
from .knowledge import Chunk, Document
from .runs import AgentStep, Run, RunEvent

__all__ = [
    "Agent",
    "AgentStep",
    "Chunk",
    "Document",
    "GuardrailPattern",
    "Run",
    "RunEvent",
    "ToolRegistration",
]
