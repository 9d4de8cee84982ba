"""The models of `agents`; other packages import them from here."""

from .api_keys import ApiKey
from .audit import AuditEntry, AuditHead, AuditPerson
from .catalog.agent_tools import AgentTool
from .catalog.agents import Agent
from .catalog.databases import DatabaseConnection
from .catalog.drafts import AgentDraft
from .catalog.embeds import Embed, EmbedVisitor
from .catalog.llms import LanguageModel, ModelConnection
from .catalog.servers import McpServer, McpSignIn, McpSignInAttempt, ServerSample
from .catalog.tools import ToolRegistration
from .catalog.triggers import Trigger, TriggerCall
from .catalog.versions import AgentVersion
from .catalog.workflows import Schedule, Workflow, WorkflowVersion
from .deletions import Deletion
from .guardrails import GuardrailHit, GuardrailPattern, GuardrailUsage, GuardrailVerdict
from .installation import ConfigurationChange, InstallationSetting, Quota
from .jobs import JobCrash, PeriodicJob
from .knowledge.documents import Document, DocumentPart
from .knowledge.files import StoredFile
from .knowledge.passages import Chunk, ChunkVector, EmbeddingIndex
from .knowledge.refetching import Sitemap
from .knowledge.sources import DocumentSource
from .memory.experiences import Experience, ExperienceRun, Personalization, StyleSignal
from .memory.memories import HistorySummary, Memory, MemoryExclusion
from .metering.budgets import BudgetCounter, BudgetHold
from .metering.caches import CacheEntry, CacheGroup, CacheUsage
from .metering.model_slots import ModelGate, ModelSlot
from .metering.usage import ReadingUsage
from .oauth_apps import AuthorizationCode, DeviceCode, OAuthApp, OAuthGrant
from .processes import ServerProcess
from .runs.approvals import Approval
from .runs.attachments import RunAttachment
from .runs.disconnections import Disconnection
from .runs.events import RunEvent
from .runs.grants import ToolGrant
from .runs.push_targets import PushTarget
from .runs.runs import Run
from .runs.steps import AgentStep
from .sharing.access import HiddenTopic, Membership, OutsideTextTopic, ReviewScope
from .sharing.collections import Collection, CollectionAcceptance, CollectionShare
from .sharing.projects import Project, ProjectMember

__all__ = [
    "Disconnection",
    "Agent",
    "AgentDraft",
    "AgentStep",
    "AgentTool",
    "AgentVersion",
    "ApiKey",
    "Approval",
    "AuditEntry",
    "AuditHead",
    "AuditPerson",
    "AuthorizationCode",
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
    "ConfigurationChange",
    "DatabaseConnection",
    "Deletion",
    "DeviceCode",
    "Document",
    "DocumentPart",
    "DocumentSource",
    "Embed",
    "EmbedVisitor",
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
    "McpSignIn",
    "McpSignInAttempt",
    "Membership",
    "Memory",
    "MemoryExclusion",
    "ModelConnection",
    "ModelGate",
    "ModelSlot",
    "OAuthApp",
    "OAuthGrant",
    "OutsideTextTopic",
    "PeriodicJob",
    "Personalization",
    "Project",
    "ProjectMember",
    "Quota",
    "PushTarget",
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
    "Trigger",
    "TriggerCall",
    "Workflow",
    "WorkflowVersion",
]
