"""The admin console, one module per subject."""

from . import (
    access,
    agents,
    audit,
    budgets,
    databases,
    experiences,
    guardrails,
    knowledge,
    mcp_servers,
    models,
    runs,
    settings_page,
    tools,
    workflows,
)

__all__ = [
    "access",
    "audit",
    "budgets",
    "databases",
    "experiences",
    "agents",
    "guardrails",
    "knowledge",
    "models",
    "runs",
    "mcp_servers",
    "settings_page",
    "tools",
    "workflows",
]
