"""The page after saving an MCP server: it connects, then asks which agents can use it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.access.requests import signed_in_user
from agents.catalog import agent_versions, mcp_servers
from agents.db.sentences import translate
from agents.models import Agent, AgentTool, McpServer
from agents.tools.mcp.configuration import command_line

from ..admin_classes.model_admin import ConsoleAdmin
from ..admin_classes.pages import render_page

INPUT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChoice:
    """An agent, and how many of the server's tools it has."""

    agent: Agent
    count: int


def page(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Display the page, which connects by itself; posted, connect and display the result."""
    server = get_object_or_404(McpServer, pk=pk)
    if not console.has_change_permission(request, server):
        raise PermissionDenied
    context = {
        "title": server.name,
        "opts": console.opts,
        "server": server,
        "shared_since": server.sign_in and mcp_servers.shared_since(server),
        "downloads": command_line.downloads_packages(mcp_servers.server_config(server)),
    }
    if server.sign_in and not _has_sign_in(server, signed_in_user(request)):
        context["needs_sign_in"] = True
    elif request.method == "POST":
        result = async_to_sync(mcp_servers.sync)(server, request.user)
        details = {"name": server.name, "state": str(result.health.state)}
        audit.record(request.user, audit.SERVER_TESTED, server, **details)
        context |= {
            "health": result.health,
            "error": translate(result.health.error),
            "result": result,
            "choices": _agent_choices(server),
            "may_choose": request.user.has_perm("agents.change_agent"),
        }
    return render_page(request, "admin/agents/mcpserver/setup.html", context)


def _has_sign_in(server: McpServer, user: User) -> bool:
    """Whether this user can connect: with their own sign-in, or with everyone's."""
    owner = mcp_servers.sign_in_owner(server, user)
    return mcp_servers.find_sign_in(server, owner.pk if owner else None) is not None


@require_POST
def choose_agents(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Give the server's tools to the selected agents, and take them from the others."""
    server = get_object_or_404(McpServer, pk=pk)
    if not console.has_change_permission(request, server) or not request.user.has_perm(
        "agents.change_agent"
    ):
        raise PermissionDenied
    selected = set(request.POST.getlist(INPUT))
    user = signed_in_user(request)
    for choice in _agent_choices(server):
        is_selected = str(choice.agent.pk) in selected
        if is_selected and not choice.count:
            give_tools(user, server, choice.agent)
        elif choice.count and not is_selected:
            take_tools(user, server, choice.agent)
    names = [choice.agent.name for choice in _agent_choices(server) if choice.count]
    sentence = _("No agent can use %(server)s.")
    if names:
        sentence = _("%(names)s can use %(server)s now.")
    messages.success(request, sentence % {"names": ", ".join(names), "server": server.name})
    return redirect("admin:agents_mcpserver_changelist")


def give_tools(user: User, server: McpServer, agent: Agent) -> None:
    """Give an agent all tools that the server offers, as a new version of the agent."""
    tools = list(server.tools.filter(is_gone=False, pending__isnull=True))
    with _new_version(user, agent, _("Added the tools of %(server)s."), server):
        AgentTool.objects.bulk_create(AgentTool(agent=agent, tool=tool) for tool in tools)


def take_tools(user: User, server: McpServer, agent: Agent) -> None:
    """Remove the server's tools from an agent, as a new version of the agent."""
    with _new_version(user, agent, _("Removed the tools of %(server)s."), server):
        AgentTool.objects.filter(agent=agent, tool__server=server).delete()


@contextmanager
def _new_version(user: User, agent: Agent, note: str, server: McpServer) -> Iterator[None]:
    """Save what changes in the block as a version, with an entry of the audit log."""
    with transaction.atomic():
        if not agent.version:
            agent_versions.save(agent, None)
        old_names = _tool_names(agent)
        yield
        agent_versions.save(agent, user, note % {"server": server.name})
        changes = {"tools": [old_names, _tool_names(agent)]}
        audit.record(user, audit.CHANGED, agent, name=agent.name, changes=changes)


def _tool_names(agent: Agent) -> list[str]:
    return list(agent.links.order_by("tool__name").values_list("tool__name", flat=True))


def _agent_choices(server: McpServer) -> list[AgentChoice]:
    """Return all agents, those that are off last."""
    links = AgentTool.objects.filter(tool__server=server)
    counts = Counter(links.values_list("agent", flat=True))
    agents = Agent.objects.order_by("-enabled", "name")
    return [AgentChoice(agent=agent, count=counts[agent.pk]) for agent in agents]
