"""All kinds in a file, in import order."""

from django.contrib.auth.models import Group

from agents.models import (
    Agent,
    DatabaseConnection,
    GuardrailPattern,
    InstallationSetting,
    LanguageModel,
    McpServer,
    ModelConnection,
    Quota,
    ToolRegistration,
    Trigger,
    Workflow,
)

from .catalog import (
    AgentKind,
    ConnectionKind,
    DatabaseKind,
    ModelKind,
    ServerKind,
    ToolKind,
)
from .installation import GroupKind, SettingKind
from .kind import ResourceKind
from .limits import LimitKind
from .triggers import TriggerKind
from .workflows import WorkflowKind

KINDS: dict[str, ResourceKind] = {
    kind.key: kind
    for kind in (
        SettingKind("settings", InstallationSetting),
        GroupKind("groups", Group),
        ConnectionKind("connections", ModelConnection),
        ModelKind("models", LanguageModel),
        ServerKind("servers", McpServer),
        DatabaseKind("databases", DatabaseConnection),
        ToolKind("tools", ToolRegistration),
        AgentKind("agents", Agent),
        ResourceKind("patterns", GuardrailPattern),
        WorkflowKind("workflows", Workflow),
        TriggerKind("triggers", Trigger),
        LimitKind("limits", Quota),
    )
}


def register(*kinds: ResourceKind) -> None:
    """Add kinds of packages that build on the console, after those that they refer to."""
    KINDS.update({kind.key: kind for kind in kinds})
