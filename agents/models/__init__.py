from .access import AuditEntry, Membership, ReviewScope
from .approvals import Approval
from .catalog import Agent, AgentTool
from .guardrails import GuardrailPattern
from .knowledge import Chunk, Document
from .processes import ServerProcess
from .runs import Absence, AgentStep, Run, RunEvent
from .servers import McpServer
from .tools import ToolRegistration
from .versions import AgentVersion
from .workflows import Schedule, Workflow, WorkflowVersion

__all__ = [
    "Absence",
    "Agent",
    "AgentStep",
    "AgentTool",
    "AgentVersion",
    "Approval",
    "AuditEntry",
    "Chunk",
    "Document",
    "GuardrailPattern",
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
