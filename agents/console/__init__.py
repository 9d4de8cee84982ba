"""The admin console, one module per subject."""

from . import access, embeds, triggers, workflows
from .activity import audit, experiences, knowledge, runs
from .agent_admin import agents
from .guardrail_admin import guardrails
from .language_models import connections, models
from .mcp import mcp_servers
from .metering import budgets
from .system import settings_page
from .tool_admin import databases, tools

__all__ = [
    "access",
    "audit",
    "budgets",
    "connections",
    "databases",
    "experiences",
    "agents",
    "guardrails",
    "knowledge",
    "models",
    "runs",
    "embeds",
    "mcp_servers",
    "settings_page",
    "tools",
    "triggers",
    "workflows",
]
