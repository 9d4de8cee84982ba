from .access import HiddenTopic, Membership, OutsideTextTopic, ReviewScope
from .agent_tools import AgentTool
from .approvals import Approval
from .attachments import RunAttachment
from .audit import AuditEntry, AuditHead, AuditPerson
from .budgets import BudgetCounter, BudgetHold
from .caches import CacheEntry, CacheGroup, CacheUsage
from .catalog import Agent
from .collections import Collection, CollectionAcceptance, CollectionShare
from .databases import DatabaseConnection
from .deletions import Deletion
from .disconnections import Disconnection
from .documents import Document, DocumentPart
from .drafts import AgentDraft
from .events import RunEvent
from .experiences import Experience, ExperienceRun, Personalization, StyleSignal
from .files import StoredFile
from .grants import ToolGrant
from .guardrails import GuardrailHit, GuardrailPattern, GuardrailUsage, GuardrailVerdict
from .installation import InstallationSetting, Quota
from .jobs import JobCrash, PeriodicJob
from .llms import LanguageModel
from .memory import HistorySummary, Memory, MemoryExclusion
from .model_slots import ModelGate, ModelSlot
from .passages import Chunk, ChunkVector, EmbeddingIndex
from .processes import ServerProcess
from .projects import Project, ProjectMember
from .refetching import Sitemap
from .runs import Run
from .servers import McpServer, ServerSample
from .steps import AgentStep
from .tools import ToolRegistration
from .usage import DeletedUsage, ReadingUsage
from .versions import AgentVersion
from .workflows import Schedule, Workflow, WorkflowVersion

__all__ = [
    "Disconnection",
    "Agent",
    "AgentDraft",
    "AgentStep",
    "AgentTool",
    "AgentVersion",
    "Approval",
    "AuditEntry",
    "AuditHead",
    "AuditPerson",
    "BudgetCounter",
    "BudgetHold",
    "CacheEntry",
    "CacheGroup",
    "CacheUsage",
    "Chunk",
    "ChunkVector",
    "Collection",
    "CollectionAcceptance",
    "CollectionShare",
    "DatabaseConnection",
    "DeletedUsage",
    "Deletion",
    "Document",
    "DocumentPart",
    "EmbeddingIndex",
    "Experience",
    "ExperienceRun",
    "GuardrailHit",
    "GuardrailPattern",
    "GuardrailUsage",
    "GuardrailVerdict",
    "HiddenTopic",
    "HistorySummary",
    "InstallationSetting",
    "JobCrash",
    "LanguageModel",
    "McpServer",
    "Membership",
    "Memory",
    "MemoryExclusion",
    "ModelGate",
    "ModelSlot",
    "OutsideTextTopic",
    "PeriodicJob",
    "Personalization",
    "Project",
    "ProjectMember",
    "Quota",
    "ReadingUsage",
    "ReviewScope",
    "Run",
    "RunAttachment",
    "RunEvent",
    "Schedule",
    "ServerProcess",
    "ServerSample",
    "Sitemap",
    "StoredFile",
    "StyleSignal",
    "ToolGrant",
    "ToolRegistration",
    "Workflow",
    "WorkflowVersion",
]
