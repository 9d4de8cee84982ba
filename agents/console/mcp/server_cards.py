"""MCP servers as cards: health, tools, errors and who uses them."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from agents.db.sentences import translate
from agents.models import AgentTool, McpServer
from agents.web.presentation.formats import formatting

from . import uptime_strip

TONES = {"ready": "green", "connecting": "amber", "failed": "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCard:
    server: McpServer
    tools: int
    enabled: int
    changed: int
    gone: int
    agents: list[str]
    strip: uptime_strip.UptimeStrip

    @property
    def tone(self) -> str:
        return TONES.get(self.server.state, "") if self.server.enabled else ""

    @property
    def address(self) -> str:
        server = self.server
        return server.url or " ".join([server.command, *map(str, server.args)])

    @property
    def error(self) -> str:
        is_failing = self.server.state == McpServer.State.FAILED
        return translate(self.server.last_error) if is_failing else ""

    @property
    def latency(self) -> str:
        ms = self.server.latency_ms
        return "" if ms is None else formatting.milliseconds(ms)


def build_cards(servers: Any) -> list[ServerCard]:
    """Return the servers with their figures."""
    tools = Q(tools__is_gone=False)
    counted = servers.annotate(
        tool_count=Count("tools", filter=tools, distinct=True),
        enabled_count=Count("tools", filter=tools & Q(tools__enabled=True), distinct=True),
        changed_count=Count("tools", filter=Q(tools__pending__isnull=False), distinct=True),
        gone_count=Count("tools", filter=Q(tools__is_gone=True), distinct=True),
    )
    rows = list(counted)
    links = AgentTool.objects.filter(tool__server__in=rows, agent__enabled=True)
    pairs = links.order_by("agent__name").values_list("tool__server", "agent__name").distinct()
    agent_names: dict[int | None, list[str]] = {}
    for server, name in pairs:
        agent_names.setdefault(server, []).append(name)
    return [
        ServerCard(
            server=row,
            tools=row.tool_count,
            enabled=row.enabled_count,
            changed=row.changed_count,
            gone=row.gone_count,
            agents=agent_names.get(row.pk, []),
            strip=uptime_strip.build_strip(row),
        )
        for row in rows
    ]
