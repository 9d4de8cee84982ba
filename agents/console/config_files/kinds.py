"""All that a file can tell of, in the order in which it is read."""

from agents.models import (
    Agent,
    GuardrailPattern,
    LanguageModel,
    McpServer,
    ToolRegistration,
    Workflow,
)

from .catalog import Agents, Models, Servers, Tools
from .import_plan import Workflows
from .kind import Kind

KINDS: dict[str, Kind] = {
    kind.key: kind
    for kind in (
        Models("models", LanguageModel),
        Servers("servers", McpServer),
        Tools("tools", ToolRegistration),
        Agents("agents", Agent),
        Kind("patterns", GuardrailPattern),
        Workflows("workflows", Workflow),
    )
}
