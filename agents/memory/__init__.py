"""Long-term memory: facts and preferences of a user, or of a project.

`store` saves and replaces them, `statements` reads them from a message, `tool` lets an agent
suggest them, and `recall` finds those that fit a question.
"""

from .errors import MemoryRejected
from .policy import MemoryScope, scope_of
from .recall import RecalledMemory, recall
from .tool import RememberTool

__all__ = [
    "MemoryRejected",
    "MemoryScope",
    "RecalledMemory",
    "RememberTool",
    "recall",
    "scope_of",
]
