"""Actions on an MCP server and its tools: test, pause, enable and accept."""

from functools import partial

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from agents.access import audit
from agents.catalog import mcp_servers
from agents.db.sentences import translate
from agents.models import McpServer, ToolRegistration
from agents.tools.mcp.process.launch import launch_warnings

from ..admin_classes.model_admin import ConsoleAdmin
from ..admin_classes.pages import form_problems, posted_form, render_page
from ..tool_admin import circuit_breakers


@require_POST
def pause(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Pause or resume a server; its tools can't be called meanwhile."""
    server = get_object_or_404(McpServer, pk=pk)
    if not console.has_change_permission(request, server):
        raise PermissionDenied
    with transaction.atomic():
        console.set_values(request, server, enabled=request.POST.get("state") == "on")
        disconnect_on_commit(server.name)
    sentence = _("%(name)s was resumed.") if server.enabled else _("%(name)s is paused.")
    messages.success(request, sentence % {"name": server.name})
    return redirect("admin:agents_mcpserver_changelist")


@require_POST
def test_connection(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Connect once, list the tools, and report the result."""
    server = get_object_or_404(McpServer, pk=pk)
    if not console.has_change_permission(request, server):
        raise PermissionDenied
    result = async_to_sync(mcp_servers.sync)(server, request.user)
    details = {"name": server.name, "state": str(result.health.state)}
    audit.record(request.user, audit.SERVER_TESTED, server, **details)
    if result.health.state == "ready":
        names = ", ".join(tool.name for tool in result.health.tools)
        messages.success(request, _("Connected. Tools: %(names)s") % {"names": names or "—"})
        if result.changed:
            changed = _("Changed, and blocked until you accept the changes:")
            messages.warning(request, f"{changed} {', '.join(result.changed)}")
        if result.gone:
            gone = _("Removed from the server:")
            messages.warning(request, f"{gone} {', '.join(result.gone)}")
    else:
        messages.error(request, result.health.error)
    if request.POST.get("back") == "list":
        return redirect("admin:agents_mcpserver_changelist")
    return redirect(_change_url(server.pk))


@require_POST
def try_out(request: HttpRequest, console: ConsoleAdmin, pk: int | None = None) -> HttpResponse:
    """Connect to the server in the form, without saving it."""
    form = posted_form(console, request, pk)
    context = {
        "title": _("Test without saving"),
        "opts": console.opts,
        "problems": form_problems(form),
        "health": None,
        "warnings": [],
    }
    if form.is_valid():
        config = form.config
        details = {"name": config.name, "is_saved": False}
        audit_subject = form.instance if pk else "mcpserver"
        audit.record(request.user, audit.SERVER_TESTED, audit_subject, **details)
        context["health"] = async_to_sync(mcp_servers.probe)(config, request.user)
        if config.transport == "stdio":
            context["warnings"] = [translate(warning) for warning in launch_warnings(config)]
    return render_page(request, "admin/agents/mcpserver/try.html", context)


@require_POST
def switch_tool(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Enable or disable one tool of a server, for all agents."""
    row = get_object_or_404(ToolRegistration, pk=pk, server__isnull=False)
    if not request.user.has_perm("agents.change_toolregistration"):
        raise PermissionDenied
    with transaction.atomic():
        console.set_values(request, row, enabled=request.POST.get("enabled") == "on")
    circuit_breakers.reset_tool(row.name)
    sentence = _("Enabled: %(name)s") if row.enabled else _("Disabled: %(name)s")
    messages.success(request, sentence % {"name": row.name})
    return redirect(f"{_change_url(row.server_id)}#tool-{row.pk}")


@require_POST
def accept_tool(request: HttpRequest, console: ConsoleAdmin, pk: int) -> HttpResponse:
    """Accept the displayed change, and no later one."""
    row = get_object_or_404(ToolRegistration, pk=pk, server__isnull=False)
    if not request.user.has_perm("agents.change_toolregistration"):
        raise PermissionDenied
    try:
        with transaction.atomic():
            mcp_servers.accept(row, request.POST.get("seen", ""))
            console.keep(request, audit.TOOL_ACCEPTED, row)
    except mcp_servers.DefinitionChanged:
        messages.error(request, _("The definition changed again. Review the new changes."))
    else:
        messages.success(request, _("%(name)s accepted.") % {"name": row.name})
    return redirect(_change_url(row.server_id))


def disconnect_on_commit(*names: str) -> None:
    """Disconnect after the commit: a run that connects earlier would use the old settings."""
    for name in names:
        transaction.on_commit(partial(mcp_servers.disconnect, name))


def _change_url(server: int | None) -> str:
    return reverse("admin:agents_mcpserver_change", args=[server])
