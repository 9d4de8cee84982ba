"""The tools on the editor's page, grouped by where they come from."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext as _

from agents.console.tool_admin.tool_settings import effect, requires_approval
from agents.metering.figures import catch_up
from agents.metering.figures.query import By, FiguresQuery
from agents.metering.figures.selection import Selection, Viewer
from agents.metering.figures.windows import last_days
from agents.models import Agent, McpServer, ToolRegistration
from agents.web.presentation.formats import formatting

from ..agent_tools import ToolRow

Source = ToolRegistration.Source
USAGE_DAYS = 30
TONES = {McpServer.State.READY: "green", McpServer.State.FAILED: "red"}


@dataclass(frozen=True, kw_only=True)
class EditedTool:
    """A tool's row with what is known about it."""

    row: ToolRow
    usage: str
    lacks_fallback: bool = False  # so it is never used

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
    description: str = ""
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
    given = {row.tool.pk for row in rows if row.is_on}
    tools = [
        EditedTool(
            row=row,
            usage=used.get(row.tool.name, ""),
            lacks_fallback=row.tool.fallback_id not in {None, *given},
        )
        for row in rows
    ]
    own = [tool for tool in tools if tool.row.tool.source == Source.OWN]
    http = [tool for tool in tools if tool.row.tool.source == Source.HTTP]
    servers = {tool.row.tool.server for tool in tools if tool.row.tool.server}
    groups = [
        ToolGroup(title=_("Built-in"), tools=own),
        ToolGroup(title=_("HTTP tools"), tools=http),
    ]
    for server in sorted(servers, key=lambda server: server.name):
        state = server.get_state_display() if server.enabled else _("disabled")
        group = ToolGroup(
            title=server.name,
            tools=[tool for tool in tools if tool.row.tool.server == server],
            description=_("MCP server · %(state)s") % {"state": state},
            tone=TONES.get(McpServer.State(server.state), "") if server.enabled else "",
            server=server,
        )
        groups.append(group)
    return [group for group in groups if group.tools]


def _usage(agent: Agent | None) -> dict[str, str]:
    """Return how each tool did in the agent's runs of the last 30 days."""
    if agent is None:
        return {}
    catch_up.catch_up_for_page()
    window = last_days(USAGE_DAYS, timezone.now())
    query = FiguresQuery(Viewer(None), window, Selection(agent=agent.name))
    sentence = _("%(count)d calls in 30 days · %(took)s average · %(failed)d failed")
    return {
        name: sentence
        % {
            "count": totals["tool_calls"],
            "took": formatting.seconds(totals.seconds_per_call or 0.0),
            "failed": totals["tool_errors"],
        }
        for (name,), totals in query.split(By.TOOL).items()
        if totals["tool_calls"]
    }
