"""The columns that contain users' text, and those of the configuration that may quote it."""

from django.contrib.admin.models import LogEntry
from django.db.models import Model

from agents.accounts.models import Profile
from agents.insight.alerts.models import AlertChannel, Delivery, Notification
from agents.insight.problems.models import Problem
from agents.insight.suggestions.models import Suggestion
from agents.models import (
    Agent,
    AgentDraft,
    AgentStep,
    AgentVersion,
    Approval,
    Chunk,
    DocumentPart,
    Embed,
    Experience,
    GuardrailPattern,
    HistorySummary,
    Memory,
    Project,
    Run,
    RunAttachment,
    RunEvent,
    Schedule,
    StyleSignal,
    Trigger,
    WorkflowVersion,
)
from agents.review.experiments.models import ExperimentResult
from agents.review.models import (
    Comment,
    Example,
    Label,
    Note,
    Rating,
    Review,
    ReviewQueue,
    SavedView,
)
from chat.models import Attachment, ChatSession, Message, Prompt, PublicLink

# All columns that contain users' text.
TEXT_COLUMNS: dict[type[Model], tuple[str, ...]] = {
    Message: ("text",),
    Attachment: ("name",),
    ChatSession: ("title",),
    PublicLink: ("snapshot",),
    Run: (
        "query",
        "history",
        "files",
        "answer",
        "output",
        "detail",
        "advice",
        "overrides",
        "parameters",
    ),
    RunEvent: ("data",),
    AgentStep: (
        *("thought", "action_input", "observation", "request", "notes"),
        *("attachments", "sources"),
    ),
    RunAttachment: ("text", "name"),
    Approval: ("arguments", "new_arguments", "reason"),
    Rating: ("comment",),
    Comment: ("text",),
    Note: ("text",),
    Label: ("name",),
    Review: ("why", "correction"),
    Example: ("name", "question", "history", "observations", "expected", "checks", "tags"),
    ExperimentResult: ("name", "checks", "divergence", "problem"),
    SavedView: ("name", "query"),
    Schedule: ("parameters", "question", "trouble"),
    Trigger: ("name", "parameters", "question", "trouble"),
    AlertChannel: ("description",),
    AgentVersion: ("note",),
    Profile: ("about_me", "answer_style"),
    Prompt: ("title", "text"),
    Memory: ("subject", "text"),
    Experience: ("question", "text"),
    StyleSignal: ("quote",),
    HistorySummary: ("text",),
    Project: ("name", "description", "instructions"),
    LogEntry: ("object_repr", "change_message"),
    Problem: ("message",),
    Suggestion: ("text",),
    Delivery: ("subject", "text", "html", "payload", "responses"),
    Notification: ("text",),
}
# Configuration belongs to the installation: matches are only reported.
CONFIG_COLUMNS: dict[type[Model], tuple[str, ...]] = {
    Agent: ("description", "instructions", "example_questions"),
    AgentDraft: ("values", "replaced"),
    AgentVersion: ("snapshot",),
    WorkflowVersion: ("text",),
    GuardrailPattern: ("rubric",),
    Embed: ("title", "greeting", "examples"),
    ReviewQueue: ("instructions",),
    Chunk: ("text", "heading"),
    DocumentPart: ("text", "label"),
}
