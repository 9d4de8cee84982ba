from .access import AuditEntry, Membership, ReviewScope
from .approvals import Approval
from .catalog import Agent
from .guardrails import GuardrailHit, GuardrailPattern, GuardrailVerdict
from .knowledge import Chunk, Document
from .processes import ServerProcess
from .runs import Absence, AgentStep, Run, RunEvent
from .servers import McpServer
from .tools import ToolRegistration
from .workflows import Schedule, Workflow, WorkflowVersion

__all__ = [
    "Absence",
    "Agent",
    "AgentStep",
    "Approval",
    "AuditEntry",
    "Chunk",
    "Document",
    "GuardrailHit",
    "GuardrailPattern",
    "GuardrailVerdict",
    "McpServer",
    "Membership",
    "ReviewScope",
    "Run",
    "RunEvent",
    "Schedule",
    "ServerProcess",
    "ToolRegistration",
    "Workflow",
    "WorkflowVersion",
]
