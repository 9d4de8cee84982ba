"""All kinds in a file, in import order."""

from agents.models import (
    Agent,
    GuardrailPattern,
    LanguageModel,
    McpServer,
    ToolRegistration,
    Workflow,
)

from .catalog import AgentKind, ModelKind, ServerKind, ToolKind
from .import_plan import WorkflowKind
from .kind import ResourceKind

KINDS: dict[str, ResourceKind] = {
    kind.key: kind
    for kind in (
        ModelKind("models", LanguageModel),
        ServerKind("servers", McpServer),
        ToolKind("tools", ToolRegistration),
        AgentKind("agents", Agent),
        ResourceKind("patterns", GuardrailPattern),
        WorkflowKind("workflows", Workflow),
    )
}
