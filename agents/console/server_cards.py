"""MCP servers as cards: health, tools, errors and who uses them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q

from agents.models import AgentTool, McpServer
from agents.runs.engine_messages import translate

from . import figures, uptime_strip

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
        return "" if ms is None else figures.milliseconds(ms)


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
    agent_names = _agents_of(row.pk for row in rows)
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


def _agents_of(servers: Iterable[int]) -> dict[int, list[str]]:
    """Return which agents have a tool of these servers."""
    links = AgentTool.objects.filter(tool__server__in=list(servers), agent__enabled=True)
    names_by_server: dict[int, list[str]] = {}
    pairs = links.order_by("agent__name").values_list("tool__server", "agent__name").distinct()
    for server, name in pairs:
        if server is not None:
            names_by_server.setdefault(server, []).append(name)
    return names_by_server
