"""The tools on the editor's page, grouped by where they come from."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Avg, Count, F, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from agents.models import Agent, AgentStep, McpServer, Run, ToolRegistration

from .. import figures
from ..agent_tools import ToolRow
from ..tool_settings import effect, requires_approval

Source = ToolRegistration.Source
USAGE_PERIOD = timedelta(days=30)
# Older runs aren't counted, so that the page stays fast.
MAX_RUNS = 5_000
TONES = {McpServer.State.READY: "green", McpServer.State.FAILED: "red"}


@dataclass(frozen=True, kw_only=True)
class EditedTool:
    """A tool's row with what is known about it."""

    row: ToolRow
    usage: str

    @cached_property
    def effect(self) -> str:
        """Its effect without the agent's own setting."""
        return str(effect(self.row.tool) or "")

    @property
    def needs_approval(self) -> bool:
        return requires_approval(self.row.tool)


@dataclass(frozen=True, kw_only=True)
class ToolGroup:
    """Tools of one source; `tone` is the health of a server."""

    title: str
    tools: list[EditedTool]
    about: str = ""
    tone: str = ""
    server: McpServer | None = None

    @property
    def enabled(self) -> int:
        return sum(tool.row.is_on for tool in self.tools)


def build(form: Any, agent: Agent | None, request: HttpRequest) -> list[ToolGroup]:
    """Return built-in tools, HTTP tools and each server's, sorted by name."""
    rows = sorted(form["given"].value(), key=lambda row: row.tool.name)
    for row in rows:
        row.label_controls()
    used = _usage(agent)
    tools = [EditedTool(row=row, usage=used.get(row.tool.name, "")) for row in rows]
    own = [tool for tool in tools if tool.row.tool.source == Source.OWN]
    http = [tool for tool in tools if tool.row.tool.source == Source.HTTP]
    servers = {tool.row.tool.server for tool in tools if tool.row.tool.server}
    groups = [
        ToolGroup(title=_("Built-in"), tools=own),
        ToolGroup(title=_("HTTP tools"), tools=http),
        *(_server_group(server, tools) for server in sorted(servers, key=lambda s: s.name)),
    ]
    return [group for group in groups if group.tools]


def _server_group(server: McpServer, tools: Iterable[EditedTool]) -> ToolGroup:
    state = _("disabled") if not server.enabled else server.get_state_display()
    return ToolGroup(
        title=server.name,
        tools=[tool for tool in tools if tool.row.tool.server == server],
        about=_("MCP server · %(state)s") % {"state": state},
        tone=TONES.get(McpServer.State(server.state), "") if server.enabled else "",
        server=server,
    )


def _usage(agent: Agent | None) -> dict[str, str]:
    """Return how each tool did in the agent's runs of the last 30 days."""
    if agent is None:
        return {}
    since = timezone.now() - USAGE_PERIOD
    runs = Run.objects.filter(agent=agent, started_at__gte=since).order_by("-pk")
    calls = AgentStep.objects.filter(
        run__in=list(runs.values_list("pk", flat=True)[:MAX_RUNS]),
        kind=AgentStep.Kind.TOOL,
        ended_at__isnull=False,
    )
    rows = (
        calls.order_by()
        .values("action")
        .annotate(
            count=Count("pk"),
            failed=Count("pk", filter=Q(status=AgentStep.Status.FAILED)),
            took=Avg(F("ended_at") - F("started_at")),
        )
    )
    return {row["action"]: _usage_text(row) for row in rows}


def _usage_text(row: Any) -> str:
    sentence = _("%(count)d calls in 30 days · %(took)s average · %(failed)d failed")
    took = figures.seconds(row["took"].total_seconds())
    return sentence % {"count": row["count"], "took": took, "failed": row["failed"]}
