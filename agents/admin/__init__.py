"""The pages of Django's admin, one module a subject."""

from . import (
    access,
    audit,
    catalog,
    guardrails,
    knowledge,
    llms,
    runs,
    servers,
    tools,
    workflows,
)

__all__ = [
    "access",
    "audit",
    "catalog",
    "guardrails",
    "knowledge",
    "llms",
    "runs",
    "servers",
    "tools",
    "workflows",
]
