"""The status of a connection to an MCP server."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from ..definition import ToolDefinition

ConnectionState = Literal["connecting", "ready", "failed", "stopped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A connection's status; `tools` are those listed last."""

    state: ConnectionState = "stopped"
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    error: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    latency: float | None = None
    restarts: int = 0
